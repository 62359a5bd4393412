package replay

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
)

// Rating is how good the rounds of training were, which of them the order wants, and why no more were wanted.
type Rating struct {
	Round    int         `json:"round,omitempty"`        // that the order wants, from 1
	Metrics  Scores      `json:"metrics,omitempty"`      // of this round on held-out records
	By       string      `json:"best_metric,omitempty"`  // by which the order compares rounds
	Scores   []Scores    `json:"round_scores,omitempty"` // of each, if it does
	Enough   string      `json:"enough,omitempty"`       // by which scores no more were wanted; of an order that stopped
	Diverged *Divergence `json:"diverged,omitempty"`
}

// Rate adds the scores of all rounds of an order, which are nil where nobody wants them. stopped is whether it ended early.
func (r *Rating) Rate(by train.Best, all []Scores, stopped bool) {
	round, _ := Best(by, all)
	if round < 0 {
		return
	}
	r.Round, r.Metrics = round+1, all[round]
	if by.Metric == "" {
		return
	}
	if r.By, r.Scores = by.Metric, all; stopped {
		r.Enough = Enough(by, all)
	}
}

// ModelDiverged reports whether the round that the order wants is one that training diverged in, or after it.
func (r *Rating) ModelDiverged() bool { return r.Diverged != nil && r.Round >= r.Diverged.Round }

// mostRounds bounds how many rounds people are told the scores of.
const mostRounds = 24

// Lines says to people what they cannot see of the metrics alone.
func (r *Rating) Lines() (out []string) {
	if r.Diverged != nil {
		line := "DIVERGED: " + r.Diverged.String()
		if !r.ModelDiverged() {
			line += fmt.Sprintf(". The model is of round %d, before that", r.Round)
		}
		out = append(out, line)
	}
	if len(r.Scores) > 0 {
		name, all, from := strings.ReplaceAll(r.By, "_", " "), []string{}, max(0, len(r.Scores)-mostRounds)
		if from > 0 {
			all = append(all, "…")
		}
		for _, s := range r.Scores[from:] {
			all = append(all, fmt.Sprintf("%.6g", s.Of(r.By)))
		}
		out = append(out, fmt.Sprintf("scores    %s of each round: %s; the best is %.6g, of round %d", name, strings.Join(all, ", "), r.Metrics.Of(r.By), r.Round))
	}
	if r.Enough != "" {
		out = append(out, "enough    "+r.Enough)
	}
	return out
}

// Divergence says that training came to infinite values or to what is no number, so that its model is of no use.
type Divergence struct {
	Round int    `json:"round"` // the first whose state holds such a value, from 1
	What  string `json:"what"`  // that is one
}

// String says it to people, and what to do.
func (d *Divergence) String() string {
	return fmt.Sprintf("after round %d %s is not a finite number, and what followed is of no use: lower problem.optimizer.learningRate, set clipNorm, or check the data", d.Round, d.What)
}

// FindDivergence looks for such values in the states of so many rounds, which state returns, counted from 0. It returns nil if the
// last of them has none: weights that are no numbers stay so. A loss may recover, and is not told then.
func (j *Job) FindDivergence(rounds int, state func(round int) (*graph.State, error)) (*Divergence, error) {
	of := func(round int) (string, error) {
		s, err := state(round)
		if err != nil {
			return "", err
		}
		return j.NotFinite(s), nil
	}
	if rounds == 0 {
		return nil, nil
	}
	what, err := of(rounds - 1)
	if err != nil || what == "" {
		return nil, err
	}
	for round := range rounds {
		if what, err = of(round); err != nil || what != "" {
			return &Divergence{round + 1, what}, err
		}
	}
	return nil, nil // of states that change meanwhile
}

// NotFinite names what of a state is not finite; "" if all is, but for slots in which something was not at the start, as masks hold −∞.
func (j *Job) NotFinite(s *graph.State) string {
	for i, slot := range s.Slots {
		if finite(s.Tensors[i]) || i < len(j.Start.Tensors) && !finite(j.Start.Tensors[i]) {
			continue
		}
		if slot.Name == job.LossSlot {
			return "its loss"
		}
		if name, ok := strings.CutPrefix(slot.Name, "p/"); ok {
			return fmt.Sprintf("its weight %.80q", name)
		}
		return fmt.Sprintf("what its optimizer keeps as %.80q", slot.Name)
	}
	return ""
}

func finite(t *tensor.Tensor) bool {
	return t.Type != tensor.Float32 || !slices.ContainsFunc(tensor.Of[float32](t), func(x float32) bool { return !Finite(x) })
}
