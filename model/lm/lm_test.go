package lm

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/format/safetensors"
)

// run computes a graph's outputs by name.
func run(t testing.TB, e engine.Executor, g *graph.Graph, in map[string]*tensor.Tensor) map[string]*tensor.Tensor {
	t.Helper()
	typed, err := op.Infer(g, lower.FP32)
	if err != nil {
		t.Fatal(err)
	}
	p, err := typed.Function()
	if err != nil {
		t.Fatal(err)
	}
	s := &graph.State{Slots: p.Slots, Tensors: make([]*tensor.Tensor, len(p.Slots))}
	for i, slot := range p.Slots {
		if s.Tensors[i] = in[slot.Name]; s.Tensors[i] == nil {
			s.Tensors[i] = tensor.Must(tensor.New(slot.Type, slot.Shape))
		}
	}
	end, err := engine.Run(context.Background(), e, p, graph.Inputs{States: []*graph.State{s}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*tensor.Tensor{}
	for _, o := range typed.Outputs {
		out[o.Name] = end.Find(o.Name)
	}
	return out
}

// folders are the models in testdata.
func folders(t *testing.T) []string {
	all, err := filepath.Glob("testdata/*/config.json")
	if err != nil || len(all) < 11 {
		t.Fatal(all, err)
	}
	for i := range all {
		all[i] = filepath.Dir(all[i])
	}
	return all
}

func expected(t *testing.T, dir string) (tokens, logits *tensor.Tensor) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "expected.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	all, _, err := safetensors.Read(f, info.Size(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return all["tokens"], all["logits"]
}

// roots are those of the logits in testdata, on every machine.
var roots = map[string]string{
	"gemma":     "7563449f",
	"gemma2":    "e072ef5c",
	"gemma3":    "b0fb2d25",
	"gpt2":      "840e33bc",
	"llama":     "dec763c0",
	"llama3":    "22a114c8",
	"mistral":   "2016096c",
	"phi3":      "619ea59b",
	"phi3-long": "571dd5c1",
	"qwen2":     "896995c4",
	"qwen3":     "943a2b26",
}

// Each family computes what transformers does, but for the last digits, and the same bits on every machine.
func TestFamiliesEqualTransformers(t *testing.T) {
	for _, dir := range folders(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			m, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			tokens, want := expected(t, dir)
			g, err := m.Graph(tokens.Len(), 0)
			if err != nil {
				t.Fatal(err)
			}
			got := run(t, cpu.New(2), g, map[string]*tensor.Tensor{"tokens": tokens})["logits"]
			if !got.Shape.Equal(want.Shape) {
				t.Fatalf("logits %v, want %v", got.Shape, want.Shape)
			}
			worst := 0.0
			for i, x := range tensor.Of[float32](got) {
				worst = max(worst, math.Abs(float64(x-tensor.Of[float32](want)[i])))
			}
			if t.Logf("%d weights; logits differ by %.2g at most", m.Parameters(), worst); !(worst < 2e-4) {
				t.Errorf("logits differ by %v", worst)
			}
			if root := got.Root().Short(); root != roots[filepath.Base(dir)] {
				t.Errorf("%q: %q,", filepath.Base(dir), root)
			}
		})
	}
}

// Tokens have the same logits, keys and values however they are cut into chunks, bit for bit, by either executor.
func TestChunksEqualTheWhole(t *testing.T) {
	for _, dir := range folders(t) {
		m, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		tokens, _ := expected(t, dir)
		n := tokens.Len()
		g, err := m.Graph(n, 0)
		if err != nil {
			t.Fatal(err)
		}
		whole := run(t, cpu.New(1), g, map[string]*tensor.Tensor{"tokens": tokens})
		for _, cuts := range [][]int{{1, 2, 3, 10, n}, {7, 8, 9, n}, {n - 1, n}} {
			for name, e := range map[string]engine.Executor{"cpu": cpu.New(2), "reference": engine.Reference{}} { // each alone
				past := 0
				for _, end := range cuts {
					in := map[string]*tensor.Tensor{"tokens": tensor.Must(tensor.From(tensor.Shape{end - past}, tensor.Of[int64](tokens)[past:end]))}
					for i := range m.Layers {
						for _, what := range []string{"keys", "values"} {
							in[fmt.Sprintf("%s.%d", what, i)] = places(whole[fmt.Sprintf("new_%s.%d", what, i)], 0, past)
						}
					}
					g, err := m.Graph(end-past, past)
					if err != nil {
						t.Fatal(err)
					}
					for out, got := range run(t, e, g, in) { // each alone
						if want := places(whole[out], past, end); !got.Equal(want) {
							t.Fatalf("%s, %s: %s of tokens %d to %d are others than in the whole", m.Family, name, out, past, end-1)
						}
					}
					past = end
				}
			}
		}
	}
}

// places returns what x has of tokens from one to another.
func places(x *tensor.Tensor, from, to int) *tensor.Tensor {
	s := x.Shape.Clone()
	s[0] = to - from
	out := tensor.Must(tensor.New(x.Type, s))
	copy(out.Bytes(), x.Bytes()[from*len(x.Bytes())/x.Shape[0]:])
	return out
}
