package plausibility

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Checkpoint is one state on the way, and its loss.
type Checkpoint struct {
	Step  int
	Loss  float64
	State *graph.State
}

// Least is the number of checkpoints below which trends mean nothing.
const Least = 8

// ErrFew says that there are fewer checkpoints than Least.
var ErrFew = errors.New("too few to tell anything")

// Alpha is the risk of refusing an honest run that each rule with a p-value
// takes.
const Alpha = 0.01

// Thresholds of the rules without one.
const (
	maxJump   = 25   // P2: largest step over median step of a tensor
	slackKS   = 0.02 // P3: difference of distributions that is let pass
	slackEdge = 1.15 // P4: share of variance over that of independent entries
	minGap    = 3    // P6: standard deviations
	shuffles  = 20   // P6
)

// Rule is what one rule finds.
type Rule struct {
	Name      string   `json:"name"`
	Statistic string   `json:"statistic"`
	Value     float64  `json:"value"`
	Threshold *float64 `json:"threshold,omitempty"` // of the value; without one p decides
	P         *float64 `json:"p,omitempty"`         // P1, P5: of no trend; P3, P4: of honest training
	Pass      bool     `json:"pass"`
}

// Report is what the six rules find.
type Report struct {
	Rules  []Rule `json:"rules"`
	Passed int    `json:"passed"`

	Steps    []int     `json:"steps"`
	Loss     []float64 `json:"loss"`
	Distance []float64 `json:"distance"` // root mean square, to the end
	Change   []float64 `json:"change"`   // P2's statistic between neighbours, the largest over all tensors
}

// weights are the values of one parameter at every checkpoint.
type weights struct {
	name  string
	shape tensor.Shape
	at    [][]float32
}

// matrix reports whether the tensor is large enough to have a distribution, and
// is no constant at the start.
func (w *weights) matrix() bool {
	_, d := moments(w.at[0])
	return len(w.shape) > 1 && len(w.at[0]) >= 64 && d > 0
}

// Assess applies the rules to checkpoints in order.
func Assess(chain []Checkpoint) (*Report, error) {
	if len(chain) < Least {
		return nil, fmt.Errorf("%d checkpoints are %w: the rules want %d; order more rounds or a shorter checkpoint interval", len(chain), ErrFew, Least)
	}
	all, err := parameters(chain)
	if err != nil {
		return nil, err
	}
	r := &Report{}
	for _, c := range chain {
		r.Steps, r.Loss = append(r.Steps, c.Step), append(r.Loss, c.Loss)
	}
	for i := range chain {
		r.Distance = append(r.Distance, distance(all, func(w *weights) []float32 { return w.at[i] }))
	}
	r.Rules = []Rule{falling(r.Loss), r.smooth(all), fresh(all), independent(all), nearing(r.Distance), own(all)}
	for _, x := range r.Rules {
		if x.Pass {
			r.Passed++
		}
	}
	return r, nil
}

// parameters returns the trained tensors of all checkpoints.
func parameters(chain []Checkpoint) (all []weights, err error) {
	for i, slot := range chain[0].State.Slots {
		name, ok := strings.CutPrefix(slot.Name, "p/")
		if !ok || slot.Type != tensor.Float32 {
			continue
		}
		w := weights{name: name, shape: slot.Shape}
		for _, c := range chain {
			if i >= len(c.State.Tensors) || c.State.Slots[i].Name != slot.Name || !c.State.Tensors[i].Shape.Equal(slot.Shape) {
				return nil, fmt.Errorf("the checkpoints differ in %q", slot.Name)
			}
			v := tensor.Of[float32](c.State.Tensors[i])
			if slices.ContainsFunc(v, func(x float32) bool { return math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) }) {
				return nil, fmt.Errorf("%q has values that are no numbers after step %d", slot.Name, c.Step)
			}
			w.at = append(w.at, v)
		}
		all = append(all, w)
	}
	if len(all) == 0 {
		return nil, errors.New("the checkpoints hold no parameters")
	}
	return all, nil
}

func pointer(x float64) *float64 { return &x }

// falling is P1.
func falling(loss []float64) Rule {
	s := 0.0
	for i := range loss {
		for j := range i {
			s += sign(loss[j] - loss[i])
		}
	}
	n := float64(len(loss))
	z := (s - sign(s)) / math.Sqrt(n*(n-1)*(2*n+5)/18)
	p := upper(z)
	return Rule{"P1 the loss falls", "Mann–Kendall z", z, pointer(quantile(Alpha)), pointer(p), p < Alpha}
}

