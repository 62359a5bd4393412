package op

import (
	"fmt"
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Chance. What is drawn follows from the seed and the place of an element, in
// integer operators: any runtime draws the same. Two nodes with one seed draw
// the same, as do two runs of one node.

var _ = define(
	lower.Operator{Name: "RandomUniform", Min: 0, Max: 0, Outputs: 1, Expand: drawn(expandUniform),
		Attrs: []graph.Attr{graph.Int("dtype", int(tensor.Float32)), graph.Float("high", 1), graph.Float("low", 0), graph.Float("seed", 0), graph.Ints("shape")}},
	lower.Operator{Name: "RandomUniformLike", Min: 1, Max: 1, Outputs: 1, Expand: drawn(expandUniform),
		Attrs: []graph.Attr{graph.Int("dtype", 0), graph.Float("high", 1), graph.Float("low", 0), graph.Float("seed", 0)}},
	lower.Operator{Name: "RandomNormal", Min: 0, Max: 0, Outputs: 1, Expand: drawn(expandNormal),
		Attrs: []graph.Attr{graph.Int("dtype", int(tensor.Float32)), graph.Float("mean", 0), graph.Float("scale", 1), graph.Float("seed", 0), graph.Ints("shape")}},
	lower.Operator{Name: "RandomNormalLike", Min: 1, Max: 1, Outputs: 1, Expand: drawn(expandNormal),
		Attrs: []graph.Attr{graph.Int("dtype", 0), graph.Float("mean", 0), graph.Float("scale", 1), graph.Float("seed", 0)}},
	lower.Operator{Name: "Bernoulli", Min: 1, Max: 1, Outputs: 1, Expand: expandBernoulli, Attrs: []graph.Attr{graph.Int("dtype", 0), graph.Float("seed", 0)}},
	lower.Operator{Name: "Multinomial", Min: 1, Max: 1, Outputs: 1, Expand: expandMultinomial,
		Attrs: []graph.Attr{graph.Int("dtype", int(tensor.Int32)), graph.Int("sample_size", 1), graph.Float("seed", 0)}},
)

// mixing is a permutation of 32-bit words that leaves no trace of their order:
// shifts to the right that are taken exclusive-or, and factors between them.
// Source: Wellons' search for integer hashes of low bias (lowbias32).
var mixing = []struct{ shift, factor uint32 }{{16, 0x7feb352d}, {15, 0x846ca68b}, {16, 1}}

// Mix returns x mixed: words that differ little become words that have nothing in common.
func Mix(x uint32) uint32 {
	for _, m := range mixing {
		x = (x ^ x>>m.shift) * m.factor
	}
	return x
}

// chance draws for one node.
type chance struct {
	b    *graph.Builder
	seed uint32
	next uint32 // what was drawn so far
}

// newChance needs a seed: without one, everyone would draw something else.
func newChance(c *lower.Call, b *graph.Builder) (*chance, error) {
	a := c.Node.Attr("seed")
	if a == nil {
		return nil, fmt.Errorf("it has no seed; give it the attribute seed, so that everyone draws the same")
	}
	seed := math.Float32bits(a.Float)
	if a.Kind == graph.AttrInt {
		seed = Mix(uint32(a.Int)) + uint32(a.Int>>32)
	}
	c.MarkDraws()
	return &chance{b: b, seed: seed}, nil
}

// words writes a random word for each element of shape s: its place, plus a
// key, mixed, twice.
func (d *chance) words(s tensor.Shape) (string, error) {
	if err := s.Check(); err != nil {
		return "", err
	}
	if s.Elements() > math.MaxUint32 {
		return "", fmt.Errorf("shape %v has more than 2^32 elements; draw parts with seeds of their own", s)
	}
	keys := make([]string, 2)
	for i := range keys {
		d.next++
		keys[i] = d.b.Const(tensor.Scalar(Mix(d.seed + Mix(d.next))))
	}
	x := Words(d.b, d.b.Cast(rangeNode(d.b, s.Elements()), tensor.Uint32), keys...)
	return reshaped(d.b, x, tensor.Shape{s.Elements()}, s), nil
}

// Words writes a random word for each word of x, uint32: with each key, a uint32, it is added and mixed.
func Words(b *graph.Builder, x string, keys ...string) string {
	for _, key := range keys {
		x = b.Op("Add", x, key)
		for _, m := range mixing {
			x = b.Op("BitwiseXor", x, right(b, x, m.shift))
			if m.factor != 1 {
				x = b.Op("Mul", x, b.Const(tensor.Scalar(m.factor)))
			}
		}
	}
	return x
}

// right writes words shifted to the right.
func right(b *graph.Builder, x string, by uint32) string {
	return b.With(graph.String("direction", "RIGHT")).Op("BitShift", x, b.Const(tensor.Scalar(by)))
}

// inner writes numbers above 0 and below 1 for random words: their upper 23 bits, and a half.
func inner(b *graph.Builder, words string) string {
	x := b.Cast(right(b, words, 9), tensor.Float32)
	return b.Op("Mul", b.Op("Add", x, b.Scalar(0.5)), b.Scalar(1.0/(1<<23)))
}

// Noise writes −ln(−ln u) for random words. The greatest of log-probabilities with noise is a draw
// by these probabilities. Source: Gumbel.
func Noise(b *graph.Builder, words string) string {
	return b.Op("Neg", b.Op("Log", b.Op("Neg", b.Op("Log", inner(b, words)))))
}

// fraction draws numbers from 0 to below 1 in steps of 2⁻²⁴.
func (d *chance) fraction(s tensor.Shape) (string, error) {
	words, err := d.words(s)
	if err != nil {
		return "", err
	}
	return below1(d.b, words), nil
}

// below1 writes numbers from 0 to below 1 for random words: their upper 24 bits.
func below1(b *graph.Builder, words string) string {
	return b.Op("Mul", b.Cast(right(b, words, 8), tensor.Float32), b.Scalar(1.0/(1<<24)))
}

// drawn expands an operator whose result has the type and shape of attributes
// or of its input, and is computed in float32 or float64.
func drawn(draw func(c *lower.Call, d *chance, s tensor.Shape, of tensor.DType) (string, error)) expandFunc {
	return func(c *lower.Call, b *graph.Builder) ([]string, error) {
		d, err := newChance(c, b)
		if err != nil {
			return nil, err
		}
		var s tensor.Shape
		t := tensor.Float32
		if len(c.In) > 0 {
			s, t = c.In[0].Shape, c.In[0].Type
		} else {
			s = toInts(c.AttrOrDefault("shape").Ints)
		}
		if t, err = typeAttr(c, "dtype", t); err != nil {
			return nil, err
		}
		if !t.Float() {
			return nil, fmt.Errorf("it draws floats, not %v; set dtype", t)
		}
		of := t
		if t.Half() {
			of = tensor.Float32
		}
		x, err := draw(c, d, s, of)
		return []string{converted(b, x, of, t)}, err
	}
}

// expandUniform draws low + u·(high − low).
func expandUniform(c *lower.Call, d *chance, s tensor.Shape, of tensor.DType) (string, error) {
	u, err := d.fraction(s)
	if err != nil {
		return "", err
	}
	low, high := float64(c.Float("low")), float64(c.Float("high"))
	x := d.b.Op("Mul", converted(d.b, u, tensor.Float32, of), d.b.Const(floatOf(of, high-low)))
	return d.b.Op("Add", x, d.b.Const(floatOf(of, low))), nil
}

// expandNormal draws mean + scale·√(−2·ln u)·cos 2πv (Box and Muller).
func expandNormal(c *lower.Call, d *chance, s tensor.Shape, of tensor.DType) (string, error) {
	words, err := d.words(s)
	if err != nil {
		return "", err
	}
	turns, err := d.words(s)
	if err != nil {
		return "", err
	}
	b := d.b
	x := Normal(b, words, turns)
	x = b.Op("Mul", converted(b, x, tensor.Float32, of), b.Const(floatOf(of, float64(c.Float("scale")))))
	return b.Op("Add", x, b.Const(floatOf(of, float64(c.Float("mean"))))), nil
}

// Normal writes draws of the standard normal distribution, each of two random words. Source: Box and Muller.
func Normal(b *graph.Builder, words, turns string) string {
	radius := b.Op("Sqrt", b.Op("Mul", b.Op("Log", inner(b, words)), b.Scalar(-2)))
	return b.Op("Mul", radius, b.Op("Cos", b.Op("Mul", below1(b, turns), b.Scalar(2*math.Pi))))
}

// expandBernoulli draws 1 where u is below the probability.
func expandBernoulli(c *lower.Call, b *graph.Builder) ([]string, error) {
	d, err := newChance(c, b)
	if err != nil {
		return nil, err
	}
	to, err := typeAttr(c, "dtype", c.In[0].Type)
	if err != nil {
		return nil, err
	}
	hit, err := d.below(c.Inputs[0], c.In[0].Type, c.In[0].Shape)
	return []string{b.Cast(hit, to)}, err
}

// below writes whether u is below p, of type t, for elements of shape s.
func (d *chance) below(p string, t tensor.DType, s tensor.Shape) (string, error) {
	if !t.Float() {
		return "", fmt.Errorf("the probability is %v, but should be a float", t)
	}
	u, err := d.fraction(s)
	of := t
	if t.Half() {
		of = tensor.Float32
	}
	return d.b.Op("Less", converted(d.b, u, tensor.Float32, of), converted(d.b, p, t, of)), err
}

// expandMultinomial draws the class whose log-probability − ln(−ln u) is the
// greatest (Gumbel).
func expandMultinomial(c *lower.Call, b *graph.Builder) ([]string, error) {
	d, err := newChance(c, b)
	if err != nil {
		return nil, err
	}
	x, n := c.In[0], c.Int("sample_size")
	if len(x.Shape) != 2 || x.Shape[1] < 1 || !x.Type.Float() || n < 0 {
		return nil, fmt.Errorf("input %q is %v%v, but should be floats [batch classes], of which %d samples are drawn", c.Inputs[0], x.Type, x.Shape, n)
	}
	words, err := d.words(tensor.Shape{x.Shape[0], n, x.Shape[1]})
	if err != nil {
		return nil, err
	}
	sum := b.Op("Add", b.Op("Unsqueeze", converted(b, c.Inputs[0], x.Type, tensor.Float32), b.Ints(1)), Noise(b, words))
	class := b.With(graph.Int("axis", 2), graph.Int("keepdims", 0)).Op("ArgMax", sum)
	to, err := typeAttr(c, "dtype", tensor.Int32)
	return []string{b.Cast(class, to)}, err
}
