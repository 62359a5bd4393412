package op

import (
	"fmt"
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Fourier transforms: products with constant matrices of cosines and sines, which are
// computed in float64 from whole fractions of a turn.

var _ = define(
	lower.Operator{Name: "DFT", Min: 1, Max: 3, Outputs: 1, Attrs: []graph.Attr{graph.Int("inverse", 0), graph.Int("onesided", 0)}, Expand: inFloat32(expandDFT)},
	lower.Operator{Name: "STFT", Min: 2, Max: 4, Outputs: 1, Attrs: []graph.Attr{graph.Int("onesided", 1)}, Expand: inFloat32(expandSTFT)},
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
