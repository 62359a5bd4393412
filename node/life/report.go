package life

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	grpctypes "github.com/cosmos/cosmos-sdk/types/grpc"
	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/core/power"
	drillingv1 "github.com/tally-network/tally/gen/tally/drilling/v1"
	powerv1 "github.com/tally-network/tally/gen/tally/power/v1"
	supplyv1 "github.com/tally-network/tally/gen/tally/supply/v1"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/partner"
)

// Report is what came of a life so far.
type Report struct {
	Seconds  float64        `json:"seconds"`
	Height   int64          `json:"height"`
	Counted  int            `json:"counted"` // how often everything added up
	Orders   []Orders       `json:"orders"`
	Reasons  map[string]int `json:"reasons"` // why orders stopped early
	Guests   Guests         `json:"guests"`
	Burnt    uint64         `json:"burnt_utally"`
	Training uint64         `json:"training_micro_ut"` // credited since genesis
	Drilling uint64         `json:"drilling_micro_ut"`
	Workers  int            `json:"workers"` // with computing power
}

// Orders are those of one kind. What has not ended is under way.
type Orders struct {
	Kind     string `json:"kind"`
	Posted   int    `json:"posted"`
	Settled  int    `json:"settled"`  // with the result of an honest run
	Stopped  int    `json:"stopped"`  // by the rules, before their end
	Refunded int    `json:"refunded"` // cancelled, or nobody met them
}

// Guests are providers that come and go.
type Guests struct {
	Came int `json:"came"`
	Cuts int `json:"cuts"` // a guest was gone without a word
	Left int `json:"left"` // with their stake
}

func newReport() Report {
	r := Report{Reasons: map[string]int{}, Orders: []Orders{{Kind: drilling.name}}}
	for i := range kinds {
		r.Orders = append(r.Orders, Orders{Kind: kinds[i].name})
	}
	return r
}

// of returns the orders of a kind.
func (r *Report) of(kind string) *Orders {
	for i := range r.Orders {
		if r.Orders[i].Kind == kind {
			return &r.Orders[i]
		}
	}
	return &Orders{}
}

// all returns the orders of all kinds.
func (r *Report) all() (sum Orders) {
	for _, o := range r.Orders {
		sum.Posted += o.Posted
		sum.Settled += o.Settled
		sum.Stopped += o.Stopped
		sum.Refunded += o.Refunded
	}
	return sum
}

// String is the state in one line.
func (r *Report) String() string {
	o := r.all()
	return fmt.Sprintf("height %d: %d orders, %d settled, %d refunded, %d stopped, %d under way; %d guests came, %d left, %d cuts; %s trained, %s drilled; %v burnt; added up %d times",
		r.Height, o.Posted, o.Settled, o.Refunded, o.Stopped, o.Posted-o.Settled-o.Refunded-o.Stopped,
		r.Guests.Came, r.Guests.Left, r.Guests.Cuts, work(r.Training), work(r.Drilling), consume.Amount(r.Burnt), r.Counted)
}

// Tell writes the state as a table.
func (r *Report) Tell(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ORDERS\tPOSTED\tSETTLED\tREFUNDED\tSTOPPED")
	for _, o := range append(r.Orders, r.all()) {
		name := o.Kind
		if name == "" {
			name = "all"
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\n", name, o.Posted, o.Settled, o.Refunded, o.Stopped)
	}
	_ = t.Flush()
	fmt.Fprintf(w, "guests    %d came, %d left with their stake, %d power cuts\n", r.Guests.Came, r.Guests.Left, r.Guests.Cuts)
	fmt.Fprintf(w, "power     %s trained and %s drilled, by %d accounts\n", work(r.Training), work(r.Drilling), r.Workers)
	fmt.Fprintf(w, "tokens    %v burnt\n", consume.Amount(r.Burnt))
	fmt.Fprintf(w, "counted   %d times, up to height %d: every utally, all power, all drilling\n", r.Counted, r.Height)
	for _, why := range slices.Sorted(maps.Keys(r.Reasons)) {
		fmt.Fprintf(w, "stopped   %d: %s\n", r.Reasons[why], why)
	}
}

// work writes millionths of a ut as people count computation.
func work(micro uint64) string {
	return fmt.Sprintf("%.3g GFLOP", float64(micro)*power.MicroUT/1e9)
}

// note changes the report.
func (l *life) note(change func(*Report)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.report)
}

