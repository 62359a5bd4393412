package reduce_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/reduce"
	"github.com/tally-network/tally/internal/testkit/kerneltest"
)

// hold compares a kernel with the definition, bit for bit, its blocks computed in ranges
// of any length by one worker.
func hold(t *testing.T, name string, r *rand.Rand, k kernel.Kernel, p *tensor.Primitive, args ...*tensor.Tensor) {
	t.Helper()
	want, err := p.Eval(args)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	out, w := tensor.Must(tensor.New(p.Type, p.Shape)), kernel.NewWorker()
	for i := range out.Bytes() { // what is not written shows
		out.Bytes()[i] = 0xa5
	}
	for lo := 0; lo < k.Blocks(); {
		hi := lo + 1 + r.IntN(k.Blocks()-lo)
		if err := k.Run(w, out, args, lo, hi); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		lo = hi
	}
	for i := range want.Len() {
		if got := out.At(i); got != want.At(i) {
			t.Fatalf("%s: element %d is %#x, want %#x", name, i, got, want.At(i))
		}
	}
}

// Folds whose terms lie near each other, far apart, in windows with padding, and none.
var foldings = map[string]tensor.Primitive{
	"rows": {Shape: tensor.Shape{5}, Fold: []int{70}, Args: []tensor.Access{{Shape: tensor.Shape{5, 70}, Dims: kerneltest.Dims(0, 1)}}},
	"long rows": {Shape: tensor.Shape{2}, Fold: []int{2*kernel.Chunk + 3}, Args: []tensor.Access{
		{Shape: tensor.Shape{2, 2*kernel.Chunk + 3}, Dims: kerneltest.Dims(0, 1)},
	}},
	"columns": {Shape: tensor.Shape{33}, Fold: []int{40}, Args: []tensor.Access{{Shape: tensor.Shape{40, 33}, Dims: kerneltest.Dims(1, 0)}}},
	"many columns": {Shape: tensor.Shape{kernel.Chunk + 9}, Fold: []int{3}, Args: []tensor.Access{
		{Shape: tensor.Shape{3, kernel.Chunk + 9}, Dims: kerneltest.Dims(1, 0)},
	}},
	"windows": {Shape: tensor.Shape{9}, Fold: []int{4}, Args: []tensor.Access{
		{Shape: tensor.Shape{15}, Dims: []tensor.Dim{{Offset: -2, Terms: []tensor.Term{{Axis: 0, Step: 2}, {Axis: 1, Step: 1}}}}},
	}},
	"two axes": {Shape: tensor.Shape{3, 4}, Fold: []int{5, 6}, Args: []tensor.Access{{Shape: tensor.Shape{5, 3, 6, 4}, Dims: kerneltest.Dims(2, 0, 3, 1)}}},
	"no terms": {Shape: tensor.Shape{6}, Fold: []int{0}, Args: []tensor.Access{{Shape: tensor.Shape{6, 0}, Dims: kerneltest.Dims(0, 1)}}},
}

func TestFoldsAreThoseOfTheDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	held := map[tensor.Fn]int{}
	for _, name := range slices.Sorted(maps.Keys(foldings)) {
		shape := foldings[name]
		for _, of := range []tensor.DType{
			tensor.Float32, tensor.Float64, tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64, tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64,
		} {
			values := [][]float64{{0, 1, 2, 3, 5, 8, 13, 100}}
			if of.Float() {
				values = [][]float64{kerneltest.Wild, kerneltest.NearTies, kerneltest.Small, kerneltest.Huge}
			} else if !of.Unsigned() {
				values = append(values, []float64{-128, 127, -1, 0, 1})
			}
			for _, fn := range []tensor.Fn{tensor.FoldSum, tensor.FoldMax, tensor.FoldMin, tensor.FoldProd, tensor.FoldArgMax} {
				p := shape
				p.Fn, p.Type = fn, of
				p.Args = []tensor.Access{{Type: of, Shape: shape.Args[0].Shape, Dims: shape.Args[0].Dims}}
				variants := [][]tensor.Word{nil}
				if fn == tensor.FoldArgMax {
					p.Type, variants = tensor.Int64, [][]tensor.Word{{0}, {1}}
				}
				for _, p.Imm = range variants {
					if p.Check() != nil { // no integers of this type, or no terms
						continue
					}
					for _, from := range values {
						x := kerneltest.Drawn(r, of, p.Args[0].Shape, from...)
						held[fn]++
						for _, set := range asm.Sets() {
							hold(t, fmt.Sprintf("%v %v of %v, %s", fn, name, of, set.Name), r, reduce.New(&p, set), &p, x)
						}
					}
				}
			}
		}
	}
	for _, fn := range []tensor.Fn{tensor.FoldSum, tensor.FoldMax, tensor.FoldMin, tensor.FoldProd, tensor.FoldArgMax} {
		if held[fn] < 40 {
			t.Errorf("only %d folds of %v were held to the definition", held[fn], fn)
		}
	}
}

func TestHalvesHaveNoKernel(t *testing.T) {
	p := foldings["rows"]
	p.Fn, p.Type = tensor.FoldMax, tensor.BFloat16
	p.Args = []tensor.Access{{Type: tensor.BFloat16, Shape: p.Args[0].Shape, Dims: p.Args[0].Dims}}
	if k := reduce.New(&p, asm.Sets()[0]); k != nil {
		t.Errorf("%T", k)
	}
}

func TestScattersTakeTermsInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 2))
	index := []float64{0, 1, 2, 3, -1, -4, 9, -9} // from the end, and outside, too
	for _, of := range []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float16, tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64, tensor.Uint8, tensor.Uint32, tensor.Uint64} {
		for _, fn := range []tensor.Fn{tensor.ScatterSet, tensor.ScatterAdd, tensor.ScatterMul, tensor.ScatterMax, tensor.ScatterMin} {
			rows := &tensor.Primitive{Fn: fn, Type: of, Shape: tensor.Shape{4, 5}, Fold: []int{30}, Imm: []tensor.Word{0}, Args: []tensor.Access{
				{Type: of, Shape: tensor.Shape{4, 5}, Dims: kerneltest.Dims(0, 1)},
				{Type: of, Shape: tensor.Shape{30, 5}, Dims: kerneltest.Dims(2, 1)},
				{Type: tensor.Int64, Shape: tensor.Shape{30}, Dims: kerneltest.Dims(2)},
			}}
			elements := &tensor.Primitive{Fn: fn, Type: of, Shape: tensor.Shape{4, 4}, Fold: []int{30}, Imm: []tensor.Word{0, 1}, Args: []tensor.Access{
				{Type: of, Shape: tensor.Shape{4, 4}, Dims: kerneltest.Dims(0, 1)},
				{Type: of, Shape: tensor.Shape{30}, Dims: kerneltest.Dims(2)},
				{Type: tensor.Int64, Shape: tensor.Shape{30}, Dims: kerneltest.Dims(2)},
				{Type: tensor.Int64, Shape: tensor.Shape{30}, Dims: kerneltest.Dims(2)},
			}}
			twice := *elements // two indexes for one axis have to agree
			twice.Shape, twice.Imm = tensor.Shape{4}, []tensor.Word{0, 0}
			twice.Args = append([]tensor.Access{{Type: of, Shape: twice.Shape, Dims: kerneltest.Dims(0)}}, elements.Args[1:]...)
			for i := range twice.Args[1:] {
				twice.Args[1+i].Dims = kerneltest.Dims(1)
			}
			for i, p := range []*tensor.Primitive{rows, elements, &twice} {
				name := []string{"rows", "elements", "one axis"}[i]
				if err := p.Check(); err != nil {
					t.Fatalf("%v %v of %v: %v", fn, name, of, err)
				}
				values := []float64{0, 1, 2, 3, 7}
				if of.Float() {
					values = append(kerneltest.Wild, 3, 0.1)
				}
				var args []*tensor.Tensor
				for _, a := range p.Args {
					from := values
					if a.Type == tensor.Int64 && len(args) > 1 {
						from = index
					}
					args = append(args, kerneltest.Drawn(r, a.Type, a.Shape, from...))
				}
				hold(t, fmt.Sprintf("%v of %s of %v", fn, name, of), r, reduce.NewScatter(p), p, args...)
			}
		}
	}
}

// ranks is what TopK asks: of each element, how many of its row come before it.
func ranks(of tensor.DType, shape tensor.Shape, axis int, ascending tensor.Word) *tensor.Primitive {
	r := len(shape)
	row, other := kerneltest.Dims(0, 1, 2)[:r], kerneltest.Dims(0, 1, 2)[:r]
	row[axis] = kerneltest.Axis(r)
	return &tensor.Primitive{Fn: tensor.Before, Type: tensor.Int64, Shape: shape, Fold: []int{shape[axis]}, Imm: []tensor.Word{tensor.Word(axis), ascending}, Args: []tensor.Access{
		{Type: of, Shape: shape, Dims: row}, {Type: of, Shape: shape, Dims: other},
	}}
}

func TestRanks(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 3))
	for _, of := range []tensor.DType{tensor.Float32, tensor.Float64, tensor.Int8, tensor.Int64, tensor.Uint64} {
		values := []float64{0, 1, 2, 3, 100}
		if of.Float() {
			values = kerneltest.Wild
		}
		for axis := range 2 {
			for ascending := range tensor.Word(2) {
				p := ranks(of, tensor.Shape{7, 9}, axis, ascending)
				if err := p.Check(); err != nil {
					t.Fatal(err)
				}
				k := reduce.NewRank(p)
				if k == nil {
					t.Fatalf("ranks of %v along axis %d have no kernel", of, axis)
				}
				name := fmt.Sprintf("ranks of %v along axis %d, ascending %d", of, axis, ascending)
				x, y := kerneltest.Drawn(r, of, p.Shape, values...), kerneltest.Drawn(r, of, p.Shape, values...)
				hold(t, name, r, k, p, x, x)
				hold(t, name+", among those of another", r, k, p, x, y)
			}
		}
	}
	p := ranks(tensor.Float32, tensor.Shape{7, 9}, 0, 0)
	p.Args[1].Dims[1].Offset, p.Args[1].Shape = 1, tensor.Shape{7, 10}
	if k := reduce.NewRank(p); k != nil {
		t.Errorf("%T ranks rows among others", k)
	}
}
