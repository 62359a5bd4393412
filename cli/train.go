package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	errorsmod "cosmossdk.io/errors"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/cli/curve"
	"github.com/tally-network/tally/cli/data"
	"github.com/tally-network/tally/cli/interrupt"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/desk"
	"github.com/tally-network/tally/node/evidence"
	"github.com/tally-network/tally/node/home"
	"github.com/tally-network/tally/node/market"
	"github.com/tally-network/tally/node/replay"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/node/seals"
)

// buyer is a verb that acts for the consumer of a home, which another may have open.
type buyer struct {
	member
	desk    *desk.Desk
	as      consume.Buyer
	node    home.Node
	role    *role.Env // asks the chain and tries steps; the desk does the rest
	telling sync.Mutex
}

func (e *env) buyer() *buyer {
	return &buyer{member: member{e: e, settings: home.Settings{Role: home.Consumer}}}
}

// start finds or opens a desk of the home, and connects to the chain. The caller calls close.
func (b *buyer) start(cmd *cobra.Command) (err error) {
	log, err := b.e.logger(b.e.err)
	if err != nil {
		return err
	}
	b.desk, err = desk.Open(cmd.Context(), desk.Options{
		Dir: b.e.home, Log: log, Tell: b.tell,
		Open: func() (*home.Home, error) { return b.open(cmd) },
	})
	if err != nil {
		return err
	}
	if err = b.connect(cmd, log); err != nil {
		return errors.Join(err, b.close())
	}
	return nil
}

// connect connects a verb to the chain, by the settings of the home and the flags.
func (b *buyer) connect(cmd *cobra.Command, log *slog.Logger) error {
	s, err := home.LoadSettings(b.e.home)
	if err == nil {
		err = b.change(cmd.Flags(), &s)
	}
	if err != nil {
		return err
	}
	for _, name := range []string{"listen", "announce", "store-gb"} {
		if cmd.Flags().Changed(name) && !b.desk.Own() {
			return fmt.Errorf("--%s: another process has %s open, with settings of its own: give it once that has ended", name, b.e.home)
		}
	}
	ctx, at := cmd.Context(), client.Endpoints{RPC: s.Node.RPC, GRPC: s.Node.GRPC}
	if err := client.Probe(ctx, at); err != nil {
		return err
	}
	defer b.waiting(s.Node)()
	c, err := client.Dial(ctx, at)
	if err != nil {
		return err
	}
	b.node, b.role = s.Node, role.New(role.Parts{Name: s.Name, Chain: c, Exec: s.Exec(), Log: log})
	if b.as, err = b.desk.Buyer(ctx); err == nil && b.changed && b.desk.Own() {
		err = s.Save(b.e.home)
	}
	return err
}

func (b *buyer) close() error {
	err := b.desk.Close()
	if b.role != nil {
		err = errors.Join(err, b.role.Chain.Close())
	}
	return err
}

func (b *buyer) tell(format string, args ...any) {
	b.telling.Lock()
	defer b.telling.Unlock()
	fmt.Fprintf(b.e.progress(), format+"\n", args...)
}

// watchNode says when the node is gone, and when it answers again, until it is stopped.
func (b *buyer) watchNode(ctx context.Context) (stop func()) {
	ctx, stop = context.WithCancel(ctx)
	go func() {
		node, away := b.node, false
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(quiet):
			}
			err := client.Probe(ctx, client.Endpoints{RPC: node.RPC, GRPC: node.GRPC})
			if gone := err != nil; gone == away || ctx.Err() != nil {
				continue
			} else if away = gone; gone {
				b.tell("waiting for the network at %s", node.RPC)
			} else {
				b.tell("the network answers again")
			}
		}
	}()
	return stop
}