// smooth is P2.
func (r *Report) smooth(all []weights) Rule {
	worst := 0.0
	r.Change = make([]float64, len(r.Steps)-1)
	for _, w := range all {
		if !w.matrix() {
			continue
		}
		var steps []float64
		before := sorted(w.at[0])
		for _, v := range w.at[1:] {
			after := sorted(v)
			steps, before = append(steps, between(before, after)), after
		}
		median := sortedFloats(steps)[len(steps)/2]
		for i, s := range steps {
			ratio := s / max(median, 1e-30) // of a tensor that mostly stands still: huge
			r.Change[i] = max(r.Change[i], ratio)
			worst = max(worst, ratio)
		}
	}
	return Rule{"P2 weights change smoothly", "largest W1 between neighbours, in medians", worst, pointer(maxJump), nil, worst <= maxJump}
}

// fresh is P3.
func fresh(all []weights) Rule {
	worst, p, tests := 0.0, 1.0, 0
	for _, w := range all {
		if !w.matrix() {
			continue
		}
		tests++
		d, n := fit(w.at[0]), float64(len(w.at[0]))
		worst, p = max(worst, d), min(p, kolmogorov(math.Sqrt(n)*max(d-slackKS, 0)))
	}
	p = min(p*float64(tests), 1) // Bonferroni
	return Rule{"P3 a fresh start", "largest KS distance of a matrix", worst, nil, pointer(p), p >= Alpha}
}

// independent is P4.
func independent(all []weights) Rule {
	worst, p, tests := 0.0, 1.0, 0
	for _, w := range all {
		if !w.matrix() {
			continue
		}
		rows, cols := w.shape.Matrix()
		worst = max(worst, leading(w.at[0], rows, cols)/edge(rows, cols))
		for _, z := range []float64{neighbours(w.at[0], rows, cols, 0, 1), neighbours(w.at[0], rows, cols, 1, 0)} {
			tests++
			p = min(p, 2*upper(math.Abs(z)))
		}
	}
	p = min(p*float64(tests), 1)
	return Rule{"P4 an independent start", "largest first component, in that of independent entries", worst, pointer(slackEdge), pointer(p), worst <= slackEdge && p >= Alpha}
}

// nearing is P5.
func nearing(distance []float64) Rule {
	n := float64(len(distance))
	order := ranks(distance)
	sum := 0.0
	for i, rank := range order {
		d := float64(len(distance)-1-i) - rank
		sum += d * d
	}
	rho := 1 - 6*sum/(n*(n*n-1))
	p := upper(rho * math.Sqrt(n-1))
	return Rule{"P5 the end comes nearer", "Spearman's rho", rho, pointer(quantile(Alpha) / math.Sqrt(n-1)), pointer(p), p < Alpha}
}

// own is P6. A fresh start is the start with the values of each tensor shuffled.
func own(all []weights) Rule {
	r := rand.New(rand.NewPCG(1, 6)) // of no importance: nothing rests on it
	start := distance(all, func(w *weights) []float32 { return w.at[0] })
	var others []float32
	for range shuffles {
		others = append(others, float32(distance(all, func(w *weights) []float32 {
			v := slices.Clone(w.at[0])
			r.Shuffle(len(v), func(i, j int) { v[i], v[j] = v[j], v[i] })
			return v
		})))
	}
	mean, deviation := moments(others)
	gap := (mean - start) / max(deviation, 1e-12)
	return Rule{"P6 the start is its own", "standard deviations nearer to the end than other starts", gap, pointer(minGap), nil, gap > minGap}
}

// distance is the root mean square from some values of all tensors to the end.
func distance(all []weights, of func(*weights) []float32) float64 {
	sum, n := 0.0, 0
	for i := range all {
		w := &all[i]
		end := w.at[len(w.at)-1]
		for j, x := range of(w) {
			d := float64(x) - float64(end[j])
			sum += d * d
		}
		n += len(end)
	}
	return math.Sqrt(sum / float64(max(n, 1)))
}

// Warning says what the rules are worth.
const Warning = "a filter and no evidence: invented checkpoints can pass all six, honest ones can fail; what proves training is that segments executed again are equal"

// Tell writes the report for people.
func (r *Report) Tell(w io.Writer) {
	fmt.Fprintf(w, "  plausible %d of %d rules hold over %d checkpoints\n", r.Passed, len(r.Rules), len(r.Steps))
	for _, x := range r.Rules {
		verdict := "fails"
		if x.Pass {
			verdict = "holds"
		}
		text := fmt.Sprintf("%s: %s %.4g", x.Name, x.Statistic, x.Value)
		if x.Threshold != nil {
			text += fmt.Sprintf(" (limit %.4g)", *x.Threshold)
		}
		if x.P != nil {
			text += fmt.Sprintf(", p %.2g", *x.P)
		}
		fmt.Fprintf(w, "    %s  %s\n", verdict, text)
	}
	fmt.Fprintf(w, "    this is %s\n", Warning)
}
