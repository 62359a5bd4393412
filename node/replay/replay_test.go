package replay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/format/text"
	"github.com/tally-network/tally/node/replay"
)

const (
	batch    = 4
	columns  = 9
	alphabet = 16
)

// inputs are a two-layer model of the next token, and records that it can learn.
func inputs(width int) replay.Inputs {
	b := graph.NewBuilder("next")
	tokens := b.Input("tokens", tensor.Int32, tensor.Shape{batch, columns - 1})
	fill := func(name string, s ...int) string {
		x := tensor.Must(tensor.New(tensor.Float32, s))
		for i := range x.Len() {
			x.Set(i, tensor.F32((float32(i*7%23)/23-0.5)/float32(s[0])))
		}
		return b.Init(name, x)
	}
	x := b.Op("Gather", fill("embedding", alphabet, width), tokens)
	x = b.Op("Relu", b.Op("MatMul", x, fill("hidden", width, width)))
	b.Output(b.Op("MatMul", x, fill("head", width, alphabet)), tensor.Float32, tensor.Shape{batch, columns - 1, alphabet})
	data := tensor.Must(tensor.New(tensor.Int32, tensor.Shape{40, columns}))
	for i := range data.Len() {
		data.Set(i, tensor.Word(i*i%alphabet))
	}
	recipe := train.Recipe{Loss: "next-token-cross-entropy", Optimizer: "adamw", Rate: train.Rate{LearningRate: 1e-2}, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, Batch: batch}
	return replay.Inputs{Model: b.Graph(), Recipe: recipe, Data: data}
}

// order returns a problem of two shards and its files.
func order(t testing.TB, steps, interval int) (*replay.Job, *job.Problem, map[string][]byte) {
	t.Helper()
	j, err := replay.New(t.Context(), inputs(24), 2, cpu.New(1))
	if err != nil {
		t.Fatal(err)
	}
	p := &job.Problem{Rounds: 2, Steps: steps, Interval: interval, Seed: 5}
	if err := j.Bind(p); err != nil {
		t.Fatal(err)
	}
	model, err := onnx.Write(j.Model)
	if err != nil {
		t.Fatal(err)
	}
	p.Files = []job.File{{Role: replay.RoleModel}, {Role: replay.RoleData}}
	return j, p, map[string][]byte{replay.RoleModel: model, replay.RoleData: canon.Encode(j.Data.Encode)}
}

func load(p *job.Problem, files map[string][]byte) (*replay.Job, error) {
	return replay.Load(context.Background(), p, replay.Files{Read: func(f job.File) ([]byte, error) {
		if b, ok := files[f.Role]; ok {
			return b, nil
		}
		return nil, errors.New("no such file")
	}}, cpu.New(1))
}

