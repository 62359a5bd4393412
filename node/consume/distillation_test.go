package consume

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/node/replay"
)

// hidden maps two features to classes, over a hidden layer of n.
func hidden(n, classes int) *graph.Graph {
	b := graph.NewBuilder("hidden")
	weights := func(name string, s ...int) string {
		t := tensor.Must(tensor.New(tensor.Float32, s))
		for i := range t.Len() {
			t.Set(i, tensor.F32(float32(i*7%11)/11-0.4))
		}
		return b.Init(name, t)
	}
	x := b.Input("features", tensor.Float32, tensor.Shape{2, 2})
	x = b.Op("Tanh", b.Op("MatMul", x, weights("in", 2, n)))
	b.Output(b.With().As("logits").Op("MatMul", x, weights("out", n, classes)), tensor.Float32, tensor.Shape{2, classes})
	return b.Graph()
}

// distilling is an order with a student and a teacher in files of its folder.
func distilling(t *testing.T, student, teacher *graph.Graph) Spec {
	t.Helper()
	s, dir := small(), t.TempDir()
	s.Folders = []string{dir}
	s.Problem.Model, s.Problem.Teacher = filepath.Join(dir, "student.onnx"), filepath.Join(dir, "teacher.onnx")
	for name, g := range map[string]*graph.Graph{s.Problem.Model: student, s.Problem.Teacher: teacher} {
		b, err := onnx.Write(g)
		if err == nil {
			err = os.WriteFile(name, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func onTable(t *testing.T, s *Spec) {
	t.Helper()
	var b strings.Builder
	b.WriteString("length,width,kind\n")
	for i := range 40 {
		fmt.Fprintf(&b, "%d.5,%d,%s\n", i, i%7, []string{"rose", "lily", "tulip"}[i%3])
	}
	name := filepath.Join(s.Folders[0], "flowers.csv")
	if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	parsed, err := ParseSpec([]byte(fmt.Sprintf("kind: TrainingOrder\nproblem: {model: m, teacher: t, data: {source: %q, target: kind}, loss: {temperature: 4, weight: 0.25}}\n", name)))
	if err != nil {
		t.Fatal(err)
	}
	s.Problem.Data, s.Problem.Loss = parsed.Problem.Data, parsed.Problem.Loss
}

// Whoever has the files of an order with a teacher gets the programs that it binds, and so the same states; what is
// delivered is the student.
func TestDraftsOfDistillation(t *testing.T) {
	ofTable := distilling(t, hidden(4, 3), hidden(16, 3))
	onTable(t, &ofTable)
	ofText := distilling(t, bigram(2, 4, 20, 0.1), bigram(2, 4, 20, 0.3))
	ofText.Problem.Text = filepath.Join(ofText.Folders[0], "text.txt")
	if err := os.WriteFile(ofText.Problem.Text, []byte(prose), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		spec        Spec
		weight      float32
		parameters  int
		temperature float32
	}{"table": {ofTable, 0.25, 2, 4}, "text": {ofText, 0.5, 1, 0}} {
		d, err := NewDraft(t.Context(), c.spec, cpu.New(1))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var r train.Recipe
		if err := canon.Unmarshal(d.Problem.Recipe, &r); err != nil || r.Teacher != "teacher" || r.Weight != c.weight || r.Temperature != c.temperature {
			t.Errorf("%s: recipe %+v (%v)", name, r, err)
		}
		if d.Teacher.Bytes == 0 || len(d.Trained()) != c.parameters {
			t.Errorf("%s: a teacher of %d bytes, trained %q", name, d.Teacher.Bytes, d.Trained())
		}
		files := map[string][]byte{}
		for _, f := range d.Files {
			files[f.Role] = slices.Concat(f.Parts...)
		}
		p := d.Unsigned().Problem
		j, err := replay.Load(t.Context(), &p, replay.Files{Read: func(f job.File) ([]byte, error) { return files[f.Role], nil }}, cpu.New(1))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := j.CheckUnread(replay.RoleHeldOut, bytes.NewReader(files[replay.RoleHeldOut]), int64(len(files[replay.RoleHeldOut]))); err != nil {
			t.Error(err)
		}
		ends := [2]canon.Hash{}
		for i, of := range []*replay.Job{d.Job, j} {
			s, err := of.UnitOf(&p, 0).Play(t.Context(), of.Start, 0, 2, nil)
			if err != nil {
				t.Fatal(err)
			}
			if ends[i], err = s.Root(); err != nil {
				t.Fatal(err)
			}
			r, err := NewResult(s, canon.Hash{}, of, &job.Lease{Order: *d.Unsigned()})
			if err != nil || len(r.Model.Outputs) != 1 || strings.Contains(string(r.ONNX), "teacher") || strings.Contains(string(r.Safetensors), "teacher") {
				t.Errorf("%s: the teacher is delivered (%v)", name, err)
			}
		}
		if ends[0] != ends[1] {
			t.Errorf("%s: read from its files, the order trains otherwise", name)
		}
	}
}

func TestDraftsOfDistillationAreRefused(t *testing.T) {
	for want, change := range map[string]func(*Spec){
		"inputs and classes of problem.model: it gives float32[2 4], but the model float32[2 3]": func(s *Spec) { *s = distilling(t, hidden(4, 3), hidden(8, 4)); onTable(t, s) },
		"teacher.onnx.gone/teacher.onnx": func(s *Spec) { s.Problem.Teacher += ".gone/teacher.onnx" },
		`loss "squared-error" does not`:  func(s *Spec) { s.Problem.Loss.Name = "squared-error" },
	} {
		s := distilling(t, hidden(4, 3), hidden(8, 3))
		onTable(t, &s)
		change(&s)
		if _, err := NewDraft(t.Context(), s, cpu.New(1)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got: %v", want, err)
		}
	}
	for want, problem := range map[string]string{
		"none can be added: leave problem.teacher":             "continue: b, text: t, teacher: x",
		"problem.loss.weight is that of a teacher: name":       "model: m, text: t, loss: {weight: 0.5}",
		"problem.loss.temperature is that of a teacher":        "model: m, text: t, loss: {temperature: 3}",
		"problem.loss.temperature is 0: beside a teacher":      "model: m, text: t, teacher: x, loss: {temperature: 0}",
		"problem.loss.temperature is 21: beside a teacher":     "model: m, text: t, teacher: x, loss: {temperature: 21}",
		"problem.loss.temperature is 0: similarities":          "model: m, text: t, loss: {name: contrastive, temperature: 0}",
		"problem.loss.weight is 0, so the teacher would teach": "model: m, text: t, teacher: x, loss: {weight: 0}",
		"problem.loss.weight is 1.5: a teacher weighs":         "model: m, text: t, teacher: x, loss: {weight: 1.5}",
		"is not a text": "model: m, text: t, teacher: [x]",
	} {
		if _, err := ParseSpec([]byte("kind: TrainingOrder\nproblem: {" + problem + "}\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got: %v", want, err)
		}
	}
}
