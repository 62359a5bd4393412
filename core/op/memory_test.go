package op_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/internal/testkit/memory"
)

// shaped is a float32 input of a graph under construction.
func shaped(b *graph.Builder, name string, s ...int) string { return b.Input(name, tensor.Float32, s) }

// nestedLoops are loops of a thousand rounds, one in another.
func nestedLoops(depth int) graph.Attr {
	return holding("body", 3, 0, func(b *graph.Builder, in []string) []string {
		next := b.Op("Neg", in[2])
		if depth > 0 {
			next = b.With(nestedLoops(depth-1)).Op("Loop", b.Const(tensor.Scalar(int64(1000))), "", in[2])
		}
		return []string{b.Op("Identity", in[1]), next}
	})
}

// What is small to say and large to lower.
var hostile = []struct {
	name    string
	refused string // with what; empty if it is not
	build   func(b *graph.Builder) string
}{
	{"long chain", "more than 52 MB", func(b *graph.Builder) string {
		v := shaped(b, "x", 2, 3, 4, 5)
		for range 1 << 16 {
			v = b.Op("Neg", v)
		}
		return v
	}},
	{"LSTM", "more than 52 MB", func(b *graph.Builder) string {
		return b.Op("LSTM", shaped(b, "x", 4096, 1, 1), shaped(b, "w", 1, 4, 1), shaped(b, "r", 1, 4, 1))
	}},
	{"GRU", "more than 52 MB", func(b *graph.Builder) string {
		return b.With(graph.String("direction", "bidirectional")).Op("GRU", shaped(b, "x", 4096, 1, 1), shaped(b, "w", 2, 3, 1), shaped(b, "r", 2, 3, 1))
	}},
	{"LSTM of many steps", "may have 1 to 4096", func(b *graph.Builder) string {
		return b.Op("LSTM", shaped(b, "x", 1<<38, 1, 1), shaped(b, "w", 1, 4, 1), shaped(b, "r", 1, 4, 1))
	}},
	{"linear attention", "", func(b *graph.Builder) string {
		return b.With(headCounts(1, 1, rule("linear"))...).Op("LinearAttention", shaped(b, "q", 1, 4096, 1), shaped(b, "k", 1, 4096, 1), shaped(b, "v", 1, 4096, 1))
	}},
	{"attention", "", func(b *graph.Builder) string {
		return b.With(graph.Int("is_causal", 1), graph.Int("left_window_size", 9)).Op("Attention", shaped(b, "q", 1, 1, 1<<20, 1), shaped(b, "k", 1, 1, 1<<20, 1), shaped(b, "v", 1, 1, 1<<20, 1))
	}},
	{"nearest", "more than 52 MB", func(b *graph.Builder) string { return b.Op("Resize", shaped(b, "x", 9), "", "", b.Ints(1<<23)) }},
	{"linear", "more than 52 MB", func(b *graph.Builder) string {
		return b.With(mode("linear")).Op("Resize", shaped(b, "x", 9), "", "", b.Ints(1<<22))
	}},
	{"cubic", "", func(b *graph.Builder) string {
		return b.With(mode("cubic")).Op("Resize", shaped(b, "x", 9), "", "", b.Ints(1<<20))
	}},
	{"against aliasing", "2^40", func(b *graph.Builder) string {
		return b.With(mode("cubic"), graph.Int("antialias", 1)).Op("Resize", shaped(b, "x", 1<<40), "", "", b.Ints(9))
	}},
	{"pooled places", "more than 52 MB", func(b *graph.Builder) string {
		return b.With(graph.Ints("kernel_shape", 3)).Ops("MaxPool", 2, shaped(b, "x", 1, 1, 1<<30))[1]
	}},
	{"averages", "more than 52 MB", func(b *graph.Builder) string {
		return b.With(graph.Ints("kernel_shape", 3, 3), graph.Ints("pads", 1, 1, 1, 1)).Op("AveragePool", shaped(b, "x", 1, 1, 1<<15, 1<<15))
	}},
	{"frames", "more than 52 MB", func(b *graph.Builder) string {
		return b.Op("STFT", shaped(b, "x", 1, 1<<22, 1), b.Const(tensor.Scalar(int64(1))), "", b.Const(tensor.Scalar(int64(4096))))
	}},
	{"transform", "more than 52 MB", func(b *graph.Builder) string { return b.Op("DFT", shaped(b, "x", 1, 8192, 1)) }},
	{"range", "", func(b *graph.Builder) string {
		return b.Op("Range", b.Const(tensor.Scalar(int64(0))), b.Const(tensor.Scalar(int64(1<<40))), b.Const(tensor.Scalar(int64(1))))
	}},
	{"places that are not 0", "", func(b *graph.Builder) string {
		return b.Op("NonZero", b.With(graph.Tensor("value", tensor.Must(tensor.Bools(tensor.Shape{1}, true)))).Op("ConstantOfShape", b.Ints(1<<19, 1, 1)))
	}},
	{"places of 8 axes", "more than 52 MB", func(b *graph.Builder) string {
		return b.Op("NonZero", b.With(graph.Tensor("value", tensor.Must(tensor.Bools(tensor.Shape{1}, true)))).Op("ConstantOfShape", b.Ints(1<<20, 1, 1, 1, 1, 1, 1, 1)))
	}},
	{"window", "more than 52 MB", func(b *graph.Builder) string { return b.Op("HannWindow", b.Const(tensor.Scalar(int64(1<<24)))) }},
	{"mel scale", "", func(b *graph.Builder) string {
		n := b.Const(tensor.Scalar(int64(1 << 30)))
		return b.Op("MelWeightMatrix", n, b.Const(tensor.Scalar(int64(1<<10))), n, b.Scalar(0), b.Scalar(9))
	}},
	{"determinant", "", func(b *graph.Builder) string { return b.Op("Det", shaped(b, "x", 8, 8)) }},
	{"one joined to itself", "", func(b *graph.Builder) string {
		parts := make([]string, 1<<14)
		for i := range parts {
			parts[i] = "x"
		}
		shaped(b, "x", 2, 3, 4, 5)
		return b.With(axisIs(0)...).Op("Concat", parts...)
	}},
	{"loop without end", "more than 52 MB", func(b *graph.Builder) string {
		body := holding("body", 3, 0, func(b *graph.Builder, in []string) []string {
			return []string{b.Op("Identity", in[1]), b.Op("Neg", in[2])}
		})
		return b.With(body).Op("Loop", b.Const(tensor.Scalar(int64(math.MaxInt64))), "", shaped(b, "x", 2))
	}},
	{"loop on a condition", "more than 52 MB", func(b *graph.Builder) string {
		body := holding("body", 3, 0, func(b *graph.Builder, in []string) []string {
			next := b.Op("Neg", in[2])
			return []string{b.Op("Less", next, b.Scalar(3)), next}
		})
		return b.With(body).Op("Loop", b.Const(tensor.Scalar(int64(math.MaxInt64))), "", shaped(b, "x", 1))
	}},
	{"loop of nothing", "more than 52 MB", func(b *graph.Builder) string {
		body := holding("body", 3, 0, func(b *graph.Builder, in []string) []string { return []string{in[1], in[2]} })
		return b.With(body).Op("Loop", b.Const(tensor.Scalar(int64(math.MaxInt64))), "", shaped(b, "x", 1))
	}},
	{"loops in loops", "more than 52 MB", func(b *graph.Builder) string {
		return b.With(nestedLoops(8)).Op("Loop", b.Const(tensor.Scalar(int64(1000))), "", shaped(b, "x", 1))
	}},
	{"names that grow", "more than 52 MB", func(b *graph.Builder) string {
		long := strings.Repeat("n", graph.MaxName)
		body := holding("body", 3, 0, func(b *graph.Builder, in []string) []string {
			v := in[2]
			for range 10 {
				v = b.With().As(long).Op("Neg", v)
			}
			return []string{in[1], v}
		})
		return b.With(body).As(long).Op("Loop", b.Const(tensor.Scalar(int64(math.MaxInt64))), "", shaped(b, "x", 1))
	}},
	{"scan", "more than 52 MB", func(b *graph.Builder) string {
		return b.With(runningSums()...).Ops("Scan", 2, shaped(b, "s", 1), shaped(b, "x", 1<<30, 1))[1]
	}},
	{"branches of branches", "more than 52 MB", func(b *graph.Builder) string {
		v, cond := shaped(b, "x", 1), b.Input("c", tensor.Bool, tensor.Shape{1})
		for range 20000 {
			v = b.With(branches()...).Op("If", cond, v)
		}
		return v
	}},
}

