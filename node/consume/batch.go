package consume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/format/yaml"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/node/consume/models"
	"github.com/tally-network/tally/node/consume/values"
	"github.com/tally-network/tally/node/replay"
)

// BatchKind is the kind of order that a BatchSpec describes.
const BatchKind = "BatchOrder"

// BatchSpec is an order for a batch as a person writes it, in YAML.
type BatchSpec struct {
	Kind       string         `json:"kind"`
	Name       string         `json:"name,omitempty"`
	Project    uint64         `json:"project,omitempty"` // of drilling, of which it is a task; 0: of none
	Problem    BatchProblem   `json:"problem"`
	Conditions SpecConditions `json:"conditions"`

	Folders []string `json:"-"` // as of a Spec
}

// BatchProblem says which model shall be applied to which records.
type BatchProblem struct {
	Model   string               `json:"model"`            // ONNX file
	Dims    map[string]int       `json:"dims,omitempty"`   // values of its symbolic dimensions, but for those of the records
	Records RecordFiles          `json:"records"`          // whose first axis counts records
	Grid    map[string][]float64 `json:"grid,omitempty"`   // in their place: values of each input, of which every combination is a record
	Within  map[string][]float64 `json:"within,omitempty"` // the least and the greatest value that an input may have; others are refused
	Profile lower.Profile        `json:"profile"`
	Batch   int                  `json:"batch,omitempty"` // records that a run of the model takes; 0: 32, or as many as the model and disputes about a run take
	Steps   int                  `json:"steps,omitempty"` // runs of a unit; 0: as many as make a few units that end in time
}

// Limits on batches that an order does not set, and on grids.
const (
	defaultBatch = 32
	defaultUnits = 8
	defaultSteps = 64
	maxGrid      = 1 << 20 // values: records times inputs
)

// ReadBatchSpec reads an order file for a batch, as ReadSpec reads one for training.
func ReadBatchSpec(name string, allow ...string) (s BatchSpec, err error) {
	b, err := bounded.ReadFile(name, maxSpec)
	if err != nil {
		return s, err
	}
	if s, err = ParseBatchSpec(b); err != nil {
		return s, fmt.Errorf("%s: %w", name, err)
	}
	folder, folders, err := foldersOf(name, allow)
	if err != nil {
		return s, err
	}
	s.Folders = folders
	within := func(p string) string {
		if filepath.IsAbs(p) {
			return p
		}
		return folder + p
	}
	s.Problem.Model = within(s.Problem.Model)
	if p := &s.Problem.Records.All; *p != "" {
		*p = within(*p)
	}
	for input, p := range s.Problem.Records.Of {
		s.Problem.Records.Of[input] = within(p)
	}
	return s, nil
}

// ParseBatchSpec reads an order from YAML. What is not given is as for training.
func ParseBatchSpec(b []byte) (BatchSpec, error) {
	s := BatchSpec{Conditions: Default().Conditions}
	if len(b) > maxSpec {
		return s, fmt.Errorf("an order has at most %d bytes", maxSpec)
	}
	if statedKind(b) == Kind {
		return s, fmt.Errorf("kind is %s: post it by tally train", Kind)
	}
	if err := yaml.Decode(b, &s); err != nil {
		return s, err
	}
	p := &s.Problem
	switch {
	case s.Kind != BatchKind:
		return s, fmt.Errorf("kind is %q, write kind: %s", s.Kind, BatchKind)
	case p.Model == "":
		return s, errors.New("problem.model is missing: name an ONNX file")
	case p.Records.names() == (len(p.Grid) > 0):
		return s, errors.New("problem.records or problem.grid is wanted, and one of them alone: name a file with records, or values for each input of the model")
	case p.Batch < 0 || p.Steps < 0 || p.Steps > job.MaxSegments:
		return s, fmt.Errorf("problem.batch and problem.steps are positive, or left out; a unit has at most %d steps", job.MaxSegments)
	}
	for name, b := range p.Within {
		if len(b) != 2 || !(b[0] <= b[1]) {
			return s, fmt.Errorf("problem.within.%s is %v: write the least and the greatest value, as [0, 1]", name, b)
		}
	}
	s.Conditions.Credit = s.Conditions.Credit || s.Project != 0 // all work on a task is credited
	if s.Project != 0 && s.Conditions.Split.Parts() > 0 {
		return s, errors.New("conditions.split and project: a task of drilling is one order: leave split out, or the project")
	}
	return s, s.Conditions.check()
}

// OrderFile is an order file that was read, of whatever kind.
type OrderFile interface {
	// Draft reads the files that it names, and makes a draft: as NewDraft and NewBatchDraft.
	Draft(ctx context.Context, exec engine.Executor) (*Draft, error)
	// Source names what it starts from, for people.
	Source() string
}

