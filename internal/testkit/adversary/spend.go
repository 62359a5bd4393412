package adversary

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// Spending is what messages take of a validator beside the gas that is paid for it.
type Spending struct {
	Mean  float64            // ns for a unit of gas, over all messages
	Worst map[string]float64 // the most that one message of a kind took, ns for a unit of gas
}

// spender measures messages. The transaction around a message counts with what a
// transfer takes, which is in plain.
type spender struct {
	plain  weight
	all    weight
	worst  map[string]float64
	trials int // of a message that seems to be the slowest of its kind
}

// weight is what something took.
type weight struct {
	gas  uint64
	took time.Duration
}

func (w weight) ratio() float64 { return float64(w.took) / float64(w.gas) }

func (w weight) plus(o weight) weight { return weight{w.gas + o.gas, w.took + o.took} }

// spend notes what a message took. One that seems slow is tried again: somebody else
// may have had the processor.
func (s *spender) spend(msg string, gas uint64, took time.Duration, again func() time.Duration) {
	one := s.plain.plus(weight{gas, took})
	for range s.trials {
		if one.ratio() <= s.worst[msg] {
			break
		}
		one = s.plain.plus(weight{gas, min(one.took-s.plain.took, again())})
	}
	s.all = s.all.plus(one)
	s.worst[msg] = max(s.worst[msg], one.ratio())
}

// Spend plays histories one after another until so many messages were sent, and
// returns what these took.
func Spend(ctx context.Context, first uint64, messages int, tell func(format string, args ...any)) (out Spending, err error) {
	s := &spender{worst: map[string]float64{}, trials: 5}
	err = outside(ctx, func(tb testing.TB) {
		s.plain = transfer(tb)
		all := newWorlds(tb)
		for _, w := range all {
			w.spender = s
		}
		told := time.Now()
		for seed, sent := first, 0; sent < messages && ctx.Err() == nil; seed++ {
			_, n := all.of(seed).Attack(seed)
			if sent += n; time.Since(told) > 10*time.Second {
				told = time.Now()
				tell("%d messages of %d", sent, messages)
			}
		}
	})
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return out, err
	}
	out = Spending{Mean: s.all.ratio(), Worst: s.worst}
	for _, msg := range slices.Sorted(maps.Keys(s.worst)) {
		tell("%s: %.2f ns for a unit of gas, %.2f times the mean", msg, s.worst[msg], s.worst[msg]/out.Mean)
	}
	return out, nil
}

// transfer returns what a transfer takes, as a transaction: the mean of many.
func transfer(tb testing.TB) (w weight) {
	const sends = 200
	alice, bob := chaintest.Named("alice"), chaintest.Named("bob")
	c := chaintest.New(tb, chaintest.Fund(purse, alice.Name, bob.Name))
	for range sends {
		c.QueueWithFee(alice, c.Fee(), banktypes.NewMsgSend(alice.Address, bob.Address, coin.Of(1)))
	}
	begun := time.Now()
	b := c.NextBlock(time.Second)
	w.took = time.Since(begun) / sends
	for _, r := range b.TxResults {
		if r.Code != 0 {
			tb.Fatalf("a transfer fails: %s", r.Log)
		}
		w.gas += uint64(r.GasUsed) / sends
	}
	return w
}
