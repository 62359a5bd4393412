package cpu_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/gemm"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/reduce"
	"github.com/tally-network/tally/engine/cpu/spatial"
	"github.com/tally-network/tally/internal/testkit/kerneltest"
)

// long are primitives that take a thread long, by the kernel that computes them.
func long() map[string]*tensor.Primitive {
	folded := func(fn tensor.Fn, rows, terms int, dims []tensor.Dim, shape tensor.Shape) *tensor.Primitive {
		p := &tensor.Primitive{Fn: fn, Type: tensor.Float32, Shape: tensor.Shape{rows}, Fold: []int{terms}, Args: []tensor.Access{{Type: tensor.Float32, Shape: shape, Dims: dims}}}
		if fn == tensor.FoldArgMax {
			p.Type, p.Imm = tensor.Int64, []tensor.Word{0}
		}
		return p
	}
	const n = 1 << 12
	square := tensor.Shape{n, n}
	depthwise := kerneltest.Convolution{Batch: 8, In: 64, Size: 224, Out: 64, Kernel: 3, Stride: 1, Pad: 1, Groups: 64}
	return map[string]*tensor.Primitive{
		"gemm":          kerneltest.MatMul(n, n, n),
		"gemm of bytes": kerneltest.Typed(kerneltest.MatMul(n, n, n), tensor.Int8),
		"float64":       kerneltest.Typed(kerneltest.MatMul(256, n, 256), tensor.Float64),
		"convolution":   kerneltest.Convolution{Batch: 8, In: 64, Size: 112, Out: 64, Kernel: 3, Stride: 1, Pad: 1, Groups: 1}.Primitive(),
		"depthwise":     depthwise.Primitive(),
		"rows":          folded(tensor.FoldSum, n, n, kerneltest.Dims(0, 1), square),
		"columns":       folded(tensor.FoldMax, n, n, kerneltest.Dims(1, 0), square),
		"positions":     folded(tensor.FoldArgMax, n, n, kerneltest.Dims(0, 1), square),
		"map":           {Fn: tensor.Neg, Type: tensor.Float32, Shape: square, Args: []tensor.Access{{Type: tensor.Float32, Shape: square, Dims: kerneltest.Dims(0, 1)}}},
	}
}

func operands(p *tensor.Primitive) (args []*tensor.Tensor) {
	for _, a := range p.Args {
		args = append(args, kerneltest.Normal(a.Type, a.Shape))
	}
	return args
}

