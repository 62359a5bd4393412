package gemm_test

import (
	"fmt"
	"testing"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/internal/testkit/kerneltest"
)

// benchDot reports a contraction's rate in operations, of which a multiply-add
// is two.
func benchDot(b *testing.B, name string, p *tensor.Primitive) {
	unit := "GFLOP/s"
	if !p.Type.Float() {
		unit = "GOP/s"
	}
	b.Run(name, func(b *testing.B) { kerneltest.Bench(b, p, 2*float64(p.Shape.Elements())*float64(p.Terms()), unit) })
}

func BenchmarkMatMul(b *testing.B) {
	for _, s := range [][3]int{
		{64, 64, 64}, {256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024}, {2048, 2048, 2048},
		{512, 256, 65}, {16, 1024, 1024}, {16, 4096, 4096}, {1, 4096, 4096}, {4096, 4096, 1}, // the last two: matrix and vector
	} {
		benchDot(b, fmt.Sprintf("%dx%dx%d", s[0], s[1], s[2]), kerneltest.MatMul(s[0], s[1], s[2]))
	}
	for _, t := range []tensor.DType{tensor.BFloat16, tensor.Float16, tensor.Int8, tensor.Uint8} {
		benchDot(b, "1024/"+t.String(), kerneltest.Typed(kerneltest.MatMul(1024, 1024, 1024), t))
	}
}

// The gradient of a weight: a matrix is read by columns, whose elements lie far apart.
func BenchmarkWeightGradient(b *testing.B) {
	for _, s := range [][2]int{{1024, 256}, {256, 1024}, {256, 96}} {
		const terms = 2048
		p := kerneltest.MatMul(s[0], terms, s[1])
		p.Args[0].Shape, p.Args[0].Dims = tensor.Shape{terms, s[0]}, kerneltest.Dims(2, 0)
		b.Run(fmt.Sprintf("%dx%d", s[0], s[1]), func(b *testing.B) {
			kerneltest.BenchOpen(b, p, 2*float64(s[0]*s[1]*terms), "GFLOP/s")
		})
	}
}

// Few rows times a large matrix, given by rows or by columns, constant or changing: reading it
// takes most of the time. One element of the matrix makes four bytes.
func BenchmarkFewRows(b *testing.B) {
	const n = 4096
	for _, rows := range []int{1, 2, 4, 8, 16} {
		byRows, byColumns := kerneltest.MatMul(rows, n, n), kerneltest.MatMul(rows, n, n)
		byColumns.Args[1].Dims = kerneltest.Dims(1, 2)
		b.Run(fmt.Sprintf("%d/rows", rows), func(b *testing.B) { kerneltest.Bench(b, byRows, 4*n*n, "GB/s") })
		b.Run(fmt.Sprintf("%d/columns", rows), func(b *testing.B) { kerneltest.Bench(b, byColumns, 4*n*n, "GB/s") })
		b.Run(fmt.Sprintf("%d/changing/rows", rows), func(b *testing.B) { kerneltest.BenchOpen(b, byRows, 4*n*n, "GB/s") })
		b.Run(fmt.Sprintf("%d/changing/columns", rows), func(b *testing.B) { kerneltest.BenchOpen(b, byColumns, 4*n*n, "GB/s") })
	}
}

// Reading a matrix as large, and nothing else: the most that FewRows can reach. Go's
// memory lies in pages of 4 KiB unless huge ones are asked for.
func BenchmarkRead(b *testing.B) {
	const n = 4096
	set, err := asm.Chosen()
	if err != nil || set.MaxSize == nil {
		b.Skip(err)
	}
	for _, where := range []string{"small", "huge"} {
		x := kerneltest.Normal(tensor.Float32, tensor.Shape{n, n})
		if where == "huge" {
			mem.HugePages(x.Bytes())
		}
		floats := tensor.Of[float32](x)
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/t%d", where, threads), func(b *testing.B) {
				b.SetBytes(4 * n * n)
				for b.Loop() {
					_ = engine.Split(threads, n, 1, func(_, lo, hi int) error {
						set.MaxSize((hi-lo)*n/set.Lanes, &floats[lo*n])
						return nil
					})
				}
			})
		}
	}
}

// Attention: a small product for each pair of batch and head.
func BenchmarkBatchMatMul(b *testing.B) {
	benchDot(b, "32x64x16x64", kerneltest.Batched(32, 64, 16, 64, true))
	benchDot(b, "64x128x64x128", kerneltest.Batched(64, 128, 64, 128, false))
	benchDot(b, "64x128x64x128/turned", kerneltest.Batched(64, 128, 64, 128, true))
	benchDot(b, "64x128x128x64", kerneltest.Batched(64, 128, 128, 64, false))
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

// Packing a weight once, as it is stored and transposed.
func BenchmarkPackWeight(b *testing.B) {
	const n = 4096
	for name, dims := range map[string][]tensor.Dim{"rows": kerneltest.Dims(2, 1), "columns": kerneltest.Dims(1, 2)} {
		p := kerneltest.MatMul(48, n, n)
		p.Args[1].Dims = dims
		x := kerneltest.Normal(tensor.Float32, tensor.Shape{n, n})
		for _, w := range constants(p, asm.Sets()[0]) {
			if w.Operand() != 1 {
				continue
			}
			b.Run(name, func(b *testing.B) {
				dst := make([]byte, w.Bytes())
				b.SetBytes(4 * n * n)
				for b.Loop() {
					if err := w.Pack(b.Context(), dst, x); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
