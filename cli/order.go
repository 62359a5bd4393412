package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/home"
)

func (e *env) order() *cobra.Command {
	cmd := &cobra.Command{
		Use: "order", GroupID: "orders",
		Short:   "Begin, check, list, show and follow orders",
		Example: "  tally order validate order.yaml\n  tally order ls --home tally-devnet/consumer",
	}
	cmd.AddCommand(e.orderNew(), e.orderValidate(), e.orderLs(), e.orderShow(), e.orderWatch())
	return cmd
}

// listed is one order as tally order ls shows it.
type listed struct {
	Order    string `json:"order"`
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
		Order: b.Id, Status: consume.StatusName(b.Posting.Status), Consumer: o.Consumer, Units: o.Problem.Units(),
		MaxPrice: o.Conditions.MaxPrice, Price: b.Posting.Price, Deposit: b.Posting.Deposit, Posted: moment(b.Posting.PostedAt),
	}, &o, nil
}

func moment(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }

func (e *env) orderLs() *cobra.Command {
	r := &reader{e: e}
	var all bool
	most := 1000
	cmd := &cobra.Command{
		Use: "ls", Short: "List orders",
		Long:    `Lists the orders of the home's account, or those of everybody, oldest first.`,
		Example: "  tally order ls --home tally-devnet/consumer\n  tally order ls --all --endpoints tally-devnet/endpoints.json",
		Args:    arguments("ls"),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := r.dial(cmd.Context()); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, r.close()) }()
			whose := r.account
			if all {
				whose = ""
			} else if whose == "" {
				return fmt.Errorf("%s: %w, so there are no orders of yours; --all lists those of everybody", e.home, home.ErrNone)
			}
			booked, err := consume.Orders(cmd.Context(), r.role, whose, most)
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
				fmt.Fprintln(t, "ORDER\tSTATUS\tUNITS\tPRICE\tAT MOST\tPOSTED")
				for _, o := range rows {
					fmt.Fprintf(t, "%s\t%s\t%d\t%v\t%v\t%s\n", o.Order[:16], o.Status, o.Units, consume.Amount(o.Price), consume.Amount(o.MaxPrice), o.Posted)
				}
				_ = t.Flush()
			})
		},
	}
	r.flags(cmd.Flags())
	cmd.Flags().BoolVar(&all, "all", false, "orders of everybody")
	cmd.Flags().Var(within(&most, 1, 1_000_000), "limit", "orders at most")
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
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := r.dial(cmd.Context()); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, r.close()) }()
			s, err := r.showOrder(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return e.show(s, func(w io.Writer) { s.tell(w) })
		},
	}
	r.flags(cmd.Flags())
	return cmd
}

func (r *reader) showOrder(ctx context.Context, text string) (*shown, error) {
	id, err := consume.Find(ctx, r.role, "", text)
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
		listed: row, Expires: moment(book.Order.Posting.ExpiresAt), Rounds: p.Rounds, Shards: p.Shards, Steps: p.Steps,
		Batch: p.Batch, Seed: p.Seed, FLOPs: p.UnitFLOPs() * uint64(p.Units()),
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
	if now.Status == marketv1.STATUS_OPEN {
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
	if s.Lead != "" {
		fmt.Fprintf(w, "  lead      %s\n", s.Lead)
	}
	tellBids(w, s.Offers)
	if s.Outcome != nil {
		outcome(w, s.Outcome, func(account string) string { return account })
	}
}

func (e *env) orderWatch() *cobra.Command {
	b := e.buyer()
	var out string
	var force bool
	cmd := &cobra.Command{
		Use: "watch ORDER", Short: "Follow an order to its end, and fetch the model or the results",
		Long: `Follows an order of the home's account until it is settled, hands over its files
meanwhile, and fetches the model or the results with their proof. It takes up what
tally train or tally batch left. ORDER is an id, or the beginning of one.`,
		Example: "  tally order watch 3f09a1 --home tally-devnet/consumer --out model",
		Args:    arguments("watch ORDER"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if !home.Exists(e.home) {
				return fmt.Errorf("%s: %w: only the consumer's own can fetch what it bought", e.home, home.ErrNone)
			}
			if err := b.start(cmd); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, b.home.Close()) }()
			return b.watch(cmd.Context(), args[0], out, force)
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "directory for model and proof (default order-ID)")
	cmd.Flags().BoolVar(&force, "force", false, "overwrite a model and proof that are there already")
	b.peer(cmd.Flags())
	return cmd
}

