package plausibility

import (
	"bytes"
	"context"
	"encoding/xml"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/record"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/engine/cpu"
)

const (
	batch, columns, vocabulary, width = 8, 9, 24, 32
	checkpoints, interval             = 16, 12
)

// school trains small models on one text.
type school struct {
	testing.TB
	data *tensor.Tensor
}

func newSchool(t testing.TB) school {
	s := school{t, tensor.Must(tensor.New(tensor.Int32, tensor.Shape{64, columns}))}
	r := rand.New(rand.NewPCG(9, 9))
	for i := range s.data.Len() {
		x := r.IntN(vocabulary)
		if i%columns > 0 && r.IntN(5) > 0 { // mostly, one character follows from another
			x = (int(s.data.At(i-1))*7 + 3) % vocabulary
		}
		s.data.Set(i, tensor.Word(x))
	}
	return s
}

func (s school) fill(r *rand.Rand, shape ...int) *tensor.Tensor {
	t := tensor.Must(tensor.New(tensor.Float32, shape))
	for i := range t.Len() {
		t.Set(i, tensor.F32(float32(r.NormFloat64()*0.2)))
	}
	return t
}

// prepare returns the training of a model whose start seed decides.
func (s school) prepare(seed uint64, rate float32) *train.Training {
	s.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	b := graph.NewBuilder("model")
	tokens := b.Input("tokens", tensor.Int32, tensor.Shape{batch, columns - 1})
	x := b.Op("Gather", b.Init("embedding", s.fill(r, vocabulary, width)), tokens)
	x = b.Op("Tanh", b.Op("Add", b.Op("MatMul", x, b.Init("hidden", s.fill(r, width, 2*width))), b.Init("bias", tensor.Must(tensor.New(tensor.Float32, tensor.Shape{2 * width})))))
	b.Output(b.Op("MatMul", x, b.Init("head", s.fill(r, 2*width, vocabulary))), tensor.Float32, tensor.Shape{batch, columns - 1, vocabulary})
	t, err := train.New(b.Graph(), train.Recipe{
		Loss: "next-token-cross-entropy", Optimizer: "adamw", Rate: train.Rate{LearningRate: rate, Warmup: 10},
		Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, WeightDecay: 0.01, Batch: batch,
	}, s.data.Shape)
	if err != nil {
		s.Fatal(err)
	}
	return t
}

// train returns the checkpoints of an honest run.
func (s school) train(seed uint64, points, interval int, rate float32) []Checkpoint {
	s.Helper()
	t := s.prepare(seed, rate)
	run, err := cpu.New(1).Prepare(t.Program)
	if err != nil {
		s.Fatal(err)
	}
	order := record.Order{Seed: seed, Records: s.data.Shape[0], Shards: 1, Batch: batch}
	state, chain := t.Start, []Checkpoint{{State: t.Start}}
	for step := range points * interval {
		if state, err = run.Run(context.Background(), graph.Inputs{States: []*graph.State{state}, Data: s.data, Rows: order.Rows(0, step)}, nil); err != nil {
			s.Fatal(err)
		}
		if (step+1)%interval == 0 {
			chain = append(chain, Checkpoint{Step: step + 1, State: state})
		}
	}
	s.judge(chain)
	return chain
}

// judge gives each checkpoint its loss over all records.
func (s school) judge(chain []Checkpoint) {
	s.Helper()
	e, err := s.prepare(0, 1).Evaluate(s.data.Shape)
	if err != nil {
		s.Fatal(err)
	}
	run, err := cpu.New(1).Prepare(e.Batch)
	if err != nil {
		s.Fatal(err)
	}
	for i := range chain {
		chain[i].Loss = 0
		for from := 0; from < s.data.Shape[0]; from += batch {
			rows := make([]int64, batch)
			for j := range rows {
				rows[j] = int64(from + j)
			}
			out, err := run.Run(context.Background(), graph.Inputs{States: []*graph.State{chain[i].State}, Data: s.data, Rows: rows}, nil)
			if err != nil {
				s.Fatal(err)
			}
			chain[i].Loss += tensor.Of[float64](out.Find("losses"))[0] / tensor.Of[float64](out.Find("counts"))[0] * batch / float64(s.data.Shape[0])
		}
	}
}

// seeds is how many honest runs are tried; TALLY_SEEDS asks for more.
func seeds(t *testing.T) uint64 {
	s := os.Getenv("TALLY_SEEDS")
	if s == "" {
		return 12
	}
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		t.Fatalf("TALLY_SEEDS: %v", err)
	}
	return n
}

// Honest runs pass; the rate is measured.
func TestHonestRunsPass(t *testing.T) {
	s := newSchool(t)
	n, passed := seeds(t), uint64(0)
	failed := map[string]int{}
	for seed := range n {
		r := s.assess(s.train(seed, checkpoints, interval, 3e-3))
		if r.Passed == len(r.Rules) {
			passed++
		}
		for _, x := range r.Rules {
			if !x.Pass {
				failed[x.Name]++
				t.Logf("seed %d: %+v", seed, x)
			}
		}
	}
	t.Logf("%d of %d honest runs pass all six rules; failures: %v", passed, n, failed)
	if float64(passed) < 0.9*float64(n) {
		t.Errorf("only %d of %d honest runs pass", passed, n)
	}
}

func (s school) assess(chain []Checkpoint) *Report {
	s.Helper()
	r, err := Assess(chain)
	if err != nil {
		s.Fatal(err)
	}
	return r
}

func TestTooLittleToJudge(t *testing.T) {
	s := newSchool(t)
	chain := s.train(1, Least, 1, 1e-3)
	if _, err := Assess(chain[:Least-1]); err == nil {
		t.Error("too few checkpoints were judged")
	}
	bad := chain[3].State
	bad.Tensors[0] = bad.Tensors[0].Clone()
	for i, slot := range bad.Slots {
		if slot.Name == "p/head" {
			bad.Tensors[i] = bad.Tensors[i].Clone()
			bad.Tensors[i].Set(3, tensor.FloatWord(tensor.Float32, nan()))
		}
	}
	if _, err := Assess(chain); err == nil {
		t.Error("a NaN was judged")
	}
}

func nan() float64 { var zero float64; return zero / zero }

func TestPlotsAreXML(t *testing.T) {
	s := newSchool(t)
	var b bytes.Buffer
	if err := s.assess(s.train(1, Least, 2, 3e-3)).SVG(&b); err != nil {
		t.Fatal(err)
	}
	curves := 0
	for d := xml.NewDecoder(bytes.NewReader(b.Bytes())); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "polyline" {
			curves++
		}
	}
	if curves != 3 {
		t.Errorf("%d curves", curves)
	}
	if name := os.Getenv("TALLY_SVG"); name != "" {
		if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
