package replay_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/node/replay"
)

const records = 23

// dataset is a model of two inputs and two outputs, and records for it: y = tanh(x·w)·s, and
// the sum of y over its columns.
func dataset(batch int) replay.Dataset {
	b := graph.NewBuilder("classify")
	x, s := b.Input("x", tensor.Float32, tensor.Shape{batch, 6}), b.Input("scale", tensor.Float32, tensor.Shape{batch, 1})
	w := tensor.Must(tensor.New(tensor.Float32, tensor.Shape{6, 5}))
	for i := range w.Len() {
		w.Set(i, tensor.F32(float32(i*7%11)/11-0.5))
	}
	y := b.Op("Mul", b.Op("Tanh", b.Op("MatMul", x, b.Init("w", w))), s)
	b.Output(y, tensor.Float32, tensor.Shape{batch, 5})
	b.Output(b.With(graph.Int("keepdims", 0)).Op("ReduceSum", y, b.Ints(1)), tensor.Float32, tensor.Shape{batch})
	all := &graph.State{Slots: []graph.Slot{{Name: "scale", Type: tensor.Float32, Shape: tensor.Shape{records, 1}}, {Name: "x", Type: tensor.Float32, Shape: tensor.Shape{records, 6}}}}
	for i, slot := range all.Slots {
		t := tensor.Must(tensor.New(slot.Type, slot.Shape))
		for j := range t.Len() {
			t.Set(j, tensor.F32(float32((j*13+i)%29)/29))
		}
		all.Tensors = append(all.Tensors, t)
	}
	return replay.Dataset{Model: b.Graph(), Records: all, Batch: batch}
}

// batchOrder returns a problem of three units of two steps, and its files.
func batchOrder(t testing.TB) (*replay.Job, *job.Problem, map[string][]byte) {
	t.Helper()
	d := dataset(4)
	j, err := replay.NewBatch(d, cpu.New(1))
	if err != nil {
		t.Fatal(err)
	}
	p := &job.Problem{Rounds: 1, Shards: 3, Steps: 2, Interval: 1}
	if err := j.Bind(p); err != nil {
		t.Fatal(err)
	}
	model, err := onnx.Write(d.Model)
	if err != nil {
		t.Fatal(err)
	}
	p.Files = []job.File{{Role: replay.RoleModel}, {Role: replay.RoleStart}}
	return j, p, map[string][]byte{replay.RoleModel: model, replay.RoleStart: canon.Encode(d.Records.Encode)}
}

