package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tally-network/tally/node/consume"
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