func (b *buyer) watch(ctx context.Context, text, out string, force bool) error {
	id, err := consume.Find(ctx, b.role, b.home.Address, text)
	if err != nil {
		return err
	}
	p, err := consume.Look(ctx, b.role, id)
	if err != nil {
		return err
	}
	results := p.Lease != nil && p.Lease.Order.Problem.Kind == job.Batch
	if !results {
		err = consume.CanDeliver(delivery(out, id), force)
	} else if out != "" {
		err = consume.CanDeliverResults(out, force)
	}
	if err != nil {
		return err
	}
	if p.Lease != nil && p.Lease.Order.Consumer != b.home.Address {
		return fmt.Errorf("order %s is of %s, and this is the home of %s", id.Short(), p.Lease.Order.Consumer, b.home.Address)
	}
	if p, err = b.follow(ctx, id, func(consume.Progress) bool { return false }); err != nil {
		return err
	}
	if p.Lease.Order.Problem.Kind == job.Batch {
		return b.gather(ctx, p.Lease, batchFlags{out: out, force: force})
	}
	var t trained
	if t.Outcome, err = consume.NewOutcome(ctx, b.role, p.Lease); err != nil {
		return err
	}
	if t.Delivery, err = b.deliver(ctx, p.Lease, out); err != nil {
		return err
	}
	err = b.e.show(watched{t.Outcome, t.Delivery}, func(w io.Writer) { delivered(w, &t) })
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

// validated is what tally order validate tells.
type validated struct {
	Model     string  `json:"model"`            // or the bundle that is continued
	Parent    string  `json:"parent,omitempty"` // order that it continues
	Program   string  `json:"program_root"`     // of a training step
	Start     string  `json:"start_root"`
	Data      string  `json:"data_root"`
	Records   int     `json:"records"`
	HeldOut   int     `json:"heldout_records"`
	Loss      float32 `json:"loss_first"`
	Unknown   float64 `json:"unknown"` // share of the text whose characters have no token
	Units     int     `json:"units"`
	Steps     int     `json:"steps"`
	StepFLOPs uint64  `json:"step_flops"`
	StepPeak  uint64  `json:"step_peak_bytes"` // of what a step computes, beside the states before it
	Memory    uint64  `json:"memory_bytes"`    // of all values of the largest program, which roles compare with their limit
	Declined  bool    `json:"memory_declined"` // by roles whose settings leave that limit as it is
	StateSize uint64  `json:"state_bytes"`
	Kept      Kept    `json:"kept"`
	MaxPrice  uint64  `json:"max_price_utally"`
	Audited   float64 `json:"audited_share"` // of the segments that are re-executed by drawn auditors
	Detected  Odds    `json:"detected"`      // by drawn auditors alone
	Best      string  `json:"best_offer,omitempty"`
	Offers    []bid   `json:"offers,omitempty"`

	asked bool // a network
}

// bid is an offer priced for an order.
type bid struct {
	Validator string `json:"validator"`
	Price     uint64 `json:"price_utally"`
	Deposit   uint64 `json:"deposit_utally"` // locked beside the maximum price
	Tax       uint64 `json:"tax_utally"`     // of it, for forced attempts
	Providers int    `json:"providers"`
	Obstacle  string `json:"obstacle,omitempty"`
}

func bids(all []marketv1.Bid) (out []bid) {
	for _, b := range all {
		out = append(out, bid{b.Validator, b.Price, b.Deposit, b.Tax, int(b.Providers), b.Obstacle})
	}
	return out
}

func tellBids(w io.Writer, all []bid) {
	for _, b := range all {
		verdict := "meets it"
		if b.Obstacle != "" {
			verdict = "does not meet it: " + b.Obstacle
		}
		tax := ""
		if b.Tax > 0 {
			tax = fmt.Sprintf(", %v of it the tax for forced errors,", consume.Amount(b.Tax))
		}
		fmt.Fprintf(w, "  offer     %s: %v%s and a deposit of %v, with %d providers; %s\n", b.Validator, consume.Amount(b.Price), tax, consume.Amount(b.Deposit), b.Providers, verdict)
	}
}

func (e *env) orderValidate() *cobra.Command {
	r := &reader{e: e}
	memory, threads := uint64(defaultMemoryMB), 0
	var allow []string
	cmd := &cobra.Command{
		Use: "validate ORDER.yaml", Short: "Try an order without posting it",
		Long: `Reads an order file and what it names, builds the training step, and runs it
once, in at most --memory-mb. What no chain would take is refused. Without a home
or a node the rules of a new chain are the measure; with one it asks the network
what each offer would take, and fails if none meets the order.`,
		Example: "  tally order validate order.yaml\n  tally order validate order.yaml --home tally-devnet/consumer",
		Args:    arguments("validate ORDER.yaml"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			ctx := cmd.Context()
			s, err := consume.ReadSpec(args[0], allow...)
			if err != nil {
				return err
			}
			d, err := interruptible(ctx, func() (*consume.Draft, error) {
				return consume.NewDraft(ctx, s, engine.Bounded(cpu.New(threads), memory<<20))
			})
			if err != nil {
				return err
			}
			v := newValidated(&s, d)
			v.asked = home.Exists(e.home) || r.endpoints != "" || r.node.RPC != ""
			if !v.asked {
				if err := d.Suits(&job.DefaultParams, dispute.DefaultRules); err != nil {
					return fmt.Errorf("by the rules of a new chain: %w; name the --home of a consumer to go by those of its network", err)
				}
			} else {
				if err := r.dial(ctx); err != nil {
					return err
				}
				defer func() { err = errors.Join(err, r.close()) }()
				if err := r.quote(ctx, d, v); err != nil {
					return err
				}
			}
			if err := e.show(v, func(w io.Writer) { v.tell(w, &s) }); err != nil {
				return err
			}
			if v.asked && v.Best == "" {
				return errNoOffer
			}
			return nil
		},
	}
	r.flags(cmd.Flags())
	allowFlag(cmd, &allow)
	cmd.Flags().Var(within(&threads, 0, home.MaxThreads), "threads", "threads that compute (default one per processor)")
	cmd.Flags().Var(within(&memory, 1, maxMemoryMB), "memory-mb", "refuse orders whose programs need more memory than this")
	return cmd
}

// allowFlag adds the flag that allows folders of files beside that of the order.
func allowFlag(cmd *cobra.Command, folders *[]string) {
	cmd.Flags().StringArrayVar(folders, "allow", nil, "another folder in which files of the order may lie; those who work on it see them")
}

// errNoOffer says that an order is sound, and nobody would take it now.
var errNoOffer = errors.New("no offer meets the order")

func newValidated(s *consume.Spec, d *consume.Draft) *validated {
	p, c := &d.Problem, d.Terms
	kept := newKept(&job.Order{Problem: *p, Conditions: c}, d.Job.Start.Slots)
	memory := d.Memory()
	return &validated{
		Memory: memory, Declined: memory > home.MemoryGB*1_000_000_000,
		Model: cmp.Or(s.Problem.Model, s.Problem.Continue), Parent: given(d.Problem.Parent), Program: p.Step.String(), Start: p.Start.String(), Data: p.Data.String(),
		Records: p.Records, HeldOut: d.HeldOut.Shape[0], Loss: d.Loss, Unknown: d.Unknown, Units: p.Units(), Steps: p.Units() * p.Steps,
		StepFLOPs: p.StepFLOPs, StepPeak: uint64(d.Job.Step.Peak()), StateSize: p.StateBytes, Kept: kept, MaxPrice: c.MaxPrice,
		Audited:  min(1, float64(c.Auditors*(c.AuditSegments+c.TopSegments))/float64(p.Segments())),
		Detected: newOdds(p, &c),
	}
}

// Kept says what custodians keep of each checkpoint.
type Kept struct {
	Custodians int     `json:"custodians"`
	Needed     int     `json:"needed"` // of them, to have it all
	Bytes      uint64  `json:"bytes"`  // of each
	Copies     float64 `json:"copies"` // of all together
}

func newKept(o *job.Order, slots []graph.Slot) Kept {
	c, size := o.Fragments(), o.Problem.StateBytes
	k := Kept{Custodians: c.Fragments, Needed: c.Needed, Bytes: size}
	if c.Cuts() {
		k.Bytes = c.Bytes(slots)
	}
	k.Copies = float64(k.Custodians) * float64(k.Bytes) / float64(size)
	return k
}

// Odds are those with which drawn auditors find a fraud, if nobody else looks.
type Odds struct {
	Segment float64 `json:"segment"`        // one forged segment of a unit
	Proven  float64 `json:"segment_proven"` // the same, of a provider with a long record
	Unit    float64 `json:"unit"`           // all segments of one unit
	Tenth   float64 `json:"tenth_of_units"` // one segment in each of a tenth of the units, at least one
}

func newOdds(p *job.Problem, c *job.Conditions) Odds {
	share := func(odds uint64) float64 { return float64(odds) / proof.Certain }
	n := p.Segments()
	one := proof.Detected(n, 1, c.AuditSegments, c.Auditors)
	return Odds{
		Segment: share(one), Proven: share(proof.Detected(n, 1, c.Audited(math.MaxUint64), c.Auditors)),
		Unit:  share(proof.Detected(n, n, c.AuditSegments, c.Auditors)),
		Tenth: share(proof.AtLeastOnce(one, max(p.Units()/10, 1))),
	}
}

// quote adds what the offers would take.
func (r *reader) quote(ctx context.Context, d *consume.Draft, v *validated) error {
	q, err := consume.Quote(ctx, r.role, d.Unsigned())
	if err != nil {
		return err
	}
	v.Best, v.Offers = q.Best, bids(q.Bids)
	return nil
}

func (v *validated) tell(w io.Writer, s *consume.Spec) {
	fmt.Fprintf(w, "%s can be trained\n", v.Model)
	fmt.Fprintf(w, "  data      %d records, %d held out\n", v.Records, v.HeldOut)
	fmt.Fprintf(w, "  loss      %.3f nats per token at the first step\n", v.Loss)
	if v.Unknown > 0 {
		fmt.Fprintf(w, "  WARNING   %.2g %% of the text are characters without a token: give the model one output more than there are different characters\n", 100*v.Unknown)
	}
	fmt.Fprintf(w, "  work      %d units, %d steps of %.4g GFLOP and %.3g MB; a checkpoint has %.3g MB\n", v.Units, v.Steps, float64(v.StepFLOPs)/1e9, float64(v.StepPeak)/1e6, float64(v.StateSize)/1e6)
	limit := fmt.Sprintf("within the %d GB", home.MemoryGB)
	if v.Declined {
		limit = fmt.Sprintf("MORE than the %d GB", home.MemoryGB)
	}
	fmt.Fprintf(w, "  memory    %.3g GB for a program, %s that providers and custodians allow unless their memory_gb says otherwise\n", float64(v.Memory)/1e9, limit)
	what := "all of it"
	if v.Kept.Needed > 1 {
		what = fmt.Sprintf("a fragment of %.3g MB; any %d make it up", float64(v.Kept.Bytes)/1e6, v.Kept.Needed)
	}
	fmt.Fprintf(w, "  kept      by %s, each %s: %.2g times the data\n", several(v.Kept.Custodians, "custodian"), what, v.Kept.Copies)
	fmt.Fprintf(w, "  audits    of %.0f %% of the segments, by %s; anybody can challenge the rest\n", 100*v.Audited, several(s.Conditions.Auditors, "drawn auditor"))
	o := v.Detected
	fmt.Fprintf(w, "  detect    one forged segment with %.3g %% (%.3g %% of a provider with a long record), a forged unit with %.3g %%,\n", 100*o.Segment, 100*o.Proven, 100*o.Unit)
	fmt.Fprintf(w, "            one segment in a tenth of the units with %.3g %%; one honest challenger finds all\n", 100*o.Tenth)
	fmt.Fprintf(w, "  price     at most %v\n", consume.Amount(v.MaxPrice))
	if v.asked && v.Offers == nil {
		fmt.Fprintln(w, "  offers    none: no validator sells computation at present")
	} else if !v.asked {
		fmt.Fprintln(w, "  offers    not asked: this is by the rules of a new chain; with --home of a consumer its network says what it would take")
	}
	tellBids(w, v.Offers)
	if v.Best != "" {
		fmt.Fprintf(w, "  best      %s\n", v.Best)
	}
}