// A kernel whose worker is stopped computes no further block.
func TestStoppedKernelsStop(t *testing.T) {
	set := asm.Sets()[0]
	window := &tensor.Primitive{Fn: tensor.FoldMax, Type: tensor.Float32, Shape: tensor.Shape{4, 8, 8}, Fold: []int{3, 3}, Args: []tensor.Access{
		{Type: tensor.Float32, Shape: tensor.Shape{4, 10, 10}, Dims: []tensor.Dim{
			kerneltest.Axis(0), {Terms: []tensor.Term{{Axis: 1, Step: 1}, {Axis: 3, Step: 1}}}, {Terms: []tensor.Term{{Axis: 2, Step: 1}, {Axis: 4, Step: 1}}},
		}},
	}}
	fold := &tensor.Primitive{Fn: tensor.FoldSum, Type: tensor.Float32, Shape: tensor.Shape{9}, Fold: []int{40}, Args: []tensor.Access{
		{Type: tensor.Float32, Shape: tensor.Shape{9, 40}, Dims: kerneltest.Dims(0, 1)},
	}}
	product := kerneltest.MatMul(20, 30, 40)
	for name, c := range map[string]struct {
		k kernel.Kernel
		p *tensor.Primitive
	}{
		"gemm":       {gemm.New(product, set), product},
		"float64":    {gemm.New(kerneltest.Typed(kerneltest.MatMul(20, 30, 40), tensor.Float64), set), kerneltest.Typed(kerneltest.MatMul(20, 30, 40), tensor.Float64)},
		"fold":       {reduce.New(fold, set), fold},
		"pooling":    {spatial.NewPooling(window, set), window},
		"definition": {kernel.ByDefinition(product), product},
	} {
		if c.k == nil {
			t.Fatalf("%s: no kernel", name)
		}
		w := kernel.NewWorker()
		w.Stop = new(atomic.Bool)
		out, args := tensor.Must(tensor.New(c.p.Type, c.p.Shape)), operands(c.p)
		if err := c.k.Run(w, out, args, 0, c.k.Blocks()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		w.Stop.Store(true)
		if err := c.k.Run(w, out, args, 0, c.k.Blocks()); !errors.Is(err, kernel.ErrStopped) {
			t.Errorf("%s, stopped: %v", name, err)
		}
	}
}

// A product stops between its blocks, too.
func TestProductsStopBetweenBlocks(t *testing.T) {
	p := kerneltest.MatMul(2048, 512, 64)
	k := gemm.New(p, asm.Sets()[0]).(kernel.Producer)
	if k.Blocks() < 2 {
		t.Fatalf("%d blocks", k.Blocks())
	}
	w := kernel.NewWorker()
	w.Stop = new(atomic.Bool)
	out, args, calls := tensor.Must(tensor.New(p.Type, p.Shape)), operands(p), 0
	for lo := range k.Blocks() {
		err := kernel.Produce(k, w, out, args, lo, lo+1, func(_, _, _, _ int, _ kernel.Source) error {
			calls++
			w.Stop.Store(true)
			return nil
		})
		if first := lo == 0; first != (err == nil) || !first && !errors.Is(err, kernel.ErrStopped) {
			t.Fatalf("block %d: %v", lo, err)
		}
		if lo == 0 {
			w.Stop.Store(true)
		}
	}
	if calls == 0 {
		t.Error("the first block was not computed")
	}
}

// A run that is given up ends with the context's error, and the next is not disturbed.
func TestRunThatIsGivenUp(t *testing.T) {
	p := kerneltest.MatMul(512, 512, 512)
	prog, in := opened(p)
	for threads := 1; threads <= 2; threads++ {
		run, err := cpu.New(threads).Prepare(prog)
		if err != nil {
			t.Fatal(err)
		}
		want, err := run.Run(t.Context(), in, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Duration(i)*200*time.Microsecond, cancel)
			if _, err := run.Run(ctx, in, nil); err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			got, err := run.Run(t.Context(), in, nil)
			if err != nil || !got.Tensors[0].Equal(want.Tensors[0]) {
				t.Fatalf("after a run that was given up: %v", err)
			}
			cancel()
		}
	}
}

// opened is a program that computes p from its state.
func opened(p *tensor.Primitive) (*graph.Program, graph.Inputs) {
	prog, in := kerneltest.Single(p, operands(p)...)
	kerneltest.Open(prog, in)
	return prog, in
}

// BenchmarkStop tells how long a run goes on after its context is done: for each kernel,
// the longest of several, in milliseconds.
func BenchmarkStop(b *testing.B) {
	for name, p := range long() {
		b.Run(name, func(b *testing.B) {
			prog, in := opened(p)
			run, err := cpu.New(2).Prepare(prog)
			if err != nil {
				b.Fatal(err)
			}
			begun := time.Now()
			if _, err := run.Run(b.Context(), in, nil); err != nil {
				b.Fatal(err)
			}
			whole, longest, stopped := time.Since(begun), time.Duration(0), 0
			for b.Loop() {
				for part := range 8 {
					ctx, cancel := context.WithCancel(b.Context())
					var at time.Time
					timer := time.AfterFunc(whole*time.Duration(part+1)/10, func() { at = time.Now(); cancel() })
					if _, err := run.Run(ctx, in, nil); err != nil {
						stopped++
						longest = max(longest, time.Since(at))
					}
					timer.Stop()
					cancel()
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(whole.Microseconds())/1000, "ms-whole")
			b.ReportMetric(float64(longest.Microseconds())/1000, "ms-after-stop")
			b.ReportMetric(float64(stopped)/float64(b.N), "stopped-of-8")
		})
	}
}
