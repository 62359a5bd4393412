package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"runtime"
	"slices"
	"sync"
)

// Found is the best that a coalition was found to have by doing anything else than the
// protocol asks for.
type Found struct {
	Coalition string  `json:"coalition"`
	Orders    int     `json:"orders"`         // played
	Tried     int     `json:"strategies"`     // compared
	Profit    float64 `json:"profit"`         // utally an order, mean of fresh orders, over following the protocol
	Error     float64 `json:"standard_error"` // of it
	UnitPay   float64 `json:"unit_pay"`       // utally, for comparison
	Strategy  string  `json:"strategy"`
}

// Check returns an error if a deviation pays, beyond what chance explains.
func (f *Found) Check() error {
	if f.Profit > 4*f.Error {
		return fmt.Errorf("%s: %s pays %.0f ± %.0f utally an order", f.Coalition, f.Strategy, f.Profit, f.Error)
	}
	return nil
}

// Search says how much is played.
type Search struct {
	Budget int            // orders for each coalition
	Seed   uint64         // all follows from it
	Only   *regexp.Regexp // names of coalitions; nil: all
	Told   func(done, all int, name string)

	economy economy // that of bouts, but in tests
}

const (
	few       = 6  // orders by which strategies are compared on the way
	many      = 40 // fresh ones by which the last are
	finalists = 3
	reserve   = (finalists + 2) * many // for them, and who follows the protocol
)

// LeastBudget is the smallest budget of a search that decides anything.
const LeastBudget = reserve + 60

// Coalitions lets every coalition of up to four parts search for what pays best.
func Coalitions(ctx context.Context, s Search) ([]Found, error) {
	if s.Budget < LeastBudget {
		return nil, fmt.Errorf("a budget of %d orders: give each coalition %d at least", s.Budget, LeastBudget)
	}
	if s.economy.rules.MaxOpen == 0 {
		s.economy = bouts
	}
	if err := s.economy.rules.Equilibrium(); err != nil && s.economy.prizes == nil {
		return nil, err
	}
	all := slices.DeleteFunc(coalitions(), func(c Coalition) bool { return s.Only != nil && !s.Only.MatchString(c.String()) })
	if len(all) == 0 {
		return nil, fmt.Errorf("no coalition's name matches %q", s.Only)
	}
	out, errs := make([]Found, len(all)), make([]error, len(all))
	var mu sync.Mutex
	begun, done := 0, 0
	take := func() int {
		mu.Lock()
		defer mu.Unlock()
		begun++
		return begun - 1
	}
	var searches sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		searches.Go(func() {
			for i := take(); i < len(all); i = take() {
				if out[i], errs[i] = s.best(ctx, all[i]); errs[i] != nil {
					errs[i] = fmt.Errorf("%v: %w", all[i], errs[i])
				}
				mu.Lock()
				if done++; s.Told != nil {
					s.Told(done, len(all), all[i].String())
				}
				mu.Unlock()
			}
		})
	}
	searches.Wait()
	return out, errors.Join(errs...)
}

// hunt is the search of one coalition.
type hunt struct {
	*Search
	coalition Coalition
	protocol  map[string]*bout // who follows the protocol, by circumstances
	means     map[Strategy]float64
	orders    int
}

// best answers best to what the others do, who are honest: from one strategy after
// another it changes one choice at a time to what is best, until nothing is better. What
// came out best is compared again, in other orders.
func (s *Search) best(ctx context.Context, c Coalition) (Found, error) {
	h := &hunt{Search: s, coalition: c, protocol: map[string]*bout{}, means: map[Strategy]float64{}}
	r := rand.New(rand.NewPCG(s.Seed, uint64(c)))
	open, total := c.open(), 1
	for _, i := range open {
		total *= len(choices[i].actions)
	}
	for start := 0; h.orders+reserve < s.Budget && len(h.means) < total; start++ {
		var at Strategy
		for _, i := range open {
			if start > 0 { // first from the protocol itself
				at[i] = uint8(r.IntN(len(choices[i].actions)))
			}
		}
		if err := h.climb(ctx, at, r.Perm(len(open))); err != nil {
			return Found{}, err
		}
		if start > 64*total {
			break
		}
	}
	return h.last(ctx)
}

