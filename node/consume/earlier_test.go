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
		name   string
		change func(*job.Order)
		same   bool
	}{
		{"the same", func(*job.Order) {}, true},
		{"posted again, from another address", func(o *job.Order) { o.Nonce, o.Contact.Addrs = 2, []string{"/ip4/127.0.0.1/tcp/2"} }, true},
		{"by another peer", func(o *job.Order) { o.Contact.Key = []byte{1} }, true},
		{"of another consumer", func(o *job.Order) { o.Consumer = "tally1b" }, false},
		{"on another chain", func(o *job.Order) { o.Chain = "tally-2" }, false},
		{"another problem", func(o *job.Order) { o.Problem.Rounds = 3 }, false},
		{"another price", func(o *job.Order) { o.Conditions.MaxPrice = 600 }, false},
	} {
		if same := sameWish(first, wish(c.change)); same != c.same {
			t.Errorf("%s: %v", c.name, same)
		}
	}
}
