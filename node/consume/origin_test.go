package consume

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/format/yaml"
	"github.com/tally-network/tally/node/consume/dataset"
	"github.com/tally-network/tally/node/consume/proved"
	"github.com/tally-network/tally/node/replay"
)

// The error about dimensions without sizes named no line of an order file, and then one
// dimension at a time.
func TestSized(t *testing.T) {
	p := SpecProblem{Batch: 8}
	if got := p.sized([]string{"batch", "sequence"}); got != `{"batch": 8, "sequence": 64}` {
		t.Error(got)
	}
	p.Dims = map[string]int{"sequence": 32}
	if got := p.sized([]string{"batch"}); got != `{"batch": 8, "sequence": 32}` || len(p.Dims) != 1 {
		t.Error(got)
	}
	want := map[string]int{}
	var odd []string
	for _, name := range []string{"past + 1", "a: b", "true", "no", "null", "1", "\"", "{", "N", "ö", "\x1b[2J"} {
		odd, want[name] = append(odd, name), 64
	}
	var got map[string]int
	if err := yaml.Decode([]byte((&SpecProblem{}).sized(odd)), &got); err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v: %s", got, err, (&SpecProblem{}).sized(odd))
	}
}

// What an order has delivered leaves its batch open, as most models do: it is that of the order that names it.
func TestTheBatchIsTheOrders(t *testing.T) {
	dir := t.TempDir()
	b, err := onnx.WriteBatch(bigram(2, 4, 20, 0.1), "N")
	if err != nil {
		t.Fatal(err)
	}
	s := Spec{Folders: []string{dir}, Problem: SpecProblem{Batch: 6, Model: filepath.Join(dir, "free.onnx")}}
	if err := os.WriteFile(s.Problem.Model, b, 0o600); err != nil {
		t.Fatal(err)
	}
	g, err := s.readModel()
	if err != nil || g.Inputs[0].Shape[0] != 6 {
		t.Errorf("%v", err)
	}
}