// climb changes one choice after another to what is best.
func (h *hunt) climb(ctx context.Context, at Strategy, order []int) error {
	open := h.coalition.open()
	best, err := h.mean(ctx, at)
	for better := true; better && err == nil; {
		better = false
		for _, k := range order {
			i := open[k]
			for a := range choices[i].actions {
				if h.orders+reserve >= h.Budget {
					return nil
				}
				next := at
				next[i] = uint8(a)
				m, err := h.mean(ctx, next)
				if err != nil {
					return err
				}
				if m > best {
					at, best, better = next, m, true
				}
			}
		}
	}
	return err
}

// mean returns what a strategy has over the protocol in a few orders.
func (h *hunt) mean(ctx context.Context, s Strategy) (float64, error) {
	if m, known := h.means[s]; known {
		return m, nil
	}
	m, _, err := h.measure(ctx, s, 0, few)
	h.means[s] = m
	return m, err
}

// measure plays the orders from lo to hi, and returns what a strategy has over the
// protocol in the mean, and the standard error of that.
func (h *hunt) measure(ctx context.Context, s Strategy, lo, hi int) (mean, deviation float64, err error) {
	var sum, squares float64
	for i := lo; i < hi; i++ {
		if err := ctx.Err(); err != nil {
			return 0, 0, err
		}
		g, err := h.gain(s, h.Seed<<20+uint64(i))
		if err != nil {
			return 0, 0, fmt.Errorf("%s: %w", s.tell(h.honest(s)), err)
		}
		sum, squares = sum+g, squares+g*g
	}
	n := float64(hi - lo)
	mean = sum / n
	return mean, math.Sqrt(max(squares/n-mean*mean, 0) / n), nil
}

// gain returns what a strategy has over the protocol in the same circumstances.
func (h *hunt) gain(s Strategy, chance uint64) (float64, error) {
	honest := h.honest(s)
	name := fmt.Sprint(honest, chance)
	base := h.protocol[name]
	if base == nil {
		var err error
		if base, err = h.play(honest, chance); err != nil {
			return 0, err
		}
		h.protocol[name] = base
	}
	if s == honest {
		return 0, nil
	}
	b, err := h.play(s, chance)
	if err != nil {
		return 0, err
	}
	return b.profit(base.price()) - base.profit(base.price()), nil
}

// honest returns who follows the protocol beside a strategy. What is ordered is the
// consumer's to choose.
func (h *hunt) honest(s Strategy) Strategy { return Strategy{chooseAudits: s[chooseAudits]} }

func (h *hunt) play(s Strategy, chance uint64) (*bout, error) {
	h.orders++
	b, err := newBout(h.economy, h.coalition, s, chance)
	if err != nil {
		return nil, err
	}
	return b, b.play()
}

// last compares the best that was found in fresh orders.
func (h *hunt) last(ctx context.Context) (Found, error) {
	var all []Strategy
	for s, m := range h.means { // order: sorted below
		if m != 0 { // else it never mattered
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(x, y Strategy) int {
		return cmp.Or(cmp.Compare(h.means[y], h.means[x]), slices.Compare(x[:], y[:]))
	})
	f := Found{Coalition: h.coalition.String(), Tried: len(h.means), Strategy: "nothing"}
	for i, s := range all[:min(len(all), finalists)] {
		mean, deviation, err := h.measure(ctx, s, few, few+many)
		if err != nil {
			return f, err
		}
		if i == 0 || mean > f.Profit {
			f.Profit, f.Error, f.Strategy = mean, deviation, s.tell(h.honest(s))
		}
	}
	f.Orders = h.orders
	for _, b := range h.protocol { // order: all are alike
		f.UnitPay = float64(b.pay())
		break
	}
	return f, nil
}
