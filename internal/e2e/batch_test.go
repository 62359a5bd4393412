package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/format/npy"
	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/internal/testkit/nettest"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/consume/outputs"
	"github.com/tally-network/tally/node/events"
	"github.com/tally-network/tally/node/evidence"
)

// scores is a folder with a model of two inputs, and 21 records for it: its output is
// tanh(x·w)·scale, of three columns.
func scores(t *testing.T) string {
	dir := t.TempDir()
	write := func(name string, do func(*os.File) error) {
		f, err := os.Create(filepath.Join(dir, name))
		if err == nil {
			err = do(f)
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	fill := func(s ...int) *tensor.Tensor {
		x := tensor.Must(tensor.New(tensor.Float32, s))
		for i := range x.Len() {
			x.Set(i, tensor.F32(float32(i*13%37)/37-0.4))
		}
		return x
	}
	b := graph.NewBuilder("score")
	x, scale := b.Input("x", tensor.Float32, tensor.Shape{4, 6}), b.Input("scale", tensor.Float32, tensor.Shape{4, 1})
	b.Output(b.With().As("score").Op("Mul", b.Op("Tanh", b.Op("MatMul", x, b.Init("w", fill(6, 3)))), scale), tensor.Float32, tensor.Shape{4, 3})
	model, err := onnx.Write(b.Graph())
	if err != nil {
		t.Fatal(err)
	}
	write("score.onnx", func(f *os.File) error { _, err := f.Write(model); return err })
	write("x.npy", func(f *os.File) error { return npy.Write(f, fill(21, 6)) })
	write("scale.npy", func(f *os.File) error { return npy.Write(f, fill(21, 1)) })
	write("order.yaml", func(f *os.File) error {
		_, err := f.WriteString("kind: BatchOrder\nproblem:\n  model: score.onnx\n  records: {x: x.npy, scale: scale.npy}\n  batch: 4\n  steps: 2\n")
		return err
	})
	return dir
}

func batchDraft(t *testing.T, bend func(*consume.SpecConditions)) (dir string, draft func(context.Context) (*consume.Draft, error)) {
	dir = scores(t)
	return dir, func(ctx context.Context) (*consume.Draft, error) {
		s, err := consume.ReadBatchSpec(filepath.Join(dir, "order.yaml"))
		if err != nil {
			return nil, err
		}
		s.Conditions = nettest.Terms()
		if bend != nil {
			bend(&s.Conditions)
		}
		return consume.NewBatchDraft(ctx, s, cpu.New(1))
	}
}

// A batch comes back as files with a result for each record, the same as the model alone
// gives, and with a bundle that proves them.
func TestBatchIsDelivered(t *testing.T) {
	t.Parallel()
	_, draft := batchDraft(t, nil)
	n := nettest.Start(t, nettest.Options{Draft: draft})
	l := n.Settle(n.Post(nil))
	out := t.TempDir()
	r, err := consume.DeliverResults(t.Context(), n.Consumer.Env, l, out, "npy", nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(r.Outputs["score"])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	got, err := npy.Read(f, info.Size(), nil)
	if err != nil || !got.Shape.Equal(tensor.Shape{21, 3}) {
		t.Fatalf("the scores are %v, %v", got, err)
	}
	d := n.Draft
	for run := range 6 {
		s, err := d.Job.UnitOf(&d.Problem, run/2).Play(t.Context(), d.Job.Start, run%2, run%2+1, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range min(12, 63-12*run) {
			if got.At(12*run+i) != s.Tensors[0].At(i) {
				t.Fatalf("run %d, element %d is %v, not what the model gives", run, i, got.At(12*run+i))
			}
		}
	}
	lines, err := outputs.Write(out, "jsonl", r.Tensors, r.Records)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(lines["score"])
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	var last struct{ Score []float32 }
	if err := json.Unmarshal([]byte(all[len(all)-1]), &last); err != nil || len(all) != 21 || !slices.Equal(last.Score, tensor.Of[float32](got)[60:]) {
		t.Errorf("%d lines, the last one %v: %v", len(all), last, err)
	}
	proof, err := os.Open(r.Bundle)
	if err != nil {
		t.Fatal(err)
	}
	defer proof.Close()
	if info, err = proof.Stat(); err != nil {
		t.Fatal(err)
	}
	p, err := evidence.Check(t.Context(), proof, info.Size(), evidence.Anybody, cpu.New(1))
	if err != nil {
		t.Fatal(err)
	}
	claims := p.Claims()
	for _, c := range claims {
		if err := p.Execute(t.Context(), c); err != nil {
			t.Error(err)
		}
	}
	if len(claims) != 6 {
		t.Errorf("the bundle proves %v", claims)
	}
	extracts(t, proof, info.Size(), p.Signers, r.Tensors["score"])
	if n := n.Count(func(e events.Event) bool { return e.Kind == events.Trouble }); n > 0 {
		t.Errorf("roles had trouble %d times", n)
	}
}

// extracts takes records out of a bundle, each of which proves itself alone to who trusts the
// validators.
func extracts(t *testing.T, bundle *os.File, size int64, trust evidence.Trust, scores *tensor.Tensor) {
	dir := t.TempDir()
	for _, record := range []int{0, 3, 17, 20} {
		name := filepath.Join(dir, "record.proof")
		n, err := evidence.Extract(t.Context(), bundle, size, record, record != 3, name)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(name)
		if err != nil || int64(len(b)) != n || n > 64<<10 {
			t.Fatalf("an extract of %d bytes, %v", n, err)
		}
		file := bytes.NewReader(b)
		if !evidence.IsExtract(file, n) || evidence.IsExtract(bundle, size) {
			t.Error("an extract is not told from a bundle")
		}
		r, err := evidence.CheckExtract(file, n, trust.Is)
		if err != nil {
			t.Fatal(err)
		}
		got := tensor.Of[float32](r.Outputs.Find("score"))
		if r.Index != record || !slices.Equal(got, tensor.Of[float32](scores)[3*record:3*record+3]) || (r.Inputs == nil) != (record == 3) {
			t.Errorf("record %d got %v", r.Index, got)
		}
		if _, err := evidence.CheckExtract(file, n, evidence.Trust{}.Is); err == nil || !strings.Contains(err.Error(), "not the one that you trust") {
			t.Errorf("of validators whom nobody trusts: %v", err)
		}
		b[len(b)/2] ^= 1
		if _, err := evidence.CheckExtract(file, n, trust.Is); err == nil {
			t.Error("a flipped bit was not found")
		}
	}
	if _, err := evidence.Extract(t.Context(), bundle, size, 21, true, filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "0 to 20") {
		t.Errorf("a record that is not there: %v", err)
	}
}

// One wrong bit in one result is found by an auditor or a challenger; the cheater loses its
// bond, and its unit alone is computed again.
func TestWrongResultIsFound(t *testing.T) {
	t.Parallel()
	var cheater atomic.Value // the first to compute unit 1
	wrong := nettest.Bend{Wrong: func(r nettest.Run) bool {
		if r.Shard != 1 || r.Step != 1 {
			return false
		}
		cheater.CompareAndSwap(nil, r.Role)
		return cheater.Load() == r.Role
	}}
	_, draft := batchDraft(t, func(c *consume.SpecConditions) { c.Assurance.Audit = &consume.SpecAudit{Auditors: 1, Segments: 2} })
	n := nettest.Start(t, nettest.Options{Draft: draft, Bend: map[string]nettest.Bend{"provider-0": wrong, "provider-1": wrong}})
	l := n.Settle(n.Post(nil))
	if got := barred(n, l); !slices.Equal(got, []string{cheater.Load().(string)}) {
		t.Fatalf("barred %v, %v cheated", got, cheater.Load())
	}
	if l.Units[1].Attempt == 0 || l.Units[0].Attempt+l.Units[2].Attempt != 0 || l.Units[1].Status != job.Accepted {
		t.Errorf("attempts %d, %d, %d", l.Units[0].Attempt, l.Units[1].Attempt, l.Units[2].Attempt)
	}
}
