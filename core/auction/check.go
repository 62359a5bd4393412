package auction

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Certificate is a clearing as somebody posts it: how tasks are ranked, the orders that follow, and what it claims.
// All else follows: who wins, who sells what to whom, and what is paid.
type Certificate struct {
	Measure Measure
	Tasks   []uint32        // the places of all tasks, by rank
	Sellers [Kinds][]uint32 // of each kind the places of all that sell it, the cheapest first

	Welfare uint64 // of Outcome
	Trades  uint32 // how many
}

// Better compares two claims: greater welfare is better, then fewer trades, then the measure that comes first.
func (c *Certificate) Better(d *Certificate) bool {
	return cmp.Or(cmp.Compare(c.Welfare, d.Welfare), cmp.Compare(d.Trades, c.Trades), d.Measure.compare(c.Measure)) > 0
}

func (m Measure) compare(n Measure) int {
	return cmp.Or(cmp.Compare(m.Shape, n.Shape), slices.Compare(m.Weight[:], n.Weight[:]))
}

// ErrCertificate is returned for a certificate that is not that of its measure.
var ErrCertificate = errors.New("the certificate is wrong")

// checker checks a certificate, and works out the clearing that follows from it.
//
// An order is checked by comparing neighbours. One that rises strictly, and is as long as what it orders, leaves nothing
// out and names nothing twice: so nothing is sorted and nothing is marked.
type checker struct {
	rank ranker
	cert *Certificate

	phase int // a kind: its sellers; then ranking, which prices by most rules; then pricing, then over
	at    int // within the phase

	lastTask   rank
	lastSeller sellerRank

	stock  stock
	levels levels
	fills  []Fill // a block that trades have theirs in
	out    Outcome
	walk   walk
	failed error
}

const (
	ranking = Kinds + iota
	pricing
	over
)

// newChecker begins to check a certificate. It fails for one that cannot be right, whatever its orders are.
func newChecker(b *Book, p Params, c *Certificate) (*checker, error) {
	if err := p.applies(b); err != nil {
		return nil, err
	}
	if err := c.Measure.check(p.Rule); err != nil {
		return nil, err
	}
	if len(c.Tasks) != len(b.Tasks) {
		return nil, fmt.Errorf("%w: it ranks %d tasks of %d", ErrCertificate, len(c.Tasks), len(b.Tasks))
	}
	k := &checker{rank: ranker{b, p, c.Measure}, cert: c}
	for kind, sellers := range c.Sellers {
		if len(sellers) != b.sellers[kind] {
			return nil, fmt.Errorf("%w: %d providers sell kind %d, of %d", ErrCertificate, len(sellers), kind, b.sellers[kind])
		}
		k.stock[kind] = supply{b.lots[kind], sellers, make([]offered, 0, len(sellers))}
	}
	return k, nil
}

// Check checks a certificate, all at once.
func Check(b *Book, p Params, cert *Certificate) (*Outcome, error) {
	c, err := newChecker(b, p, cert)
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(c.run(), c.claims()); err != nil {
		return nil, err
	}
	return &c.out, nil
}

// run goes through all of a certificate whose claims are still to be made.
func (c *checker) run() error {
	for c.failed == nil && c.phase < over {
		c.next()
	}
	return c.failed
}

// next does what comes next.
func (c *checker) next() {
	switch {
	case c.phase == pricing:
		c.price()
	case c.at == len(c.list()):
		c.phase, c.at = c.phase+1, 0
	case c.phase == ranking:
		c.failed = c.task(c.list()[c.at])
	default:
		c.failed = c.seller(c.phase, c.list()[c.at])
	}
}

// list is what the present phase goes through.
func (c *checker) list() []uint32 {
	if c.phase == ranking {
		return c.cert.Tasks
	}
	return c.cert.Sellers[c.phase]
}

func (c *checker) seller(kind int, j uint32) error {
	if int(j) >= len(c.rank.b.Providers) {
		return fmt.Errorf("%w: provider %d of kind %d is not there", ErrCertificate, j, kind)
	}
	if c.rank.b.lots[kind][j].units == 0 {
		return fmt.Errorf("%w: provider %d sells nothing of kind %d", ErrCertificate, j, kind)
	}
	next := c.rank.provider(kind, j)
	if c.at > 0 && c.lastSeller.compare(next) >= 0 {
		return fmt.Errorf("%w: of kind %d provider %d stands behind %d", ErrCertificate, kind, j, c.lastSeller.provider)
	}
	c.lastSeller = next
	c.stock[kind].add(j)
	c.at++
	return nil
}

// task ranks a task, and lets it take what it demands if it can pay for that.
func (c *checker) task(i uint32) error {
	if int(i) >= len(c.rank.b.Tasks) {
		return fmt.Errorf("%w: task %d is not there", ErrCertificate, i)
	}
	next := c.rank.task(i)
	if c.at > 0 && c.lastTask.compare(next) >= 0 {
		return fmt.Errorf("%w: task %d stands behind %d", ErrCertificate, i, c.lastTask.task)
	}
	c.lastTask = next
	if t := &c.rank.b.Tasks[i]; !c.rank.p.Rule.Single() {
		take := c.stock.take
		if c.rank.p.Rule == Literal { // it has the sellers in another order
			take = c.stock.takeEach
		}
		if to, _, ok := take(&c.levels, t, t.net()); ok {
			from := c.levels
			c.accept(i, &from, &to)
			c.levels = to
		}
	}
	c.at++
	return nil
}

// price makes the prices that wait for all winners to be known: those of single units, and the next critical value.
func (c *checker) price() {
	switch p := c.rank.p; {
	case p.Rule.Single():
		c.single()
		c.phase = over
	case p.Rule != Critical || c.at == len(c.out.Trades):
		c.phase = over
	default:
		t := &c.out.Trades[c.at]
		if least, found := c.critical(t); found {
			t.share(&c.rank.b.Tasks[t.Task], least)
			c.at++
		}
	}
}

func (c *checker) claims() error {
	if c.out.Welfare != c.cert.Welfare || len(c.out.Trades) != int(c.cert.Trades) {
		return fmt.Errorf("%w: it claims %d trades that are worth %d utally, and there are %d, worth %d",
			ErrCertificate, c.cert.Trades, c.cert.Welfare, len(c.out.Trades), c.out.Welfare)
	}
	return nil
}