// ReadOrder reads an order file as ReadSpec or ReadBatchSpec does, by the kind that it states.
func ReadOrder(name string, allow ...string) (OrderFile, error) {
	b, err := bounded.ReadFile(name, maxSpec)
	if err != nil {
		return nil, err
	}
	switch kind := statedKind(b); kind {
	case BatchKind:
		return ReadBatchSpec(name, allow...)
	case Kind:
	default:
		return nil, fmt.Errorf("%s: kind is %q, write kind: %s or kind: %s", name, kind, Kind, BatchKind)
	}
	return ReadSpec(name, allow...)
}

// Draft implements OrderFile.
func (s Spec) Draft(ctx context.Context, exec engine.Executor) (*Draft, error) {
	return NewDraft(ctx, s, exec)
}

// Source implements OrderFile.
func (s Spec) Source() string { return cmp.Or(s.Problem.Model, s.Problem.Continue) }

// Draft implements OrderFile.
func (s BatchSpec) Draft(ctx context.Context, exec engine.Executor) (*Draft, error) {
	return NewBatchDraft(ctx, s, exec)
}

// Source implements OrderFile.
func (s BatchSpec) Source() string { return s.Problem.Model }

// NewBatchDraft reads the files that a spec names, makes the program, and runs it once: what
// cannot be computed is found here, before money is locked. It refuses a spec that is split: package split drafts that.
func NewBatchDraft(ctx context.Context, s BatchSpec, exec engine.Executor) (*Draft, error) {
	if s.Conditions.Split.Parts() > 0 {
		return nil, errors.New("conditions.split: it is posted in parts, by tally batch alone: leave it out here")
	}
	out, d, err := s.fit(exec)
	if err != nil {
		return nil, err
	}
	return out, out.complete(ctx, d)
}

// Dataset reads the files that a spec names. A run takes as many records as suit the model, and disputes
// about a run; of a spec that is split, no more than its smallest part has.
func (s BatchSpec) Dataset(exec engine.Executor) (replay.Dataset, error) {
	_, d, err := s.fit(exec)
	return d, err
}

// fit reads the files, and finds how many records a run takes.
func (s *BatchSpec) fit(exec engine.Executor) (*Draft, replay.Dataset, error) {
	var d replay.Dataset
	given, err := s.readRecords()
	if err != nil {
		return nil, d, err
	}
	out, records := &Draft{Bid: s.Conditions.Bid}, math.MaxInt
	for _, c := range given {
		records = min(records, c.Shape()[0])
	}
	for most := min(defaultBatch, max(records/max(s.Conditions.Split.Parts(), 1), 1)); ; most /= 2 {
		if d, err = s.dataset(given, most); err != nil {
			return nil, d, err
		}
		if err := s.prepare(out, d, exec); err != nil {
			return nil, d, err
		}
		if s.Problem.Batch > 0 || d.Batch < 2 || job.DefaultParams.Replays(out.Problem.StepFLOPs, dispute.DefaultRules) {
			break
		}
	}
	return out, d, nil
}

// FromDataset makes the draft of a batch whose model and records are in memory. A spec's
// problem then says no more than the runs of a unit.
func FromDataset(ctx context.Context, s BatchSpec, d replay.Dataset, exec engine.Executor) (*Draft, error) {
	out := &Draft{Bid: s.Conditions.Bid}
	if err := s.prepare(out, d, exec); err != nil {
		return nil, err
	}
	return out, out.complete(ctx, d)
}

// complete adds the files of a batch to its draft, checks the order, and plays one run.
func (d *Draft) complete(ctx context.Context, of replay.Dataset) error {
	if _, err := resultSlots(d.Job, &d.Problem); err != nil {
		return err
	}
	if err := values.Indices(of.Model, of.Records); err != nil {
		return err
	}
	d.NotFinite = values.NotFinite(of.Records)
	model, err := models.Write(of.Model)
	if err != nil {
		return err
	}
	d.Files = []DraftFile{file(replay.RoleModel, model), file(replay.RoleStart, of.Records.Parts()...)}
	if err := d.Unsigned().Check(); err != nil {
		return err
	}
	_, err = d.Job.UnitOf(&d.Problem, 0).Play(ctx, d.Job.Start, 0, 1, nil)
	return err
}

// prepare makes the program of a draft, and cuts the runs into units.
func (s *BatchSpec) prepare(out *Draft, d replay.Dataset, exec engine.Executor) (err error) {
	runs := (d.Records.Slots[0].Shape[0]-1)/d.Batch + 1
	if out.Job, err = replay.NewBatch(d, exec); err != nil {
		return err
	}
	out.Problem = job.Problem{Rounds: 1, Interval: 1}
	if err := out.Job.Bind(&out.Problem); err != nil {
		return err
	}
	p := &out.Problem
	if p.Steps = s.Problem.Steps; p.Steps == 0 { // half of the time of a unit on the slowest machine, at most
		inTime := job.DefaultParams.Speed / 1000 * uint64(s.Conditions.terms(1).UnitTimeout) / 2 / max(p.StepFLOPs, 1)
		p.Steps = min((runs-1)/defaultUnits+1, defaultSteps, int(max(1, min(inTime, defaultSteps))))
		p.Steps = max(p.Steps, (runs-1)/job.MaxUnits+1)
	}
	p.Shards = (runs-1)/p.Steps + 1
	out.Terms, out.Project = s.Conditions.terms(p.Steps), s.Project
	return nil
}

