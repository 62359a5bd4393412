package op

import (
	"fmt"
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Spectra: products with constant matrices of cosines and sines, which are
// computed in float64 from whole fractions of a turn.

var windowOfAttrs = []graph.Attr{graph.Int("output_datatype", int(tensor.Float32)), graph.Int("periodic", 1)}

var _ = define(
	lower.Operator{Name: "DFT", Min: 1, Max: 3, Outputs: 1, Attrs: []graph.Attr{graph.Int("inverse", 0), graph.Int("onesided", 0)}, Expand: inFloat32(expandDFT)},
	lower.Operator{Name: "STFT", Min: 2, Max: 4, Outputs: 1, Attrs: []graph.Attr{graph.Int("onesided", 1)}, Expand: inFloat32(expandSTFT)},
	lower.Operator{Name: "HannWindow", Min: 1, Max: 1, Outputs: 1, Attrs: windowOfAttrs, Expand: expandWindow(0.5, 0.5, 0)},
	lower.Operator{Name: "HammingWindow", Min: 1, Max: 1, Outputs: 1, Attrs: windowOfAttrs, Expand: expandWindow(25.0/46, 21.0/46, 0)},
	lower.Operator{Name: "BlackmanWindow", Min: 1, Max: 1, Outputs: 1, Attrs: windowOfAttrs, Expand: expandWindow(0.42, 0.5, 0.08)},
	lower.Operator{Name: "MelWeightMatrix", Min: 5, Max: 5, Outputs: 1, Attrs: windowOfAttrs[:1:1], Expand: expandMelWeightMatrix},
)

// turn returns the cosine and the sine of i/n of a turn, whose symmetries hold
// exactly. n is positive and 8·n·n fits an int.
func turn(i, n int) (cos, sin float64) {
	i = ((i % n) + n) % n
	switch {
	case 2*i > n: // the lower half
		cos, sin = turn(n-i, n)
		return cos, -sin
	case 4*i > n: // the second quarter: half a turn less, mirrored
		cos, sin = quarter(2*(n-2*i), 4*n)
		return -cos, sin
	}
	return quarter(4*i, 4*n)
}

// quarter returns the cosine and the sine of i/n of a turn up to a quarter; n
// is a multiple of 4.
func quarter(i, n int) (cos, sin float64) {
	if 8*i > n {
		sin, cos = quarter(n/4-i, n)
		return cos, sin
	}
	x := float64(2*math.Pi*float64(i)) / float64(n)
	z := float64(x * x)
	c, s := 1.0, 1.0
	for k := 20; k > 0; k -= 2 {
		c = 1 - float64(float64(z*c)/float64(k*(k-1)))
		s = 1 - float64(float64(z*s)/float64(k*(k+1)))
	}
	return c, float64(x * s)
}

// intInput returns the constant integer of input i, or a default.
func intInput(c *lower.Call, i, missing int) (int, error) {
	if !c.Has(i) {
		return missing, nil
	}
	v, err := intsInput(c, i)
	if err == nil && len(v) != 1 {
		err = fmt.Errorf("input %q has %d elements, but should have one", c.Inputs[i], len(v))
	}
	if err != nil {
		return 0, err
	}
	return v[0], nil
}

// maxTurn bounds the length of a transform, so that its matrix can be held.
const maxTurn = 1 << 13

// expandDFT multiplies parts (real alone, or real and imaginary) along an axis
// by the matrix of the transform, [from, to, part, part].
func expandDFT(c *lower.Call, b *graph.Builder) ([]string, error) {
	s := c.In[0].Shape
	if len(s) < 2 || !c.In[0].Type.Float() {
		return nil, fmt.Errorf("input %q is %v%v, but should hold parts of floats on its last axis", c.Inputs[0], c.In[0].Type, s)
	}
	axis, err := intInput(c, 2, -2)
	if err != nil {
		return nil, err
	}
	a, err := axisOf(axis, len(s))
	if err != nil {
		return nil, err
	}
	parts := s[len(s)-1]
	if a == len(s)-1 || parts != 1 && parts != 2 {
		return nil, fmt.Errorf("input %q has shape %v, whose last axis should be the real part, or both parts, and axis %d another one", c.Inputs[0], s, a)
	}
	inverse, onesided := c.Flag("inverse"), c.Flag("onesided")
	if inverse && !onesided {
		return nil, fmt.Errorf("the inverse to complex numbers is not supported; write it as a forward transform of the conjugate, divided by its length")
	}
	n := s[a]
	if inverse {
		n = 2 * (s[a] - 1)
	}
	if n, err = intInput(c, 1, n); err != nil {
		return nil, err
	}
	if n < 1 || n > maxTurn {
		return nil, fmt.Errorf("the transform has length %d, but should be between 1 and %d", n, maxTurn)
	}
	from, to, made := n, n, 2
	switch {
	case inverse:
		from, made = n/2+1, 1
	case onesided:
		to = n/2 + 1
	}
	from = min(from, s[a])
	matrix, err := floatTable(c, c.In[0].Type, tensor.Shape{from, to, parts, made}, func(i int) float64 {
		out, in, k, j := i%made, i/made%parts, i/made/parts%to, i/made/parts/to
		cos, sin := turn(j*k, n)
		if inverse {
			cos, sin = cos/float64(n), -sin/float64(n)
			if j > 0 && 2*j != n { // its conjugate is left out
				cos, sin = cos+cos, sin+sin
			}
		}
		switch {
		case in == out:
			return cos
		case in == 0:
			return -sin
		}
		return sin
	})
	if err != nil {
		return nil, err
	}
	x := c.Inputs[0]
	if from < s[a] {
		x = b.Op("Slice", x, b.Ints(0), b.Ints(from), b.Ints(a))
	}
	// The letters a, b, … are the axes, Z the axis of the result, Y its parts.
	in := letters[:len(s)]
	out := in[:a] + "Z" + in[a+1:len(s)-1] + "Y"
	equation := in + "," + in[a:a+1] + "Z" + in[len(s)-1:] + "Y->" + out
	return []string{b.With(graph.String("equation", equation)).Op("Einsum", x, b.Const(matrix))}, nil
}

// expandSTFT transforms frames of the signal, which a window weights.
func expandSTFT(c *lower.Call, b *graph.Builder) ([]string, error) {
	s := c.In[0].Shape
	if len(s) == 2 {
		s = append(s.Clone(), 1)
	}
	step, err := intInput(c, 1, 0)
	if err != nil {
		return nil, err
	}
	n := 0
	if c.Has(2) && len(c.In[2].Shape) == 1 {
		n = c.In[2].Shape[0]
	}
	if n, err = intInput(c, 3, n); err != nil {
		return nil, err
	}
	switch {
	case !c.In[0].Type.Float() || len(s) != 3 || s[2] != 1 && s[2] != 2 || c.Flag("onesided") && s[2] != 1:
		return nil, fmt.Errorf("the signal is %v%v, but should be floats [batch length 1], or [batch length 2] for two sides", c.In[0].Type, s)
	case step < 1 || step > tensor.MaxDim || n < 1 || n > s[1]:
		return nil, fmt.Errorf("frames of %d elements, %d apart, do not fit a signal of shape %v", n, step, s)
	case c.Has(2) && (!c.In[2].Shape.Equal(tensor.Shape{n}) || c.In[2].Type != c.In[0].Type):
		return nil, fmt.Errorf("the window is %v%v, but should be %v[%d]", c.In[2].Type, c.In[2].Shape, c.In[0].Type, n)
	}
	frames, err := intTable(c, tensor.Shape{(s[1]-n)/step + 1, n}, func(i int) int { return i/n*step + i%n })
	if err != nil {
		return nil, err
	}
	x := b.With(graph.Int("axis", 1)).Op("Gather", reshaped(b, c.Inputs[0], c.In[0].Shape, s), b.Const(frames))
	if c.Has(2) {
		x = b.Op("Mul", x, reshaped(b, c.Inputs[2], tensor.Shape{n}, tensor.Shape{n, 1}))
	}
	return []string{b.With(graph.Int("onesided", c.Int("onesided"))).Op("DFT", x, "", int64Const(b, 2))}, nil
}

// expandWindow writes the constants p − q·cos(2πi/n) + r·cos(4πi/n).
func expandWindow(p, q, r float64) expandFunc {
	return func(c *lower.Call, b *graph.Builder) ([]string, error) {
		size, err := intInput(c, 0, 0)
		if err != nil {
			return nil, err
		}
		n := size
		if !c.Flag("periodic") {
			n = size - 1
		}
		w, err := floatTable(c, tensor.Float64, tensor.Shape{size}, func(i int) float64 {
			once, _ := turn(i, max(n, 1))
			twice, _ := turn(2*i, max(n, 1))
			return p - float64(q*once) + float64(r*twice)
		})
		if err != nil {
			return nil, err
		}
		return []string{b.With(graph.Int("to", c.Int("output_datatype"))).Op("Cast", b.Const(w))}, nil
	}
}

// expandMelWeightMatrix writes, for each band of the mel scale, a triangle over
// the bins of a spectrum: m = 2595·log₁₀(1 + f/700).
func expandMelWeightMatrix(c *lower.Call, b *graph.Builder) ([]string, error) {
	var n [3]int // bands, length of the transform, sample rate
	for i := range n {
		var err error
		if n[i], err = intInput(c, i, 0); err != nil {
			return nil, err
		}
		if n[i] < 1 || n[i] > tensor.MaxDim {
			return nil, fmt.Errorf("input %q is %d, but should be between 1 and 2^40", c.Inputs[i], n[i])
		}
	}
	real := func(v float64) string { return b.Const(floatOf(tensor.Float64, v)) }
	wide := func(x string) string { return castTo(b, x, tensor.Float64) }
	var edge [2]string
	for i := range edge {
		if t := c.In[3+i]; !t.Type.Float() || t.Shape.Elements() != 1 {
			return nil, fmt.Errorf("input %q is %v%v, but should be one float", c.Inputs[3+i], t.Type, t.Shape)
		}
		f := b.Op("Reshape", wide(c.Inputs[3+i]), b.Ints())
		edge[i] = b.Op("Log", b.Op("Add", b.Op("Div", f, real(700)), real(1)))
	}
	step := b.Op("Div", b.Op("Sub", edge[1], edge[0]), real(float64(n[0]+2)))
	m := b.Op("Add", b.Op("Mul", wide(rangeNode(b, n[0]+2)), step), edge[0])
	f := b.Op("Mul", b.Op("Sub", b.Op("Exp", m), real(1)), real(700))
	bins := b.Op("Floor", b.Op("Div", b.Op("Mul", f, real(float64(n[1]+1))), real(float64(n[2]))))
	corner := func(i int) string { return b.Op("Slice", bins, b.Ints(i), b.Ints(i+n[0])) }
	left, top, right := corner(0), corner(1), corner(2)
	bin := b.Op("Unsqueeze", wide(rangeNode(b, n[1]/2+1)), b.Ints(1))
	between := func(lo, hi string, last string) string {
		return b.Op("And", b.Op("GreaterOrEqual", bin, lo), b.Op(last, bin, hi))
	}
	up := b.Op("Div", b.Op("Sub", bin, left), b.Op("Max", b.Op("Sub", top, left), real(1)))
	up = b.Op("Where", b.Op("Equal", left, top), real(1), up)
	down := b.Op("Div", b.Op("Sub", right, bin), b.Op("Max", b.Op("Sub", right, top), real(1)))
	y := b.Op("Where", between(left, top, "LessOrEqual"), up, real(0))
	y = b.Op("Where", between(top, right, "Less"), down, y)
	return []string{b.With(graph.Int("to", c.Int("output_datatype"))).Op("Cast", y)}, nil
}
