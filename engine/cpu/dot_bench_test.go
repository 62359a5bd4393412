package cpu

import (
	"fmt"
	"testing"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// typed returns p with operands of another type, and what it sums them in.
func typed(p *tensor.Primitive, t tensor.DType) *tensor.Primitive {
	p.Args[0].Type, p.Args[1].Type, p.Type = t, t, t
	if t.Half() {
		p.Type = tensor.Float32
	} else if t.Size() == 1 {
		p.Type = tensor.Int32
	}
	return p
}

// batched is a product of matrices for each of so many pairs; the second is
// given by columns if turned.
func batched(batch, m, k, n int, turned bool) *tensor.Primitive {
	p := &tensor.Primitive{Fn: tensor.Dot, Type: tensor.Float32, Shape: tensor.Shape{batch, m, n}, Fold: []int{k}, Args: []tensor.Access{
		{Type: tensor.Float32, Shape: tensor.Shape{batch, m, k}, Dims: axisDims(0, 1, 3)},
		{Type: tensor.Float32, Shape: tensor.Shape{batch, k, n}, Dims: axisDims(0, 3, 2)},
	}}
	if turned {
		p.Args[1] = tensor.Access{Type: tensor.Float32, Shape: tensor.Shape{batch, n, k}, Dims: axisDims(0, 2, 3)}
	}
	return p
}

// convolution is one of two spatial axes, in groups.
type convolution struct{ batch, in, size, out, kernel, stride, pad, groups int }

func (c convolution) primitive() *tensor.Primitive {
	size := (c.size+2*c.pad-c.kernel)/c.stride + 1
	over := func(out, kernel int) tensor.Dim {
		return tensor.Dim{Offset: -c.pad, Terms: []tensor.Term{{Axis: out, Step: c.stride}, {Axis: kernel, Step: 1}}}
	}
	channel := func(n, axis int) tensor.Dim {
		return tensor.Dim{Terms: []tensor.Term{{Axis: 1, Step: n}, {Axis: axis, Step: 1}}}
	}
	in, out := c.in/c.groups, c.out/c.groups
	return &tensor.Primitive{Fn: tensor.Dot, Type: tensor.Float32, Shape: tensor.Shape{c.batch, c.groups, out, size, size}, Fold: []int{in, c.kernel, c.kernel}, Args: []tensor.Access{
		{Type: tensor.Float32, Shape: tensor.Shape{c.batch, c.in, c.size, c.size}, Dims: []tensor.Dim{axis(0), channel(in, 5), over(3, 6), over(4, 7)}},
		{Type: tensor.Float32, Shape: tensor.Shape{c.out, in, c.kernel, c.kernel}, Dims: append([]tensor.Dim{channel(out, 2)}, axisDims(5, 6, 7)...)},
	}}
}

// kernelGradient is the gradient of the kernels, as training computes it.
func (c convolution) kernelGradient() *tensor.Primitive {
	size := (c.size+2*c.pad-c.kernel)/c.stride + 1
	over := func(out, kernel int) tensor.Dim {
		return tensor.Dim{Offset: -c.pad, Terms: []tensor.Term{{Axis: out, Step: 1}, {Axis: kernel, Step: c.stride}}}
	}
	return &tensor.Primitive{Fn: tensor.Dot, Type: tensor.Float32, Shape: tensor.Shape{c.in, c.out, c.kernel, c.kernel}, Fold: []int{c.batch, size, size}, Args: []tensor.Access{
		{Type: tensor.Float32, Shape: tensor.Shape{c.batch, c.in, c.size, c.size}, Dims: []tensor.Dim{axis(4), axis(0), over(2, 5), over(3, 6)}},
		{Type: tensor.Float32, Shape: tensor.Shape{c.batch, c.out, size, size}, Dims: axisDims(4, 1, 5, 6)},
	}}
}

// inputGradient is the gradient of the input, as training computes it: axes of a
// stride lie apart, so that each position has taps of its own.
func (c convolution) inputGradient() *tensor.Primitive {
	size, s := (c.size+2*c.pad-c.kernel)/c.stride+1, c.stride
	q, taps := (c.size+c.pad%s+s-1)/s, (c.kernel+s-1)/s
	out := func(axis, tap int) tensor.Dim {
		return tensor.Dim{Offset: c.pad / s, Terms: []tensor.Term{{Axis: axis, Step: 1}, {Axis: tap, Step: -1}}}
	}
	kernel := func(phase, tap int) tensor.Dim {
		return tensor.Dim{Terms: []tensor.Term{{Axis: phase, Step: 1}, {Axis: tap, Step: s}}}
	}
	return &tensor.Primitive{Fn: tensor.Dot, Type: tensor.Float32, Shape: tensor.Shape{c.batch, c.in, q, s, q, s}, Fold: []int{c.out, taps, taps}, Args: []tensor.Access{
		{Type: tensor.Float32, Shape: tensor.Shape{c.batch, c.out, size, size}, Dims: []tensor.Dim{axis(0), axis(6), out(2, 7), out(4, 8)}},
		{Type: tensor.Float32, Shape: tensor.Shape{c.out, c.in, c.kernel, c.kernel}, Dims: []tensor.Dim{axis(6), axis(1), kernel(3, 7), kernel(5, 8)}},
	}}
}

// benchDot reports a contraction's rate in operations, of which a multiply-add
// is two.
func benchDot(b *testing.B, name string, p *tensor.Primitive) {
	unit := "GFLOP/s"
	if !p.Type.Float() {
		unit = "GOP/s"
	}
	b.Run(name, func(b *testing.B) { bench(b, p, 2*float64(p.Shape.Elements())*float64(p.Terms()), unit) })
}

func BenchmarkMatMul(b *testing.B) {
	for _, s := range [][3]int{
		{64, 64, 64}, {256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024}, {2048, 2048, 2048},
		{512, 256, 65}, {16, 1024, 1024}, {16, 4096, 4096}, {1, 4096, 4096}, {4096, 4096, 1}, // the last two: matrix and vector
	} {
		benchDot(b, fmt.Sprintf("%dx%dx%d", s[0], s[1], s[2]), matmul(s[0], s[1], s[2]))
	}
	for _, t := range []tensor.DType{tensor.BFloat16, tensor.Float16, tensor.Int8, tensor.Uint8} {
		benchDot(b, "1024/"+t.String(), typed(matmul(1024, 1024, 1024), t))
	}
}

// Few rows times a large matrix, given by rows or by columns: reading it takes
// most of the time. One element of the matrix makes four bytes.
func BenchmarkFewRows(b *testing.B) {
	const n = 4096
	for _, rows := range []int{1, 2, 4, 8, 16} {
		p := matmul(rows, n, n)
		b.Run(fmt.Sprintf("%d/rows", rows), func(b *testing.B) { bench(b, p, 4*n*n, "GB/s") })
		p = matmul(rows, n, n)
		p.Args[1].Dims = axisDims(1, 2)
		b.Run(fmt.Sprintf("%d/columns", rows), func(b *testing.B) { bench(b, p, 4*n*n, "GB/s") })
	}
}

// Reading a matrix as large, and nothing else: the most that FewRows can reach. Go's
// memory lies in pages of 4 KiB unless huge ones are asked for.
func BenchmarkRead(b *testing.B) {
	const n = 4096
	set, err := asm.Chosen()
	if err != nil || set.Greatest == nil {
		b.Skip(err)
	}
	for _, where := range []string{"small", "huge"} {
		x := normal(tensor.Float32, tensor.Shape{n, n})
		if where == "huge" {
			mem.HugePages(x.Bytes())
		}
		floats := tensor.Of[float32](x)
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/t%d", where, threads), func(b *testing.B) {
				b.SetBytes(4 * n * n)
				for b.Loop() {
					_ = engine.Split(threads, n, 1, func(_, lo, hi int) error {
						set.Greatest((hi-lo)*n/set.Lanes, &floats[lo*n])
						return nil
					})
				}
			})
		}
	}
}