// fruits writes records of a number and a colour, whose kind follows from both.
func fruits(t *testing.T, path string, from int) {
	t.Helper()
	var b strings.Builder
	b.WriteString("size,colour,kind\n")
	for i := from; i < from+24; i++ {
		fmt.Fprintf(&b, "%d.5,%s,%s\n", i, []string{"red", "blue"}[i%2], []string{"apple", "plum"}[i%2])
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// classifier tells two classes apart by three features.
func classifier(t *testing.T, path string) {
	t.Helper()
	b := graph.NewBuilder("classifier")
	x := b.Input("features", tensor.Float32, tensor.Shape{2, 3})
	weights := func(name string, shape ...int) string {
		w := tensor.Must(tensor.New(tensor.Float32, shape))
		for i := range w.Len() {
			w.Set(i, tensor.F32(float32(i*i%7)/7-0.4))
		}
		return b.Init(name, w)
	}
	x = b.Op("Relu", b.Op("Add", b.Op("MatMul", x, weights("up.weight", 3, 8)), weights("up.bias", 8)))
	b.Output(b.Op("MatMul", x, weights("down.weight", 8, 2)), tensor.Float32, tensor.Shape{2, 2})
	file, err := onnx.Write(b.Graph())
	if err == nil {
		err = os.WriteFile(path, file, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// fileOf reads a draft's file.
func (d *Draft) fileOf(f job.File) ([]byte, error) {
	for _, x := range d.Files {
		if x.Role == f.Role {
			return slices.Concat(x.Parts...), nil
		}
	}
	return nil, os.ErrNotExist
}

// played returns what a draft's order ends in, and what goes on from it.
func played(t *testing.T, d *Draft) Origin {
	t.Helper()
	s := d.Job.Start
	for round := range d.Problem.Rounds {
		var ends []*graph.State
		for shard := range d.Problem.Shards {
			end, err := d.Job.UnitOf(&d.Problem, round*d.Problem.Shards+shard).Play(t.Context(), s, 0, d.Problem.Steps, nil)
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, end)
		}
		var err error
		if s, err = d.Job.MergeStates(t.Context(), ends); err != nil {
			t.Fatal(err)
		}
	}
	o, err := proved.Of(d.Unsigned(), d.Job, d.fileOf)
	if err != nil {
		t.Fatal(err)
	}
	o.Parent.Final = s
	return originOf(o)
}

// An order of data goes on with other records, by another optimizer, with other weights frozen, or by adapters. Who loads
// it derives the state that it starts in, twice in a row; what the first records taught stays.
func TestOrdersOfDataGoOn(t *testing.T) {
	dir := t.TempDir()
	s := small()
	s.Folders = []string{dir}
	s.Problem.Model = filepath.Join(dir, "model.onnx")
	s.Problem.Data = &dataset.Options{Source: filepath.Join(dir, "one.csv"), Target: "kind"}
	fruits(t, s.Problem.Data.Source, 0)
	classifier(t, s.Problem.Model)
	first, err := NewDraft(t.Context(), s, cpu.New(1))
	if err != nil {
		t.Fatal(err)
	}
	from := played(t, first)
	s.Problem.Model, s.Problem.Data = "", &dataset.Options{Source: filepath.Join(dir, "two.csv")}
	fruits(t, s.Problem.Data.Source, 1000)
	for name, c := range map[string]struct {
		change func(p *SpecProblem)
		whole  bool
	}{
		"the same":          {func(*SpecProblem) {}, true},
		"another optimizer": {func(p *SpecProblem) { p.Optimizer = SpecOptimizer{Name: "sgd", LearningRate: 0.1} }, false},
		"frozen":            {func(p *SpecProblem) { p.Frozen = []string{"up.*"} }, false},
		"adapters":          {func(p *SpecProblem) { p.Adapters = &SpecAdapters{Rank: 2, Alpha: 4, Of: []string{"up.weight"}} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			of := s
			c.change(&of.Problem)
			before := from
			for range 2 {
				d, err := fromData(t.Context(), of, before, cpu.New(1))
				if err != nil {
					t.Fatal(err)
				}
				if whole := d.Problem.Start == d.Problem.Parent.Final; whole != c.whole && before.Parent == from.Parent {
					t.Errorf("the state goes on as it is: %v", whole)
				}
				first, err := first.Schema.Encoded()
				if err != nil {
					t.Fatal(err)
				}
				if now, err := d.Schema.Encoded(); err != nil || string(now) != string(first) {
					t.Errorf("the schema is %s, %v", now, err)
				}
				p := d.Unsigned().Problem
				loaded, err := replay.Load(t.Context(), &p, replay.Files{Read: d.fileOf}, cpu.New(1))
				if err != nil {
					t.Fatal(err)
				}
				if end := before.Parent.Final.Find("p/up.weight"); end != nil && loaded.Start.Find("p/up.weight") != nil && !loaded.Start.Find("p/up.weight").Equal(end) {
					t.Error("a weight did not carry over")
				}
				before = played(t, d)
			}
		})
	}
}

// A teacher goes on teaching: the records are made for its student, whose outputs are told from the teacher's.
func TestTeachersGoOnWithData(t *testing.T) {
	s := distilling(t, hidden(4, 3), hidden(16, 3))
	onTable(t, &s)
	first, err := NewDraft(t.Context(), s, cpu.New(1))
	if err != nil {
		t.Fatal(err)
	}
	s.Problem.Model, s.Problem.Teacher = "", ""
	d, err := fromData(t.Context(), s, played(t, first), cpu.New(1))
	if err != nil {
		t.Fatal(err)
	}
	p := d.Unsigned().Problem
	if _, err := replay.Load(t.Context(), &p, replay.Files{Read: d.fileOf}, cpu.New(1)); err != nil || d.Job.Recipe.Teacher != "teacher" || p.Start != p.Parent.Final {
		t.Errorf("%v, teacher %q, the whole state goes on: %v", err, d.Job.Recipe.Teacher, p.Start == p.Parent.Final)
	}
	if !strings.Contains(d.Teacher.String(), "GFLOP of each step") {
		t.Errorf("a teacher that weighs something costs %v", d.Teacher)
	}
	var nothing float32
	s.Problem.Loss.Weight = &nothing
	if d, err = fromData(t.Context(), s, played(t, first), cpu.New(1)); err != nil || d.Teacher.FLOPs != 0 || d.Teacher.Bytes == 0 || !strings.Contains(d.Teacher.String(), "no step computes it") {
		t.Errorf("%v: a teacher that weighs nothing costs %v", err, d.Teacher)
	}
}

// What is said of a teacher where the earlier order had none is refused, and so is a file that is no proof.
func TestWhatDoesNotGoOn(t *testing.T) {
	dir := t.TempDir()
	s := small()
	s.Folders = []string{dir}
	s.Problem.Model = filepath.Join(dir, "model.onnx")
	s.Problem.Data = &dataset.Options{Source: filepath.Join(dir, "one.csv"), Target: "kind"}
	fruits(t, s.Problem.Data.Source, 0)
	classifier(t, s.Problem.Model)
	first, err := NewDraft(t.Context(), s, cpu.New(1))
	if err != nil {
		t.Fatal(err)
	}
	s.Problem.Continue, s.Problem.Model = s.Problem.Model, ""
	if _, err := NewDraft(t.Context(), s, cpu.New(1)); err == nil || !strings.Contains(err.Error(), "model.onnx: it is no proof bundle: name the proof.bundle") {
		t.Error(err)
	}
	half := float32(0.5)
	for want, loss := range map[string]dataset.Loss{"loss.weight is that of a teacher": {Weight: &half}, "loss.temperature is that of a teacher": {Temperature: &half}} {
		s.Problem.Loss = loss
		if _, err := fromData(t.Context(), s, played(t, first), cpu.New(1)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got: %v", want, err)
		}
	}
}
