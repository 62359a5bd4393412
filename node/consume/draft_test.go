package consume

import (
	"archive/zip"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/format/npy"
	"github.com/tally-network/tally/format/onnx"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	"github.com/tally-network/tally/node/consume/dataset"
	"github.com/tally-network/tally/store"
)

// bigram is the smallest language model: a table of what follows what.
func bigram(batch, context, vocabulary int, weight float32) *graph.Graph {
	b := graph.NewBuilder("bigram")
	tokens := b.Input("tokens", tensor.Int32, tensor.Shape{batch, context})
	w := make([]float32, vocabulary*vocabulary)
	for i := range w {
		w[i] = weight * float32(i%7)
	}
	table := b.Init("table", tensor.Must(tensor.From(tensor.Shape{vocabulary, vocabulary}, w)))
	b.Output(b.With().As("logits").Op("Gather", table, tokens), tensor.Float32, tensor.Shape{batch, context, vocabulary})
	return b.Graph()
}

func small() Spec {
	s := Default()
	s.Problem.Batch, s.Problem.Shards, s.Problem.Rounds, s.Problem.Steps, s.Problem.Interval = 2, 2, 2, 2, 1
	return s
}

var prose = strings.Repeat("a tally is a stick that two people split. ", 20)

func TestDraft(t *testing.T) {
	d, err := FromParts(t.Context(), small(), Origin{Model: bigram(2, 4, 20, 0.1)}, prose, cpu.New(1))
	if err != nil {
		t.Fatal(err)
	}
	p := &d.Problem
	if p.Rounds != 2 || p.Shards != 2 || p.Batch != 2 || p.Records != 188 || d.HeldOut.Shape[0] == 0 || len(d.Files) != 5 {
		t.Errorf("%+v", p)
	}
	if d.Loss < 2.5 || d.Loss > 3.5 {
		t.Errorf("loss %v of an untrained model of 20 tokens", d.Loss)
	}
	again, err := FromParts(t.Context(), small(), Origin{Model: bigram(2, 4, 20, 0.1)}, prose, cpu.New(2))
	if err != nil || again.Problem.Start != p.Start || again.Problem.Step != p.Step || again.Problem.Data != p.Data || again.Problem.Merge != p.Merge {
		t.Errorf("the same parts make another problem (%v)", err)
	}
}

func TestDraftRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		spec  func(*Spec)
		model *graph.Graph
		text  string
		want  string
	}{
		"another batch":     {nil, bigram(3, 4, 20, 0.1), prose, "reads batches of 3, the order's batch is 2"},
		"no language model": {nil, linear(), prose, "a language model maps integers"},
		"a short text":      {nil, bigram(2, 4, 20, 0.1), "too short", "text"},
		"a long context":    {nil, bigram(2, 4096, 20, 0.1), prose, "text"},
		"weights too large": {nil, bigram(2, 4, 20, math.MaxFloat32), prose, "loss is"},
		"a rate too high":   {func(s *Spec) { s.Problem.Optimizer = SpecOptimizer{Name: "sgd", LearningRate: 1e6, WeightDecay: 1} }, bigram(2, 4, 20, 1e32), prose, "after the first step its weight"},
		"no rounds":         {func(s *Spec) { s.Problem.Rounds = 0 }, bigram(2, 4, 20, 0.1), prose, "rounds"},
		"optimizer":         {func(s *Spec) { s.Problem.Optimizer.Name = "magic" }, bigram(2, 4, 20, 0.1), prose, "magic"},
		"loss":              {func(s *Spec) { s.Problem.Loss.Name = "pride" }, bigram(2, 4, 20, 0.1), prose, "pride"},
		"frozen":            {func(s *Spec) { s.Problem.Frozen = []string{"nothing*"} }, bigram(2, 4, 20, 0.1), prose, "nothing*"},
		"no steps":          {func(s *Spec) { s.Problem.Steps = 0 }, bigram(2, 4, 20, 0.1), prose, "steps"},
		"negative steps":    {func(s *Spec) { s.Problem.Steps = -5 }, bigram(2, 4, 20, 0.1), prose, "steps"},
		"steps for ever":    {func(s *Spec) { s.Problem.Steps = math.MaxInt }, bigram(2, 4, 20, 0.1), prose, "cost"},
		"checkpoints":       {func(s *Spec) { s.Problem.Interval = -8 }, bigram(2, 4, 20, 0.1), prose, "checkpoint interval is -8"},
		"rounds for ever":   {func(s *Spec) { s.Problem.Rounds = math.MaxInt }, bigram(2, 4, 20, 0.1), prose, "units"},
		"custodians":        {func(s *Spec) { s.Conditions.Custodians = math.MaxInt }, bigram(2, 4, 20, 0.1), prose, "custodians"},
		"auditors":          {func(s *Spec) { s.Conditions.Assurance.Audit = &SpecAudit{Auditors: math.MaxInt, Segments: 1} }, bigram(2, 4, 20, 0.1), prose, "auditors"},
		"a negative time":   {func(s *Spec) { s.Conditions.UnitTimeout = -1 }, bigram(2, 4, 20, 0.1), prose, "unit timeout"},
	} {
		s := small()
		if c.spec != nil {
			c.spec(&s)
		}
		_, err := FromParts(t.Context(), s, Origin{Model: c.model}, c.text, cpu.New(1))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// The rules of a new chain are the measure where no network can be asked.
func TestDraftSuitsRules(t *testing.T) {
	s := small()
	d, err := FromParts(t.Context(), s, Origin{Model: bigram(2, 4, 20, 0.1)}, prose, cpu.New(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Suits(&job.DefaultParams, dispute.DefaultRules); err != nil {
		t.Error(err)
	}
	d.Terms.UnitTimeout = 1
	if err := d.Suits(&job.DefaultParams, dispute.DefaultRules); err == nil || !strings.Contains(err.Error(), "unit timeout must be at least") {
		t.Error(err)
	}
	if d.Memory() < d.Problem.StateBytes {
		t.Errorf("%d bytes of memory for states of %d", d.Memory(), d.Problem.StateBytes)
	}
}

func linear() *graph.Graph {
	b := graph.NewBuilder("linear")
	x := b.Input("x", tensor.Float32, tensor.Shape{2, 4})
	b.Output(b.With().As("y").Op("Neg", x), tensor.Float32, tensor.Shape{2, 4})
	return b.Graph()
}

func TestNewDraftNamesTheFile(t *testing.T) {
	s := small()
	dir := t.TempDir()
	s.Folders = []string{dir}
	s.Problem.Model, s.Problem.Text = filepath.Join(dir, "model.onnx"), filepath.Join(dir, "text.txt")
	if _, err := NewDraft(t.Context(), s, cpu.New(1)); err == nil || !strings.Contains(err.Error(), "model.onnx") {
		t.Error(err)
	}
	if err := os.WriteFile(s.Problem.Model, []byte("no model"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewDraft(t.Context(), s, cpu.New(1)); err == nil || !strings.Contains(err.Error(), "model.onnx") {
		t.Error(err)
	}
}

func TestProgressInWords(t *testing.T) {
	lease := &job.Lease{Phase: job.Active, Order: job.Order{Problem: job.Problem{Rounds: 2, Shards: 2}}, Merges: make([]job.Merge, 2)}
	lease.Units = []job.Unit{{Status: job.Accepted}, {Status: job.Accepted}, {Status: job.Open}, {Status: job.Assigned}}
	lease.Round, lease.Audits, lease.Disputes = 1, job.AuditCount{Drawn: 3, Passed: 1, Failed: 1}, make([]job.Dispute, 1)
	lease.Files.Said = job.Had
	for want, p := range map[string]Progress{
		"active: 0 of 2 rounds merged; its custodians fetch the order's files":                                                      {Lease: &job.Lease{Phase: job.Active, Merges: make([]job.Merge, 2)}},
		"in the book: waits for a clearing that sells it capacity; tally market shows what is bid":                                  {Status: marketv1.STATUS_OPEN, Auction: true},
		"in the book: waits for an offer that meets it":                                                                             {Status: marketv1.STATUS_OPEN},
		"expired and refunded: no clearing sold it capacity in time; tally market shows what others bid and ask":                    {Status: marketv1.STATUS_EXPIRED, Auction: true},
		"expired and refunded: no offer met it in time":                                                                             {Status: marketv1.STATUS_EXPIRED},
		"expired and refunded: who had sold it capacity did not come (2 times), and nobody else sold enough before the order ended": {Status: marketv1.STATUS_EXPIRED, Absent: 2},
		"active: 1 of 2 rounds merged; units 1 open 1 assigned; audits 1 passed, 1 failed; 1 in dispute":                            {Lease: lease},
		"settled: 0 of 2 rounds merged; stopped early: no data":                                                                     {Lease: &job.Lease{Phase: job.Settled, Merges: make([]job.Merge, 2), Reason: "no data"}},
	} {
		if got := p.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestProgressTellsWhatIsLeft(t *testing.T) {
	lease := func(phase job.Phase, round int) *job.Lease {
		l := &job.Lease{Phase: phase, MatchedAt: 1_000, Round: round, Merges: make([]job.Merge, 4), Windows: job.Windows{End: 9_000}, Files: job.Files{Said: job.Had}}
		l.Order.Conditions.UnitWindow, l.Order.Conditions.Window = 1_000, 3_000
		return l
	}
	waiting := lease(job.Active, 0)
	waiting.Files.Said = job.Silent
	const now = 5_000
	for _, c := range []struct {
		name  string
		lease *job.Lease
		since int64
		want  string
	}{
		{"in the book", nil, 0, ""},
		{"waiting for files", waiting, 0, ""},
		{"in the first round", lease(job.Active, 0), 0, "at least 7s left"},
		{"late in the first round", lease(job.Active, 0), 2_000, "at least 6s left"},
		{"a round of four in 2 s, 2 s ago", lease(job.Active, 1), 3_000, "about 7s left"},
		{"a round of four in 4 s, now", lease(job.Active, 1), 5_000, "about 15s left"},
		{"a round that takes longer", lease(job.Active, 3), 2_000, "about 3s left"},
		{"in a round that nobody saw begin", lease(job.Active, 1), 0, "about 10s left"},
		{"closing", lease(job.Closing, 4), 0, "about 4s left"},
		{"settled", lease(job.Settled, 4), 0, ""},
	} {
		p := Progress{Lease: c.lease}
		if got := p.Left(now, c.since); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Records of 16 MiB and more lie in files that are mapped: whoever reads them holds what they are of.
func TestLargeDraftsStay(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	dir := t.TempDir()
	s := small()
	s.Folders = []string{dir}
	p := &s.Problem
	p.Model, p.Data = filepath.Join(dir, "model.onnx"), &dataset.Options{Source: filepath.Join(dir, "t.npz"), Target: "label"}
	b := graph.NewBuilder("linear")
	w := b.Init("w", tensor.Must(tensor.New(tensor.Float32, tensor.Shape{1 << 10, 2})))
	b.Output(b.Op("MatMul", b.Input("x", tensor.Float32, tensor.Shape{p.Batch, 1 << 10}), w), tensor.Float32, tensor.Shape{p.Batch, 2})
	model, err := onnx.Write(b.Graph())
	if err != nil {
		t.Fatal(err)
	}
	const records = 6000
	x, label := tensor.Must(tensor.New(tensor.Float32, tensor.Shape{records, 1 << 10})), tensor.Must(tensor.New(tensor.Int32, tensor.Shape{records}))
	for i, all := 0, tensor.Of[int32](label); i < records; i++ {
		all[i] = int32(i % 2)
		tensor.Of[float32](x)[i<<10] = float32(i)
	}
	file, err := os.Create(p.Data.Source)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(file)
	for name, v := range map[string]*tensor.Tensor{"x.npy": x, "label.npy": label} {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name})
		if err == nil {
			err = npy.Write(w, v)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(z.Close(), file.Close(), os.WriteFile(p.Model, model, 0o600)); err != nil {
		t.Fatal(err)
	}
	d, err := NewDraft(t.Context(), s, cpu.New(1))
	if err != nil {
		t.Fatal(err)
	}
	body, want := d.Body(), d.Unsigned().Problem.Files // the last use of the draft itself
	runtime.GC()
	var got []byte
	for _, f := range want {
		b := make([]byte, f.Size)
		if _, err := io.ReadFull(body, b); err != nil || store.RefOf(b).CID.String() != f.CID {
			t.Fatalf("the %s is another: %v", f.Role, err)
		}
		got = append(got, b[:1]...)
		runtime.GC()
	}
	if len(got) != len(want) || len(want) < 4 {
		t.Error(len(got), len(want))
	}
}
