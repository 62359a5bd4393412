package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/cosmos/cosmos-sdk/client/flags"
	"github.com/spf13/cobra"

	"github.com/tally-network/tally/cli/interrupt"
	"github.com/tally-network/tally/cli/numbers"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
	drillingv1 "github.com/tally-network/tally/gen/tally/drilling/v1"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/consume/split"
	"github.com/tally-network/tally/node/consume/teacher"
	"github.com/tally-network/tally/node/home"
	"github.com/tally-network/tally/node/market"
	"github.com/tally-network/tally/node/replay"
)

// validated is what tally order validate tells.
type validated struct {
	Kind  string `json:"kind"`
	Model string `json:"model"` // or the bundle that is continued
	replay.Continued
	Program string   `json:"program_root"` // of a step
	Start   string   `json:"start_root"`
	Data    string   `json:"data_root,omitempty"`
	Records int      `json:"records"`
	HeldOut int      `json:"heldout_records"`
	Trained []string `json:"trained,omitempty"` // initializers that training changes
	Loss    float32  `json:"loss_first"`
	doubts
	Units     int     `json:"units"`
	Steps     int     `json:"steps"`
	StepFLOPs uint64  `json:"step_flops"`
	StepPeak  uint64  `json:"step_peak_bytes"` // of what a step computes, beside the states before it
	Memory    uint64  `json:"memory_bytes"`    // of all values of the largest program, which roles compare with their limit
	Declined  bool    `json:"memory_declined"` // by roles whose settings leave that limit as it is
	StateSize uint64  `json:"state_bytes"`
	Kept      Kept    `json:"kept"`
	MaxPrice  uint64  `json:"max_price_utally"`
	Assurance string  `json:"assurance"`          // its form
	Replicas  int     `json:"replicas,omitempty"` // of each unit
	Audited   float64 `json:"audited_share"`      // of the segments that are re-executed by drawn auditors
	Detected  Odds    `json:"detected"`           // by drawn auditors alone
	Windows   Windows `json:"windows"`
	answer
}

// answer is what a network would make of an order.
type answer struct {
	Best    string          `json:"best_offer,omitempty"`
	Offers  []bid           `json:"offers,omitempty"`
	Auction *market.Outlook `json:"auction,omitempty"` // of an order that asks for one, in place of offers
	Split   *split.Outlook  `json:"split,omitempty"`   // of an order that is posted in parts, likewise

	asked bool // a network
}

// met returns an error if nobody would take the order now.
func (a *answer) met() error {
	switch {
	case !a.asked:
		return nil
	case a.Split != nil:
		return a.Split.Met()
	case a.Auction != nil && a.Auction.Obstacle != "":
		return fmt.Errorf("at an auction held now it would not win: %s", a.Auction.Obstacle)
	case a.Auction == nil && a.Best == "":
		return errNoOffer
	}
	return nil
}

// doubts are what an order may hold, and is hardly meant.
type doubts struct {
	Unknown   float64 `json:"unknown"`                      // share of the text whose characters have no token
	NotFinite int     `json:"not_finite_records,omitempty"` // of a batch
	Unused    int     `json:"unused_records,omitempty"`     // that the runs of a batch could take besides
	Texts     int     `json:"texts,omitempty"`              // among data
	Truncated int     `json:"truncated_texts,omitempty"`    // of these, whose end is left out
	Dropped   int     `json:"dropped_records,omitempty"`    // of these, of which nothing would be learnt

	Teacher teacher.Cost `json:"teacher,omitzero"`
}

// bid is an offer priced for an order.
type bid struct {
	Validator string `json:"validator"`
	Price     uint64 `json:"price_utally"`
	Deposit   uint64 `json:"deposit_utally"` // locked beside the maximum price
	Tax       uint64 `json:"tax_utally"`     // of it, for forced attempts
	Burn      uint64 `json:"burn_utally"`    // of it, destroyed
	Credit    uint64 `json:"credit_flops"`   // that providers are credited with, for what is burnt
	Providers int    `json:"providers"`
	Obstacle  string `json:"obstacle,omitempty"`

	Misses map[string]uint32 `json:"misses,omitempty"` // by condition: how many providers do not meet it
}