// Attention: a small product for each pair of batch and head.
func BenchmarkBatchMatMul(b *testing.B) {
	benchDot(b, "32x64x16x64", batched(32, 64, 16, 64, true))
	benchDot(b, "64x128x64x128", batched(64, 128, 64, 128, false))
	benchDot(b, "64x128x64x128/turned", batched(64, 128, 64, 128, true))
	benchDot(b, "64x128x128x64", batched(64, 128, 128, 64, false))
}

func BenchmarkConv(b *testing.B) {
	for _, c := range []struct {
		name string
		convolution
	}{
		{"lenet/1", convolution{64, 1, 28, 6, 5, 1, 2, 1}}, {"lenet/2", convolution{64, 6, 14, 16, 5, 1, 0, 1}},
		{"resnet/stem", convolution{1, 3, 224, 64, 7, 2, 3, 1}}, {"resnet/64", convolution{1, 64, 56, 64, 3, 1, 1, 1}},
		{"resnet/128", convolution{1, 128, 28, 128, 3, 1, 1, 1}}, {"resnet/256", convolution{1, 256, 14, 256, 3, 1, 1, 1}},
		{"resnet/512", convolution{1, 512, 7, 512, 3, 1, 1, 1}}, {"resnet/stride", convolution{1, 64, 56, 128, 3, 2, 1, 1}},
		{"resnet/1x1", convolution{1, 256, 56, 64, 1, 1, 0, 1}}, {"batch", convolution{32, 64, 32, 64, 3, 1, 1, 1}},
		{"depthwise", convolution{1, 128, 56, 128, 3, 1, 1, 128}},
	} {
		benchDot(b, c.name, c.primitive())
	}
	for name, c := range map[string]convolution{
		"lenet/1": {64, 1, 28, 6, 5, 1, 2, 1}, "lenet/2": {64, 6, 14, 16, 5, 1, 0, 1}, "batch/64": {32, 64, 32, 64, 3, 1, 1, 1},
		"batch/512": {32, 512, 4, 512, 3, 1, 1, 1}, "batch/stride": {32, 64, 32, 128, 3, 2, 1, 1}, "batch/1x1": {32, 64, 32, 128, 1, 2, 0, 1},
	} {
		benchDot(b, name+"/kernel", c.kernelGradient())
		benchDot(b, name+"/input", c.inputGradient())
	}
}
