package split

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/consume/parts"
)

// Report is what has come of an order that was split.
type Report struct {
	Records int               `json:"records"`
	Parts   []PartReport      `json:"parts"`
	Price   uint64            `json:"price_utally"`   // of all leases
	Deposit uint64            `json:"deposit_utally"` // likewise
	Refund  uint64            `json:"refund_utally"`  // of both
	Views   parts.Views       `json:"views"`
	Outputs map[string]string `json:"outputs,omitempty"` // by output, the file that has it for all records
}

// PartReport is a part's share of a Report.
type PartReport struct {
	Part int `json:"part"` // from 1
	parts.Range
	Order     string           `json:"order"`
	Validator string           `json:"validator"`
	Progress  string           `json:"progress"`
	Failed    string           `json:"failed,omitempty"` // why it has no results
	Bundle    string           `json:"bundle,omitempty"`
	Trust     string           `json:"trust_root,omitempty"`
	Outcome   *consume.Outcome `json:"outcome,omitempty"` // once it is leased
}

// PartsError says that some parts have no results.
type PartsError struct {
	Failed []int // from 1
	Parts  int
	Causes []error
}

func (e *PartsError) Error() string {
	text := &strings.Builder{}
	fmt.Fprintf(text, "%d of %d parts have no results", len(e.Failed), e.Parts)
	for i, cause := range e.Causes {
		fmt.Fprintf(text, "; part %d: %v", e.Failed[i], cause)
	}
	return text.String() + ". The same command goes on with these alone"
}

func (e *PartsError) Unwrap() []error { return e.Causes }

// report says how the parts stand, with an error if some have failed or ctx is done.
func (r *run) report(ctx context.Context) (*Report, error) {
	out, failed := &Report{Records: r.batch.Records(), Views: r.viewers.Views()}, &PartsError{Parts: len(r.parts)}
	for i, p := range r.parts {
		x := PartReport{Part: i + 1, Range: r.batch.Ranges[i], Order: p.id.String(), Validator: p.validator, Progress: p.last.String()}
		if p.err != nil {
			x.Failed = p.err.Error()
			failed.Failed, failed.Causes = append(failed.Failed, i+1), append(failed.Causes, p.err)
		}
		if p.last.Lease != nil && ctx.Err() == nil {
			o, err := r.net.Outcome(ctx, p.last.Lease)
			if err != nil {
				return nil, err
			}
			x.Outcome = &o
			out.Price, out.Deposit, out.Refund = out.Price+o.Price, out.Deposit+o.Deposit, out.Refund+o.Refund
		}
		out.Parts = append(out.Parts, x)
	}
	switch {
	case ctx.Err() != nil:
		return out, ctx.Err()
	case len(failed.Failed) > 0:
		return out, failed
	}
	return out, nil
}

// Tell says it to people.
func (o *Report) Tell(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PART\tRECORDS\tORDER\tPRICE\tVALIDATOR\tPROGRESS")
	for _, p := range o.Parts {
		price := "?"
		if p.Outcome != nil {
			price = consume.Amount(p.Outcome.Price).String()
		}
		fmt.Fprintf(t, "%d\t%v\t%s\t%v\t%s\t%s\n", p.Part, p.Range, p.Order, price, p.Validator, p.Progress)
	}
	_ = t.Flush()
	if o.Price > 0 {
		fmt.Fprintf(w, "Of prices of %v and deposits of %v together %v came back.\n", consume.Amount(o.Price), consume.Amount(o.Deposit), consume.Amount(o.Refund))
	}
	fmt.Fprint(w, o.Views)
	if o.Outputs == nil {
		fmt.Fprintln(w, "The same command with --wait follows the parts, and joins their results. Custodians keep these for a quarter of an hour.")
		return
	}
	fmt.Fprintf(w, "\nThe results of %d records are in\n", o.Records)
	for _, file := range slices.Compact(slices.Sorted(maps.Values(o.Outputs))) {
		fmt.Fprintf(w, "  %s\n", file)
	}
	fmt.Fprintln(w, "Anybody can check those of each part, without a network:")
	for _, p := range o.Parts {
		fmt.Fprintf(w, "  tally verify %s --trust %s\n", p.Bundle, p.Trust)
	}
	fmt.Fprintln(w, "Given the folder, tally verify checks all of them.")
}
