package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
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
	"github.com/tally-network/tally/format/schema"
	"github.com/tally-network/tally/format/text"
	"github.com/tally-network/tally/format/tokenizer"
)

// Roles of an order's files.
const (
	RoleModel     = job.RoleModel
	RoleParent    = job.RoleParent
	RoleStart     = job.RoleStart
	RoleData      = job.RoleData
	RoleCrown     = job.RoleCrown
	RoleHeldOut   = job.RoleHeldOut
	RoleTokenizer = job.RoleTokenizer
	RoleSchema    = job.RoleSchema
)

// Inputs are what a consumer brings to train a model.
type Inputs struct {
	Model  *graph.Graph
	Recipe train.Recipe
	Data   *tensor.Tensor // int32 [records, columns]
	Crown  *tensor.Crown  // of Data; nil: New makes it
	Start  *graph.State   // nil: from the model's weights
	Parent *Parent        // in place of Start: what training goes on from
}

// Job is an order's problem made concrete: ready to be computed.
type Job struct {
	Inputs   // of a batch the model alone
	Start    *graph.State
	Step     Program
	Merge    Program         // empty if no program merges
	Training *train.Training // nil of a batch
	profile  lower.Profile
	records  *records // nil: Data is all here
	shards   int
	bytes    int64 // of an encoded state that a step gives
}

// Program is a program with its commitment and what runs it.
type Program struct {
	*graph.Program
	Commitment *graph.Commitment
	Runner     engine.Runner
}

func prepare(p *graph.Program, exec engine.Executor) (Program, error) {
	r, err := local(func() (engine.Runner, error) { return exec.Prepare(p) })
	return Program{p, p.Commit(), r}, err
}

// local does what depends on the machine. If it fails, or panics, that says nothing of the order.
func local[T any](do func() (T, error)) (out T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the executor broke: %v", p)
		}
		if err != nil {
			err = localError{err}
		}
	}()
	return do()
}