func (e *env) train() *cobra.Command {
	b := e.buyer()
	var wait, force, again bool
	var out string
	var allow []string
	cmd := &cobra.Command{
		Use: "train ORDER.yaml", GroupID: "orders",
		Short: "Have a model trained",
		Long: `Posts a training order and locks its price. The order is tried first: what cannot
be trained is refused before any money moves. It returns when the network has the
order's files, and with --wait when the order is settled and the model is here,
with a proof of it.

The same order gives the same bits. So an order that this account has posted already is
taken up where it stands, and not paid for twice, unless it ended without its result;
--again posts it once more. Stay until the network has the files: Ctrl-C before lets
the order end without a result, and its deposit is lost.

Any number of orders may be under way from one home, each followed by a command of its
own. One of them has the home open and works for the others; when it ends, another does.

Everybody who works on the order sees the model and the text. So an order file,
which somebody else may have written, names files in its own folder and below, none
of them hidden; --allow adds a folder, once for each.

An order file, with paths relative to it:

` + indent(strings.TrimSuffix(data.ExampleOrder, "\n")),
		Example: `  tally train order.yaml --wait --home tally-devnet/consumer
  tally train order.yaml --endpoints tally-devnet/endpoints.json --home ~/.tally-consumer`,
		Args: arguments("train ORDER.yaml"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			s, err := consume.ReadSpec(args[0], allow...)
			if err != nil {
				return err
			}
			s.Fetching = data.Progress(cmd.ErrOrStderr())
			if wait || out != "" { // before anything is paid for it
				if err := consume.CanDeliver(cmp.Or(out, "."), force || out == ""); err != nil {
					return err
				}
			}
			if err := b.start(cmd); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, b.close()) }()
			return b.train(cmd.Context(), s, trainFlags{again, wait, force, out})
		},
	}
	f := cmd.Flags()
	allowFlag(cmd, &allow)
	f.BoolVar(&wait, "wait", false, "wait until the order is settled, and fetch model and proof")
	f.StringVar(&out, "out", "", "directory for model and proof (default order-ID)")
	f.BoolVar(&force, "force", false, "overwrite the model and proof that are in the --out directory")
	f.BoolVar(&again, "again", false, "post the order, and pay for it, though it was posted before")
	b.peer(f)
	return cmd
}

// trained is what tally train tells in the end.
type trained struct {
	consume.Outcome
	*consume.Delivery
	LossFirst        replay.Loss   `json:"loss_first"`
	HeldOutLossFirst replay.Loss   `json:"heldout_loss_first"`
	MetricsFirst     replay.Scores `json:"metrics_first,omitempty"` // before training, on held-out records; no round is compared with them
}

// trainFlags are the flags of tally train.
type trainFlags struct {
	again, wait, force bool
	out                string
}

func (b *buyer) train(ctx context.Context, s consume.Spec, f trainFlags) error {
	b.tell("trying one step of the order: %s on %s", cmp.Or(s.Problem.Model, s.Problem.Continue), s.Problem.Source())
	d, err := interrupt.Run(ctx, func() (*consume.Draft, error) { return consume.NewDraft(ctx, s, b.role.Jobs.Exec) })
	if err != nil {
		return err
	}
	t := trained{LossFirst: replay.Loss(d.Loss)}
	first, err := d.Job.Scores(ctx, d.Job.Start, d.HeldOut, b.role.Jobs.Exec)
	if err != nil {
		return err
	}
	t.MetricsFirst, t.HeldOutLossFirst = first, replay.Loss(first.Loss())
	b.tell("%d records to train on, %d held out; loss %.3f; before training, on held-out records: %v", d.Problem.Records, d.HeldOut.Shape[0], t.LossFirst, first)
	id, err := b.place(ctx, d, f.again)
	if err != nil {
		return err
	}
	if f.wait {
		if err := consume.CanDeliver(delivery(f.out, id), f.force); err != nil {
			return err
		}
	}
	last, err := b.follow(ctx, id, func(p consume.Progress) bool { return !f.wait && p.HandedOver })
	if err != nil {
		return err
	}
	if t.Outcome, err = consume.NewOutcome(ctx, b.role, last.Lease); err != nil {
		return err
	}
	if last.Ended() && last.Lease.Round == 0 {
		return errors.Join(b.e.show(t, func(w io.Writer) { delivered(w, &t) }), errNoModel)
	}
	if !f.wait {
		return b.e.show(t, func(w io.Writer) {
			stands := "The network has the order's files and goes on alone. Fetch the result within a quarter of an hour of its end: custodians let it go then."
			if last.Ended() {
				stands = "The order is settled. Fetch the model:"
			}
			if s.Problem.Best.Patience > 0 && !last.Ended() {
				stands += " Nobody compares its rounds meanwhile, so its patience ends it only while a process of this home follows it, as this does:"
			}
			fmt.Fprintf(w, "%s\n  tally order watch %s --home %s\n", stands, id, b.e.home)
		})
	}
	if t.Delivery, err = b.deliver(ctx, last.Lease, f.out); err != nil {
		return err
	}
	return errors.Join(b.e.show(t, func(w io.Writer) { delivered(w, &t) }), diverged(t.Delivery))
}

