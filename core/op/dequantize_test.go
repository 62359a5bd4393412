package op_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/quant"
	"github.com/tally-network/tally/core/tensor"
)

var _ = addUnpacked()

// addUnpacked adds two rows of two blocks of each type. Their scales are of a size that float64 agrees about.
func addUnpacked() bool {
	for _, t := range quant.Types {
		_, size := t.Block()
		tame := func(r *rand.Rand, i int) float64 {
			if t == quant.F32 && i%4 == 3 || t != quant.F32 && i%2 == 1 && (size == 2 || i%size < 4 || i%size == 209) {
				return 0x30 + float64(r.IntN(8)) // the higher byte of a scale or of an element
			}
			return float64(r.IntN(256))
		}
		add(sample{name: "Dequantize " + t.String(), op: "Dequantize", attrs: blocksOf(t), want: unpacked(t),
			in: []arg{{t: tensor.Uint8, shape: []int{2, 2 * size}, draw: tame}}})
	}
	return add(sample{name: "Dequantize, no rows", op: "Dequantize", attrs: blocksOf(quant.Q8_0), want: unpacked(quant.Q8_0), in: []arg{bytes(3, 0, 34)}})
}

var _ = withoutGradient("Dequantize")

var _ = refuse(
	refusal{"type 4 is no type of weights", "Dequantize", blocksOf(4), []arg{bytes(2, 36)}, 1},
	refusal{"type 256 is no type of weights", "Dequantize", []graph.Attr{graph.Int("type", 256)}, []arg{bytes(4)}, 1},
	refusal{"[2 33] has no rows of whole blocks of Q8_0, which take 34 bytes", "Dequantize", blocksOf(quant.Q8_0), []arg{bytes(2, 33)}, 1},
	refusal{"[] has no rows", "Dequantize", blocksOf(quant.Q8_0), []arg{bytes()}, 1},
	refusal{"should be uint8", "Dequantize", blocksOf(quant.F32), []arg{f(4)}, 1},
)

func blocksOf(t quant.Type) []graph.Attr { return []graph.Attr{graph.Int("type", int(t))} }

func unpacked(t quant.Type) func([]array) []array {
	return func(in []array) []array {
		b := make([]byte, len(in[0].v))
		for i, v := range in[0].v {
			b[i] = byte(v)
		}
		elements, size := t.Block()
		out := array{append([]int{}, in[0].shape...), nil}
		out.shape[len(out.shape)-1] *= elements
		out.shape[len(out.shape)-1] /= size
		y := make([]float32, elements*len(b)/size)
		t.Decode(y, b)
		for _, v := range y {
			out.v = append(out.v, float64(v))
		}
		return []array{out}
	}
}

// Whatever the bytes, the operator gives the bits of package quant: scales of all sizes, zeros of either sign, infinities,
// NaNs.
func TestDequantizeEqualsDecode(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 1))
	special := []uint16{0, 0x8000, 1, 0x8001, 0x03ff, 0x0400, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7c01, 0x7e00, 0xffff}
	for _, typ := range quant.Types {
		elements, size := typ.Block()
		const rows, blocks = 64, 5
		x := tensor.Must(tensor.New(tensor.Uint8, tensor.Shape{rows, blocks * size}))
		for i := range x.Bytes() {
			x.Bytes()[i] = byte(r.Uint32())
		}
		for i := range rows * blocks { // half of the blocks have scales that are found at one end of the range, or have none
			for _, at := range []int{0, 2, 208} {
				if i%2 == 0 && at+2 <= size {
					h := special[r.IntN(len(special))]
					x.Bytes()[i*size+at], x.Bytes()[i*size+at+1] = byte(h), byte(h>>8)
				}
			}
		}
		b := graph.NewBuilder(fmt.Sprint(typ))
		in := b.Input("x", tensor.Uint8, x.Shape)
		typed := infer(t, b, b.With(blocksOf(typ)...).Op("Dequantize", in))
		want := tensor.Must(tensor.New(tensor.Float32, tensor.Shape{rows, blocks * elements}))
		typ.Decode(tensor.Of[float32](want), x.Bytes())
		if got := evaluate(t, typed, []*tensor.Tensor{x}, nil)[0]; !got.Equal(want) {
			for i := range want.Len() {
				if got.At(i) != want.At(i) {
					t.Errorf("%v: element %d of a block is %#x, want %#x", typ, i%elements, got.At(i), want.At(i))
					break
				}
			}
		}
	}
}

// What blocks of a constant stand for is not computed while a graph is read, however small.
func TestDequantizeKeepsConstants(t *testing.T) {
	b := graph.NewBuilder("constant")
	w := b.Init("w", tensor.Must(tensor.New(tensor.Uint8, tensor.Shape{1, 34})))
	p := function(t, infer(t, b, b.With(blocksOf(quant.Q8_0)...).Op("Dequantize", w)))
	for _, c := range p.Consts {
		if c.Type == tensor.Float32 && c.Len() > 1 {
			t.Errorf("%v%v is a constant", c.Type, c.Shape)
		}
	}
	t.Logf("%d primitives", len(p.Nodes))
}
