package cli

import (
	"bytes"
	"strings"
	"testing"

	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/market"
	"github.com/tally-network/tally/node/replay"
)

// A dispute about a forced attempt, which nobody loses, was told as one about node 0 of
// step 0, without an operator.
func TestOutcomeOfForcedAttempts(t *testing.T) {
	const forced = "the receipt was forced: it was wrong by duty"
	for _, c := range []struct {
		of   consume.Dispute
		want string
	}{
		{consume.Dispute{Unit: 1, Moves: 1, Reason: forced}, "p, unit 1, attempt 0: " + forced + "; nobody lost"},
		{consume.Dispute{Unit: 1, Moves: 1}, "p, unit 1, attempt 0: 1 moves"},
		{consume.Dispute{Unit: 1, Loser: "x", Reason: "no answer"}, "p, unit 1, attempt 0: no answer; p lost"},
		{consume.Dispute{Unit: 2, Step: 15, Node: 284, Op: "MatMul", Fold: 1, Moves: 14, Loser: "x", Reason: "r"}, "p, unit 2: step 15, node 284 (MatMul), tile 0/0, fold block 1; 14 moves; p lost"},
		{consume.Dispute{Unit: 3, Merge: true, Reason: "gone"}, "p, merge of round 3, attempt 0: gone; nobody lost"},
	} {
		var b bytes.Buffer
		o := consume.Outcome{Forces: true, Dispute: &c.of}
		if c.of.Reason == forced {
			o.Audits.Failed = 1
		}
		outcome(&b, &o, func(string) string { return "p" })
		if !strings.Contains(b.String(), "  dispute   "+c.want+"\n") || strings.Contains(b.String(), "are to fail") != (c.of.Reason == forced) {
			t.Errorf("%+v:\n%s", c.of, &b)
		}
	}
}

// Why an order ended early, after which round, and what was wanted of it.
func TestOutcomeOfStoppedOrders(t *testing.T) {
	var b bytes.Buffer
	o := consume.Outcome{Reason: "its consumer has stopped it", Wanted: "the round with the best accuracy", Computed: consume.Computed{Merged: 3, Rounds: 8}}
	outcome(&b, &o, func(account string) string { return account })
	if want := "  it stopped early, after 3 of 8 rounds: its consumer has stopped it\n  wanted    the round with the best accuracy\n"; !strings.HasPrefix(b.String(), want) {
		t.Errorf("%s", &b)
	}
	d := &consume.Delivery{}
	if d.Round = 2; diverged(d) != nil || diverged(nil) != nil {
		t.Error("a model of numbers is of no use")
	}
	if d.Diverged = (&replay.Divergence{Round: 2, What: "its loss"}); diverged(d) == nil || !strings.Contains(diverged(d).Error(), "after round 2 its loss is not a finite number") {
		t.Error(diverged(d))
	}
}

// What takes no arguments said so by a panic.
func TestArgumentsAreCounted(t *testing.T) {
	for _, c := range []struct {
		use  string
		args []string
		want string // empty: they fit
	}{
		{"claim", nil, ""},
		{"claim", []string{"x"}, `"x" is too much: want 0 arguments`},
		{"show ORDER", nil, "ORDER is missing"},
		{"show ORDER", []string{"a", "b"}, `"b" is too much: want 1 argument`},
		{"sell LOT...", []string{"a", "b"}, ""},
	} {
		err := arguments(c.use)(nil, c.args)
		if (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%s with %q: %v", c.use, c.args, err)
		}
	}
}

// Whose last trades are its own has no picture of prices.
func TestPicturesOfPrices(t *testing.T) {
	v := &market.View{}
	for range 60 {
		v.Trades = append(v.Trades, marketv1.Trade{Price: 1, Flops: 1e9, Own: true})
	}
	if got := sparkline(v); got != "" {
		t.Errorf("%q", got)
	}
	v.Trades = append(v.Trades, marketv1.Trade{Price: 9, Flops: 1e9}, marketv1.Trade{Price: 5, Flops: 1e9})
	if got := sparkline(v); got != "▁█ to 9" {
		t.Errorf("%q", got)
	}
}
