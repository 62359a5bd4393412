package market

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/tally-network/tally/core/auction"
	"github.com/tally-network/tally/internal/cputime"
)

// Took is what a clearing of a crowd takes.
type Took struct {
	Clear, Check []time.Duration // of one processor, in each of several runs
	Bytes        uint64          // the book and all that clearing allocates, freed or not
}

// Time clears the book of a crowd several times, and checks the certificate.
func Time(n, runs int) (took Took, err error) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	b, err := Crowd(n)
	if err != nil {
		return took, err
	}
	for range runs {
		begun := cputime.Used()
		_, cert, err := auction.Clear(b, auction.Params{}, auction.Standard)
		if err != nil {
			return took, err
		}
		took.Clear = append(took.Clear, cputime.Used()-begun)
		if took.Bytes == 0 {
			runtime.ReadMemStats(&after)
			took.Bytes = after.TotalAlloc - before.TotalAlloc
		}
		begun = cputime.Used()
		if _, err := auction.Check(b, auction.Params{}, cert); err != nil {
			return took, err
		}
		took.Check = append(took.Check, cputime.Used()-begun)
	}
	return took, nil
}

// searched is how many measures are tried for a posted clearing.
const searched = 100

// Method is a way to clear a book.
type Method struct {
	Name string
	Run  func(b *auction.Book, p auction.Params) (*auction.Outcome, *auction.Certificate, error)
	Rule auction.Rule
}

// Methods are the ways to clear books of several kinds of resource.
var Methods = []Method{
	{"posted", func(b *auction.Book, p auction.Params) (*auction.Outcome, *auction.Certificate, error) {
		return auction.Search(b, p, searched)
	}, auction.Midpoint},
	{"fallback", auction.Fallback, auction.Midpoint},
	{"standard", standard, auction.Midpoint},
	{"critical", standard, auction.Critical},
	{"literal", standard, auction.Literal},
}

func standard(b *auction.Book, p auction.Params) (*auction.Outcome, *auction.Certificate, error) {
	return auction.Clear(b, p, auction.Standard)
}

// SingleRules are the rules for single units.
var SingleRules = []auction.Rule{auction.McAfee, auction.SBBA, auction.Exponential}

// params are the rules as they are measured.
func params(r auction.Rule, seed uint64) auction.Params {
	p := auction.Params{Rule: r}
	p.Seed[0], p.Seed[1] = byte(seed), byte(seed>>8)
	if r == auction.Exponential {
		p.Epsilon, p.Grid = 1000, auction.Grid{Least: unit / 32, Step: unit / 32, Count: 63}
	}
	return p
}

// Share is how much of the greatest welfare a rule finds.
type Share struct {
	Mean, Worst float64
	Books       int // with anything to gain
}

func shareOf(all []float64) Share {
	s := Share{Worst: slices.Min(all), Books: len(all)}
	for _, x := range all {
		s.Mean += x
	}
	s.Mean /= float64(len(all))
	return s
}

// Welfare clears n small books by a method, and compares with the optimum.
func Welfare(m Method, n int) (Share, error) {
	var all []float64
	for seed := range uint64(n) {
		b, err := Small(seed)
		if err != nil {
			return Share{}, err
		}
		best, err := auction.Optimum(b)
		if err != nil {
			return Share{}, err
		}
		if best == 0 {
			continue
		}
		out, _, err := m.Run(b, params(m.Rule, seed))
		if err != nil {
			return Share{}, err
		}
		all = append(all, float64(out.Welfare)/float64(best))
	}
	return shareOf(all), nil
}

// SingleWelfare clears n books of single units by a rule, and compares with the optimum, where the best buyers meet the
// cheapest sellers.
func SingleWelfare(r auction.Rule, n, traders int) (Share, error) {
	var all []float64
	for seed := range uint64(n) {
		b, err := Singles(seed, traders)
		if err != nil {
			return Share{}, err
		}
		best, _, err := standard(b, auction.Params{}) // of single units, ranked by their bids, it is the optimum
		if err != nil {
			return Share{}, err
		}
		if best.Welfare == 0 {
			continue
		}
		out, _, err := standard(b, params(r, seed))
		if err != nil {
			return Share{}, err
		}
		all = append(all, float64(out.Welfare)/float64(best.Welfare))
	}
	return shareOf(all), nil
}

// Gain is what a buyer gains by another bid than its true one, knowing all others, as a share of its budget.
type Gain struct{ Mean, Most float64 }

// tried is how many other bids a liar tries.
const tried = 40

// Shading lets each buyer of n books try other bids, alone.
func Shading(r auction.Rule, n int) (g Gain, err error) {
	buyers := 0
	for seed := range uint64(n) {
		l := liar{params: params(r, seed), chance: rand.New(rand.NewPCG(seed, 2))}
		if slices.Contains(SingleRules, r) {
			l.book, err = Singles(seed, 10)
		} else {
			l.book, err = Small(seed)
		}
		if err != nil {
			return g, err
		}
		for i := range l.book.Tasks {
			own, err := l.best(i)
			if err != nil {
				return g, err
			}
			g.Mean, g.Most, buyers = g.Mean+own, max(g.Most, own), buyers+1
		}
	}
	g.Mean /= float64(buyers)
	return g, nil
}

// liar tries bids.
type liar struct {
	book   *auction.Book
	params auction.Params
	chance *rand.Rand
}

// best returns what the best of other bids gains a buyer above its true one.
func (l *liar) best(who int) (float64, error) {
	worth := l.book.Tasks[who].Budget
	honest, err := l.gain(who, worth, worth)
	if err != nil {
		return 0, err
	}
	best := honest
	for range tried {
		got, err := l.gain(who, worth, l.chance.Uint64N(2*worth))
		if err != nil {
			return 0, err
		}
		best = max(best, got)
	}
	return (best - honest) / float64(worth), nil
}

// chances is over how many seeds a gain is averaged if a price is drawn.
const chances = 64

// gain returns what a bid gains a buyer to whom the task is worth so much.
func (l *liar) gain(who int, worth, bid uint64) (float64, error) {
	tasks := slices.Clone(l.book.Tasks)
	tasks[who].Budget = bid
	b, err := auction.NewBook(tasks, slices.Clone(l.book.Providers))
	if err != nil {
		return 0, err
	}
	p, draws := l.params, 1
	if p.Rule == auction.Exponential {
		draws = chances
	}
	mean := 0.0
	for n := range draws {
		p.Seed[2] = byte(n)
		out, _, err := standard(b, p)
		if err != nil {
			return 0, err
		}
		for _, t := range out.Trades {
			if int(t.Task) == who {
				mean += (float64(worth) - float64(t.Price)) / float64(draws)
			}
		}
	}
	return mean, nil
}