// diverged returns an error for a model that is of no use.
func diverged(d *consume.Delivery) error {
	if d != nil && d.ModelDiverged() {
		return fmt.Errorf("the model is of no use: %v", d.Diverged)
	}
	return nil
}

// errNoModel is returned for an order that ended before there was a model.
var errNoModel = errors.New("the order ended before its first round was merged: there is no model")

// place posts a draft, or finds the order by which it was posted before.
func (b *buyer) place(ctx context.Context, d *consume.Draft, again bool) (canon.Hash, error) {
	o, err := d.Order(b.as)
	if err != nil {
		return canon.Hash{}, err
	}
	p, nonce, err := consume.FindEarlier(ctx, b.role, &o)
	switch {
	case err != nil:
		return canon.Hash{}, err
	case p == nil || again:
	case !p.Resumable:
		b.tell("order %s asks for the same, on other terms or without its whole result (%v): this one is posted besides", p.Order.ID(), &p.Progress)
	case !p.OwnPeer:
		return p.Order.ID(), fmt.Errorf("order %s asks for the same, and was posted from another home, which alone can hand over its files: go on there, or post another with --again", p.Order.ID())
	default:
		b.tell("order %s asks for the same: taking it up (--again would post and pay for another)", p.Order.ID())
		return p.Order.ID(), b.desk.Keep(ctx, &p.Order, d.Body)
	}
	o.Nonce = nonce
	return b.post(ctx, &o, d)
}

// post posts an order, unless it is there already.
func (b *buyer) post(ctx context.Context, o *job.Order, d *consume.Draft) (canon.Hash, error) {
	if err := consume.Afford(ctx, b.role, o); err != nil {
		return canon.Hash{}, err
	}
	if err := b.foretell(ctx, o, uint64(d.Bid)); err != nil {
		return canon.Hash{}, err
	}
	deposit, err := consume.Deposit(ctx, b.role, o)
	if err != nil {
		return canon.Hash{}, err
	}
	id := o.ID()
	if d.Bid != 0 {
		if sealed, _, err := seals.Rules(ctx, b.role.Chain.Conn); err != nil || !sealed {
			return id, cmp.Or(err, errors.New("the order has a bid, and bids are open here, so that its maxPrice is the bid: leave the line bid out, and lower maxPrice"))
		}
		price, err := seals.PriceOfUnit(ctx, b.role.Chain.Conn, o, uint64(d.Bid))
		if err == nil {
			err = seals.In(b.e.home).Want(id.String(), price)
		}
		if err != nil {
			return id, err
		}
	}
	if err := b.desk.Post(ctx, o, d.Body); err != nil {
		if ctx.Err() != nil {
			b.tell("It was interrupted while the order was on its way: it may be posted, and its price locked. Whether it is:\n  tally order show %s --home %s\nThe same command again takes it up.", id, b.e.home)
			return id, err
		}
		if refused := new(errorsmod.Error); errors.As(err, &refused) {
			return id, err // by the chain: it is not posted
		}
		look, cancel := context.WithTimeout(context.WithoutCancel(ctx), quiet)
		defer cancel()
		if p, unknown := consume.Look(look, b.role, id); unknown != nil || p.Lease == nil && p.Ended() {
			return id, fmt.Errorf("%w; it may still be posted: tally order show %s --home %s tells", err, id, b.e.home)
		}
		b.tell("order %s was posted already: taking it up", id)
		return id, nil
	}
	p := &o.Problem
	b.tell("order %s posted: %d units of %d steps, at most %v locked, and a deposit of %v", id, p.Units(), p.Steps, consume.Amount(o.Conditions.MaxPrice), consume.Amount(deposit))
	return id, nil
}

// warnSealed says what becomes of a sealed bid for an order that nobody here looks after any more.
func (b *buyer) warnSealed(ctx context.Context, id canon.Hash) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), quiet)
	defer cancel()
	r, err := auctionv1.NewQueryClient(b.role.Chain.Conn).Seal(ctx, &auctionv1.QuerySealRequest{Bidder: b.as.Account, Order: id.String()})
	if err == nil && r.Seal != nil && r.Seal.Price == 0 {
		b.tell("A bid for it is sealed: %v are BURNT unless it is revealed before %s. This waits for its time:\n  tally tx auction reveal-bid %s --home %s -y",
			consume.Amount(r.Seal.Deposit), wire.Moment(r.Progress.RevealsUntil), id, b.e.home)
	}
}