// New makes the programs of a problem whose rounds have the given number of
// shards. ctx bounds what is computed of a parent.
func New(ctx context.Context, in Inputs, shards int, exec engine.Executor) (*Job, error) {
	t, err := in.begin(ctx, exec)
	if err != nil {
		return nil, err
	}
	if in.Start != nil {
		if err := sameSlots(in.Start.Slots, t.Start.Slots); err != nil {
			return nil, fmt.Errorf("the start state does not fit model and recipe: %w", err)
		}
		t.Start = in.Start
	}
	if in.Crown == nil {
		in.Crown = merkle.Crown(in.Data, runtime.GOMAXPROCS(0))
	}
	j := &Job{Inputs: in, Start: t.Start, Training: t, profile: in.Recipe.Profile, shards: shards, bytes: int64(t.Start.Size())}
	if j.Step, err = prepare(t.Program, exec); err != nil {
		return nil, fmt.Errorf("training step: %w", err)
	}
	_, merge, err := train.Merge(t.Start.Slots, shards)
	if err != nil {
		return nil, err
	}
	if j.Merge, err = prepare(merge, exec); err != nil {
		return nil, fmt.Errorf("merge: %w", err)
	}
	return j, nil
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
func (j *Job) StateBytes() int64 { return j.bytes }

// Bind fills in the parts of a problem that follow from the work: roots, costs,
// recipe, number of records and batch, and the shards of training.
func (j *Job) Bind(p *job.Problem) error {
	start, err := j.Start.Root()
	if err != nil {
		return err
	}
	p.Profile, p.Start, p.Step = j.profile.String(), start, j.Step.Commitment.Root()
	step := j.Step.Commitment.Cost
	p.StepFLOPs, p.StepBytes, p.StateBytes = step.FLOPs, step.Bytes, uint64(j.bytes)
	if j.Training == nil {
		p.Kind, p.Batch, p.Records = job.Batch, j.Step.Rows, j.Start.Slots[0].Shape[0]
		return nil
	}
	p.Kind, p.Merge, p.Data = job.Training, j.Merge.Commitment.Root(), j.Crown.Root()
	p.Batch, p.Records, p.Shards, p.Recipe = j.Recipe.Batch, j.Data.Shape[0], j.shards, canon.Marshal(&j.Recipe)
	merge := j.Merge.Commitment.Cost
	p.MergeFLOPs, p.MergeBytes = merge.FLOPs, merge.Bytes
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

// Files are where an order's files are read.
type Files struct {
	Read func(f job.File) ([]byte, error) // all of a file
	// Part reads n bytes of a file, from byte at on. Without it records are read whole; with it, those of
	// a shard are once one of its units is played. It may be called as long as the Job is used.
	Part   func(ctx context.Context, f job.File, at, n int64) (io.Reader, error)
	Folder string              // where records lie of which only parts are here
	Room   func(n int64) error // returns an error if n bytes of them, in all, may not lie there; nil: they may
}

// Load makes the work of an order from its files, and refuses it unless
// everything that the order binds follows from them: with an UnfitError. Once ctx
// is done it stops before the next file or program, with what context.Cause says.
// What is read in parts is checked as it is read ([Job.CheckRecords]).
func Load(ctx context.Context, p *job.Problem, files Files, exec engine.Executor) (*Job, error) {
	read := files.Read
	files.Read = func(f job.File) ([]byte, error) {
		if ctx.Err() != nil {
			return nil, localError{context.Cause(ctx)}
		}
		b, err := read(f)
		if err != nil {
			err = localError{err}
		}
		return b, err
	}
	j, err := load(p, files, until{exec, ctx})
	var local localError
	switch {
	case err == nil:
		return j, nil
	case errors.As(err, &local):
		return nil, err
	}
	return nil, &UnfitError{err}
}

// loader reads the files of a problem, and makes what each kind of work makes of them.
type loader struct {
	*job.Problem
	files   Files
	exec    until
	profile lower.Profile
	model   *graph.Graph
}

func load(p *job.Problem, files Files, exec until) (j *Job, err error) {
	defer func() {
		if p := recover(); p != nil { // it would be one on any machine
			err = fmt.Errorf("its files break what reads them: %v", p)
		}
	}()
	l := loader{Problem: p, files: files, exec: exec}
	if l.profile, err = lower.ParseProfile(p.Profile); err != nil {
		return nil, err
	}
	b, err := l.file(RoleModel)
	if err != nil {
		return nil, err
	}
	if l.model, err = onnx.Read(bytes.NewReader(b), int64(len(b)), onnx.Options{}); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if p.Kind == job.Batch {
		j, err = l.batch()
	} else {
		j, err = l.training()
	}
	if err != nil {
		return nil, err
	}
	return j, j.matches(p)
}

func (l *loader) training() (*Job, error) {
	in := Inputs{Model: l.model}
	if err := canon.Unmarshal(l.Recipe, &in.Recipe); err != nil {
		return nil, fmt.Errorf("recipe: %w", err)
	}
	if in.Recipe.Batch != l.Batch { // before anything grows with it
		return nil, fmt.Errorf("the recipe has batches of %d, the order of %d", in.Recipe.Batch, l.Batch)
	}
	in.Recipe.Profile = l.profile
	records, err := l.records(&in)
	if err != nil {
		return nil, err
	}
	if l.Parent != (job.Parent{}) {
		if in.Parent, err = l.parent(); err != nil {
			return nil, err
		}
	} else if _, ok := l.File(RoleStart); ok {
		if in.Start, err = l.start(l.Start); err != nil {
			return nil, err
		}
	}
	j, err := New(l.exec.ctx, in, l.Shards, l.exec)
	if err == nil {
		j.records = records
	}
	return j, err
}

func (l *loader) batch() (*Job, error) {
	if len(l.Recipe) > 0 {
		return nil, fmt.Errorf("a batch has a recipe of %d bytes, and needs none", len(l.Recipe))
	}
	start, err := l.start(l.Start)
	if err != nil {
		return nil, err
	}
	return NewBatch(Dataset{Model: l.model, Records: start, Batch: l.Batch, Profile: l.profile}, l.exec)
}

// file reads the file with a role.
func (l *loader) file(role string) ([]byte, error) {
	f, ok := l.File(role)
	if !ok {
		return nil, fmt.Errorf("the order names no %s file", role)
	}
	b, err := l.files.Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", role, err)
	}
	return b, nil
}

// start reads the state that the order starts from, or goes on from, which has a root.
func (l *loader) start(root canon.Hash) (*graph.State, error) {
	b, err := l.file(RoleStart)
	if err != nil {
		return nil, err
	}
	s, err := ReadState(b, root, runtime.GOMAXPROCS(0))
	if err != nil {
		return nil, fmt.Errorf("start state: %w", err)
	}
	return s, nil
}

// matches compares what follows from the files with what the order binds.
func (j *Job) matches(p *job.Problem) error {
	q := *p
	q.Merge, q.Data = canon.Hash{}, canon.Hash{}
	if err := j.Bind(&q); err != nil {
		return err
	}
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"training records", q.Data, p.Data}, {"start state", q.Start, p.Start}, {"step program", q.Step, p.Step}, {"merge program", q.Merge, p.Merge},
		{"number of records", q.Records, p.Records}, {"batch", q.Batch, p.Batch}, {"bytes of a state", q.StateBytes, p.StateBytes},
	} {
		if c.got != c.want {
			return fmt.Errorf("the order's files do not match it: the %s is %v, the order says %v", c.what, c.got, c.want)
		}
	}
	return j.costs(p)
}

