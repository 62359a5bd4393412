package gemm_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/gemm"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/tuning"
	"github.com/tally-network/tally/internal/testkit/kerneltest"
)

// Chains of just under, just at and over a K-block, and several of them.
func TestKBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, k := range []int{tensor.KBlock - 1, tensor.KBlock, tensor.KBlock + 1, 3*tensor.KBlock + 1} {
		for _, dtype := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Int8, tensor.Float64} {
			p := kerneltest.Typed(kerneltest.MatMul(2, k, 19), dtype)
			kerneltest.Compare(t, dtype.String(), p, kerneltest.Drawn(r, dtype, p.Args[0].Shape, kerneltest.NearTies[:9]...), kerneltest.Drawn(r, dtype, p.Args[1].Shape, kerneltest.NearTies[:9]...))
		}
	}
}

func TestHardValues(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for name, from := range map[string][]float64{ // order: each case stands alone
		"near ties": kerneltest.NearTies, "small": kerneltest.Small, "huge": kerneltest.Huge, "wild": append(kerneltest.Wild, kerneltest.NearTies...),
	} {
		for _, k := range []int{1, 2, 3, 7, 40} {
			for _, dtype := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Float16} {
				for _, rows := range []int{1, 2, 5, 23} {
					p := kerneltest.Typed(kerneltest.MatMul(rows, k, 67), dtype)
					kerneltest.Compare(t, name, p, kerneltest.Drawn(r, dtype, p.Args[0].Shape, from...), kerneltest.Drawn(r, dtype, p.Args[1].Shape, from...))
					p.Args[1].Shape, p.Args[1].Dims = tensor.Shape{67, k}, kerneltest.Dims(1, 2)
					kerneltest.Compare(t, name+" by columns", p, kerneltest.Drawn(r, dtype, p.Args[0].Shape, from...), kerneltest.Drawn(r, dtype, p.Args[1].Shape, from...))
				}
			}
		}
	}
}

// Few rows take some terms of a large operand b at a time.
func TestFewRowsOfALargeMatrix(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	for _, s := range [][3]int{{3, 300, 451}, {17, 300, 451}, {5, tensor.KBlock + 35, 37}} {
		if p := kerneltest.MatMul(s[0], s[1], s[2]); s[1]*s[2] > tuning.MaxBInL2 {
			kerneltest.Compare(t, "product", p, kerneltest.Drawn(r, tensor.Float32, p.Args[0].Shape, kerneltest.Wild...), kerneltest.Normal(tensor.Float32, p.Args[1].Shape))
		} else {
			t.Error(s, "is not large")
		}
	}
}

// Padding adds nothing, not even +0 to −0 or 0 times an infinity.
func TestPadding(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	minus := 0
	for _, c := range []convolution{
		{1, 1, 5, 2, 3, 1, 1, 1},    // an image
		{2, 3, 18, 4, 3, 1, 2, 1},   // of several lines a block
		{1, 2, 9, 24, 3, 2, 1, 1},   // strided: packed by segments
		{1, 2, 7, 24, 3, 1, 3, 1},   // so much of it padding that it is packed
		{1, 2, 7, 40, 3, 1, 3, 1},   // rows of an image
		{2, 4, 6, 4, 3, 1, 1, 4},    // depthwise
		{1, 1, 3, 2, 3, 1, 3, 1},    // whole lines are absent
		{1, 160, 40, 1, 2, 1, 1, 1}, // more lines than an image holds
		{1, 1, 131, 1, 3, 2, 1, 1},  // sorted by phases
		{1, 1, 196, 1, 4, 3, 2, 1},
	} {
		if testing.Short() && c.In > 100 {
			continue
		}
		for _, from := range [][]float64{{-0x1p-100, 0x1p-100}, {0x1p-100, kerneltest.NegativeZero, 0, -0x1p-80}, kerneltest.Wild, kerneltest.NearTies} {
			for _, dtype := range []tensor.DType{tensor.Float32, tensor.BFloat16} {
				p := kerneltest.Typed(c.primitive(), dtype)
				out := kerneltest.Compare(t, "convolution", p, kerneltest.Drawn(r, dtype, p.Args[0].Shape, from...), kerneltest.Drawn(r, dtype, p.Args[1].Shape, from...))
				for i := range out.Len() {
					if out.At(i) == 1<<31 {
						minus++
					}
				}
			}
		}
	}
	if minus < 100 {
		t.Errorf("only %d sums are −0", minus)
	}
}

