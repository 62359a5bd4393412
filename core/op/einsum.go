package op

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Sums of products over named axes. Two operands at a time become one, by one
// contraction over the axes that nothing later needs.

var _ = define(
	lower.Operator{Name: "Einsum", Min: 1, Max: -1, Outputs: 1, Attrs: []graph.Attr{graph.String("equation", "")}, Lower: lowerEinsum, Grad: einsumGrad},
)

// An equation names each axis of the operands and of the result by a label: the
// letter, or a number from firstDot on for the axes of an ellipsis.
type equation struct {
	terms  [][]int
	result []int
}

const (
	firstDot = 128 // the label of an ellipsis' first axis
	letters  = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// readEquation reads the equation against the shapes of the inputs.
func readEquation(c *lower.Call) (*equation, error) {
	text := strings.ReplaceAll(c.Text("equation"), " ", "")
	left, right, explicit := strings.Cut(text, "->")
	terms := strings.Split(left, ",")
	if len(terms) != len(c.In) {
		return nil, fmt.Errorf("equation %q has %d terms for %d inputs", text, len(terms), len(c.In))
	}
	dots := 0
	for i, term := range terms {
		if strings.Contains(term, "...") {
			dots = max(dots, len(c.In[i].Shape)+3-len(term))
		}
	}
	e := &equation{}
	seen := map[int]int{}
	for i, term := range terms {
		own := len(c.In[i].Shape) + 3 - len(term)
		labels, err := labelsOf(term, dots, own)
		if err == nil && (own < 0 || len(labels) != len(c.In[i].Shape)) {
			err = fmt.Errorf("it does not name the axes of %v", c.In[i].Shape)
		}
		if err != nil {
			return nil, fmt.Errorf("equation %q, term %q: %w", text, term, err)
		}
		e.terms = append(e.terms, labels)
		for _, x := range labels {
			seen[x]++
		}
	}
	if !explicit {
		right = "..."
		for x := range firstDot {
			if seen[x] == 1 {
				right += string(rune(x))
			}
		}
	}
	var err error
	e.result, err = labelsOf(right, dots, dots)
	for i, x := range e.result {
		if err == nil && (seen[x] == 0 || slices.Contains(e.result[:i], x)) {
			err = fmt.Errorf("each letter must come once, and in some term before")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("equation %q, result %q: %w", text, right, err)
	}
	return e, nil
}

// labelsOf reads a term whose ellipsis stands for the last own of dots axes.
func labelsOf(term string, dots, own int) (out []int, err error) {
	before, after, ellipsis := strings.Cut(term, "...")
	for _, part := range []string{before, after} {
		for _, x := range []byte(part) {
			if !strings.Contains(letters, string(rune(x))) {
				return nil, fmt.Errorf("%q is not a letter", x)
			}
			out = append(out, int(x))
		}
		if ellipsis {
			for i := range max(0, min(own, tensor.MaxRank)) {
				out = append(out, firstDot+dots-own+i)
			}
			ellipsis = false
		}
	}
	return out, nil
}

// labelled is an operand with labels on its axes.
type labelled struct {
	lower.View
	labels []int
}

// extents adds the extents of labels to those known. An extent of 1 repeats.
func (x labelled) extents(known map[int]int) error {
	for a, label := range x.labels {
		n, ok := known[label]
		if m := x.Shape[a]; !ok || n == 1 {
			known[label] = m
		} else if m != 1 && m != n {
			return fmt.Errorf("axis %d of %v should have extent %d", a, x.Shape, n)
		}
	}
	return nil
}

// coords returns how the elements of x are read when its labels lie on the axes
// of a primitive: labels in place, of the given extents.
func (x labelled) coords(place map[int]int, extent map[int]int) []tensor.Dim {
	coords := make([]tensor.Dim, len(x.labels))
	for a, label := range x.labels {
		if x.Shape[a] == extent[label] {
			coords[a] = lower.Axis(place[label])
		}
	}
	return coords
}

func lowerEinsum(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	if err := wantNumbers(c); err != nil {
		return nil, err
	}
	eq, err := readEquation(c)
	if err != nil {
		return nil, err
	}
	t := productType(c.In[0].Type)
	operands := make([]labelled, len(c.In))
	all := map[int]int{}
	for i, v := range c.In {
		if v, err = e.Affine(v); err == nil {
			v, err = e.Cast(v, t)
		}
		if err != nil {
			return nil, err
		}
		operands[i] = labelled{v, eq.terms[i]}
		if err := operands[i].extents(all); err != nil {
			return nil, err
		}
	}
	y := operands[0]
	if len(operands) == 1 {
		y, err = contract(e, eq.result, y)
	}
	for i := 1; i < len(operands) && err == nil; i++ {
		needed := slices.Clone(eq.result)
		if i+1 < len(operands) {
			needed = nil
			for _, label := range slices.Concat(y.labels, eq.terms[i]) {
				later := slices.ContainsFunc(eq.terms[i+1:], func(term []int) bool { return slices.Contains(term, label) })
				if !slices.Contains(needed, label) && (later || slices.Contains(eq.result, label)) {
					needed = append(needed, label)
				}
			}
		}
		y, err = contract(e, needed, y, operands[i])
	}
	if err != nil {
		return nil, err
	}
	return one(e.Cast(y.View, c.In[0].Type))
}

// contract multiplies operands, one or two, and sums over all labels but those
// of the result.
func contract(e *lower.Emitter, result []int, in ...labelled) (labelled, error) {
	extent := map[int]int{}
	place := map[int]int{}
	for _, x := range in {
		if err := x.extents(extent); err != nil {
			return labelled{}, err
		}
	}
	p := &tensor.Primitive{Fn: tensor.Dot, Type: in[0].Type}
	for i, label := range result {
		place[label] = i
		p.Shape = append(p.Shape, extent[label])
	}
	ops := make([]lower.Operand, len(in))
	for _, x := range in {
		for _, label := range x.labels {
			if _, ok := place[label]; !ok {
				place[label] = len(result) + len(p.Fold)
				p.Fold = append(p.Fold, extent[label])
			}
		}
	}
	if len(in) == 1 {
		if p.Fn = tensor.FoldSum; len(p.Fold) == 0 {
			return labelled{in[0].Through(p.Shape, in[0].coords(place, extent)), result}, nil
		}
	}
	for i, x := range in {
		ops[i] = x.Access(x.coords(place, extent))
	}
	v, err := e.Emit(p, ops...)
	return labelled{v, result}, err
}

// einsumGrad: the gradient of an operand is the sum of products of the others
// and the result's, to the operand's labels. A label that comes twice in it
// meets an identity matrix, one that nothing else has, ones.
func einsumGrad(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
	e, err := readEquation(c)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(c.In))
	for i := range c.In {
		if c.In[i].Type != tensor.Float32 {
			continue
		}
		terms, inputs := [][]int{e.result}, []string{dy[0]}
		shapes := []tensor.Shape{c.Out[0].Shape}
		for j, term := range e.terms {
			if j != i {
				terms, inputs, shapes = append(terms, term), append(inputs, c.Inputs[j]), append(shapes, c.In[j].Shape)
			}
		}
		others := len(terms)
		fresh := 2 * firstDot
		var result []int
		for a, label := range e.terms[i] {
			n, found := c.In[i].Shape[a], false
			for k, term := range terms[:others] {
				for d, x := range term {
					found = found || x == label && shapes[k][d] == n
				}
			}
			switch {
			case slices.Contains(result, label):
				unit, err := c.Account.NewConst(tensor.Float32, tensor.Shape{n, n})
				if err != nil {
					return nil, err
				}
				for d := range n {
					unit.Set(d*n+d, tensor.F32(1))
				}
				terms, inputs = append(terms, []int{label, fresh}), append(inputs, b.Const(unit))
				label = fresh
				fresh++
			case !found:
				if n == 1 {
					label = fresh
					fresh++
				}
				terms, inputs = append(terms, []int{label}), append(inputs, b.Op("Expand", b.Scalar(1), b.Ints(n)))
			}
			result = append(result, label)
		}
		text, err := written(terms, result)
		if err != nil {
			return nil, err
		}
		out[i] = b.With(graph.String("equation", text)).Op("Einsum", inputs...)
	}
	return out, nil
}

// written writes an equation, with a letter for each label.
func written(terms [][]int, result []int) (string, error) {
	names := map[int]byte{}
	var parts []string
	for _, term := range append(slices.Clone(terms), result) {
		var text []byte
		for _, label := range term {
			if _, ok := names[label]; !ok {
				if len(names) == len(letters) {
					return "", fmt.Errorf("its gradient needs more than %d letters", len(letters))
				}
				names[label] = letters[len(names)]
			}
			text = append(text, names[label])
		}
		parts = append(parts, string(text))
	}
	n := len(parts) - 1
	return strings.Join(parts[:n], ",") + "->" + parts[n], nil
}
