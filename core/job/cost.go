package job

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/money"
	"github.com/tally-network/tally/core/power"
)

// What an order says of its cost is bound by its programs, see docs/adr/0036-sound-costs.md.
// Whoever knows them shows what is wrong in one event. Then the lease stops, nobody is credited
// with power, and the deposit is forfeit: a part, as of a slashed bond, to who has shown it. The
// rest is burnt, for the insurance fund pays consumers, and the liar is one. Power is credited for work only as far as utally were
// burnt for it: padding that nobody can tell from work is paid for.

// UT is the floating-point operations of one ut of power.
const UT = power.UT

// ExposeCost shows that an order, or the program of its steps or merges, says something wrong
// about what it costs.
type ExposeCost struct {
	By    string
	Merge bool // about the program that merges, in place of that of a step
	Shown graph.Refutation
}

// Check returns what is wrong; an error says that nothing was shown.
func (e *ExposeCost) Check(p *Problem) (why string, err error) {
	root, says, what := p.Step, graph.Cost{FLOPs: p.StepFLOPs, Bytes: p.StepBytes}, "step"
	if e.Merge {
		root, says, what = p.Merge, graph.Cost{FLOPs: p.MergeFLOPs, Bytes: p.MergeBytes}, "merge"
	}
	if h := &e.Shown.Header; h.Root() == root && h.Cost != says {
		return fmt.Sprintf("a %s takes %v, the order says %v", what, h.Cost, says), nil
	}
	why, err = e.Shown.Judge(root)
	if err != nil {
		return "", fmt.Errorf("the program of a %s: %w", what, err)
	}
	return fmt.Sprintf("the program of a %s: %s", what, why), nil
}

func (e ExposeCost) apply(l *Lease, now int64) ([]Effect, error) {
	switch {
	case l.Ledger.Refuter != "":
		return nil, fmt.Errorf("%s has exposed the order's cost already", l.Ledger.Refuter)
	case l.Files.Said == Missing:
		return nil, fmt.Errorf("the order's files cannot be had, or do not make it up: its deposit is forfeit already")
	}
	why, err := e.Check(&l.Order.Problem)
	if err != nil {
		return nil, err
	}
	l.Ledger.Refuter = e.By
	if why = "the order's cost is wrong: " + why; l.Phase == Active {
		l.stop(now, why)
	} else if l.Reason == "" {
		l.Reason = why
	}
	return []Effect{{Emit, e.By, uint64(l.Round), "cost exposed"}}, nil
}

// burn returns what is burnt of an order that pays out so much, for work that would be credited
// with so many floating-point operations. Whoever asks for all its credit burns as
// much as it takes.
func (t *Tariff) burn(c *Conditions, paid, flops uint64) (uint64, error) {
	amount, err := money.Scale(paid, t.BurnBps, bps)
	if err != nil || !c.Credit {
		return amount, err
	}
	credit, err := money.Scale(t.BurnUT, flops, UT)
	return max(amount, credit), err
}

// credited returns the floating-point operations that providers are credited with for so
// many that an order's programs took, if so many utally were burnt.
func (t *Tariff) credited(flops, burnt uint64) uint64 {
	if t.BurnUT == 0 {
		return flops
	}
	paid, err := money.ScaleDown(UT, burnt, t.BurnUT)
	if err != nil { // more than can be counted
		return flops
	}
	return min(flops, paid)
}

// Credited returns the floating-point operations of an order that providers are credited with if
// all is done as quoted.
func (q *Quote) Credited(p *Problem, c *Conditions, t Tariff) (uint64, error) {
	flops, err := p.flops(c)
	return t.credited(flops, q.Burn), err
}

// credits returns the computing power that workers of accepted units have proved, as far as it is
// paid for, and vouches for all who have computed one.
func (l *Lease) credits(workers []string) ([]Effect, error) {
	all, err := money.Times(l.Order.Problem.UnitFLOPs(), len(workers))
	if err != nil {
		return nil, err
	}
	var effects []Effect
	if credited := l.Params.credited(all, l.Ledger.Burnt); credited > 0 && l.Ledger.Refuter == "" {
		each := credited / uint64(len(workers))
		for _, w := range workers {
			effects = append(effects, Effect{Kind: Credit, Account: w, Amount: each})
		}
		effects = append(effects, l.timed(each)...)
	}
	for _, w := range workersOf(l.Units, func(*Unit) bool { return true }) {
		effects = append(effects, Effect{Kind: Vouch, Account: w, Amount: 1})
	}
	return effects, nil
}

// timed returns how fast providers were: the credited operations of their units, and the time from the
// beginning of each round until the last of these was received. Who gives units out could make that of a
// later attempt, or of replicas, short: they are not timed.
func (l *Lease) timed(each uint64) (effects []Effect) {
	round, last, unit := 0, map[string]int64{}, max(l.Order.Problem.UnitFLOPs(), 1) // work that is credited in part is timed in part
	for i := range l.Units {
		u := &l.Units[i]
		if r := i / l.Order.Problem.Shards; r != round {
			round, last = r, map[string]int64{}
		}
		if u.Status != Accepted || u.Attempt > 0 || len(u.Replicas) > 0 || u.Differed {
			continue
		}
		more := max(u.Took-last[u.Provider], 0)
		last[u.Provider] += more
		effects = append(effects, Effect{Kind: Work, Account: u.Provider, Amount: each}, Effect{Kind: Busy, Account: u.Provider, Amount: money.ScaleClamped(uint64(more), each, unit)})
	}
	return effects
}

// creditable returns who is credited for units whose pay is due, once for each. Where all lose, that is
// nobody of a unit of drilling whose replicas have differed.
func creditable(l *Lease) []string {
	lose := l.Params.AllLose && l.Order.Project != 0
	return workersOf(l.Units, func(u *Unit) bool { return !lose || !u.Differed })
}

// workersOf returns who has computed some of the units whose pay is due, once for each.
func workersOf(units []Unit, some func(*Unit) bool) (out []string) {
	for i := range units {
		if units[i].Status != Accepted || !some(&units[i]) {
			continue
		}
		for _, w := range markOf(&units[i]).workers {
			out = append(out, w.provider)
		}
	}
	return out
}
