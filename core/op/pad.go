package op

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Padding: with one value, or with elements of the tensor itself. A negative
// pad cuts off.

var _ = define(
	lower.Operator{Name: "Pad", Min: 2, Max: 4, Outputs: 1, Attrs: []graph.Attr{graph.String("mode", "constant")}, Lower: lowerPad, Grad: padGrad},
)

// padsOf returns how much Pad adds before and after each axis.
func padsOf(c *lower.Call) (before, after []int, err error) {
	list, err := intsInput(c, 1)
	if err != nil {
		return nil, nil, err
	}
	rank := len(c.In[0].Shape)
	named := make([]int, rank)
	for a := range named {
		named[a] = a
	}
	if c.Has(3) {
		if named, err = intsInput(c, 3); err != nil {
			return nil, nil, err
		}
	}
	if _, err := axesOf(named, rank); err != nil {
		return nil, nil, err
	}
	if len(list) != 2*len(named) {
		return nil, nil, fmt.Errorf("%d pads are given for %d axes", len(list), len(named))
	}
	before, after = make([]int, rank), make([]int, rank)
	for i, a := range named {
		a, _ = axisOf(a, rank)
		before[a], after[a] = list[i], list[len(named)+i]
		for _, p := range []int{before[a], after[a]} {
			if p > tensor.MaxDim || p < -tensor.MaxDim {
				return nil, nil, fmt.Errorf("pad %d is out of range", p)
			}
		}
	}
	return before, after, nil
}

func lowerPad(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	before, after, err := padsOf(c)
	if err != nil {
		return nil, err
	}
	v := c.In[0]
	for a, n := range v.Shape {
		if n+before[a]+after[a] < 0 {
			return nil, fmt.Errorf("pads %d and %d leave nothing of axis %d of %v", before[a], after[a], a, v.Shape)
		}
	}
	if c.Text("mode") == "constant" {
		return one(padWithValue(c, e, before, after))
	}
	for a := range v.Shape {
		runs, err := padRuns(c, v.Shape[a], before[a], after[a])
		if err != nil {
			return nil, fmt.Errorf("axis %d: %w", a, err)
		}
		if v, err = e.Affine(v); err != nil {
			return nil, err
		}
		parts := make([]lower.View, len(runs))
		for i, r := range runs {
			parts[i] = takeRun(v, a, r)
		}
		if v, err = concatViews(e, parts, a); err != nil {
			return nil, err
		}
	}
	return []lower.View{v}, nil
}

// padWithValue pads with one value.
func padWithValue(c *lower.Call, e *lower.Emitter, before, after []int) (lower.View, error) {
	v, fill := c.In[0], lower.View{}
	var word tensor.Word
	if c.Has(2) {
		if fill = c.In[2]; fill.Shape.Elements() != 1 || fill.Type != v.Type {
			return lower.View{}, fmt.Errorf("input %q is %v%v, but should be one %v", c.Inputs[2], fill.Type, fill.Shape, v.Type)
		}
		t, err := c.Known(fill)
		if err != nil {
			return lower.View{}, err
		}
		if t != nil {
			word, fill = t.At(0), lower.View{}
		}
	}
	s := v.Shape.Clone()
	coords := lower.Axes(0, len(s))
	var moved []int
	for a := range s {
		if before[a] == 0 && after[a] == 0 {
			continue
		}
		moved = append(moved, a)
		coords[a].Offset = -before[a]
		s[a] += before[a] + after[a]
	}
	if len(moved) == 0 {
		return v, nil
	}
	v, err := e.Bounded(v, moved...)
	if err != nil {
		return lower.View{}, err
	}
	p := &tensor.Primitive{Fn: tensor.Copy, Type: v.Type, Shape: s, Imm: []tensor.Word{word}}
	if fill.Type == 0 {
		return e.Emit(p, v.Access(coords))
	}
	p.Fn = tensor.Join // what lies outside the first lies inside the second
	if fill, err = e.Reshape(fill, tensor.Shape{}); err != nil {
		return lower.View{}, err
	}
	if fill, err = e.Affine(fill); err != nil {
		return lower.View{}, err
	}
	return e.Emit(p, v.Access(coords), fill.Access(nil))
}

