package conform

import (
	"math/rand/v2"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/quant"
	"github.com/tally-network/tally/core/tensor"
)

// Blocks returns a random program that multiplies by quantised weights: a product of one row or of some, perhaps with a bias
// and an activation behind it, perhaps two products by the same blocks as different types. Now and then it differs a little
// from what executors know.
func Blocks(r *rand.Rand) (*graph.Program, graph.Inputs) {
	of := pick(r, quant.Types...)
	elements, size := of.Block()
	rows, cols, blocks := 1+r.IntN(3), 1+r.IntN(70), 1+r.IntN(max(2, 320/elements))
	if r.IntN(3) == 0 {
		rows = 1 + r.IntN(20)
	}
	if r.IntN(20) == 0 { // more than a K-block
		cols, blocks = 1+r.IntN(3), tensor.KBlock/elements+1+r.IntN(2)
	}
	w := blockBytes(r, of, tensor.Shape{cols, blocks * size})
	x := Tensor(r, tensor.Float32, tensor.Shape{1, rows, blocks * elements})
	b := graph.NewBuilder("blocks")
	in, weight := b.Input("x", x.Type, x.Shape), b.Init("w", w)
	floats := b.With(graph.Int("type", int(of))).Op("Dequantize", weight)
	if t, ok := map[quant.Type]tensor.DType{quant.F16: tensor.Float16, quant.BF16: tensor.BFloat16}[of]; ok && r.IntN(2) == 0 {
		floats = b.Cast(b.Init("halves", Tensor(r, t, tensor.Shape{cols, blocks * elements})), tensor.Float32)
	}
	if r.IntN(10) == 0 {
		floats = b.Op("Neg", floats)
	}
	y := b.Op("MatMul", in, b.With(graph.Ints("perm", 1, 0)).Op("Transpose", floats))
	if other := twin(of); other != of && r.IntN(2) == 0 {
		z := b.With(graph.Int("type", int(other))).Op("Dequantize", weight)
		y = b.Op("Add", y, b.Op("MatMul", in, b.With(graph.Ints("perm", 1, 0)).Op("Transpose", z)))
	}
	if r.IntN(2) == 0 {
		y = b.Op("Add", y, b.Const(Tensor(r, tensor.Float32, tensor.Shape{cols})))
		y = b.Op("Mul", y, b.Op("Tanh", y))
	}
	b.Output(y, 0, nil)
	if r.IntN(6) == 0 {
		b.Output(floats, 0, nil)
	}
	typed, err := op.Infer(b.Graph(), lower.FP32)
	if err != nil {
		panic(err)
	}
	p, err := typed.Function()
	if err != nil {
		panic(err)
	}
	return p, graph.Inputs{States: []*graph.State{{Slots: p.Slots, Tensors: []*tensor.Tensor{x}}}}
}

// twin is another type with blocks of the same size and as many elements, or t itself.
func twin(t quant.Type) quant.Type {
	switch t {
	case quant.Q4_0:
		return quant.IQ4_NL
	case quant.IQ4_NL:
		return quant.Q4_0
	case quant.F16:
		return quant.BF16
	case quant.BF16:
		return quant.F16
	}
	return t
}

// blockBytes draws rows of blocks. Half of them have tame scales; the others any.
func blockBytes(r *rand.Rand, of quant.Type, s tensor.Shape) *tensor.Tensor {
	x := tensor.Must(tensor.New(tensor.Uint8, s))
	_, size := of.Block()
	tame := r.IntN(2) == 0
	for i := range x.Bytes() {
		x.Bytes()[i] = byte(r.Uint32())
		if at := i % size; tame && (at == 1 || at == 3 || at == 209 || size <= 4) {
			x.Bytes()[i] = 0x20 | x.Bytes()[i]&0x8f // a higher byte of a float of 16 bits
		}
	}
	return x
}
