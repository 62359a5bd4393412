package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Benchmark measures something on this machine.
type Benchmark struct {
	Name, Short string
	Run         func(context.Context, Options) ([]Row, error)
}

// Options say what is measured.
type Options struct {
	Tell   func(format string, a ...any) // of what it does
	Only   string                        // of the engine and of hardening: part of the rows' names; of the chain, the market, formats and consensus: of a group's
	Models string                        // of the engine: folder of ONNX models to run; of inference: a GGUF file; of formats: a folder of their files

	Records int // of a batch; 0: as many as the figure is about
}

// All are the benchmarks that can be run by name.
var All = []Benchmark{
	{"engine", "products, training steps, models and roots on one and two threads", engineRows},
	{"demo", "an order from start to settlement, with a dispute, and an idle devnet", whole},
	{"proof", "proofs, audits and disputes: what they cost beside the work", proofs},
	{"chain", "blocks, orders and roles where there are many, what stays of them, and rounds that do not wait", chainRows},
	{"batch", "an encoder applied to 10⁴ records on a devnet, beside the engine alone", batches},
	{"market", "the auction: time and memory of clearings and their checks, welfare, what lying gains", marketRows},
	{"hardening", "what attackers can do, beside what they may", hardening},
	{"consensus", "epochs of many members, following sets that change, blocks of 4 and 20 validators", consensusRows},
	{"inference", "a language model of --models FILE.gguf: prompts, tokens one after another and in a batch, bandwidth", languageRows},
	{"formats", "tokens, tables, tensors and the store: how fast files are read, of a folder --models", formatRows},
	{"idle", "a devnet that does nothing: start, memory, CPU, stop", idle},
}

// Names returns the names of all benchmarks.
func Names() (out []string) {
	for _, b := range All {
		out = append(out, b.Name)
	}
	return out
}

// Named returns a benchmark.
func Named(name string) (Benchmark, error) {
	i := slices.IndexFunc(All, func(b Benchmark) bool { return b.Name == name })
	if i < 0 {
		return Benchmark{}, fmt.Errorf("no benchmark %q: there are %s", name, strings.Join(Names(), ", "))
	}
	return All[i], nil
}

// Row is one figure.
type Row struct {
	Name  string  `json:"name"`
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`

	// Low and High are the quartiles of Runs measurements, of which Value is the median, if
	// it was measured several times.
	Low  *float64 `json:"low,omitempty"`
	High *float64 `json:"high,omitempty"`
	Runs int      `json:"runs,omitempty"`

	// Target is what is wanted at most, if anything is; at least, if Least says so.
	Target *float64 `json:"target,omitempty"`
	Least  bool     `json:"least,omitempty"`
	Met    *bool    `json:"met,omitempty"`

	// Peer is another program that does the same, if there is one.
	Peer      string   `json:"peer,omitempty"`
	PeerValue *float64 `json:"peer_value,omitempty"`
	Ratio     *float64 `json:"ratio,omitempty"` // value over the peer's
}

// row returns a figure.
func row(name, unit string, value float64) Row { return Row{Name: name, Unit: unit, Value: value} }

// among makes the value the median of what was measured, and adds the quartiles.
func (r Row) among(all []float64) Row {
	all = slices.Sorted(slices.Values(all))
	n := len(all)
	low, high := all[n/4], all[n-1-n/4]
	r.Value, r.Low, r.High, r.Runs = (all[(n-1)/2]+all[n/2])/2, &low, &high, n
	return r
}

// atMost adds a target.
func (r Row) atMost(target float64) Row {
	met := r.Value <= target
	r.Target, r.Met = &target, &met
	return r
}

// atLeast adds a target of at least so much.
func (r Row) atLeast(target float64) Row {
	met := r.Value >= target
	r.Target, r.Met, r.Least = &target, &met, true
	return r
}

// beside adds what another program takes.
func (r Row) beside(peer string, value float64) Row {
	ratio := r.Value / value
	r.Peer, r.PeerValue, r.Ratio = peer, &value, &ratio
	return r
}

// String writes a row with tabs between its columns.
func (r Row) String() string {
	s := fmt.Sprintf("%s\t%.4g %s", r.Name, r.Value, r.Unit)
	if r.Runs > 0 {
		s += fmt.Sprintf(" (%.3g to %.3g, %d runs)", *r.Low, *r.High, r.Runs)
	}
	if r.Target != nil {
		verdict := "missed"
		if *r.Met {
			verdict = "met"
		}
		least := ""
		if r.Least {
			least = "at least "
		}
		s += fmt.Sprintf("\ttarget %s%.4g: %s", least, *r.Target, verdict)
	}
	if r.Peer != "" {
		s += fmt.Sprintf("\t%s: %.4g, ratio %.3g", r.Peer, *r.PeerValue, *r.Ratio)
	}
	return s
}
