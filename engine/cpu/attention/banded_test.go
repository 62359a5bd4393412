package attention_test

import (
	"math/rand/v2"
	"testing"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/internal/testkit/kerneltest"
)

// attending is a product of which row i has the terms up to past + i, those of the last window keys alone; window 0 is no limit.
func attending(batch, rows, past, cols, window int) *tensor.Primitive {
	p := kerneltest.Batched(batch, rows, past+rows, cols, false)
	row := func(offset int) tensor.Dim {
		return tensor.Dim{Offset: offset, Terms: []tensor.Term{{Axis: 1, Step: 1}}}
	}
	p.Band = &tensor.Band{To: row(past + 1)}
	if window > 0 {
		p.Band.From = row(past + 1 - window)
	}
	return p
}

// Rows of tiles begin and end at different terms, in different K-blocks.
func TestBands(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	for _, s := range []struct{ batch, rows, past, cols, window int }{
		{1, 1, 0, 1, 0}, {2, 5, 0, 16, 0}, {1, 33, 7, 64, 0}, {3, 40, 90, 19, 11}, {1, 3, 600, 48, 0}, {1, 20, 1020, 16, 600}, {2, 130, 0, 8, 1},
		{1, 9, tensor.KBlock - 4, 16, 0}, {1, 9, 2*tensor.KBlock - 4, 5, 6}, {1, 4, 3*tensor.KBlock - 2, 16, 0}, {1, 4, 3*tensor.KBlock - 2, 16, tensor.KBlock + 3},
	} {
		for name, from := range map[string][]float64{"near ties": kerneltest.NearTies, "small": kerneltest.Small, "wild": kerneltest.Wild} { // order: each case stands alone
			for _, dtype := range []tensor.DType{tensor.Float32, tensor.BFloat16} {
				p := kerneltest.Typed(attending(s.batch, s.rows, s.past, s.cols, s.window), dtype)
				kerneltest.Compare(t, name, p, kerneltest.Drawn(r, dtype, p.Args[0].Shape, from...), kerneltest.Drawn(r, dtype, p.Args[1].Shape, from...))
			}
		}
	}
}

// The gradient of values folds the rows of a transposed matrix, and heads may share values.
func TestBandsOfOtherForms(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	transposed := attending(2, 50, 0, 16, 0)
	transposed.Args[0] = tensor.Access{Type: tensor.Float32, Shape: tensor.Shape{2, 50, 50}, Dims: kerneltest.Dims(0, 3, 1)}
	transposed.Band = &tensor.Band{From: kerneltest.Axis(1), To: tensor.Dim{Offset: 50}}
	shared := attending(6, 10, 30, 16, 0)
	shared.Args[1].Shape[0], shared.Args[1].Dims[0] = 1, tensor.Dim{}
	columns := attending(1, 12, 20, 24, 5)
	columns.Args[1] = tensor.Access{Type: tensor.Float32, Shape: tensor.Shape{1, 24, 32}, Dims: kerneltest.Dims(0, 2, 3)}
	backwards := attending(1, 30, 10, 16, 0)
	backwards.Band = &tensor.Band{To: tensor.Dim{Offset: 33, Terms: []tensor.Term{{Axis: 1, Step: -2}}}}
	byColumn := attending(1, 6, 10, 16, 0)
	byColumn.Band.To.Terms[0].Axis = 2
	float64s := kerneltest.Typed(attending(1, 6, 10, 16, 0), tensor.Float64)
	whole := kerneltest.Typed(attending(1, 6, 10, 16, 0), tensor.Int32)
	for name, p := range map[string]*tensor.Primitive{"transposed": transposed, "shared": shared, "by columns": columns, "backwards": backwards, "of columns": byColumn, "float64": float64s, "int32": whole} { // order: each case stands alone
		kerneltest.Compare(t, name, p, kerneltest.Drawn(r, p.Args[0].Type, p.Args[0].Shape, kerneltest.NearTies[:9]...), kerneltest.Drawn(r, p.Args[1].Type, p.Args[1].Shape, kerneltest.NearTies[:9]...))
	}
}

// Attention's product of weights and values, of a chunk of a prompt and of one token.
func BenchmarkBanded(b *testing.B) {
	for _, s := range []struct {
		name       string
		rows, past int
	}{{"chunk", 128, 1920}, {"token", 1, 2047}} {
		p := attending(9, s.rows, s.past, 64, 0)
		terms := s.rows*s.past + s.rows*(s.rows+1)/2
		b.Run(s.name, func(b *testing.B) { kerneltest.Bench(b, p, 2*9*64*float64(terms), "GFLOP") })
	}
	whole := kerneltest.Batched(9, 128, 2048, 64, false)
	b.Run("unbanded", func(b *testing.B) { kerneltest.Bench(b, whole, 2*9*128*2048*64, "GFLOP") })
}
