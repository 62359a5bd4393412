package cpu_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/internal/testkit/conform"
)

// cached is the program of what Attend computes.
func cached(t testing.TB, a engine.Attention, rows, total int) *graph.Program {
	t.Helper()
	b := graph.NewBuilder("cached")
	in := func(name string, n, heads int) string {
		x := b.Op("Reshape", b.Input(name, tensor.Float32, tensor.Shape{n, heads, a.Size}), b.Ints(1, n, heads, a.Size))
		return b.With(graph.Ints("perm", 0, 2, 1, 3)).Op("Transpose", x)
	}
	attrs := []graph.Attr{graph.Int("left_window_size", a.Window)}
	if a.Scale != 0 {
		attrs = append(attrs, graph.Float("scale", a.Scale))
	}
	if a.Softcap != 0 {
		attrs = append(attrs, graph.Float("softcap", a.Softcap))
	}
	y := b.With(attrs...).Op("CachedAttention", in("a q", rows, a.Heads), in("b keys", total, a.Shared), in("c values", total, a.Shared))
	b.Output(b.With(graph.Ints("perm", 0, 2, 1, 3)).Op("Transpose", y), 0, nil)
	typed, err := op.Infer(b.Graph(), lower.FP32)
	if err != nil {
		t.Fatal(err)
	}
	p, err := typed.Function()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// attended draws a sequence: numbers, or values of every kind.
func attended(r *rand.Rand, a engine.Attention, rows, total int, wild bool) engine.Attended {
	draw := func(n, heads int) *tensor.Tensor {
		x := conform.Tensor(r, tensor.Float32, tensor.Shape{n, heads, a.Size})
		for i, f := 0, tensor.Of[float32](x); i < len(f) && (!wild || r.IntN(4) > 0); i++ {
			f[i] = float32(r.NormFloat64())
		}
		return x
	}
	out := tensor.Must(tensor.New(tensor.Float32, tensor.Shape{rows, a.Heads, a.Size}))
	return engine.Attended{Queries: draw(rows, a.Heads), Keys: draw(total, a.Shared), Values: draw(total, a.Shared), Out: out}
}

// What tokens see in a cache has the bits of the operator: shared heads, windows, soft caps, several sequences and tokens at once,
// lengths around tiles and K-blocks, and values of every kind.
func TestAttendEqualsTheOperator(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, set := range asm.Sets() {
		for _, a := range []engine.Attention{
			{Heads: 3, Shared: 1, Size: 64, Window: -1}, {Heads: 4, Shared: 4, Size: 16, Window: 5}, {Heads: 18, Shared: 2, Size: 32, Window: -1, Scale: 0.3, Softcap: 2},
			{Heads: 2, Shared: 1, Size: 80, Window: 4100}, {Heads: 10, Shared: 1, Size: 16, Window: 0, Softcap: 30}, {Heads: 2, Shared: 1, Size: 24, Window: -1},
		} {
			for _, threads := range []int{1, 2} {
				e := cpu.NewWith(cpu.Options{Threads: threads, Kernels: set, GrainNs: 1})
				var of []engine.Attended
				lengths := [][2]int{{1, 1}, {1, 16}, {2, 17}, {3, 70}, {1, 300}}
				if threads == 1 && set == asm.Sets()[0] {
					lengths = append(lengths, [2]int{1, tensor.KBlock}, [2]int{3, tensor.KBlock + 1}, [2]int{1, 2*tensor.KBlock + 40})
				}
				for i, n := range lengths {
					of = append(of, attended(r, a, n[0], n[1], i%2 == 1))
				}
				served, err := e.Attend(t.Context(), a, of)
				if err != nil {
					t.Fatal(err)
				}
				if want := len(set.DotGEMM) > 0 && a.Size%16 == 0; served != want {
					t.Fatalf("%s, %+v: served is %v", set.Name, a, served)
				}
				for i := 0; served && i < len(of); i++ {
					p, x := cached(t, a, lengths[i][0], lengths[i][1]), of[i]
					in := graph.Inputs{States: []*graph.State{{Slots: p.Slots, Tensors: []*tensor.Tensor{x.Queries, x.Keys, x.Values}}}}
					want, err := engine.Run(context.Background(), e, p, in, nil)
					if err != nil {
						t.Fatal(err)
					}
					if !bytes.Equal(want.Tensors[0].Bytes(), x.Out.Bytes()) {
						t.Fatalf("%s, %+v, %v: other bits than the program's", set.Name, a, lengths[i])
					}
				}
			}
		}
	}
}

func TestAttendRefuses(t *testing.T) {
	a, r := engine.Attention{Heads: 2, Shared: 1, Size: 16, Window: -1}, rand.New(rand.NewPCG(9, 9))
	e := cpu.New(1)
	short := attended(r, a, 2, 5, false)
	short.Values = attended(r, a, 2, 4, false).Values
	early := attended(r, a, 2, 1, false)
	for name, x := range map[string]engine.Attended{"values that are missing": short, "more queries than keys": early, "nothing": {}} {
		if served, err := e.Attend(t.Context(), a, []engine.Attended{x}); served || err == nil && len(asm.Sets()[0].DotGEMM) > 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := e.Attend(stopped, a, []engine.Attended{attended(r, a, 1, 5, false)}); err == nil && len(asm.Sets()[0].DotGEMM) > 0 {
		t.Error("a run that was given up ends without an error")
	}
}

// SmolLM2's attention in one layer to a cache of some tokens.
func BenchmarkAttend(b *testing.B) {
	a, r := engine.Attention{Heads: 9, Shared: 3, Size: 64, Window: -1}, rand.New(rand.NewPCG(9, 9))
	for _, total := range []int{64, 256, 1024, 4096} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%d/t%d", total, threads), func(b *testing.B) {
				e, of := cpu.New(threads), []engine.Attended{attended(r, a, 1, total, false)}
				b.ReportAllocs()
				for b.Loop() {
					if _, err := e.Attend(b.Context(), a, of); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(2*len(of[0].Keys.Bytes())*b.N)/float64(b.Elapsed().Nanoseconds()), "GB/s")
			})
		}
	}
}