func bids(all []marketv1.Bid) (out []bid) {
	for _, b := range all {
		x := bid{b.Validator, b.Price, b.Deposit, b.Tax, b.Burn, b.Credit, int(b.Providers), b.Obstacle, map[string]uint32{}}
		for _, m := range b.Misses {
			x.Misses[m.Condition] = m.Providers
		}
		out = append(out, x)
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
			tax = fmt.Sprintf(", %v of it at most the tax for forced errors,", consume.Amount(b.Tax))
		}
		if b.Price == 0 {
			fmt.Fprintf(w, "  offer     %s %s\n", b.Validator, verdict)
			continue
		}
		fmt.Fprintf(w, "  offer     %s: %v%s and a deposit of %v, with %d providers; %v are burnt, which credits them with %.4g GFLOP; %s\n",
			b.Validator, consume.Amount(b.Price), tax, consume.Amount(b.Deposit), b.Providers, consume.Amount(b.Burn), float64(b.Credit)/1e9, verdict)
	}
}

func (e *env) orderValidate() *cobra.Command {
	r := &reader{e: e}
	memory, threads := uint64(defaultMemoryMB), 0
	var allow []string
	cmd := &cobra.Command{
		Use: "validate ORDER.yaml", Short: "Try an order without posting it",
		Long: `Reads an order file and what it names, builds the training step, or the run of a
batch, and runs it once, in at most --memory-mb. What no chain would take is refused. Without a home
or a node the rules of a new chain are the measure; with one it asks the network
what each offer would take, and fails if none meets the order.`,
		Example: "  tally order validate order.yaml\n  tally order validate order.yaml --home tally-devnet/consumer",
		Args:    arguments("validate ORDER.yaml"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			ctx := cmd.Context()
			if f := cmd.Flag(flags.FlagHome); f != nil && f.Changed && !home.Exists(e.home) {
				return fmt.Errorf("%s: %w; without --home the rules of a new chain are the measure", e.home, home.ErrNone)
			}
			s, err := consume.ReadOrder(args[0], allow...)
			if err != nil {
				return err
			}
			drafted, err := interrupt.Run(ctx, func() (*split.Drafted, error) {
				return split.Read(ctx, s, engine.Bounded(cpu.New(threads), memory<<20))
			})
			if err != nil {
				return err
			}
			d, v := drafted.Whole, newValidated(s.Source(), drafted.Whole)
			v.Split = drafted.Split.Outlook()
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
				if err := r.quote(ctx, drafted, v); err != nil {
					return err
				}
			}
			if err := e.show(v, func(w io.Writer) { v.tell(w) }); err != nil {
				return err
			}
			return v.met()
		},
	}
	r.flags(cmd.Flags())
	allowFlag(cmd, &allow)
	cmd.Flags().Var(numbers.Within(&threads, 0, home.MaxThreads), "threads", "threads that compute (default one per processor)")
	cmd.Flags().Var(numbers.Within(&memory, 1, maxMemoryMB), "memory-mb", "refuse orders whose programs need more memory than this")
	return cmd
}

// allowFlag adds the flag that allows folders of files beside that of the order.
func allowFlag(cmd *cobra.Command, folders *[]string) {
	cmd.Flags().StringArrayVar(folders, "allow", nil, "another folder in which files of the order may lie, or a source such as s3://BUCKET that it may read by your credentials; those who work on it see them")
}

// errNoOffer says that an order is sound, and nobody would take it now.
var errNoOffer = errors.New("no offer meets the order")

func newValidated(source string, d *consume.Draft) *validated {
	p, c := &d.Problem, d.Terms
	kept := newKept(&job.Order{Problem: *p, Conditions: c}, d.Job.Step.Gives())
	memory := d.Memory()
	v := &validated{
		Memory: memory, Declined: memory > home.MemoryGB*1_000_000_000,
		Kind: p.Kind, Model: source, Continued: replay.ContinuedOf(p), Program: p.Step.String(), Start: p.Start.String(), Data: given(p.Data),
		Records: p.Records, Loss: d.Loss, doubts: doubts{d.Unknown, d.NotFinite, d.Unused(), d.Texts, d.Truncated, d.Dropped, d.Teacher}, Units: p.Units(), Steps: p.Units() * p.Steps,
		StepFLOPs: p.StepFLOPs, StepPeak: uint64(d.Job.Step.Peak()), StateSize: p.StateBytes, Kept: kept, MaxPrice: c.MaxPrice,
		Audited:   min(1, float64(c.Auditors*(c.AuditSegments+c.TopSegments))/float64(p.Segments())),
		Assurance: string(c.Form(p.Segments())), Replicas: c.Replicas,
		Windows: newWindows(p, &c), Detected: newOdds(p, &c),
		Trained: d.Trained(),
	}
	if d.HeldOut != nil {
		v.HeldOut = d.HeldOut.Shape[0]
	}
	return v
}

