package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/merkle"
	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/format/text"
)

// Roles of an order's files.
const (
	RoleModel     = job.RoleModel
	RoleStart     = job.RoleStart
	RoleData      = job.RoleData
	RoleHeldOut   = job.RoleHeldOut
	RoleTokenizer = job.RoleTokenizer
)

// Inputs are what a consumer brings.
type Inputs struct {
	Model  *graph.Graph
	Recipe train.Recipe
	Data   *tensor.Tensor // int32 [records, columns]
	Start  *graph.State   // nil: from the model's weights
}

// Work is a problem ready to be computed.
type Work struct {
	Inputs
	Training *train.Training
	Step     Program
	Merge    Program
	shards   int
	bytes    int64 // of an encoded state
}

// Program is a program with its commitment and what runs it.
type Program struct {
	*graph.Program
	Commitment *graph.Commitment
	Runner     engine.Runner
}

func prepare(p *graph.Program, exec engine.Executor) (Program, error) {
	r, err := exec.Prepare(p)
	if err != nil {
		err = localError{err}
	}
	return Program{p, p.Commit(), r}, err
}

// New makes the programs of a problem whose rounds have the given number of
// shards.
func New(in Inputs, shards int, exec engine.Executor) (*Work, error) {
	t, err := train.New(in.Model, in.Recipe, in.Data.Shape)
	if err != nil {
		return nil, err
	}
	if in.Start != nil {
		if err := sameSlots(in.Start.Slots, t.Start.Slots); err != nil {
			return nil, fmt.Errorf("the start state does not fit model and recipe: %w", err)
		}
		t.Start = in.Start
	}
	w := &Work{Inputs: in, Training: t, shards: shards, bytes: int64(t.Start.Size())}
	if w.Step, err = prepare(t.Program, exec); err != nil {
		return nil, fmt.Errorf("training step: %w", err)
	}
	_, merge, err := train.Merge(t.Start.Slots, shards)
	if err != nil {
		return nil, err
	}
	if w.Merge, err = prepare(merge, exec); err != nil {
		return nil, fmt.Errorf("merge: %w", err)
	}
	return w, nil
}

func sameSlots(got, want []graph.Slot) error {
	if len(got) != len(want) {
		return fmt.Errorf("it has %d tensors, want %d", len(got), len(want))
	}
	for i, g := range got {
		if w := want[i]; g.Name != w.Name || g.Type != w.Type || !slices.Equal(g.Shape, w.Shape) {
			return fmt.Errorf("it has %s %v%v, want %s %v%v", g.Name, g.Type, g.Shape, w.Name, w.Type, w.Shape)
		}
	}
	return nil
}

// StateBytes returns the length of every state's file: all have the same slots.
func (w *Work) StateBytes() int64 { return w.bytes }

// Bind fills in the parts of a problem that follow from the work: roots, costs,
// recipe, number of records and batch.
func (w *Work) Bind(p *job.Problem) error {
	start, err := w.Training.Start.Root()
	if err != nil {
		return err
	}
	p.Kind, p.Profile = "training", w.Recipe.Profile.String()
	p.Step, p.Merge, p.Start, p.Data = w.Step.Commitment.Root(), w.Merge.Commitment.Root(), start, w.Data.Root()
	p.Batch, p.Records, p.Shards = w.Recipe.Batch, w.Data.Shape[0], w.shards
	p.Recipe = canon.Marshal(&w.Recipe)
	flops, moved := w.Step.Cost()
	p.StepFLOPs, p.StepBytes, p.StateBytes = uint64(flops), uint64(moved), uint64(w.bytes)
	flops, moved = w.Merge.Cost()
	p.MergeFLOPs, p.MergeBytes = uint64(flops), uint64(moved)
	return nil
}

// UnfitError says that an order's files do not make it up, on whatever machine: so it is
// no error of reading them, and none of the memory that an executor has.
type UnfitError struct{ Err error }

func (e *UnfitError) Error() string { return e.Err.Error() }

func (e *UnfitError) Unwrap() error { return e.Err }

// localError is an error of the machine that loads.
type localError struct{ error }

func (e localError) Unwrap() error { return e.error }

// until prepares programs until ctx is done.
type until struct {
	engine.Executor
	ctx context.Context
}

func (u until) Prepare(p *graph.Program) (engine.Runner, error) {
	if u.ctx.Err() != nil {
		return nil, context.Cause(u.ctx)
	}
	return u.Executor.Prepare(p)
}

// Load makes the work of an order from its files, and refuses it unless
// everything that the order binds follows from them: with an UnfitError. Once ctx
// is done it stops before the next file or program, with what context.Cause says.
func Load(ctx context.Context, p *job.Problem, read func(job.File) ([]byte, error), exec engine.Executor) (*Work, error) {
	w, err := load(p, func(f job.File) ([]byte, error) {
		if ctx.Err() != nil {
			return nil, localError{context.Cause(ctx)}
		}
		b, err := read(f)
		if err != nil {
			err = localError{err}
		}
		return b, err
	}, until{exec, ctx})
	var local localError
	switch {
	case err == nil:
		return w, nil
	case errors.As(err, &local):
		return nil, err
	}
	return nil, &UnfitError{err}
}