// Rows that lie in an image: maps of several sizes, more terms than a K-block has, some
// vectors of columns that are not full.
func TestImplicitGEMMByRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 6))
	for _, c := range []convolution{
		{1, 5, 7, 33, 3, 1, 1, 1}, {1, 3, 14, 100, 3, 1, 1, 1}, {2, 4, 13, 40, 3, 2, 1, 1}, {3, 2, 9, 200, 3, 3, 1, 1},
		{1, 1, 32, 33, 5, 1, 2, 1}, {1, 480, 3, 32, 3, 1, 1, 1}, {1, 3, 19, 64, 4, 2, 0, 1}, {9, 5, 6, 40, 3, 1, 1, 1},
	} {
		for _, dtype := range []tensor.DType{tensor.Float32, tensor.BFloat16} {
			p := kerneltest.Typed(c.primitive(), dtype)
			for _, set := range asm.Sets() {
				if gemm.RowsPerLine(gemm.New(p, set)) == 0 {
					t.Errorf("%s: %v does not slide", set.Name, c)
				}
			}
			for _, from := range [][]float64{kerneltest.Small, kerneltest.Wild, kerneltest.NearTies} {
				kerneltest.Compare(t, "convolution", p, kerneltest.Drawn(r, dtype, p.Args[0].Shape, from...), kerneltest.Drawn(r, dtype, p.Args[1].Shape, from...))
			}
		}
	}
}

// Gradients of convolutions: rows and terms in runs, some steps apart, some
// outside the operand, and phases without taps.
func TestConvolutionGradients(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	for _, c := range []convolution{
		{3, 2, 7, 3, 3, 1, 1, 1}, {40, 2, 6, 5, 3, 1, 0, 1}, {2, 9, 17, 50, 3, 1, 1, 1}, {2, 5, 9, 7, 3, 2, 1, 1},
		{3, 17, 12, 33, 1, 2, 0, 1}, {2, 3, 40, 2, 5, 3, 2, 1}, {1, 2, 70, 3, 1, 1, 0, 1}, {1, 40, 3, 50, 3, 1, 1, 1},
		{2, 9, 5, 33, 3, 1, 1, 1}, {2, 24, 5, 33, 3, 2, 1, 1}, // lines along planes
	} {
		for name, p := range map[string]*tensor.Primitive{"kernel": c.kernelGradient(), "input": c.inputGradient()} { // order: each case stands alone
			for _, from := range [][]float64{kerneltest.Small, kerneltest.Wild, kerneltest.NearTies} {
				for _, dtype := range []tensor.DType{tensor.Float32, tensor.BFloat16} {
					p := kerneltest.Typed(p, dtype)
					kerneltest.Compare(t, name, p, kerneltest.Drawn(r, dtype, p.Args[0].Shape, from...), kerneltest.Drawn(r, dtype, p.Args[1].Shape, from...))
				}
			}
		}
	}
}

// A line has more rows than a block.
func TestLongLine(t *testing.T) {
	const in, out, size, taps = 128, 32, 1100, 4
	p := &tensor.Primitive{Fn: tensor.Dot, Type: tensor.Float32, Shape: tensor.Shape{out, size}, Fold: []int{in, taps}, Args: []tensor.Access{
		{Type: tensor.Float32, Shape: tensor.Shape{in, size}, Dims: []tensor.Dim{kerneltest.Axis(2), {Offset: -1, Terms: []tensor.Term{{Axis: 1, Step: 1}, {Axis: 3, Step: 1}}}}},
		{Type: tensor.Float32, Shape: tensor.Shape{out, in, taps}, Dims: kerneltest.Dims(0, 2, 3)},
	}}
	for _, set := range asm.Sets() {
		if n := gemm.RowsPerLine(gemm.New(p, set)); n != size {
			t.Errorf("%s: lines have %d rows", set.Name, n)
		}
	}
	if testing.Short() {
		return
	}
	r := rand.New(rand.NewPCG(1, 6))
	kerneltest.Compare(t, "long line", p, kerneltest.Drawn(r, tensor.Float32, p.Args[0].Shape, kerneltest.NearTies...), kerneltest.Drawn(r, tensor.Float32, p.Args[1].Shape, kerneltest.NearTies...))
}

// Sums of bytes wrap, and none saturates on the way.
func TestBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 4))
	ends := map[tensor.DType][]float64{tensor.Int8: {-128, -128, 127, 0, 1}, tensor.Uint8: {255, 255, 128, 0, 1}}
	types := []tensor.DType{tensor.Int8, tensor.Uint8}
	for _, x := range types {
		for _, y := range types {
			for _, s := range [][3]int{{1, 1, 1}, {9, 5, 49}, {50, 3, 7}, {13, 2050, 33}, {5, 4099, 96}} {
				p := kerneltest.Typed(kerneltest.MatMul(s[0], s[1], s[2]), x)
				p.Args[1].Type = y
				kerneltest.Compare(t, "product", p, kerneltest.Drawn(r, x, p.Args[0].Shape, ends[x]...), kerneltest.Drawn(r, y, p.Args[1].Shape, ends[y]...))
			}
			p := kerneltest.Typed(convolution{2, 3, 9, 5, 3, 1, 1, 1}.primitive(), x)
			p.Args[1].Type = y
			kerneltest.Compare(t, "convolution", p, kerneltest.Drawn(r, x, p.Args[0].Shape, ends[x]...), kerneltest.Drawn(r, y, p.Args[1].Shape, ends[y]...))
		}
	}
	long := kerneltest.Typed(kerneltest.MatMul(1, 1<<17+1, 1), tensor.Uint8) // past 2³¹, and 2³²
	out := kerneltest.Compare(t, "long", long, kerneltest.Drawn(r, tensor.Uint8, long.Args[0].Shape, 255), kerneltest.Drawn(r, tensor.Uint8, long.Args[1].Shape, 255))
	if want := uint32(255 * 255 * (1<<17 + 1) & math.MaxUint32); uint32(out.At(0)) != want {
		t.Errorf("%d terms give %#x, want %#x", long.Fold[0], out.At(0), want)
	}
}