func root(t testing.TB, s *graph.State) canon.Hash {
	t.Helper()
	r, err := s.Root()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Who reads the files computes what the one who wrote them computes, with any
// executor.
func TestLoadedWorkEqualsTheDrafted(t *testing.T) {
	j, p, files := order(t, 3, 2)
	again, err := load(p, files)
	if err != nil {
		t.Fatal(err)
	}
	reference, err := replay.New(t.Context(), j.Inputs, 2, engine.Reference{})
	if err != nil {
		t.Fatal(err)
	}
	var want canon.Hash
	for i, x := range []*replay.Job{j, again, reference} {
		var ends []*graph.State
		for shard := range 2 {
			end, err := x.UnitOf(p, shard).Play(t.Context(), x.Start, 0, p.Steps, nil)
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, end)
		}
		s, err := x.MergeStates(t.Context(), ends)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			want = root(t, s)
		}
		if got := root(t, s); got != want || got == p.Start {
			t.Errorf("merge %d has root %v, want %v", i, got.Short(), want.Short())
		}
		for _, s := range append(ends, s, x.Start) {
			if n := int64(len(canon.Encode(s.Encode))); n != x.StateBytes() {
				t.Errorf("a state has %d bytes, StateBytes says %d", n, x.StateBytes())
			}
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	_, p, files := order(t, 3, 2)
	other := files[replay.RoleData]
	other = slices.Clone(other)
	other[len(other)-4] ^= 1
	for name, c := range map[string]struct {
		problem func(*job.Problem)
		files   func(map[string][]byte)
		words   string
	}{
		"no recipe":        {problem: func(p *job.Problem) { p.Recipe = nil }, words: "recipe"},
		"no model named":   {problem: func(p *job.Problem) { p.Files = p.Files[1:] }, words: "names no model"},
		"no data":          {files: func(f map[string][]byte) { delete(f, replay.RoleData) }, words: "data: no such file"},
		"damaged model":    {files: func(f map[string][]byte) { f[replay.RoleModel] = f[replay.RoleModel][:40] }, words: "model"},
		"damaged records":  {files: func(f map[string][]byte) { f[replay.RoleData] = other[:len(other)-1] }, words: "training records"},
		"other records":    {files: func(f map[string][]byte) { f[replay.RoleData] = other }, words: "the training records is"},
		"other start":      {problem: func(p *job.Problem) { p.Start[0] ^= 1 }, words: "start state"},
		"other program":    {problem: func(p *job.Problem) { p.Step[0] ^= 1 }, words: "step program"},
		"other merge":      {problem: func(p *job.Problem) { p.Merge[0] ^= 1 }, words: "merge program"},
		"other shards":     {problem: func(p *job.Problem) { p.Shards = 3 }, words: "merge"},
		"cheaper steps":    {problem: func(p *job.Problem) { p.StepFLOPs-- }, words: "a step takes"},
		"fewer bytes":      {problem: func(p *job.Problem) { p.StepBytes-- }, words: "a step takes"},
		"cheaper merge":    {problem: func(p *job.Problem) { p.MergeFLOPs-- }, words: "a merge takes"},
		"lighter merge":    {problem: func(p *job.Problem) { p.MergeBytes-- }, words: "a merge takes"},
		"too many records": {problem: func(p *job.Problem) { p.Records++ }, words: "number of records"},
		"other batch":      {problem: func(p *job.Problem) { p.Batch++ }, words: "batch"},
	} {
		q, f := *p, map[string][]byte{}
		for r, b := range files {
			f[r] = b
		}
		if c.problem != nil {
			c.problem(&q)
		}
		if c.files != nil {
			c.files(f)
		}
		var unfit *replay.UnfitError
		if _, err := load(&q, f); err == nil || !strings.Contains(err.Error(), c.words) || errors.As(err, &unfit) != (name != "no data") {
			t.Errorf("%s: %v, unfit: %v", name, err, unfit != nil)
		}
	}
	var unfit *replay.UnfitError // what this machine lacks is not the order's fault
	if _, err := replay.Load(t.Context(), p, replay.Files{Read: func(f job.File) ([]byte, error) { return files[f.Role], nil }}, engine.Bounded(cpu.New(1), 1000)); err == nil || !strings.Contains(err.Error(), "memory") || errors.As(err, &unfit) {
		t.Errorf("a program without its memory: %v", err)
	}
}

// stopping stops loading when a program is prepared.
type stopping struct {
	engine.Executor
	stop func()
}

func (s stopping) Prepare(p *graph.Program) (engine.Runner, error) {
	s.stop()
	return s.Executor.Prepare(p)
}

// Loading could not be stopped, however long it took.
func TestLoadIsGivenUp(t *testing.T) {
	_, p, files := order(t, 3, 2)
	enough := errors.New("enough")
	for _, at := range []string{replay.RoleModel, replay.RoleData, "program"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		exec, read := engine.Executor(cpu.New(1)), 0
		if at == "program" {
			exec = stopping{exec, func() { cancel(enough) }}
		}
		_, err := replay.Load(ctx, p, replay.Files{Read: func(f job.File) ([]byte, error) {
			if read++; f.Role == at {
				cancel(enough)
			}
			return files[f.Role], nil
		}}, exec)
		var unfit *replay.UnfitError
		if !errors.Is(err, enough) || errors.As(err, &unfit) || at == replay.RoleModel && read > 1 {
			t.Errorf("stopped at the %s: %v, %d files read", at, err, read)
		}
	}
}

// What no step reads was never looked at, so anything could be named as held-out records or
// as a tokenizer: the state, the model, a list of another order's checkpoints.
func TestFilesThatNoStepReadsHaveTheirForm(t *testing.T) {
	j, p, files := order(t, 3, 2)
	tokenizer, err := text.Train("some text", 20)
	if err != nil {
		t.Fatal(err)
	}
	check := func(role string, b []byte) error { return j.CheckUnread(role, bytes.NewReader(b), int64(len(b))) }
	held := tensor.Must(tensor.New(tensor.Int32, tensor.Shape{3, columns}))
	narrow := tensor.Must(tensor.New(tensor.Int32, tensor.Shape{3, columns - 1}))
	if err := check(replay.RoleHeldOut, canon.Encode(held.Encode)); err != nil {
		t.Error(err)
	}
	if err := check(replay.RoleTokenizer, tokenizer.Encoded()); err != nil {
		t.Error(err)
	}
	// Nobody follows what a stranger's tokenizer would make of texts, or of its own tokens.
	endless := `{"added_tokens":[{"id":1,"content":"a","normalized":true}],"normalizer":{"type":"Sequence","normalizers":[` +
		strings.Repeat(`{"type":"Replace","pattern":{"String":"a"},"content":"aa"},`, 60) + `{"type":"NFC"}]},"model":{"type":"BPE","vocab":{"a":0},"merges":[]}}`
	if err := check(replay.RoleTokenizer, []byte(endless)); err != nil {
		t.Error(err)
	}
	list := canon.Marshal(&job.Receipt{Provider: "p", Checkpoints: []canon.Hash{p.Start, p.Data}})
	for name, b := range map[string][]byte{
		"nothing": nil, "model": files[replay.RoleModel], "state": canon.Encode(j.Start.Encode), "list": list, "narrow records": canon.Encode(narrow.Encode), "JSON": []byte(`{"model": 1}`), "a list of JSON": []byte(`[]`),
	} {
		for _, role := range []string{replay.RoleHeldOut, replay.RoleTokenizer} {
			var unfit *replay.UnfitError
			if err := check(role, b); !errors.As(err, &unfit) {
				t.Errorf("%s as %s: %v", name, role, err)
			}
		}
	}
}

func TestReadState(t *testing.T) {
	j, p, _ := order(t, 3, 2)
	b := canon.Encode(j.Start.Encode)
	s, err := replay.ReadState(b, p.Start, 2)
	if err != nil || root(t, s) != p.Start {
		t.Fatal(err)
	}
	if _, err := replay.ReadState(b, p.Data, 2); err == nil || !strings.Contains(err.Error(), "want") {
		t.Errorf("another root: %v", err)
	}
	for name, b := range map[string][]byte{"shorter": b[:len(b)-1], "longer": append(slices.Clone(b), 0), "empty": nil} {
		if _, err := replay.ReadState(b, p.Start, 2); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// counting counts the steps that are run.
type counting struct {
	engine.Runner
	runs int
}

func (c *counting) Run(ctx context.Context, in graph.Inputs, observe graph.Observer) (*graph.State, error) {
	c.runs++
	return c.Runner.Run(ctx, in, observe)
}

// A witness gives the roots of a straight run in any order of asking, and
// searches forward without beginning again.
func TestWitness(t *testing.T) {
	const steps = 60
	j, p, _ := order(t, steps, 10)
	u := j.UnitOf(p, 3)
	start, err := j.UnitOf(p, 1).Play(t.Context(), j.Start, 0, steps, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []canon.Hash{root(t, start)}
	if _, err := u.Play(t.Context(), start, 0, steps, func(_ int, s *graph.State) error {
		want = append(want, root(t, s))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	count := &counting{Runner: j.Step.Runner}
	j.Step.Runner = count
	x := u.Witness(t.Context(), start)
	check := func(step int) {
		t.Helper()
		if got, err := x.Root(step); err != nil || got != want[step] {
			t.Fatalf("step %d: %v, %v, want %v", step, got.Short(), err, want[step].Short())
		}
	}
	for step := 0; step <= steps; step += 10 {
		check(step)
	}
	if count.runs != steps {
		t.Errorf("%d steps were run to see %d", count.runs, steps)
	}
	for step := 41; step < 50; step++ { // narrowed to one segment
		check(step)
	}
	if count.runs != steps+9 {
		t.Errorf("%d more steps were run for 9", count.runs-steps)
	}
	for _, step := range []int{7, 59, 1, 0, 60, 33} {
		check(step)
	}
	e, err := x.Execution(44)
	if err != nil || root(t, e.Out) != want[45] {
		t.Fatalf("execution of step 44: %v", err)
	}
	runs := count.runs
	if _, err := x.Execution(44); err != nil || count.runs != runs {
		t.Errorf("the same execution is run again: %v", err)
	}

	x.(interface{ Forget() }).Forget()
	if e, err := x.Execution(44); err != nil || root(t, e.Out) != want[45] || count.runs == runs {
		t.Errorf("what was let go of is not run again: %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := u.Witness(ctx, start).Root(5); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}

// Whoever holds many witnesses can tell beforehand what they take: the values of a
// step are part of it, not its states alone.
func TestWitnessBytes(t *testing.T) {
	const steps, witnesses = 40, 16
	j, p, _ := order(t, steps, 10)
	var before, after runtime.MemStats
	held := make([]dispute.Witness, witnesses)
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range held {
		held[i] = j.UnitOf(p, 0).Witness(t.Context(), j.Start)
		for step := 1; step <= steps; step++ {
			if _, err := held[i].Root(step); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := held[i].Execution(7); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	took, most := int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(witnesses*j.WitnessBytes())
	if took > most+most/4 || took < most/3 {
		t.Errorf("%d witnesses take %d bytes, at most %d are announced", witnesses, took, most)
	}
	runtime.KeepAlive(held)
}

// A wrong merge loses the game; a right one cannot be disputed.
func TestMergeWitness(t *testing.T) {
	j, p, _ := order(t, 2, 1)
	var ends []*graph.State
	claim := dispute.Claim{Program: p.Merge, Steps: 1}
	for shard := range 2 {
		end, err := j.UnitOf(p, shard).Play(t.Context(), j.Start, 0, p.Steps, nil)
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, end)
		claim.Inputs = append(claim.Inputs, root(t, end))
	}
	merged, err := j.MergeStates(t.Context(), ends)
	if err != nil {
		t.Fatal(err)
	}
	claim.End = root(t, merged)
	x := j.MergeWitness(t.Context(), ends)
	if _, err := dispute.Challenge(claim, nil, x); !errors.Is(err, dispute.ErrAgree) {
		t.Errorf("a right merge: %v", err)
	}
	claim.End[0] ^= 1
	if _, err := dispute.Challenge(claim, nil, x); err != nil {
		t.Errorf("a wrong merge: %v", err)
	}
	if _, err := x.Root(0); err == nil {
		t.Error("a merge has roots between its steps")
	}
}

func TestScoresAreReadAgain(t *testing.T) {
	s := replay.Scores{"accuracy": 93_750, "loss": 1_234_567_891, "auc": train.NoScore}
	b, err := json.Marshal(s)
	if err != nil || string(b) != `{"accuracy":0.09375,"auc":null,"loss":1234.567891}` {
		t.Fatalf("%s, %v", b, err)
	}
	var back replay.Scores
	if err := json.Unmarshal(b, &back); err != nil || !maps.Equal(back, s) {
		t.Errorf("read %v, %v; written %v", back, err, s)
	}
}

func TestScores(t *testing.T) {
	j, p, _ := order(t, 8, 4)
	start := j.Start
	before, err := j.Scores(t.Context(), start, j.Data, cpu.New(1))
	if err != nil {
		t.Fatal(err)
	}
	end, err := j.UnitOf(p, 0).Play(t.Context(), start, 0, p.Steps, nil)
	if err != nil {
		t.Fatal(err)
	}
	after, err := j.Scores(t.Context(), end, j.Data, cpu.New(1))
	if err != nil || !(after.Loss() < before.Loss()) || before.Loss() < 2 || before.Loss() > 3.5 || after["accuracy"] <= before["accuracy"] { // ln 16 is 2.8
		t.Fatalf("scores %v, then %v, %v", before, after, err)
	}
	if got := replay.LossOf(end); got <= 0 || replay.LossOf(&graph.State{}) != 0 {
		t.Errorf("the state records %g", got)
	}
	for _, bad := range []tensor.Shape{{}, {0, columns}, {3, columns + 1}, {columns}} {
		if _, err := j.Scores(t.Context(), start, tensor.Must(tensor.New(tensor.Int32, bad)), cpu.New(1)); err == nil {
			t.Errorf("records of shape %v were taken", bad)
		}
	}
}

// benched is a problem of one round.
func benched(b *testing.B) (*replay.Job, *job.Problem) {
	j, err := replay.New(b.Context(), inputs(128), 2, cpu.New(0))
	if err != nil {
		b.Fatal(err)
	}
	p := &job.Problem{Rounds: 1, Steps: 16, Interval: 8}
	if err := j.Bind(p); err != nil {
		b.Fatal(err)
	}
	return j, p
}

func BenchmarkUnit(b *testing.B) {
	j, p := benched(b)
	steps := 0
	for b.Loop() {
		if _, err := j.UnitOf(p, 0).Play(b.Context(), j.Start, 0, p.Steps, nil); err != nil {
			b.Fatal(err)
		}
		steps += p.Steps
	}
	b.ReportMetric(float64(steps)/b.Elapsed().Seconds(), "steps/s")
}

// BenchmarkExecution is what a party does once in a dispute: a step of which
// every value is kept and committed to.
func BenchmarkExecution(b *testing.B) {
	j, p := benched(b)
	for b.Loop() {
		if _, err := j.UnitOf(p, 0).Witness(b.Context(), j.Start).Execution(0); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	_, p, files := order(b, 3, 2)
	for b.Loop() {
		if _, err := load(p, files); err != nil {
			b.Fatal(err)
		}
	}
}

func TestDistance(t *testing.T) {
	state := func(xs ...float32) *graph.State {
		x := tensor.Must(tensor.New(tensor.Float32, tensor.Shape{len(xs)}))
		for i, v := range xs {
			x.Set(i, tensor.F32(v))
		}
		n := tensor.Must(tensor.New(tensor.Int64, tensor.Shape{}))
		n.Set(0, tensor.Word(len(xs)))
		return &graph.State{Tensors: []*tensor.Tensor{n, x}}
	}
	if d := replay.Distance(state(1, 2, 3), state(1, 5, 7)); d != 5 {
		t.Errorf("the distance is %v, want 5", d)
	}
	if d := replay.Distance(state(1, 2), state(1, 2)); d != 0 {
		t.Errorf("a state is %v from itself", d)
	}
}
