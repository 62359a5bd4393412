package spatial_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/spatial"
	"github.com/tally-network/tally/internal/testkit/kerneltest"
)

// windows is a fold of windows, of one size and step along each of two axes.
type windows struct{ planes, high, wide, kernel, step, apart, pad int }

func (c windows) primitive(fn tensor.Fn) *tensor.Primitive {
	out := func(n int) int { return (n+2*c.pad-(c.kernel-1)*c.apart-1)/c.step + 1 }
	over := func(axis, fold int) tensor.Dim {
		return tensor.Dim{Offset: -c.pad, Terms: []tensor.Term{{Axis: axis, Step: c.step}, {Axis: fold, Step: c.apart}}}
	}
	return &tensor.Primitive{Fn: fn, Type: tensor.Float32, Shape: tensor.Shape{c.planes, out(c.high), out(c.wide)}, Fold: []int{c.kernel, c.kernel}, Args: []tensor.Access{
		{Type: tensor.Float32, Shape: tensor.Shape{c.planes, c.high, c.wide}, Dims: []tensor.Dim{kerneltest.Axis(0), over(1, 3), over(2, 4)}},
	}}
}

var someWindows = []windows{
	{5, 9, 12, 3, 1, 1, 1}, {70, 7, 7, 3, 1, 1, 1}, {3, 112, 112, 3, 2, 1, 0}, {9, 17, 20, 3, 2, 1, 1}, {4, 14, 30, 2, 2, 1, 0}, {2, 40, 33, 5, 3, 1, 2},
	{3, 20, 21, 3, 1, 3, 3}, {3, 20, 19, 3, 2, 2, 1}, {2, 13, 40, 7, 2, 1, 3}, {1, 8, 9, 6, 1, 1, 5}, {6, 5, 1, 2, 1, 1, 1}, {3, 30, 31, 3, 4, 1, 1},
}

// Folds of windows with borders, strides and dilations, on hard values.
func TestPools(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	for i, c := range someWindows {
		for j, fn := range []tensor.Fn{tensor.FoldSum, tensor.FoldMax, tensor.FoldMin} {
			p := c.primitive(fn)
			if thin := (i + j) % 6; thin < 2 && c.kernel > 1 { // windows of one line, or one column
				p.Fold[thin] = 1
			}
			for _, set := range asm.Sets() {
				if spatial.NewPooling(p, set) == nil {
					t.Errorf("%s: %v is no pooling", set.Name, c)
				}
			}
			for _, from := range [][]float64{kerneltest.Wild, kerneltest.NearTies, kerneltest.Small} {
				kerneltest.Compare(t, fmt.Sprint(fn, c), p, kerneltest.Drawn(r, tensor.Float32, p.Args[0].Shape, from...))
			}
		}
	}
}

// Windows that all lie in the padding.
func TestWindowsOutside(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 5))
	for _, c := range []windows{{5, 9, 12, 3, 1, 1, 1}, {3, 3, 3, 2, 2, 2, 1}, {40, 7, 7, 3, 1, 1, 1}} {
		for _, offset := range [][2]int{{-50, 0}, {0, -50}, {50, 0}, {0, 50}, {-50, 50}} {
			for _, fn := range []tensor.Fn{tensor.FoldSum, tensor.FoldMax, tensor.FoldMin} {
				p := c.primitive(fn)
				p.Args[0].Dims[1].Offset += offset[0]
				p.Args[0].Dims[2].Offset += offset[1]
				kerneltest.Compare(t, fmt.Sprint(fn, c, offset), p, kerneltest.Drawn(r, tensor.Float32, p.Args[0].Shape, kerneltest.Small...))
			}
		}
	}
}

// manyPlanes are enough of them to fill lanes, with some left over; lines of the last ones are
// several blocks.
var manyPlanes = []windows{
	{17, 9, 12, 3, 1, 1, 1}, {40, 7, 7, 5, 1, 1, 2}, {33, 14, 14, 3, 2, 1, 1}, {16, 1, 40, 3, 1, 1, 1}, {19, 20, 21, 3, 1, 3, 3}, {21, 20, 19, 3, 2, 2, 1},
	{50, 2, 2, 2, 1, 1, 0}, {18, 4, 3, 7, 1, 1, 3}, {24, 8, 9, 6, 1, 1, 5}, {30, 30, 31, 3, 4, 1, 1}, {16, 60, 40, 3, 1, 1, 1}, {17, 40, 61, 5, 2, 1, 2},
}

// Contractions of windows of one plane with terms of its own, wherever those lie.
func TestDepthwise(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	for i, c := range slices.Concat(someWindows, manyPlanes) {
		p := c.primitive(tensor.Dot)
		p.Args = append(p.Args, tensor.Access{Type: tensor.Float32, Shape: tensor.Shape{c.planes, c.kernel, c.kernel}, Dims: kerneltest.Dims(0, 3, 4)})
		if r.IntN(2) == 0 { // terms apart
			p.Args[1] = tensor.Access{Type: tensor.Float32, Shape: tensor.Shape{c.kernel, c.kernel, c.planes}, Dims: kerneltest.Dims(3, 4, 0)}
		}
		if r.IntN(2) == 0 {
			p.Args[0], p.Args[1] = p.Args[1], p.Args[0]
		}
		for _, set := range asm.Sets() {
			if spatial.NewDepthwise(p, set) == nil && (i < len(someWindows) || set.Depthwise != nil) {
				t.Errorf("%s: %v is not depthwise", set.Name, c)
			}
		}
		for _, from := range [][]float64{{-0x1p-100, 0x1p-100}, {0x1p-100, kerneltest.NegativeZero, 0, -0x1p-80}, kerneltest.Wild, kerneltest.NearTies} {
			kerneltest.Compare(t, fmt.Sprint(c), p, kerneltest.Drawn(r, tensor.Float32, p.Args[0].Shape, from...), kerneltest.Drawn(r, tensor.Float32, p.Args[1].Shape, from...))
		}
	}
}

// Images of a batch share the terms of their channels.
func TestDepthwiseOfBatches(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 3))
	for _, c := range []kerneltest.Convolution{
		{Batch: 3, In: 24, Size: 9, Out: 24, Kernel: 3, Stride: 2, Pad: 1, Groups: 24},
		{Batch: 5, In: 7, Size: 14, Out: 7, Kernel: 5, Stride: 1, Pad: 2, Groups: 7},
		{Batch: 2, In: 16, Size: 7, Out: 32, Kernel: 3, Stride: 1, Pad: 1, Groups: 16},
	} {
		p := c.Primitive()
		for _, from := range [][]float64{kerneltest.Wild, kerneltest.Small, kerneltest.NearTies} {
			kerneltest.Compare(t, fmt.Sprint(c), p, kerneltest.Drawn(r, tensor.Float32, p.Args[0].Shape, from...), kerneltest.Drawn(r, tensor.Float32, p.Args[1].Shape, from...))
		}
	}
}