// CostError says that an order names another cost than its own programs have, and holds what
// shows that to anybody.
type CostError struct {
	Merge bool // of a merge, in place of a step
	Shown *graph.Refutation
	says  graph.Cost
}

func (e *CostError) Error() string {
	what := "step"
	if e.Merge {
		what = "merge"
	}
	return fmt.Sprintf("the order's files do not match it: a %s takes %v, the order says %v", what, e.Shown.Header.Cost, e.says)
}

// costs returns a CostError if the order's costs are not those of its programs.
func (j *Job) costs(p *job.Problem) error {
	says := graph.Cost{FLOPs: p.StepFLOPs, Bytes: p.StepBytes}
	if c := j.Step.Commitment; c.Cost != says {
		return &CostError{Shown: c.Open(), says: says}
	}
	says = graph.Cost{FLOPs: p.MergeFLOPs, Bytes: p.MergeBytes}
	if c := j.Merge.Commitment; c != nil && c.Cost != says {
		return &CostError{Merge: true, Shown: c.Open(), says: says}
	}
	return nil
}

// CheckUnread checks a file that no step reads, of so many bytes, against its role. It returns an UnfitError if held-out records differ in
// type or shape from those that the order trains on, or a tokenizer or schema is none.
func (j *Job) CheckUnread(role string, r io.Reader, size int64) error {
	err := fmt.Errorf("no file has the role %q", role)
	switch {
	case j.Training == nil: // all files of a batch are read
	case role == RoleHeldOut:
		err = j.checkHeldOut(r, size)
	case role == RoleTokenizer:
		var b []byte
		if b, err = readAll(r, size, tokenizer.MaxFile); err == nil {
			err = checkTokenizer(b)
		}
	case role == RoleSchema:
		var b []byte
		if b, err = readAll(r, size, schema.MaxBytes); err == nil {
			_, err = schema.Read(bytes.NewReader(b))
		}
	}
	if err == nil || isLocal(err) {
		return unwrapLocal(err)
	}
	return &UnfitError{fmt.Errorf("%s: %w", role, err)}
}

// checkTokenizer returns an error unless a file may be a tokenizer: of characters, or Hugging Face's. No role encodes
// texts, so none follows what a stranger's file makes of one, which may take hours.
func checkTokenizer(b []byte) error {
	if _, err := text.ReadTokenizer(bytes.NewReader(b)); err == nil {
		return nil
	}
	var file struct {
		Model struct {
			Vocabulary json.RawMessage `json:"vocab"`
		}
	}
	if err := json.Unmarshal(b, &file); err != nil || len(file.Model.Vocabulary) == 0 {
		return errors.New("it is no tokenizer.json: it has no model with a vocab")
	}
	return nil
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

// LossOf returns the loss that a state records.
func LossOf(s *graph.State) float32 {
	if t := s.Find(job.LossSlot); t != nil && t.Type == tensor.Float32 && t.Len() == 1 {
		return tensor.Of[float32](t)[0]
	}
	return 0
}

// Loss is a loss in reports. JSON has no number for one that is not finite: it is null there.
type Loss float32

// MarshalJSON implements json.Marshaler.
func (l Loss) MarshalJSON() ([]byte, error) {
	if !Finite(float32(l)) {
		return []byte("null"), nil
	}
	return json.Marshal(float32(l))
}

// UnmarshalJSON implements json.Unmarshaler: what is null is no number, and not 0.
func (l *Loss) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*l = Loss(math.NaN())
		return nil
	}
	return json.Unmarshal(b, (*float32)(l))
}

// Finite reports whether a loss is a number.
func Finite(loss float32) bool {
	return !math.IsNaN(float64(loss)) && !math.IsInf(float64(loss), 0)
}