// run is n elements of an axis from the first on, step apart: 1, −1 or 0.
type run struct{ first, step, n int }

// maxRuns bounds how often padding goes to and fro.
const maxRuns = 1 << 10

// padRuns returns what elements of an axis of n a padded axis consists of.
func padRuns(c *lower.Call, n, before, after int) ([]run, error) {
	start, end := max(0, -before), n-max(0, -after) // what is left before padding
	if start >= end {
		if before > 0 || after > 0 {
			return nil, fmt.Errorf("it is empty and cannot be padded in mode %q", c.Text("mode"))
		}
		return []run{{0, 1, 0}}, nil
	}
	n = end - start
	var at func(i, limit int) run // the run from position i on, before the limit
	switch m := c.Text("mode"); {
	case m == "edge" || m == "reflect" && n == 1:
		at = func(i, limit int) run { return run{min(max(i, 0), n-1), 0, limit - i} }
	case m == "wrap":
		at = func(i, limit int) run { f := modulo(i, n); return run{f, 1, min(n-f, limit-i)} }
	case m == "reflect":
		at = func(i, limit int) run {
			f := modulo(i, 2*(n-1))
			if f < n-1 {
				return run{f, 1, min(n-1-f, limit-i)}
			}
			f = 2*(n-1) - f
			return run{f, -1, min(f, limit-i)}
		}
	default:
		return nil, fmt.Errorf("mode %q is not supported; use constant, reflect, edge or wrap", m)
	}
	var out []run
	add := func(i, limit int) {
		for i < limit && len(out) <= maxRuns {
			r := at(i, limit)
			out = append(out, r)
			i += r.n
		}
	}
	add(-max(0, before), 0)
	out = append(out, run{0, 1, n})
	add(n, n+max(0, after))
	if len(out) > maxRuns {
		return nil, fmt.Errorf("pads %d and %d are too wide for %d elements; use mode constant, or Tile", before, after, n)
	}
	for i := range out {
		out[i].first += start
	}
	return out, nil
}

func modulo(i, n int) int {
	if i %= n; i < 0 {
		i += n
	}
	return i
}

// takeRun returns part of axis a. v must not be flat.
func takeRun(v lower.View, a int, r run) lower.View {
	if r.step != 0 {
		return v.Sliced(a, r.first, r.step, r.n)
	}
	v = v.Sliced(a, r.first, 1, 1)
	s := v.Shape.Clone()
	s[a] = r.n
	return v.Broadcast(s)
}

// padGrad pads dy the other way round, or adds up what became of each element.
func padGrad(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
	before, after, err := padsOf(c)
	if err != nil {
		return nil, err
	}
	pad := func(x string, sign int) string {
		list := slices.Concat(before, after)
		for i := range list {
			list[i] *= sign
		}
		return b.Op("Pad", x, b.Ints(list...))
	}
	if c.Text("mode") == "constant" {
		out := firstGrad(c, pad(dy[0], -1))
		if c.Has(2) {
			outside := b.Op("Sub", dy[0], pad(out[0], 1))
			sum := b.With(graph.Int("keepdims", 0)).Op("ReduceSum", outside)
			out[2] = reshaped(b, sum, tensor.Shape{}, c.In[2].Shape)
		}
		return out, nil
	}
	g := dy[0]
	for a, n := range slices.Backward(c.In[0].Shape) {
		runs, err := padRuns(c, n, before[a], after[a])
		if err != nil {
			return nil, err
		}
		total, at := "", 0
		for _, r := range runs {
			part := b.Op("Slice", g, b.Ints(at), b.Ints(at+r.n), b.Ints(a))
			at += r.n
			switch {
			case r.step == 0:
				part, r.n = reduceAlong(b, "ReduceSum", part, a), 1
			case r.step < 0:
				part = b.Op("Slice", part, b.Ints(-1), b.Ints(-tensor.MaxDim-1), b.Ints(a), b.Ints(-1))
				r.first -= r.n - 1
			}
			part = b.Op("Pad", part, b.Ints(r.first, n-r.first-r.n), "", b.Ints(a))
			if total != "" {
				part = b.Op("Add", total, part)
			}
			total = part
		}
		g = total
	}
	return firstGrad(c, g), nil
}
