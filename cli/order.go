package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/cli/data"
	"github.com/tally-network/tally/cli/numbers"
	"github.com/tally-network/tally/core/job"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/evidence"
	"github.com/tally-network/tally/node/home"
	"github.com/tally-network/tally/node/light"
)

func (e *env) order() *cobra.Command {
	cmd := &cobra.Command{
		Use: "order", GroupID: "orders",
		Short:   "Begin, check, list, show and follow orders, renew their proofs, and take records out of them",
		Example: "  tally order validate order.yaml\n  tally order ls --home tally-devnet/consumer",
	}
	cmd.AddCommand(data.NewOrder(e.show, e.err), e.orderValidate(), e.orderLs(), e.orderShow(), e.orderWatch(), (&reader{e: e}).renew(), e.orderExtract())
	return cmd
}

// listed is one order as tally order ls shows it.
type listed struct {
	Order    string `json:"order"`
	Kind     string `json:"kind"`
	Status   string `json:"status"`
	Consumer string `json:"consumer"`
	Units    int    `json:"units"`
	MaxPrice uint64 `json:"max_price_utally"`
	Price    uint64 `json:"price_utally"`   // of the match
	Deposit  uint64 `json:"deposit_utally"` // locked beside it until the order ends
	Posted   string `json:"posted"`
}

func newListed(b *marketv1.BookedOrder) (listed, *job.Order, error) {
	o, err := wire.OrderFromProto(&b.Order)
	if err != nil {
		return listed{}, nil, fmt.Errorf("order %s: %w", b.Id, err)
	}
	return listed{
		Order: b.Id, Kind: o.Problem.Kind, Status: wire.NameOf(b.Posting.Status), Consumer: o.Consumer, Units: o.Problem.Units(),
		MaxPrice: o.Conditions.MaxPrice, Price: b.Posting.Price, Deposit: b.Posting.Deposit, Posted: wire.Moment(b.Posting.PostedAt),
	}, &o, nil
}

func (e *env) orderLs() *cobra.Command {
	r := &reader{e: e}
	var all bool
	most := 1000
	cmd := &cobra.Command{
		Use: "ls", Short: "List orders",
		Long:    `Lists the orders of the home's account, or those of everybody, oldest first.`,
		Example: "  tally order ls --home tally-devnet/consumer\n  tally order ls --all --endpoints tally-devnet/endpoints.json",
		Args:    arguments("ls"),
		RunE: r.asks(func(ctx context.Context, _ []string) error {
			whose := r.account
			if all {
				whose = ""
			} else if whose == "" {
				return fmt.Errorf("%s: %w, so there are no orders of yours; --all lists those of everybody", e.home, home.ErrNone)
			}
			booked, err := consume.Orders(ctx, r.role.Chain.Conn, whose, most)
			if err != nil {
				return err
			}
			rows := []listed{}
			for i := range booked {
				row, _, err := newListed(&booked[i])
				if err != nil {
					return err
				}
				rows = append(rows, row)
			}
			return e.show(rows, func(w io.Writer) {
				t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
				fmt.Fprintln(t, "ORDER\tKIND\tSTATUS\tUNITS\tPRICE\tAT MOST\tPOSTED")
				for _, o := range rows {
					fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%v\t%v\t%s\n", o.Order[:16], o.Kind, o.Status, o.Units, consume.Amount(o.Price), consume.Amount(o.MaxPrice), o.Posted)
				}
				_ = t.Flush()
			})
		}),
	}
	r.flags(cmd.Flags())
	cmd.Flags().BoolVar(&all, "all", false, "orders of everybody")
	cmd.Flags().Var(numbers.Within(&most, 1, 1_000_000), "limit", "orders at most")
	return cmd
}

// shown is an order as tally order show tells it.
type shown struct {
	listed
	Progress string           `json:"progress"`
	Expires  string           `json:"expires"`
	Rounds   int              `json:"rounds"`
	Shards   int              `json:"shards"`
	Steps    int              `json:"steps"` // of a unit
	Batch    int              `json:"batch"`
	Seed     uint64           `json:"seed"`
	FLOPs    uint64           `json:"flops"` // of all units
	Needs    []string         `json:"needs,omitempty"`
	Lead     string           `json:"lead,omitempty"`
	Offers   []bid            `json:"offers,omitempty"` // while it waits for one
	Outcome  *consume.Outcome `json:"outcome,omitempty"`
}