// Whatever a graph says, lowering it takes no more than memory.Slack beside it,
// and stops soon when it would: what it allocates in all bounds what it does.
func TestMemoryOfLoweringIsBounded(t *testing.T) {
	for _, c := range hostile {
		t.Run(c.name, func(t *testing.T) {
			b := graph.NewBuilder(c.name)
			b.Output(c.build(b), 0, nil)
			var typed *lower.Typed
			var err error
			var all int64
			charged := func(peak int64) bool { return err != nil || int64(typed.Charged()) >= peak-peak/4-4<<20 }
			peak := memory.Peak(func() { all = memory.Allocated(func() { typed, err = op.Infer(b.Graph(), lower.FP32) }) },
				func(peak int64) bool { return peak <= memory.Slack && charged(peak) })
			t.Logf("%d MB at once, %d MB in all, %v", peak>>20, all>>20, err)
			if peak > memory.Slack || all > 16*memory.Slack {
				t.Errorf("it takes %d bytes at once, %d in all", peak, all)
			}
			switch {
			case c.refused == "" && err != nil:
				t.Fatal(err)
			case c.refused == "":
				if !charged(peak) {
					t.Errorf("%d bytes are taken, and %d charged", peak, typed.Charged())
				}
			case err == nil || !strings.Contains(err.Error(), c.refused):
				t.Errorf("refused with %v, want %q", err, c.refused)
			}
		})
	}
}