// now returns the report of this moment.
func (l *life) now() Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.report
	r.Seconds = time.Since(l.begun).Seconds()
	r.Orders = slices.Clone(r.Orders)
	r.Reasons = maps.Clone(r.Reasons)
	return r
}

// keepCounting counts again and again whether everything adds up.
func (l *life) keepCounting(ctx context.Context) error {
	for wait(ctx, checking) {
		if err := l.count(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// count asks a node, at one height, whether its modules hold their invariants, and whether the power of all is what
// each has and what projects have drilled.
func (l *life) count(ctx context.Context) error {
	chain := l.net.Validators[0].Env.Chain
	height := chain.Head().Height
	ctx = metadata.AppendToOutgoingContext(ctx, grpctypes.GRPCBlockHeightHeader, strconv.FormatInt(height, 10))
	check, err := supplyv1.NewQueryClient(chain.Conn).Check(ctx, &supplyv1.QueryCheckRequest{})
	if err != nil {
		return err
	}
	if !check.Ok {
		return fmt.Errorf("height %d: %s", height, check.Fault)
	}
	supply, err := supplyv1.NewQueryClient(chain.Conn).Supply(ctx, &supplyv1.QuerySupplyRequest{})
	if err != nil {
		return err
	}
	all, err := powerv1.NewQueryClient(chain.Conn).Total(ctx, &powerv1.QueryTotalRequest{})
	if err != nil {
		return err
	}
	each, err := powers(ctx, chain.Conn)
	if err != nil {
		return err
	}
	of, err := partner.Projects(ctx, chain.Conn)
	if err != nil {
		return err
	}
	if err := adds(&all.Power, each, of); err != nil {
		return fmt.Errorf("height %d: %w", height, err)
	}
	l.note(func(r *Report) {
		r.Counted++
		r.Height, r.Burnt, r.Workers = height, supply.Burnt, len(each)
		r.Training, r.Drilling = all.Power.TrainingTotal, all.Power.DrillingTotal
	})
	return nil
}

// adds returns an error unless the power of all is the sum of what each has, and what was drilled that of the projects.
// What still counts of an account is rounded down four times: by less than three millionths of a ut.
func adds(all *powerv1.Power, each []powerv1.Power, of []drillingv1.Project) error {
	var training, drilled, effective, budgets uint64
	for i := range each {
		training += each[i].TrainingTotal
		drilled += each[i].DrillingTotal
		effective += each[i].Effective
	}
	if training != all.TrainingTotal || drilled != all.DrillingTotal {
		return fmt.Errorf("accounts have trained %d and drilled %d millionths of a ut, all together %d and %d", training, drilled, all.TrainingTotal, all.DrillingTotal)
	}
	if effective > all.Effective || all.Effective-effective > 3*uint64(len(each)) {
		return fmt.Errorf("the power of accounts is %d millionths of a ut, and that of all %d", effective, all.Effective)
	}
	for i := range of {
		budgets += of[i].Drilled
		if of[i].Number != uint64(i+1) {
			return nil // one that has ended is forgotten, and nobody knows what it drilled
		}
	}
	if budgets != all.DrillingTotal {
		return fmt.Errorf("projects have drilled %d millionths of a ut, and accounts %d", budgets, all.DrillingTotal)
	}
	return nil
}

func powers(ctx context.Context, conn grpc.ClientConnInterface) (out []powerv1.Power, err error) {
	for page := (&query.PageRequest{}); ; {
		r, err := powerv1.NewQueryClient(conn).Accounts(ctx, &powerv1.QueryAccountsRequest{Pagination: page})
		if err != nil {
			return nil, err
		}
		if out = append(out, r.Powers...); r.Pagination == nil || len(r.Pagination.NextKey) == 0 {
			return out, nil
		}
		page = &query.PageRequest{Key: r.Pagination.NextKey}
	}
}