// foretell says what keeps an order with a secret bid from being leased now, or makes it dear, if anything does.
func (b *buyer) foretell(ctx context.Context, o *job.Order, bid uint64) error {
	if o.Conditions.Auction {
		out, err := market.Foresee(ctx, b.role, o, bid)
		switch {
		case err != nil:
			return err
		case out.Obstacle != "":
			b.tell("WARNING: at an auction held now it would not win: %s", out.Obstacle)
		case out.Dear != "":
			b.tell("WARNING: %s. While it waits, this takes it back: tally tx market cancel-order %s --home %s -y", out.Dear, o.ID(), b.e.home)
		}
		return nil
	}
	q, err := consume.Quote(ctx, b.role, o)
	if err == nil && q.Best == "" {
		b.tell("no offer meets it at present; it waits for one until it expires: %s", consume.Obstacles(q.Bids))
	}
	return err
}

// follow tells how an order gets on until it ends or until is satisfied.
func (b *buyer) follow(ctx context.Context, id canon.Hash, until func(consume.Progress) bool) (consume.Progress, error) {
	defer b.watchNode(ctx)()
	told, round, since := "", -1, int64(0)
	p, err := consume.Follow(ctx, b.role, id, func(p consume.Progress) bool {
		if p.Lease != nil && p.HandedOver && p.Lease.Round != round {
			if now := b.role.Chain.Head().Time; round >= 0 || p.Lease.Round == 0 {
				since = now
			}
			round = p.Lease.Round
		}
		if now := p.String(); now != told {
			told = now
			if left := p.Left(b.role.Chain.Head().Time, since); left != "" {
				now += "; " + left
			}
			b.tell("%s", now)
		}
		return until(p)
	})
	if ctx.Err() != nil && p.Lease == nil && p.Auction {
		b.warnSealed(ctx, id)
	}
	switch {
	case ctx.Err() == nil:
	case p.Lease == nil:
		b.tell("The order waits for an offer, or nobody could tell. If it is matched while you are away, it ends without a result, and its deposit is lost. Go on:\n  tally order watch %s --home %s\nor take it back while it waits:\n  tally tx market cancel-order %s --home %s -y", id, b.e.home, id, b.e.home)
	case p.HandedOver:
		b.tell("The order goes on without you. To take it up again:\n  tally order watch %s --home %s", id, b.e.home)
	default:
		b.tell("The network does NOT have the order's files yet. Unless you go on at once, the order ends without a result, and its deposit goes to those who waited:\n  tally order watch %s --home %s", id, b.e.home)
	}
	return p, err
}

// delivery returns the directory for what an order gives.
func delivery(out string, order canon.Hash) string { return cmp.Or(out, "order-"+order.Short()) }

// deliver fetches what a settled order gave; nothing, if it was stopped before
// its first round was merged.
func (b *buyer) deliver(ctx context.Context, l *job.Lease, out string) (*consume.Delivery, error) {
	if l.Round == 0 {
		return nil, nil
	}
	out, err := filepath.Abs(delivery(out, l.Order.ID()))
	if err != nil {
		return nil, err
	}
	b.tell("fetching the model and its proof")
	d, err := b.desk.Deliver(ctx, desk.DeliveryRequest{Order: l.Order.ID(), Dir: out})
	if err != nil {
		return nil, err
	}
	if err := curve.Write(d.Model, out); err != nil {
		return nil, err
	}
	t, err := evidence.ParseTrust(d.Model.Trust)
	if err != nil {
		return nil, err
	}
	return d.Model, evidence.Remember(b.e.home, t)
}

// delivered tells how an order ended.
func delivered(w io.Writer, t *trained) {
	outcome(w, &t.Outcome, func(account string) string { return account })
	if t.Delivery == nil {
		return
	}
	unit := ""
	if t.Tokenizer != "" {
		unit = " nats per token"
	}
	if t.LossFirst != 0 {
		fmt.Fprintf(w, "  loss      %.3f → %.3f, held out %.3f → %.3f%s\n", t.LossFirst, t.LossLast, t.HeldOutLossFirst, t.HeldOutLossLast, unit)
	} else {
		fmt.Fprintf(w, "  loss      %.3f, held out %.3f%s\n", t.LossLast, t.HeldOutLossLast, unit)
	}
	if line := curve.Line(curve.Of(t.Delivery)); line != "" {
		fmt.Fprintf(w, "  rounds    %s\n", line)
	}
	rate(w, &t.Rating)
	files(w, t.Delivery)
}
