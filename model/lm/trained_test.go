package lm_test

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/format/peft"
	"github.com/tally-network/tally/model/lm"
)

// trained returns a model of testdata as training with adapters has it, which have moved.
func trained(t *testing.T, m *lm.Model, a train.Adapters, tokens int) *graph.Graph {
	t.Helper()
	g, err := m.Training(1, tokens)
	if err != nil {
		t.Fatal(err)
	}
	if g, err = train.Adapt(g, train.Recipe{Adapters: a}); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(4, 4))
	for _, c := range g.Consts {
		if _, last := train.Adapting(""); len(c.Name) > len(last) && c.Name[len(c.Name)-len(last):] == last {
			for i := range c.Tensor.Len() {
				c.Tensor.Set(i, tensor.F32(float32(0.3*r.NormFloat64())))
			}
		}
	}
	return g
}

func logits(t *testing.T, g *graph.Graph, tokens []int32) []float32 {
	t.Helper()
	typed, err := op.Infer(g, lower.FP32)
	if err != nil {
		t.Fatal(err)
	}
	p, err := typed.Function()
	if err != nil {
		t.Fatal(err)
	}
	s := &graph.State{Slots: p.Slots}
	for range p.Slots {
		s.Tensors = append(s.Tensors, tensor.Must(tensor.From(tensor.Shape{1, len(tokens)}, tokens)))
	}
	end, err := engine.Run(context.Background(), cpu.New(1), p, graph.Inputs{States: []*graph.State{s}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tensor.Of[float32](end.Find("logits"))
}

// What training has made of a language model is served as it was trained, but for roundings: weights whose rows are outputs, and those whose columns are.
func TestTrainedAdaptersAreServed(t *testing.T) {
	for family, of := range map[string][]string{"llama": {"*q_proj.weight", "*down_proj.weight"}, "gpt2": {"*qkv_proj.weight", "*mlp.*_proj.weight"}} {
		m, err := lm.Open(filepath.Join("testdata", family))
		if err != nil {
			t.Fatal(err)
		}
		a := train.Adapters{Rank: 3, Alpha: 5, Of: of}
		tokens := []int32{5, 47, 0, 31, 31, 2, 17, 8}
		g := trained(t, m, a, len(tokens))
		files, err := peft.Of(g, &a)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		for name, b := range files { // each alone
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		adapted, err := m.Adapted(dir)
		if err != nil {
			t.Fatalf("%s: %v", family, err)
		}
		out, err := m.Stages(cpu.New(1)).Step(t.Context(), []lm.Part{
			{Sequence: &lm.Sequence{}, Tokens: tokens, Logits: 1, Model: adapted}, {Sequence: &lm.Sequence{}, Tokens: tokens, Logits: 1},
		})
		if err != nil {
			t.Fatal(err)
		}
		got, base := tensor.Of[float32](out[0]), tensor.Of[float32](out[1])
		all := logits(t, g, tokens)
		want := all[len(all)-m.Vocabulary:]
		worst := 0.0
		for i := range want {
			worst = max(worst, math.Abs(float64(got[i]-want[i])))
		}
		if !(worst < 1e-4) || slices.Equal(got, base) {
			t.Errorf("%s: logits differ by %v from those of training", family, worst)
		}
		var config map[string]any
		if err := json.Unmarshal(files[peft.Config], &config); err != nil || config["fan_in_fan_out"] != (family == "gpt2") {
			t.Errorf("%s: %s, %v", family, files[peft.Config], err)
		}
	}
}

// Of a model without adapters, and of adapters that PEFT does not know, nothing is written.
func TestNothingIsWritten(t *testing.T) {
	m, err := lm.Open(filepath.Join("testdata", "llama"))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []train.Adapters{{}, {Rank: 2, Alpha: 2, Of: []string{"model.embed_tokens.weight"}}} {
		if files, err := peft.Of(trained(t, m, a, 3), &a); err != nil || files != nil {
			t.Errorf("%v: %d files, %v", a.Of, len(files), err)
		}
	}
}