func (e *env) orderShow() *cobra.Command {
	r := &reader{e: e}
	cmd := &cobra.Command{
		Use: "show ORDER", Short: "Show an order and what has come of it",
		Long:    `Shows an order. ORDER is its id, or the beginning of it.`,
		Example: "  tally order show 3f09a1 --home tally-devnet/consumer\n  tally order show 3f09a1 --json",
		Args:    arguments("show ORDER"),
		RunE: r.asks(func(ctx context.Context, args []string) error {
			s, err := r.showOrder(ctx, args[0])
			if err != nil {
				return err
			}
			return e.show(s, func(w io.Writer) { s.tell(w) })
		}),
	}
	r.flags(cmd.Flags())
	return cmd
}

func (r *reader) showOrder(ctx context.Context, text string) (*shown, error) {
	id, err := consume.Find(ctx, r.role.Chain.Conn, "", text)
	if err != nil {
		return nil, err
	}
	q := marketv1.NewQueryClient(r.role.Chain.Conn)
	book, err := q.Order(ctx, &marketv1.QueryOrderRequest{Order: id.String()})
	if err != nil {
		return nil, fmt.Errorf("order %s: %w", id.Short(), err)
	}
	row, o, err := newListed(&book.Order)
	if err != nil {
		return nil, err
	}
	p := &o.Problem
	s := &shown{
		listed: row, Expires: wire.Moment(book.Order.Posting.ExpiresAt), Rounds: p.Rounds, Shards: p.Shards, Steps: p.Steps,
		Batch: p.Batch, Seed: p.Seed, FLOPs: p.UnitFLOPs() * uint64(p.Units()), Needs: o.Conditions.Needs.Describe(),
	}
	now, err := consume.Look(ctx, r.role, id)
	if err != nil {
		return nil, err
	}
	s.Progress = now.String()
	if left := now.Left(r.role.Chain.Head().Time, 0); left != "" {
		s.Progress += "; " + left
	}
	if now.Lease != nil {
		s.Lead = now.Lease.Lead()
		out, err := consume.NewOutcome(ctx, r.role, now.Lease)
		s.Outcome = &out
		return s, err
	}
	if now.Status == marketv1.STATUS_OPEN && o.Conditions.Auction {
		s.Progress += "; it waits for a clearing, which tally market shows"
	} else if now.Status == marketv1.STATUS_OPEN {
		x, err := q.Explain(ctx, &marketv1.QueryExplainRequest{Order: id.String()})
		if err != nil {
			return nil, fmt.Errorf("offers for order %s: %w", id.Short(), err)
		}
		s.Offers = bids(x.Bids)
	}
	return s, nil
}

func (s *shown) tell(w io.Writer) {
	fmt.Fprintf(w, "Order %s\n  %s\n", s.Order, s.Progress)
	fmt.Fprintf(w, "  consumer  %s\n", s.Consumer)
	fmt.Fprintf(w, "  posted    %s, expires %s if nobody meets it, at most %v; deposit %v\n", s.Posted, s.Expires, consume.Amount(s.MaxPrice), consume.Amount(s.Deposit))
	fmt.Fprintf(w, "  work      %d rounds of %d units of %d steps; batch %d, seed %d; %.4g GFLOP\n", s.Rounds, s.Shards, s.Steps, s.Batch, s.Seed, float64(s.FLOPs)/1e9)
	if len(s.Needs) > 0 {
		fmt.Fprintf(w, "  needs     %s\n", strings.Join(s.Needs, "; "))
	}
	if s.Lead != "" {
		fmt.Fprintf(w, "  lead      %s\n", s.Lead)
	}
	tellBids(w, s.Offers)
	if s.Outcome != nil {
		outcome(w, s.Outcome, func(account string) string { return account })
		if s.Kind == job.Training && s.Outcome.Merged > 0 {
			fmt.Fprintln(w, "  model     the chain keeps its root alone: scores by round, and whether all of it is finite, tally verify tells of the proof")
		}
	}
}

// renewed is what tally order renew tells.
type renewed struct {
	Bundle string `json:"bundle"`
	Trust  string `json:"trust_root"`
}