// dataset finds the batch in which the model takes the records, of most if the order does not
// say, and reads it for that.
func (s *BatchSpec) dataset(given map[string]column, most int) (d replay.Dataset, err error) {
	first := error(nil)
	for _, c := range s.layouts(most) {
		g, err := s.readModel(given, c)
		if err == nil {
			d = replay.Dataset{Model: g, Batch: c.batch, Profile: s.Problem.Profile}
			if d.Records, err = stated(g, given); err == nil {
				err = values.Within(d.Records, s.Problem.Within)
			}
			return d, err
		}
		if errors.Is(err, onnx.ErrNoInput) || errors.Is(err, errMissing) { // in whatever layout
			return d, err
		}
		first = cmp.Or(first, err)
	}
	return d, first
}

// layout is a way in which records may enter a model: so many at a time, along a first axis or
// without one.
type layout struct {
	batch int
	axis  bool
}

// layouts returns the ways that come into question, the likeliest first.
func (s *BatchSpec) layouts(most int) []layout {
	if b := s.Problem.Batch; b > 1 {
		return []layout{{b, true}}
	} else if b == 1 {
		return []layout{{1, true}, {1, false}}
	}
	return []layout{{most, true}, {1, true}, {1, false}}
}

// readModel reads the model for records that enter it in a layout.
func (s *BatchSpec) readModel(given map[string]column, c layout) (*graph.Graph, error) {
	opt := onnx.Options{Dims: maps.Clone(s.Problem.Dims), Shapes: map[string]tensor.Shape{}}
	for name, t := range given {
		opt.Shapes[name] = slices.Clone(t.Shape()[1:])
		if c.axis {
			opt.Shapes[name] = append(tensor.Shape{c.batch}, t.Shape()[1:]...)
		}
	}
	g, err := models.Read(s.Folders, s.Problem.Model, opt)
	if file := s.Problem.Records.All; errors.Is(err, onnx.ErrNoInput) && strings.EqualFold(filepath.Ext(file), ".csv") {
		return nil, fmt.Errorf("%w. If all columns of the file are one input, write records: {INPUT: %s}", err, filepath.Base(file))
	}
	if err != nil {
		return nil, fmt.Errorf("for batches of %d records: %w", c.batch, err)
	}
	for _, v := range g.Inputs {
		if given[v.Name] == nil {
			return nil, fmt.Errorf("model %s: %w %q", s.Problem.Model, errMissing, v.Name)
		}
	}
	t, err := op.Infer(g, s.Problem.Profile)
	var open *lower.OpenError
	if errors.As(err, &open) && len(open.Inputs) > 0 {
		return nil, fmt.Errorf("model %s: shapes follow from the values of %q, so these cannot differ from record to record: make them constants", s.Problem.Model, open.Inputs)
	}
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", s.Problem.Model, err)
	}
	for i := range g.Outputs {
		g.Outputs[i].Shape = t.Outputs[i].Shape
	}
	return g, nil
}

// errMissing says that records leave an input of the model out.
var errMissing = errors.New("its records, or the grid, have nothing for input")

// stated returns the records as a state, of the model's types where they have none of their own.
func stated(g *graph.Graph, given map[string]column) (*graph.State, error) {
	out := &graph.State{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		i := slices.IndexFunc(g.Inputs, func(v graph.Value) bool { return v.Name == name }) // the model was read with these
		t, err := given[name].Tensor(g.Inputs[i].Type)
		if err != nil {
			return nil, fmt.Errorf("records for input %s: %w", name, err)
		}
		if want := g.Inputs[i].Type; t.Type != want {
			return nil, fmt.Errorf("records for input %s are %v, and the model takes %v: store them as such", name, t.Type, want)
		}
		out.Slots = append(out.Slots, graph.Slot{Name: name, Type: t.Type, Shape: t.Shape})
		out.Tensors = append(out.Tensors, t)
	}
	return out, nil
}

// foldersOf returns the folder of an order file, as it is written, and those in which its files may lie.
func foldersOf(name string, allow []string) (folder string, folders []string, err error) {
	for _, other := range allow {
		if info, err := os.Stat(other); err != nil {
			return "", nil, fmt.Errorf("the folder to allow: %w", err)
		} else if !info.IsDir() {
			return "", nil, fmt.Errorf("%s, which is to be allowed, is a file: name its folder", other)
		}
	}
	folder, _ = filepath.Split(name) // cleaned of link/.. it is another
	return folder, append([]string{folder + "."}, allow...), nil
}
