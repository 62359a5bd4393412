package zoo_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/record"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/model/zoo"
)

func small() zoo.GPT { return zoo.GPT{Vocab: 7, Context: 6, Width: 8, Layers: 2, Heads: 2, Seed: 5} }

func mustGraph(t *testing.T, c zoo.GPT, batch int) *graph.Graph {
	t.Helper()
	g, err := c.Graph(batch)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func recipe(batch int) train.Recipe {
	return train.Recipe{
		Loss: "next-token-cross-entropy", Optimizer: "adamw", Rate: train.Rate{LearningRate: 0.02, Warmup: 5},
		Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-8, WeightDecay: 0.01, Batch: batch,
	}
}

// records are rows of tokens that follow a rule.
func records(c zoo.GPT, n int) *tensor.Tensor {
	t := tensor.Must(tensor.New(tensor.Int32, tensor.Shape{n, c.Context + 1}))
	for i := range t.Len() {
		row, column := i/(c.Context+1), i%(c.Context+1)
		t.Set(i, tensor.Word((row+column*(1+row%2))%c.Vocab))
	}
	return t
}

func begin(t *testing.T, g *graph.Graph, r train.Recipe, data *tensor.Tensor) (*train.Training, *graph.Program) {
	t.Helper()
	tr, err := train.New(g, r, data.Shape)
	if err != nil {
		t.Fatal(err)
	}
	eval, err := tr.Evaluate(data.Shape)
	if err != nil {
		t.Fatal(err)
	}
	return tr, eval.Batch
}

// runners are the programs of a test as they have been prepared.
type runners map[*graph.Program]engine.Runner

func (r runners) run(t *testing.T, p *graph.Program, s *graph.State, data *tensor.Tensor, rows []int64) *graph.State {
	t.Helper()
	var err error
	if r[p] == nil {
		if r[p], err = cpu.New(1).Prepare(p); err != nil {
			t.Fatal(err)
		}
	}
	if s, err = r[p].Run(t.Context(), graph.Inputs{States: []*graph.State{s}, Data: data, Rows: rows}, nil); err != nil {
		t.Fatal(err)
	}
	return s
}

func loss(s *graph.State) float64 {
	if sum := s.Find("losses"); sum != nil {
		return tensor.Of[float64](sum)[0] / tensor.Of[float64](s.Find("counts"))[0]
	}
	return float64(tensor.Of[float32](s.Find("loss"))[0])
}

func TestSize(t *testing.T) {
	for _, vocab := range []int{60, 67, 100} {
		c := zoo.NewGPT(vocab, 1)
		for _, c.Tied = range []bool{false, true} {
			g := mustGraph(t, c, 2)
			n := 0
			for _, k := range g.Consts {
				if k.Tensor.Type == tensor.Float32 {
					n += k.Tensor.Len()
				}
			}
			if n != c.Parameters() || n < 55_000 || n > 90_000 {
				t.Errorf("vocabulary %d, tied %v: %d parameters, said to be %d", vocab, c.Tied, n, c.Parameters())
			}
		}
	}
}

// Files of a gpt stay what they were: orders name them by their bytes.
func TestBytesOfGPT(t *testing.T) {
	for want, c := range map[string]zoo.GPT{
		"ef9e377c56ab9f181894110bf935586ac8b3c469e2c1873a1aa4ce8be571d15c": zoo.NewGPT(67, 1),
		"4b6b063c9af6b25e75df7f6f1e9b28a5e80959405ac03d9f4e7436d2b83ceeee": {Vocab: 7, Context: 6, Width: 8, Layers: 2, Heads: 2, Seed: 5, Tied: true},
		"b0fe1b55e192f91f6b1540a70519823956b7ee9af0328a7230a8fa11e8db6fb8": {Vocab: 96, Context: 64, Width: 64, Heads: 4, Seed: 1},
	} {
		b, err := onnx.Write(mustGraph(t, c, 8))
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(sumOf(b)); got != want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func sumOf(b []byte) []byte {
	sum := sha256.Sum256(b)
	return sum[:]
}

// Before training every character is about as likely as any other.
func TestInitialLoss(t *testing.T) {
	ran := runners{}
	c := zoo.NewGPT(67, 1)
	data := records(c, 1)
	tr, eval := begin(t, mustGraph(t, c, 1), recipe(1), data)
	got, want := loss(ran.run(t, eval, tr.Start, data, []int64{0})), math.Log(float64(c.Vocab))
	if math.Abs(got-want) > 0.1 {
		t.Fatalf("loss %v, want about ln %d = %v", got, c.Vocab, want)
	}
	t.Logf("loss %.4f, ln %d = %.4f; a step has %d nodes", got, c.Vocab, want, len(tr.Program.Nodes))
}

func TestWeightsFollowFromTheSeedAlone(t *testing.T) {
	a, b := mustGraph(t, small(), 1), mustGraph(t, small(), 9)
	other := small()
	other.Seed++
	c := mustGraph(t, other, 1)
	for i, k := range a.Consts {
		if !k.Tensor.Equal(b.Consts[i].Tensor) {
			t.Errorf("%s depends on the batch", k.Name)
		}
		if k.Tensor.Len() > 100 && k.Tensor.Equal(c.Consts[i].Tensor) {
			t.Errorf("%s does not depend on the seed", k.Name)
		}
	}
	v := tensor.Of[float32](mustGraph(t, zoo.NewGPT(67, 1), 1).Const("layer0.feedforward.up.weight"))
	var sum, square float64
	for _, x := range v {
		sum += float64(x)
		square += float64(x) * float64(x)
	}
	n := float64(len(v))
	if want := 1 / 48.0; math.Abs(sum/n) > 0.005 || math.Abs(square/n-want) > 0.05*want {
		t.Errorf("mean %v, variance %v, want 0 and %v", sum/n, square/n, want)
	}
}

// What comes later in a text has no influence on a prediction.
func TestAttentionIsCausal(t *testing.T) {
	ran := runners{}
	typed, err := op.Infer(mustGraph(t, small(), 1), lower.FP32)
	if err != nil {
		t.Fatal(err)
	}
	p, err := typed.Function()
	if err != nil {
		t.Fatal(err)
	}
	logits := func(tokens ...int32) []float32 {
		s := &graph.State{Slots: p.Slots, Tensors: []*tensor.Tensor{
			tensor.Must(tensor.From(tensor.Shape{1, 6}, tokens)),
		}}
		return tensor.Of[float32](ran.run(t, p, s, nil, nil).Find("logits"))
	}
	a, b := logits(1, 2, 3, 4, 5, 6), logits(1, 2, 3, 6, 0, 0)
	if !slices.Equal(a[:3*7], b[:3*7]) || slices.Equal(a[3*7:], b[3*7:]) {
		t.Fatal("predictions depend on what comes later, or on nothing")
	}
}

// The derivative of the loss along the gradient of each parameter, and along
// another direction, is what the gradient says.
func TestGradientAlongEachParameter(t *testing.T) {
	ran := runners{}
	c := small()
	c.Tied = true // so that a parameter is read at two places
	data := records(c, 2)
	r := recipe(2)
	r.Optimizer, r.LearningRate, r.Warmup, r.WeightDecay = "sgd", 1, 0, 0
	tr, eval := begin(t, mustGraph(t, c, 2), r, data)
	rows := []int64{0, 1}
	after := ran.run(t, tr.Program, tr.Start, data, rows)
	for i, slot := range tr.Start.Slots {
		if !strings.HasPrefix(slot.Name, "p/") {
			continue
		}
		p, q := tensor.Of[float32](tr.Start.Tensors[i]), tensor.Of[float32](after.Tensors[i])
		g, d := make([]float64, len(p)), make([]float64, len(p))
		var norm float64
		for j := range p {
			g[j] = float64(p[j]) - float64(q[j])
			norm += g[j] * g[j]
		}
		norm = math.Sqrt(norm)
		for _, skew := range []float64{0, 1} {
			slope, length := 0.0, 0.0
			for j := range d {
				d[j] = g[j]/(norm+1e-9) + skew*float64(j%3-1)/math.Sqrt(float64(len(d)))
				slope += d[j] * g[j]
				length += d[j] * d[j]
			}
			const h = 0.01
			moved := func(by float64) float64 {
				s := &graph.State{Slots: tr.Start.Slots, Tensors: slices.Clone(tr.Start.Tensors)}
				x := tr.Start.Tensors[i].Clone()
				for j := range d {
					x.Set(j, tensor.F32(float32(float64(p[j])+by*d[j])))
				}
				s.Tensors[i] = x
				return loss(ran.run(t, eval, s, data, rows))
			}
			got := (moved(h) - moved(-h)) / (2 * h)
			if math.Abs(got-slope) > 0.01*math.Abs(slope)+2e-4*math.Sqrt(length) {
				t.Errorf("%s: the loss changes by %v along the direction, its gradient says %v", slot.Name, got, slope)
			}
		}
	}
}

// Forward and step graph are files like any other: what is read back has the
// same program.
func TestGraphsSurviveTheirFiles(t *testing.T) {
	data := records(small(), 4)
	forward := mustGraph(t, small(), 2)
	tr, _ := begin(t, forward, recipe(2), data)
	file := func(g *graph.Graph) *graph.Graph {
		b, err := onnx.Write(g)
		if err != nil {
			t.Fatal(err)
		}
		back, err := onnx.Read(bytes.NewReader(b), int64(len(b)), onnx.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return back
	}
	want := tr.Program.Commit().Root()
	if again, _ := begin(t, file(forward), recipe(2), data); again.Program.Commit().Root() != want {
		t.Error("a forward graph that was read back trains otherwise")
	}
	p, err := train.Step(file(tr.Graph), lower.FP32, data.Shape)
	if err != nil {
		t.Fatal(err)
	}
	if p.Commit().Root() != want {
		t.Error("a step graph that was read back has another program")
	}
}

func TestSmallModelLearns(t *testing.T) {
	ran := runners{}
	c := small()
	data := records(c, 6)
	tr, eval := begin(t, mustGraph(t, c, 3), recipe(3), data)
	order := record.Order{Seed: 1, Records: 6, Shards: 1, Batch: 3}
	s, first := tr.Start, 0.0
	for step := range 60 {
		if s = ran.run(t, tr.Program, s, data, order.Rows(0, step)); step == 0 {
			first = loss(s)
		}
	}
	last := loss(ran.run(t, eval, s, data, []int64{0, 1, 2}))
	if last > 0.4*first {
		t.Fatalf("loss went from %v to %v", first, last)
	}
}

func TestGraphRefuses(t *testing.T) {
	for want, c := range map[string]zoo.GPT{
		"vocabulary=1: give a whole number from 2 to 65536": zoo.NewGPT(1, 0),
		"heads=3 do not divide width=8: choose heads=2":     {Vocab: 9, Context: 4, Width: 8, Heads: 3},
		"context=0: give a whole number from 1 to 4096":     {Vocab: 9, Context: 0, Width: 8, Heads: 2},
	} {
		_, err := c.Graph(1)
		for _, err := range []error{err, c.Check()} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("want %q, got: %v", want, err)
			}
		}
	}
}

// BenchmarkTraining measures what it takes to make a small model ready: autodiff,
// lowering and the checks of both programs.
func BenchmarkTraining(b *testing.B) {
	g, err := zoo.NewGPT(67, 1).Graph(8)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := train.New(g, recipe(8), tensor.Shape{1000, 65}); err != nil {
			b.Fatal(err)
		}
	}
}
