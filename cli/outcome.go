package cli

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/replay"
)

// outcome tells what has come of an order; name says what people call an
// account.
func outcome(w io.Writer, o *consume.Outcome, name func(string) string) {
	if o.Reason != "" {
		fmt.Fprintf(w, "  it stopped early, after %d of %d rounds: %s\n", o.Merged, o.Rounds, o.Reason)
	}
	if o.Wanted != "" {
		fmt.Fprintf(w, "  wanted    %s\n", o.Wanted)
	}
	if o.Units == o.Ordered {
		fmt.Fprintf(w, "  computed  %d units, %d steps\n", o.Units, o.Steps)
	} else {
		fmt.Fprintf(w, "  computed  %d of %d units, %d steps\n", o.Units, o.Ordered, o.Steps)
	}
	fmt.Fprintf(w, "  audits    %d drawn, %d passed, %d failed", o.Audits.Drawn, o.Audits.Passed, o.Audits.Failed)
	if o.Forces && o.Audits.Failed > 0 {
		fmt.Fprint(w, "; those of forced attempts are to fail")
	}
	fmt.Fprintln(w)
	if d := o.Dispute; d != nil {
		fmt.Fprintf(w, "  dispute   %s, %s\n", name(d.Provider), course(d, name))
	}
	fmt.Fprintf(w, "  price     %s, and a deposit of %s\n", consume.Amount(o.Price), consume.Amount(o.Deposit))
	shares(w, o.Paid, name)
	fmt.Fprintf(w, "    %-16s %s\n", "refund", consume.Amount(o.Refund))
	fmt.Fprintf(w, "    %-16s %s\n", "burnt", consume.Amount(o.Burnt))
	if o.Tax > 0 {
		fmt.Fprintf(w, "    %-16s %s\n", "tax", consume.Amount(o.Tax))
	}
	if o.EscrowLeft > 0 {
		fmt.Fprintf(w, "    %-16s %s\n", "in escrow", consume.Amount(o.EscrowLeft))
	}
	if o.Slashed > 0 {
		fmt.Fprintf(w, "  slashed   %s\n", consume.Amount(o.Slashed))
		shares(w, o.SlashPaid, name)
	}
	if len(o.Prizes) > 0 {
		fmt.Fprintln(w, "  forced errors, paid out of the tax")
		shares(w, o.Prizes, name)
	}
	fmt.Fprintf(w, "  state     %s\n", o.FinalRoot)
}

// course tells what a dispute was about, how far it came, and who lost.
func course(d *consume.Dispute, name func(string) string) string {
	what := fmt.Sprintf("unit %d", d.Unit)
	if d.Merge {
		what = fmt.Sprintf("merge of round %d", d.Unit)
	}
	switch {
	case d.Op != "":
		what += fmt.Sprintf(": step %d, node %d (%s), tile %d/%d, fold block %d; %d moves", d.Step, d.Node, d.Op, d.Tile[0], d.Tile[1], d.Fold, d.Moves)
	case d.Reason != "":
		what += fmt.Sprintf(", attempt %d: %s", d.Attempt, d.Reason)
	default:
		what += fmt.Sprintf(", attempt %d: %d moves", d.Attempt, d.Moves)
	}
	switch {
	case d.Loser != "":
		what += fmt.Sprintf("; %s lost", name(d.Loser))
	case d.Reason != "":
		what += "; nobody lost"
	}
	return what
}

func shares(w io.Writer, all map[string]uint64, name func(string) string) {
	accounts := slices.SortedFunc(maps.Keys(all), func(a, b string) int { return strings.Compare(name(a), name(b)) })
	for _, a := range accounts {
		fmt.Fprintf(w, "    %-16s %s\n", name(a), consume.Amount(all[a]))
	}
}

// rate says of a model what people cannot see of its metrics alone.
func rate(w io.Writer, r *replay.Rating) {
	for _, line := range r.Lines() {
		fmt.Fprintf(w, "  %s\n", line)
	}
}

// files tells where a delivery lies and how to check it.
func files(w io.Writer, d *consume.Delivery) {
	if len(d.Metrics) > 0 {
		fmt.Fprintf(w, "\nOn held-out records, which this order did not train on: %s%s\n", d.Metrics, d.Kept())
	}
	fmt.Fprintf(w, "\nThe model is in\n  %s\n  %s\n  %s\n", d.Safetensors, d.ONNX, cmp.Or(d.Tokenizer, d.Schema))
	if d.Adapter != "" {
		fmt.Fprintf(w, "and the adapter that was trained, as PEFT writes it, in\n  %s\n", d.Adapter)
	}
	fmt.Fprintf(w, "Anybody can check it, without a network:\n  tally verify %s --trust %s\n", d.Bundle, d.Trust)
}