// A steady state allocates nothing for a contraction.
func TestContractionsAllocateNothing(t *testing.T) {
	for name, p := range map[string]*tensor.Primitive{ // order: each case stands alone
		"product": kerneltest.MatMul(70, 90, 110), "swept": kerneltest.MatMul(1, 90, 110), "turned": kerneltest.MatMul(110, 90, 1), "image": convolution{2, 3, 18, 4, 3, 1, 2, 1}.primitive(),
		"sliding":  convolution{1, 3, 14, 64, 3, 1, 1, 1}.primitive(),
		"segments": convolution{1, 2, 9, 24, 3, 2, 1, 1}.primitive(), "bytes": kerneltest.Typed(kerneltest.MatMul(70, 90, 110), tensor.Int8),
	} {
		set, err := asm.Chosen()
		if err != nil {
			t.Fatal(err)
		}
		args := []*tensor.Tensor{kerneltest.Normal(p.Args[0].Type, p.Args[0].Shape), kerneltest.Normal(p.Args[1].Type, p.Args[1].Shape)}
		out := tensor.Must(tensor.New(p.Type, p.Shape))
		k, w := gemm.New(p, set), kernel.NewWorker()
		run := func() {
			if err := k.Run(w, out, args, 0, k.Blocks()); err != nil {
				t.Fatal(err)
			}
		}
		run()
		if n := testing.AllocsPerRun(5, run); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// chain is the definition of a contraction's element, over slices.
func chain(a, b []float32) float32 {
	acc := float32(0)
	for i, x := range a {
		acc = tensor.FMA(x, b[i], acc)
	}
	return acc
}

// Outputs of several blocks, with edges that fill no tile, on several threads.
func TestBlocksTile(t *testing.T) {
	for _, c := range [][3]int{
		{130, 40, 260}, {257, 300, 3}, {3, 300, 257}, {1, 1000, 70}, {70, 1000, 1}, {2, 9000, 2}, {33, 520, 65},
		{1, 9000, 49}, {2, 4101, 33}, {1, 17, 1100}, {2, 3, 2500}, {9, 4100, 40}, {16, 70, 131}, {5, 16, 16}, {4, 15, 17}, // few rows
	} {
		for _, byRows := range []bool{false, true} {
			checkPieces(t, c[0], c[1], c[2], byRows)
		}
	}
}

// checkPieces multiplies an m×k matrix with a k×n matrix given by columns, or by
// rows.
func checkPieces(t *testing.T, m, k, n int, byRows bool) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, uint64(m)))
	x := tensor.Must(tensor.New(tensor.Float32, tensor.Shape{m, k}))
	y := tensor.Must(tensor.New(tensor.Float32, tensor.Shape{n, k}))
	a, b := tensor.Of[float32](x), tensor.Of[float32](y)
	for _, s := range [][]float32{a, b} {
		for i := range s {
			s[i] = float32(r.NormFloat64())
		}
	}
	p, second := kerneltest.MatMul(m, k, n), y
	if byRows {
		second = tensor.Must(tensor.New(tensor.Float32, tensor.Shape{k, n}))
		for i, v := range b {
			tensor.Of[float32](second)[i%k*n+i/k] = v
		}
	} else {
		p.Args[1] = tensor.Access{Type: tensor.Float32, Shape: tensor.Shape{n, k}, Dims: kerneltest.Dims(1, 2)}
	}
	for _, set := range asm.Sets() {
		got := tensor.Of[float32](kerneltest.RunOn(t, set, 2, p, x, second))
		for i := range m {
			for j := range n {
				want := float32(0)
				for t := 0; t < k; t += 2 * tensor.KBlock { // at most three K-blocks
					lo, mid, hi := t, min(t+tensor.KBlock, k), min(t+2*tensor.KBlock, k)
					part := chain(a[i*k+lo:i*k+mid], b[j*k+lo:j*k+mid])
					if hi > mid {
						part += chain(a[i*k+mid:i*k+hi], b[j*k+mid:j*k+hi])
					}
					if t == 0 {
						want = part
					} else {
						want += part
					}
				}
				if got[i*n+j] != want {
					t.Fatalf("%s, %d×%d×%d, by rows %v: element %d,%d is %x, want %x", set.Name, m, k, n, byRows, i, j, got[i*n+j], want)
				}
			}
		}
	}
}

// convolution is one of two spatial axes, in groups.
type convolution kerneltest.Convolution

func (c convolution) primitive() *tensor.Primitive { return kerneltest.Convolution(c).Primitive() }
func (c convolution) kernelGradient() *tensor.Primitive {
	return kerneltest.Convolution(c).KernelGradient()
}
func (c convolution) inputGradient() *tensor.Primitive {
	return kerneltest.Convolution(c).InputGradient()
}