// Windows says what challenge windows cost an order.
type Windows struct {
	Unit  int64 `json:"unit_ms"`
	All   int64 `json:"all_ms"`   // how long they alone hold it up, at least
	Depth int   `json:"depth"`    // rounds that may be ahead of those whose windows are over
	Least int64 `json:"least_ms"` // no round waits for a window if each takes at least this
	ideal int64 // All of an order of which no round waits
}

func newWindows(p *job.Problem, c *job.Conditions) Windows {
	w := Windows{Unit: c.UnitWindow, All: c.Windows(p.Rounds), Depth: min(c.Speculate, p.Rounds), Least: c.UnitWindow}
	switch {
	case w.Depth == p.Rounds:
		w.Least = 0
	case w.Depth > 1:
		w.Least = (c.UnitWindow + int64(w.Depth) - 2) / int64(w.Depth-1)
	}
	ideal := *c
	ideal.Speculate = job.MaxUnits
	w.ideal = ideal.Windows(p.Rounds)
	return w
}

// String says it to people.
func (w Windows) String() string {
	took := func(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
	switch {
	case w.Depth == 0 && w.All > w.ideal:
		return fmt.Sprintf("of %v in all: each round waits for one; with speculate: all it would be %v", took(w.All), took(w.ideal))
	case w.Least > 0:
		return fmt.Sprintf("of at least %v in all: no round waits for one of %v if each takes %v, for %d may be ahead", took(w.All), took(w.Unit), took(w.Least), w.Depth)
	}
	return fmt.Sprintf("of %v in all: no round waits for one", took(w.All))
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

	auditors int // of each unit
}

func newOdds(p *job.Problem, c *job.Conditions) Odds {
	share := func(odds uint64) float64 { return float64(odds) / proof.Certain }
	n := p.Segments()
	one := proof.Detected(n, 1, c.AuditSegments, c.Auditors)
	return Odds{
		auditors: c.Auditors,
		Segment:  share(one), Proven: share(proof.Detected(n, 1, c.Audited(math.MaxUint64), c.Auditors)),
		Unit:  share(proof.Detected(n, n, c.AuditSegments, c.Auditors)),
		Tenth: share(proof.AtLeastOnce(one, max(p.Units()/10, 1))),
	}
}

// quote adds what the offers would take.
func (r *reader) quote(ctx context.Context, drafted *split.Drafted, v *validated) (err error) {
	if drafted.Split != nil {
		v.Split, err = split.Foresee(ctx, split.OnChain{Env: r.role}, drafted.Split, false)
		return err
	}
	d := drafted.Whole
	if d.Project != 0 {
		a, err := drillingv1.NewQueryClient(r.role.Chain.Conn).Project(ctx, &drillingv1.QueryProjectRequest{Project: d.Project})
		switch {
		case err != nil:
			return err
		case a.Project.Status != drillingv1.STATUS_ADMITTED:
			return fmt.Errorf("project %d is %s: only an admitted one takes tasks; tally drill project ls shows which are", d.Project, newProjectRow(&a.Project).Status)
		}
	}
	if d.Terms.Auction {
		v.Auction, err = market.Foresee(ctx, r.role, d.Unsigned(), uint64(d.Bid))
		return err
	}
	q, err := consume.Quote(ctx, r.role, d.Unsigned())
	if err != nil {
		return err
	}
	v.Best, v.Offers = q.Best, bids(q.Bids)
	return nil
}

func (v *validated) tell(w io.Writer) {
	if v.Kind == job.Batch {
		fmt.Fprintf(w, "%s can be applied\n  data      %d records\n", v.Model, v.Records)
	} else {
		fmt.Fprintf(w, "%s can be trained\n  data      %d records, %d held out\n", v.Model, v.Records, v.HeldOut)
		if v.Parent != "" {
			fmt.Fprintf(w, "  continues %v\n", v.Continued)
		}
		fmt.Fprintf(w, "  trained   %s; write those that are to stay under problem.frozen\n", some(v.Trained))
		fmt.Fprintf(w, "  loss      %.3f at the first step\n", v.Loss)
	}
	warn(func(format string, a ...any) { fmt.Fprintf(w, "  "+format+"\n", a...) }, v.NotFinite, v.Unused, v.Records)
	if v.Unknown > 0 {
		fmt.Fprintf(w, "  WARNING   %.2g %% of the text are characters without a token: give the model one output more than there are different characters\n", 100*v.Unknown)
	}
	if v.Truncated+v.Dropped > 0 {
		fmt.Fprintf(w, "  WARNING   of %d texts %d lose their end, and %d records teach nothing and are left out\n", v.Texts, v.Truncated, v.Dropped)
	}
	fmt.Fprintf(w, "  work      %d units, %d steps of %.4g GFLOP and %.3g MB; a checkpoint has %.3g MB%v\n", v.Units, v.Steps, float64(v.StepFLOPs)/1e9, float64(v.StepPeak)/1e6, float64(v.StateSize)/1e6, v.Teacher)
	limit := fmt.Sprintf("within the %d GB", home.MemoryGB)
	if v.Declined {
		limit = fmt.Sprintf("MORE than the %d GB", home.MemoryGB)
	}
	fmt.Fprintf(w, "  memory    %.3g GB for a program, %s that providers and custodians allow unless their memory_gb says otherwise\n", float64(v.Memory)/1e9, limit)
	what := "all of it"
	if v.Kept.Needed > 1 {
		what = fmt.Sprintf("a fragment of %.3g MB; any %d make it up", float64(v.Kept.Bytes)/1e6, v.Kept.Needed)
	}
	fmt.Fprintf(w, "  kept      by %s, each %s: %.2g times the data\n", numbers.Several(v.Kept.Custodians, "custodian"), what, v.Kept.Copies)
	v.tellAssurance(w)
	fmt.Fprintf(w, "  windows   %v\n", v.Windows)
	fmt.Fprintf(w, "  price     at most %v\n", consume.Amount(v.MaxPrice))
	switch {
	case v.Split != nil:
		v.Split.Tell(w)
	case v.Auction != nil:
		v.Auction.Tell(w)
	case v.asked && v.Offers == nil:
		fmt.Fprintln(w, "  offers    none: no validator sells computation at present")
	case !v.asked:
		fmt.Fprintln(w, "  offers    not asked: this is by the rules of a new chain; with --home of a consumer its network says what it would take")
	}
	tellBids(w, v.Offers)
	if v.Best != "" {
		fmt.Fprintf(w, "  best      %s\n", v.Best)
	}
}

// mostNamed bounds how many names people are shown in a row.
const mostNamed = 8

// some lists names, the first ones if they are many.
func some(names []string) string {
	if len(names) <= mostNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNamed], ", "), len(names)-mostNamed)
}

// tellAssurance says how the units are checked, and what that finds.
func (v *validated) tellAssurance(w io.Writer) {
	if v.Replicas > 0 {
		fmt.Fprintf(w, "  replicas  %d of each unit, by providers drawn by stake; where they differ, a dispute decides\n", v.Replicas)
		fmt.Fprintf(w, "            who has a share f of the stake has all of them with f^%d; anybody can challenge the result\n", v.Replicas)
		return
	}
	fmt.Fprintf(w, "  audits    of %.0f %% of the segments, by %s; anybody can challenge the rest\n", 100*v.Audited, numbers.Several(v.Detected.auditors, "drawn auditor"))
	o := v.Detected
	fmt.Fprintf(w, "  detect    one forged segment with %.3g %% (%.3g %% of a provider with a long record), a forged unit with %.3g %%,\n", 100*o.Segment, 100*o.Proven, 100*o.Unit)
	fmt.Fprintf(w, "            one segment in a tenth of the units with %.3g %%; one honest challenger finds all\n", 100*o.Tenth)
}