// renew is tally order renew.
func (r *reader) renew() *cobra.Command {
	var out, trust string
	cmd := &cobra.Command{
		Use: "renew BUNDLE", Short: "Anchor a proof bundle in the newest block",
		Long: `Rewrites what anchors a bundle: the newest header that validators signed, and the path
from it to the order's settlement. Who trusts today's validators can then check work of
any age. The rest of the bundle stays as it is; tally verify checks it.

The node may lie, so its header must follow from the block that the home has pinned of
the chain (tally trust pin), or else from the one that anchored the bundle before. That
must be less than 16 hours old. Beyond, --trust names today's set, by its hash.`,
		Example: "  tally order renew proof.bundle --endpoints tally-devnet/endpoints.json\n  tally order renew proof.bundle --rpc http://127.0.0.1:26657 --grpc 127.0.0.1:9090",
		Args:    arguments("renew BUNDLE"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			roots, err := evidence.NewRoots(r.e.home, trust, "--trust", light.Progress(r.e.err))
			if err != nil {
				return err
			}
			if err := r.dial(cmd.Context()); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, r.close()) }()
			set, err := evidence.Renew(cmd.Context(), r.role.Chain, args[0], cmp.Or(out, args[0]), roots)
			if err != nil {
				return err
			}
			t := renewed{cmp.Or(out, args[0]), set.String()}
			return r.e.show(t, func(w io.Writer) {
				fmt.Fprintf(w, "%s is anchored in the newest block of %s. Check it:\n  tally verify %s --trust %s\n", t.Bundle, r.role.Chain.ChainID, t.Bundle, t.Trust)
			})
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "file for the bundle as it then is (default BUNDLE itself)")
	cmd.Flags().StringVar(&trust, "trust", "", "validator set of today to trust: its hash, of 64 digits, or else a file that notes it")
	r.flags(cmd.Flags())
	return cmd
}

func (e *env) orderWatch() *cobra.Command {
	b := e.buyer()
	to := target{}
	cmd := &cobra.Command{
		Use: "watch ORDER", Short: "Follow an order to its end, and fetch the model or the results",
		Long: `Follows an order of the home's account until it is settled, hands over its files
meanwhile, and fetches the model or the results with their proof. It takes up what
tally train or tally batch left. ORDER is an id, or the beginning of one.`,
		Example: "  tally order watch 3f09a1 --home tally-devnet/consumer --out model",
		Args:    arguments("watch ORDER"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := to.check(); err != nil {
				return err
			}
			if !home.Exists(e.home) {
				return fmt.Errorf("%s: %w: only the consumer's own can fetch what it bought", e.home, home.ErrNone)
			}
			if err := b.start(cmd); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, b.close()) }()
			return b.watch(cmd.Context(), args[0], to)
		},
	}
	to.flags(cmd.Flags(), "model or results")
	b.peer(cmd.Flags())
	return cmd
}

func (b *buyer) watch(ctx context.Context, text string, to target) error {
	id, err := consume.Find(ctx, b.role.Chain.Conn, b.as.Account, text)
	if err != nil {
		return err
	}
	p, err := consume.Look(ctx, b.role, id)
	if err != nil {
		return err
	}
	if p.Consumer != b.as.Account {
		return fmt.Errorf("order %s is of %s, and this is the home of %s", id.Short(), p.Consumer, b.as.Account)
	}
	if p.Kind != job.Batch {
		err = consume.CanDeliver(delivery(to.out, id), to.force)
	} else if to.out != "" {
		err = consume.CanDeliverResults(to.out, to.force)
	}
	if err != nil {
		return err
	}
	if p, err = b.follow(ctx, id, func(consume.Progress) bool { return false }); err != nil {
		return err
	}
	if p.Lease.Order.Problem.Kind == job.Batch {
		return b.gather(ctx, p.Lease, to)
	}
	var t trained
	if t.Outcome, err = consume.NewOutcome(ctx, b.role, p.Lease); err != nil {
		return err
	}
	if t.Delivery, err = b.deliver(ctx, p.Lease, to.out); err != nil {
		return err
	}
	err = errors.Join(b.e.show(watched{t.Outcome, t.Delivery}, func(w io.Writer) { delivered(w, &t) }), diverged(t.Delivery))
	if t.Delivery == nil {
		err = errors.Join(err, errNoModel)
	}
	return err
}

// watched is what tally order watch tells in the end.
type watched struct {
	consume.Outcome
	*consume.Delivery
}
