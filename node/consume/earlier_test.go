package consume

import (
	"testing"

	"github.com/tally-network/tally/core/job"
)

func TestSameWish(t *testing.T) {
	wish := func(change func(*job.Order)) *job.Order {
		o := &job.Order{Chain: "tally-1", Consumer: "tally1a", Nonce: 1, Contact: job.Contact{Key: make([]byte, 32), Addrs: []string{"/ip4/127.0.0.1/tcp/1"}}}
		o.Problem.Rounds, o.Conditions.MaxPrice = 2, 500
		change(o)
		return o
	}
	first := wish(func(*job.Order) {})
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
		if problem, terms := sameWish(first, wish(c.change)); problem != c.problem || terms != c.terms {
			t.Errorf("%s: problem %v, terms %v", c.name, problem, terms)
		}
	}
}