// Whoever loads the order gets what the model gives for each record, in any order of steps,
// and with any executor.
func TestBatchGivesWhatTheModelGives(t *testing.T) {
	drafted, p, files := batchOrder(t)
	loaded, err := load(p, files)
	if err != nil {
		t.Fatal(err)
	}
	reference, err := replay.NewBatch(dataset(4), engine.Reference{})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := replay.NewBatch(dataset(records), engine.Reference{})
	if err != nil {
		t.Fatal(err)
	}
	q := &job.Problem{Rounds: 1, Shards: 1, Steps: 1, Interval: 1}
	if err := whole.Bind(q); err != nil {
		t.Fatal(err)
	}
	want, err := whole.UnitOf(q, 0).Play(t.Context(), whole.Start, 0, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, j := range map[string]*replay.Job{"drafted": drafted, "loaded": loaded, "by the definition": reference} {
		for record := records - 1; record >= 0; record-- {
			unit, step, row := record/8, record/4%2, record%4
			got, err := j.UnitOf(p, unit).Play(t.Context(), nil, step, step+1, nil)
			if err != nil {
				t.Fatal(err)
			}
			for i, slot := range want.Slots {
				n := want.Tensors[i].Len() / records
				for k := range n {
					if got.Tensors[i].At(row*n+k) != want.Tensors[i].At(record*n+k) {
						t.Fatalf("%s: record %d, %s[%d] differs", name, record, slot.Name, k)
					}
				}
			}
		}
	}
	if p.StateBytes != uint64(len(canon.Encode(func(e *canon.Encoder) { first(t, drafted, p).Encode(e) }))) {
		t.Errorf("a result is said to have %d bytes", p.StateBytes)
	}
}

func first(t testing.TB, j *replay.Job, p *job.Problem) *graph.State {
	t.Helper()
	s, err := j.UnitOf(p, 0).Play(t.Context(), j.Start, 0, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A batch of one may be a model without an axis for records: a grid of parameters.
func TestGridOfParameters(t *testing.T) {
	b := graph.NewBuilder("curve")
	b.Output(b.Op("Mul", b.Input("a", tensor.Float32, tensor.Shape{}), b.Input("b", tensor.Float32, tensor.Shape{})), tensor.Float32, tensor.Shape{})
	grid := func(xs ...float32) *tensor.Tensor {
		return tensor.Must(tensor.From(tensor.Shape{len(xs)}, xs))
	}
	s := tensor.Shape{4}
	all := &graph.State{Slots: []graph.Slot{{Name: "a", Type: tensor.Float32, Shape: s}, {Name: "b", Type: tensor.Float32, Shape: s}}, Tensors: []*tensor.Tensor{grid(1, 1, 2, 2), grid(3, 5, 3, 5)}}
	j, err := replay.NewBatch(replay.Dataset{Model: b.Graph(), Records: all, Batch: 1}, cpu.New(1))
	if err != nil {
		t.Fatal(err)
	}
	p := &job.Problem{Rounds: 1, Shards: 2, Steps: 2, Interval: 1}
	if err := j.Bind(p); err != nil {
		t.Fatal(err)
	}
	var got []float32
	for unit := range 2 {
		if _, err := j.UnitOf(p, unit).Play(t.Context(), j.Start, 0, 2, func(_ int, s *graph.State) error {
			got = append(got, tensor.Of[float32](s.Tensors[0])[0])
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got, []float32{3, 5, 6, 10}) {
		t.Errorf("the grid gives %v", got)
	}
}

// A wrong result loses the game; the others cannot be disputed.
func TestBatchWitness(t *testing.T) {
	j, p, _ := batchOrder(t)
	unit := j.UnitOf(p, 2)
	points := []canon.Hash{p.Start}
	if _, err := unit.Play(t.Context(), j.Start, 0, 2, func(_ int, s *graph.State) error {
		points = append(points, root(t, s))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	claim := func() dispute.Claim {
		return dispute.Claim{Program: p.Step, Independent: true, Inputs: points[:1], Batch: p.RecordsOf(2), Steps: 2, Interval: 1, Checkpoints: canon.Root(points)}
	}
	x := unit.Witness(t.Context(), j.Start)
	if _, err := dispute.Challenge(claim(), points, x); !errors.Is(err, dispute.ErrAgree) {
		t.Fatalf("right results: %v", err)
	}
	points[2][0] ^= 1
	o, err := dispute.Challenge(claim(), points, x)
	if err != nil || o.Segment != 1 {
		t.Fatalf("a wrong result was found in segment %d: %v", o.Segment, err)
	}
	e, err := x.Execution(1)
	if err != nil || root(t, e.Out) == points[2] {
		t.Fatalf("the step gives the wrong result: %v", err)
	}
	if again, err := x.Root(0); err != nil || again != p.Start {
		t.Errorf("the unit starts from %v, %v", again.Short(), err)
	}
}

func TestDatasetsAreRefused(t *testing.T) {
	for want, bend := range map[string]func(*replay.Dataset){
		`no tensor "x"`: func(d *replay.Dataset) {
			d.Records.Slots, d.Records.Tensors = d.Records.Slots[:1], d.Records.Tensors[:1]
		},
		`have tensor "w"`:    func(d *replay.Dataset) { d.Records.Slots[0].Name = "w" },
		"same number of":     func(d *replay.Dataset) { d.Records.Slots[1].Shape = tensor.Shape{records - 1, 6} },
		"its records 0":      func(d *replay.Dataset) { d.Records = &graph.State{} },
		"do not make":        func(d *replay.Dataset) { d.Batch = 5 },
		"batch of 0 records": func(d *replay.Dataset) { d.Batch = 0 },
		"operand":            func(d *replay.Dataset) { d.Records.Slots[1].Type = tensor.Int32 },
	} {
		d := dataset(4)
		bend(&d)
		if _, err := replay.NewBatch(d, cpu.New(1)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error about %q, got %v", want, err)
		}
	}
	_, p, files := batchOrder(t)
	for want, bend := range map[string]func(p *job.Problem, files map[string][]byte){
		"number of records": func(p *job.Problem, _ map[string][]byte) { p.Records++ },
		"merge program":     func(p *job.Problem, _ map[string][]byte) { p.Merge = p.Start },
		"recipe":            func(p *job.Problem, _ map[string][]byte) { p.Recipe = []byte{1} },
		"start state":       func(p *job.Problem, f map[string][]byte) { f[replay.RoleStart] = f[replay.RoleStart][1:] },
		"no start file":     func(p *job.Problem, f map[string][]byte) { p.Files = p.Files[:1] },
		"step program":      func(p *job.Problem, f map[string][]byte) { p.Profile = lower.Mixed.String() },
	} {
		q, all := *p, map[string][]byte{}
		for k, v := range files {
			all[k] = v
		}
		bend(&q, all)
		var unfit *replay.UnfitError
		if _, err := load(&q, all); !errors.As(err, &unfit) || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error about %q, got %v", want, err)
		}
	}
}
