package evidence

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/internal/testkit/memory"
)

// settledBatch is a batch of 75 records, four a run, five runs a unit, as it may have been
// settled: its order, final root, records, and the results of its runs.
type settledBatch struct {
	order   *job.Order
	final   canon.Hash
	records *graph.State
	runs    [][]*graph.State // by unit
}

func numbered(name string, typ tensor.DType, first int, s ...int) (graph.Slot, *tensor.Tensor) {
	t := tensor.Must(tensor.New(typ, s))
	for i := range t.Len() {
		if typ.Float() {
			t.Set(i, tensor.FloatWord(typ, float64(first+i)))
		} else {
			t.Set(i, tensor.Word(first+i))
		}
	}
	return graph.Slot{Name: name, Type: typ, Shape: s}, t
}

func stateOf(t testing.TB, add ...func() (graph.Slot, *tensor.Tensor)) *graph.State {
	t.Helper()
	s := &graph.State{}
	for _, f := range add {
		slot, x := f()
		s.Slots, s.Tensors = append(s.Slots, slot), append(s.Tensors, x)
	}
	return s
}

func rootOf(t testing.TB, s *graph.State) canon.Hash {
	t.Helper()
	h, err := s.Root()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func newSettledBatch(t testing.TB) *settledBatch {
	b := &settledBatch{order: &job.Order{}}
	p := &b.order.Problem
	p.Kind, p.Rounds, p.Shards, p.Steps, p.Interval, p.Batch, p.Records = job.Batch, 1, 4, 5, 1, 4, 75
	b.records = stateOf(t,
		func() (graph.Slot, *tensor.Tensor) { return numbered("image", tensor.Float32, 0, 75, 3, 40) },
		func() (graph.Slot, *tensor.Tensor) { return numbered("mask", tensor.Int64, 0, 75, 70) },
		func() (graph.Slot, *tensor.Tensor) { return numbered("weight", tensor.Float64, 0, 75) })
	p.Start = rootOf(t, b.records)
	var ends []canon.Hash
	for unit := range p.Shards {
		var points []canon.Hash
		var runs []*graph.State
		for step := range p.Steps {
			first := 1000 * (unit*p.Steps + step)
			s := stateOf(t,
				func() (graph.Slot, *tensor.Tensor) { return numbered("class", tensor.Int32, first, 4) },
				func() (graph.Slot, *tensor.Tensor) { return numbered("mean", tensor.Float32, first, 2, 2) }, // of the run
				func() (graph.Slot, *tensor.Tensor) { return numbered("none", tensor.Float32, first, 4, 0) },
				func() (graph.Slot, *tensor.Tensor) { return numbered("scores", tensor.Float16, first, 4, 35, 33) })
			runs, points = append(runs, s), append(points, rootOf(t, s))
		}
		b.runs, ends = append(b.runs, runs), append(ends, canon.Root(points))
	}
	b.final = canon.Root(ends)
	return b
}

// extract is what a provider's bundle would give.
func (b *settledBatch) extract(t testing.TB, record int) *extract {
	unit, step, row := b.order.Problem.RunOf(record)
	var ends, points []canon.Hash
	for i, runs := range b.runs {
		var all []canon.Hash
		for _, s := range runs {
			all = append(all, rootOf(t, s))
		}
		if ends = append(ends, canon.Root(all)); i == unit {
			points = all
		}
	}
	return &extract{
		Record: record, Unit: canon.NewTree(ends).Prove(unit), Run: canon.NewTree(points).Prove(step),
		Inputs: show(b.records, b.order.Problem.Records, record), Outputs: show(b.runs[unit][step], b.order.Problem.Batch, row),
	}
}

func (b *settledBatch) read(x *extract) (*Record, error) {
	r := &Record{Order: b.order, Final: b.final}
	return r, r.read(x)
}

// Of every record an extract gives what it was and what it got, to the bit, after having been
// written and read.
func TestExtractsGiveTheirRecord(t *testing.T) {
	b := newSettledBatch(t)
	for record := range 75 {
		var x extract
		if err := canon.Unmarshal(canon.Marshal(b.extract(t, record)), &x); err != nil {
			t.Fatal(err)
		}
		r, err := b.read(&x)
		if err != nil {
			t.Fatalf("record %d: %v", record, err)
		}
		unit, step, row := b.order.Problem.RunOf(record)
		check := func(got, from *graph.State, count, at int) {
			for i, s := range from.Slots {
				want := from.Tensors[i].Bytes()
				shape := s.Shape
				if len(shape) > 0 && shape[0] == count {
					shape = shape[1:]
					each := len(want) / count
					want = want[at*each : (at+1)*each]
				}
				if g := got.Tensors[i]; got.Slots[i].Name != s.Name || !g.Shape.Equal(shape) || !bytes.Equal(g.Bytes(), want) {
					t.Errorf("record %d, %s: %v%v", record, s.Name, g.Type, g.Shape)
				}
			}
		}
		check(r.Inputs, b.records, 75, record)
		check(r.Outputs, b.runs[unit][step], 4, row)
		x.Inputs = nil
		if r, err := b.read(&x); err != nil || r.Inputs != nil {
			t.Errorf("record %d without its inputs: %v", record, err)
		}
	}
}

// An extract that shows anything else than what was settled proves nothing.
func TestForgedExtractsAreRefused(t *testing.T) {
	b := newSettledBatch(t)
	for name, bend := range map[string]func(x *extract){
		"another record":          func(x *extract) { x.Record++ },
		"a record of another run": func(x *extract) { x.Record += 4 },
		"no such record":          func(x *extract) { x.Record = 75 },
		"one before the first":    func(x *extract) { x.Record = -1 },
		"another result":          func(x *extract) { x.Outputs[0].Tiles[0].Bytes[0] ^= 1 },
		"another input":           func(x *extract) { x.Inputs[1].Tiles[0].Bytes[0] ^= 1 },
		"an output's name":        func(x *extract) { x.Outputs[0].Slot.Name = "claas" },
		"an output's type":        func(x *extract) { x.Outputs[0].Slot.Type = tensor.Float32 },
		"an output's shape":       func(x *extract) { x.Outputs[1].Slot.Shape = tensor.Shape{4, 1} },
		"a huge shape":            func(x *extract) { x.Outputs[3].Slot.Shape = tensor.Shape{4, 1 << 20, 1 << 18} },
		"a huge shape of none":    func(x *extract) { x.Outputs[2].Slot.Shape = tensor.Shape{4, 1 << 30, 0} },
		"an input of no records":  func(x *extract) { x.Inputs[2].Slot.Shape = nil },
		"fewer outputs":           func(x *extract) { x.Outputs = x.Outputs[1:] },
		"no outputs":              func(x *extract) { x.Outputs = nil },
		"fewer inputs":            func(x *extract) { x.Inputs = x.Inputs[:2] },
		"outputs in disorder":     func(x *extract) { x.Outputs[0], x.Outputs[1] = x.Outputs[1], x.Outputs[0] },
		"fewer tiles":             func(x *extract) { x.Outputs[3].Tiles = x.Outputs[3].Tiles[1:] },
		"tiles in disorder":       func(x *extract) { l := x.Outputs[3].Tiles; l[0], l[1] = l[1], l[0] },
		"a shorter tile":          func(x *extract) { l := x.Outputs[3].Tiles; l[0].Bytes = l[0].Bytes[1:] },
		"no path of a tile":       func(x *extract) { x.Outputs[3].Tiles[0].Path = nil },
		"a longer path":           func(x *extract) { x.Run = append(x.Run, canon.Hash{}) },
		"no path of the unit":     func(x *extract) { x.Unit = nil },
		"inputs for outputs":      func(x *extract) { x.Outputs = x.Inputs },
	} {
		x := b.extract(t, 33)
		bend(x)
		if _, err := b.read(x); err == nil || !strings.Contains(err.Error(), "proves nothing") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzExtract reads arbitrary bytes as an extract, in memory in proportion to them. What it
// gives is what was settled.
func FuzzExtract(f *testing.F) {
	b := newSettledBatch(f)
	for _, record := range []int{0, 33, 74} {
		f.Add(canon.Marshal(b.extract(f, record)))
	}
	var want []string // by record
	for record := range 75 {
		r, err := b.read(b.extract(f, record))
		if err != nil {
			f.Fatal(err)
		}
		want = append(want, string(canon.Encode(r.Outputs.Encode)))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		used := memory.Allocated(func() {
			var x extract
			if canon.UnmarshalWithin(raw, &x, len(raw)+extractRoom) != nil {
				return
			}
			if r, err := b.read(&x); err == nil && string(canon.Encode(r.Outputs.Encode)) != want[x.Record] {
				t.Errorf("another result of record %d", x.Record)
			}
		})
		if used > 4*int64(len(raw))+extractRoom+memory.Slack {
			t.Fatalf("%d bytes took %d", len(raw), used)
		}
	})
}