func load(p *job.Problem, read func(job.File) ([]byte, error), exec engine.Executor) (*Work, error) {
	var in Inputs
	if err := canon.Unmarshal(p.Recipe, &in.Recipe); err != nil {
		return nil, fmt.Errorf("recipe: %w", err)
	}
	var err error
	if in.Recipe.Profile, err = lower.ParseProfile(p.Profile); err != nil {
		return nil, err
	}
	file := func(role string) ([]byte, error) {
		f, ok := p.File(role)
		if !ok {
			return nil, fmt.Errorf("the order names no %s file", role)
		}
		b, err := read(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", role, err)
		}
		return b, nil
	}
	b, err := file(RoleModel)
	if err != nil {
		return nil, err
	}
	if in.Model, err = onnx.Read(bytes.NewReader(b), int64(len(b)), onnx.Options{}); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if b, err = file(RoleData); err != nil {
		return nil, err
	}
	if in.Data, err = ReadTensor(b); err != nil {
		return nil, fmt.Errorf("training records: %w", err)
	}
	if _, ok := p.File(RoleStart); ok {
		if b, err = file(RoleStart); err != nil {
			return nil, err
		}
		if in.Start, err = ReadState(b, p.Start, runtime.GOMAXPROCS(0)); err != nil {
			return nil, fmt.Errorf("start state: %w", err)
		}
	}
	w, err := New(in, p.Shards, exec)
	if err != nil {
		return nil, err
	}
	return w, w.matches(p)
}

// matches compares what follows from the files with what the order binds.
func (w *Work) matches(p *job.Problem) error {
	q := *p
	if err := w.Bind(&q); err != nil {
		return err
	}
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"training records", q.Data, p.Data}, {"start state", q.Start, p.Start}, {"step program", q.Step, p.Step}, {"merge program", q.Merge, p.Merge},
		{"number of records", q.Records, p.Records}, {"batch", q.Batch, p.Batch}, {"FLOPs of a step", q.StepFLOPs, p.StepFLOPs},
		{"bytes of a state", q.StateBytes, p.StateBytes},
		{"bytes of a step", q.StepBytes, p.StepBytes}, {"FLOPs of a merge", q.MergeFLOPs, p.MergeFLOPs}, {"bytes of a merge", q.MergeBytes, p.MergeBytes},
	} {
		if c.got != c.want {
			return fmt.Errorf("the order's files do not match it: the %s is %v, the order says %v", c.what, c.got, c.want)
		}
	}
	return nil
}

// CheckUnread returns an UnfitError unless a file that no step reads is what its role says:
// held-out records are like those that the order trains on, a tokenizer is one.
func (w *Work) CheckUnread(role string, b []byte) error {
	err := fmt.Errorf("no file has the role %q", role)
	switch role {
	case RoleHeldOut:
		var t *tensor.Tensor
		if t, err = ReadTensor(b); err == nil && (t.Type != w.Data.Type || len(t.Shape) != 2 || t.Shape[1] != w.Data.Shape[1]) {
			err = fmt.Errorf("they are %v%v, the training records %v%v", t.Type, t.Shape, w.Data.Type, w.Data.Shape)
		}
	case RoleTokenizer:
		_, err = text.ReadTokenizer(bytes.NewReader(b))
	}
	if err != nil {
		return &UnfitError{fmt.Errorf("%s: %w", role, err)}
	}
	return nil
}

// ReadTensor reads a canonical tensor from a whole file.
func ReadTensor(b []byte) (t *tensor.Tensor, err error) {
	err = canon.Decode(b, func(d *canon.Decoder) { t = tensor.Decode(d) })
	return t, err
}

// ReadState reads a canonical state from a whole file and checks its root.
func ReadState(b []byte, root canon.Hash, threads int) (s *graph.State, err error) {
	if err = canon.Decode(b, func(d *canon.Decoder) { s = graph.DecodeState(d) }); err != nil {
		return nil, err
	}
	got, err := merkle.StateRoot(s, threads)
	if err == nil && got != root {
		err = fmt.Errorf("state has root %v, want %v", got.Short(), root.Short())
	}
	return s, err
}

// Loss returns the mean loss of a state over records, batch after batch; a last
// batch that is not full is left out.
func (w *Work) Loss(ctx context.Context, s *graph.State, records *tensor.Tensor, exec engine.Executor) (float32, error) {
	p, err := w.Training.Evaluation(records.Shape)
	if err != nil {
		return 0, err
	}
	r, err := exec.Prepare(p)
	if err != nil {
		return 0, err
	}
	n := records.Shape[0] / w.Recipe.Batch
	if n == 0 {
		return 0, fmt.Errorf("%d records do not fill a batch of %d", records.Shape[0], w.Recipe.Batch)
	}
	var sum float64 // a statistic for people
	rows := make([]int64, w.Recipe.Batch)
	for b := range n {
		for i := range rows {
			rows[i] = int64(b*len(rows) + i)
		}
		out, err := r.Run(ctx, graph.Inputs{States: []*graph.State{s}, Data: records, Rows: rows}, nil)
		if err != nil {
			return 0, err
		}
		sum += float64(LossOf(out))
	}
	return float32(sum / float64(n)), nil
}

// LossOf returns the loss that a state records.
func LossOf(s *graph.State) float32 {
	if t := s.Find(job.LossSlot); t != nil && t.Type == tensor.Float32 && t.Len() == 1 {
		return tensor.Of[float32](t)[0]
	}
	return 0
}
