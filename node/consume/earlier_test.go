package consume

import (
	"errors"
	"slices"
	"testing"

	"github.com/tally-network/tally/core/job"
)

func TestCompareOrders(t *testing.T) {
	posted := func(change func(*job.Order)) *job.Order {
		o := &job.Order{Chain: "tally-1", Consumer: "tally1a", Nonce: 1, Contact: job.Contact{Key: make([]byte, 32), Addrs: []string{"/ip4/127.0.0.1/tcp/1"}}}
		o.Problem.Rounds, o.Conditions.MaxPrice = 2, 500
		change(o)
		return o
	}
	first := posted(func(*job.Order) {})
	for _, c := range []struct {
		name           string
		change         func(*job.Order)
		problem, terms bool
	}{
		{"the same", func(*job.Order) {}, true, true},
		{"posted again, from another address", func(o *job.Order) { o.Nonce, o.Contact.Addrs = 2, []string{"/ip4/127.0.0.1/tcp/2"} }, true, true},
		{"by another peer", func(o *job.Order) { o.Contact.Key = []byte{1} }, true, true},
		{"of another consumer", func(o *job.Order) { o.Consumer = "tally1b" }, false, false},
		{"on another chain", func(o *job.Order) { o.Chain = "tally-2" }, false, false},
		{"another problem", func(o *job.Order) { o.Problem.Rounds = 3 }, false, false},
		{"another price", func(o *job.Order) { o.Conditions.MaxPrice = 600 }, true, false},
	} {
		if problem, terms := compareOrders(first, posted(c.change)); problem != c.problem || terms != c.terms {
			t.Errorf("%s: problem %v, terms %v", c.name, problem, terms)
		}
	}
}

func TestEarlierOrders(t *testing.T) {
	post := func(rounds int, price, nonce uint64) job.Order {
		o := job.Order{Chain: "tally-1", Consumer: "tally1a", Nonce: nonce, Contact: job.Contact{Key: make([]byte, 32)}}
		o.Problem.Rounds, o.Conditions.MaxPrice = rounds, price
		return o
	}
	o := post(2, 500, 0)
	for name, c := range map[string]struct {
		all   []job.Order // oldest first
		want  []int
		nonce uint64
	}{
		"none":                                {nil, nil, 0},
		"another problem":                     {[]job.Order{post(3, 500, 0)}, nil, 0},
		"the same":                            {[]job.Order{post(2, 500, 0)}, []int{0}, 1},
		"the same, three times":               {[]job.Order{post(2, 500, 0), post(2, 500, 1), post(2, 500, 2)}, []int{2, 1, 0}, 3},
		"other terms, newer":                  {[]job.Order{post(2, 500, 0), post(2, 600, 0)}, []int{1, 0}, 1},
		"other terms, older":                  {[]job.Order{post(2, 600, 0), post(2, 500, 0)}, []int{1}, 1},
		"other terms alone: the newest":       {[]job.Order{post(2, 600, 0), post(2, 700, 0)}, []int{1}, 0},
		"a nonce of an earlier tally, random": {[]job.Order{post(2, 500, 1<<60)}, []int{0}, 1},
	} {
		if got, nonce := earlier(c.all, &o); !slices.Equal(got, c.want) || nonce != c.nonce {
			t.Errorf("%s: %v, nonce %d; want %v, %d", name, got, nonce, c.want, c.nonce)
		}
	}
}

// Nonces of pruned orders are used up for good, though no list has them.
func TestNonceThatNoOrderHasHad(t *testing.T) {
	for _, had := range []uint64{0, 1, 2, 3, 7, 8, 1000} {
		asked := 0
		got, err := unused(0, func(n uint64) (bool, error) {
			asked++
			return n < had, nil
		})
		if err != nil || got < had || got > had || asked > 25 {
			t.Errorf("%d were used: %d after %d questions (%v)", had, got, asked, err)
		}
	}
	if _, err := unused(0, func(uint64) (bool, error) { return false, errors.New("no node") }); err == nil {
		t.Error("a node that does not answer is taken for one that knows no order")
	}
}

// An order that its consumer has ended has its result, and is not paid for again; one that failed has none.
func TestStoppedOrdersAreDelivered(t *testing.T) {
	for _, c := range []struct {
		reason string
		rounds int
		want   bool
	}{
		{"", 0, true}, {job.StopReason, 2, true}, {job.StopReason, 0, false}, {"its loss is not a finite number", 2, false},
	} {
		p := Progress{Lease: &job.Lease{Reason: c.reason, Round: c.rounds}}
		if got := p.resumable(); got != c.want {
			t.Errorf("%q after %d rounds: %v", c.reason, c.rounds, got)
		}
	}
}
