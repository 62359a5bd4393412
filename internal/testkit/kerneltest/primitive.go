package kerneltest

import "github.com/tally-network/tally/core/tensor"

// Axis is a coordinate that moves along one axis of a primitive.
func Axis(a int) tensor.Dim { return tensor.Dim{Terms: []tensor.Term{{Axis: a, Step: 1}}} }

// Dims are coordinates that move along one axis each.
func Dims(as ...int) []tensor.Dim {
	var out []tensor.Dim
	for _, a := range as {
		out = append(out, Axis(a))
	}
	return out
}

// MatMul is the product of an m×k and a k×n matrix.
func MatMul(m, k, n int) *tensor.Primitive {
	return &tensor.Primitive{Fn: tensor.Dot, Type: tensor.Float32, Shape: tensor.Shape{m, n}, Fold: []int{k}, Args: []tensor.Access{
		{Type: tensor.Float32, Shape: tensor.Shape{m, k}, Dims: Dims(0, 2)},
		{Type: tensor.Float32, Shape: tensor.Shape{k, n}, Dims: Dims(2, 1)},
	}}
}

// Typed returns p with operands of another type, and what it sums them in.
func Typed(p *tensor.Primitive, t tensor.DType) *tensor.Primitive {
	p.Args[0].Type, p.Args[1].Type, p.Type = t, t, t
	if t.Half() {
		p.Type = tensor.Float32
	} else if t.Size() == 1 {
		p.Type = tensor.Int32
	}
	return p
}

// Batched is a product of matrices for each of batch pairs; the second is given by
// columns if transposed.
func Batched(batch, m, k, n int, transposed bool) *tensor.Primitive {
	p := &tensor.Primitive{Fn: tensor.Dot, Type: tensor.Float32, Shape: tensor.Shape{batch, m, n}, Fold: []int{k}, Args: []tensor.Access{
		{Type: tensor.Float32, Shape: tensor.Shape{batch, m, k}, Dims: Dims(0, 1, 3)},
		{Type: tensor.Float32, Shape: tensor.Shape{batch, k, n}, Dims: Dims(0, 3, 2)},
	}}
	if transposed {
		p.Args[1] = tensor.Access{Type: tensor.Float32, Shape: tensor.Shape{batch, n, k}, Dims: Dims(0, 2, 3)}
	}
	return p
}

// Convolution is one of two spatial axes of one size, in groups.
type Convolution struct{ Batch, In, Size, Out, Kernel, Stride, Pad, Groups int }

// Primitive is the convolution itself, of an input and of kernels.
func (c Convolution) Primitive() *tensor.Primitive {
	size := (c.Size+2*c.Pad-c.Kernel)/c.Stride + 1
	over := func(out, kernel int) tensor.Dim {
		return tensor.Dim{Offset: -c.Pad, Terms: []tensor.Term{{Axis: out, Step: c.Stride}, {Axis: kernel, Step: 1}}}
	}
	channel := func(n, axis int) tensor.Dim {
		return tensor.Dim{Terms: []tensor.Term{{Axis: 1, Step: n}, {Axis: axis, Step: 1}}}
	}
	in, out := c.In/c.Groups, c.Out/c.Groups
	return &tensor.Primitive{Fn: tensor.Dot, Type: tensor.Float32, Shape: tensor.Shape{c.Batch, c.Groups, out, size, size}, Fold: []int{in, c.Kernel, c.Kernel}, Args: []tensor.Access{
		{Type: tensor.Float32, Shape: tensor.Shape{c.Batch, c.In, c.Size, c.Size}, Dims: []tensor.Dim{Axis(0), channel(in, 5), over(3, 6), over(4, 7)}},
		{Type: tensor.Float32, Shape: tensor.Shape{c.Out, in, c.Kernel, c.Kernel}, Dims: append([]tensor.Dim{channel(out, 2)}, Dims(5, 6, 7)...)},
	}}
}

// KernelGradient is the gradient of the kernels, as training computes it.
func (c Convolution) KernelGradient() *tensor.Primitive {
	size := (c.Size+2*c.Pad-c.Kernel)/c.Stride + 1
	over := func(out, kernel int) tensor.Dim {
		return tensor.Dim{Offset: -c.Pad, Terms: []tensor.Term{{Axis: out, Step: 1}, {Axis: kernel, Step: c.Stride}}}
	}
	return &tensor.Primitive{Fn: tensor.Dot, Type: tensor.Float32, Shape: tensor.Shape{c.In, c.Out, c.Kernel, c.Kernel}, Fold: []int{c.Batch, size, size}, Args: []tensor.Access{
		{Type: tensor.Float32, Shape: tensor.Shape{c.Batch, c.In, c.Size, c.Size}, Dims: []tensor.Dim{Axis(4), Axis(0), over(2, 5), over(3, 6)}},
		{Type: tensor.Float32, Shape: tensor.Shape{c.Batch, c.Out, size, size}, Dims: Dims(4, 1, 5, 6)},
	}}
}

// InputGradient is the gradient of the input, as training computes it: axes of a
// stride lie apart, so that each position has taps of its own.
func (c Convolution) InputGradient() *tensor.Primitive {
	size, s := (c.Size+2*c.Pad-c.Kernel)/c.Stride+1, c.Stride
	q, taps := (c.Size+c.Pad%s+s-1)/s, (c.Kernel+s-1)/s
	out := func(axis, tap int) tensor.Dim {
		return tensor.Dim{Offset: c.Pad / s, Terms: []tensor.Term{{Axis: axis, Step: 1}, {Axis: tap, Step: -1}}}
	}
	kernel := func(phase, tap int) tensor.Dim {
		return tensor.Dim{Terms: []tensor.Term{{Axis: phase, Step: 1}, {Axis: tap, Step: s}}}
	}
	return &tensor.Primitive{Fn: tensor.Dot, Type: tensor.Float32, Shape: tensor.Shape{c.Batch, c.In, q, s, q, s}, Fold: []int{c.Out, taps, taps}, Args: []tensor.Access{
		{Type: tensor.Float32, Shape: tensor.Shape{c.Batch, c.Out, size, size}, Dims: []tensor.Dim{Axis(0), Axis(6), out(2, 7), out(4, 8)}},
		{Type: tensor.Float32, Shape: tensor.Shape{c.Out, c.In, c.Kernel, c.Kernel}, Dims: []tensor.Dim{Axis(6), Axis(1), kernel(3, 7), kernel(5, 8)}},
	}}
}
