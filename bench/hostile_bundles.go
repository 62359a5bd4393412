package bench

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/node/replay"
)

// honest is the name of a bundle in which nothing is hostile: it holds, and
// nothing anchors it.
const honest = "nothing"

// hostile are the ways in which a bundle can want memory: short parts that stand
// for many, in every place where somebody else's lists are read.
var hostile = []struct {
	name   string
	change func(f *forger, y *forgery, size int) error
}{
	{honest, func(*forger, *forgery, int) error { return nil }},
	{"mutated", func(f *forger, y *forgery, _ int) error { return f.mutate(y) }},
	{"empty validators", func(_ *forger, y *forgery, size int) error {
		y.entries["anchor/block"] = field(2, repeated(1, size/2))
		return nil
	}},
	{"empty signatures", func(_ *forger, y *forgery, size int) error {
		y.entries["anchor/block"] = field(1, field(2, repeated(4, size/2)))
		return nil
	}},
	{"parts of a block in many", func(_ *forger, y *forgery, size int) error {
		y.entries["anchor/block"] = bytes.Repeat(field(2, repeated(1, 8)), size/18)
		return nil
	}},
	{"empty steps of the proof", func(_ *forger, y *forgery, size int) error {
		y.entries["anchor/proof"] = repeated(1, size/2)
		return nil
	}},
	{"deep block", func(_ *forger, y *forgery, size int) error {
		y.entries["anchor/block"] = deep(2, size)
		return nil
	}},
	{"long settlement", func(_ *forger, y *forgery, size int) error {
		s := job.Settlement{Ledger: job.Ledger{Paid: make([]job.Share, min(size/2, 1<<14)), Prizes: make([]job.Share, min(size/2, 1<<14))}}
		y.settlement = canon.Marshal(&s)
		return nil
	}},
	{"settlement that is none", func(_ *forger, y *forgery, size int) error { y.settlement = make([]byte, size); return nil }},
	{"attestations", func(_ *forger, y *forgery, size int) error {
		y.lease.Units = make([]job.Unit, min(size/4000+1, job.MaxUnits))
		for i := range y.lease.Units {
			y.lease.Units[i].Attested = make([]job.Attestation, min(size/4, job.MaxParties))
		}
		return nil
	}},
	{"audited segments", func(_ *forger, y *forgery, size int) error {
		y.lease.Units = make([]job.Unit, min(size/5000+1, job.MaxUnits))
		for i := range y.lease.Units {
			for range 16 {
				y.lease.Units[i].Audits = append(y.lease.Units[i].Audits, job.Audit{Segments: make([]int, job.MaxSegments)})
			}
		}
		return nil
	}},
	{"forced attempts", func(_ *forger, y *forgery, size int) error {
		y.lease.Past = make([][]job.Past, min(size/10_000+1, job.MaxUnits))
		for i := range y.lease.Past {
			x := &job.Forced{}
			y.lease.Past[i] = []job.Past{{Forced: x}}
			x.Unit.Receipt, x.Unit.Attested, x.Unit.Withheld = &job.Receipt{}, make([]job.Attestation, job.MaxParties), make([]string, job.MaxParties)
			x.Truth, x.Challengers = make([]proof.Outcome, 8), make([]string, 1<<12)
		}
		return nil
	}},
	{"verdicts", func(_ *forger, y *forgery, size int) error {
		y.lease.Past = make([][]job.Past, min(size/1600+1, job.MaxUnits))
		for i := range y.lease.Past {
			v := make([]job.Audit, 4)
			for j := range v {
				v[j].Segments = make([]int, job.MaxSegments)
			}
			y.lease.Past[i] = []job.Past{{Receipt: &job.Receipt{}, Verdicts: v}}
		}
		return nil
	}},
	{"4096 units of 256 segments", func(_ *forger, y *forgery, size int) error { return huge(y, size) }},
	{"messages in the order's transaction", func(f *forger, y *forgery, size int) (err error) {
		y.entries["order/tx"], err = f.posted(&y.lease.Order, slices.Repeat([]*codectypes.Any{{}}, size/2))
		return err
	}},
	{"deep transaction", func(f *forger, y *forgery, size int) (err error) {
		nested := &codectypes.Any{TypeUrl: "/google.protobuf.Any", Value: deep(2, size)}
		y.entries["order/tx"], err = f.posted(&y.lease.Order, []*codectypes.Any{nested})
		return err
	}},
	{"digits", func(_ *forger, y *forgery, size int) error {
		y.entries["order/account"] = bytes.Repeat([]byte{'9'}, size)
		return nil
	}},
	{"empty entries", func(_ *forger, y *forgery, size int) error {
		for i := range size / 39 {
			y.entries[fmt.Sprintf("x%04x", i)] = nil
		}
		return nil
	}},
	{"state of many tensors", func(_ *forger, y *forgery, size int) error {
		s := &graph.State{}
		for i := range min(size/8, graph.MaxSlots) {
			s.Slots = append(s.Slots, graph.Slot{Name: fmt.Sprintf("%04x", i)})
			s.Tensors = append(s.Tensors, tensor.Must(tensor.New(tensor.Bool, tensor.Shape{0})))
		}
		return y.end(s)
	}},
	{"state of narrow tensors", func(_ *forger, y *forgery, size int) error {
		t, err := tensor.New(tensor.Bool, tensor.Shape{max(size, 1), 1})
		if err != nil {
			return err
		}
		return y.end(&graph.State{Slots: []graph.Slot{{Name: "x", Type: t.Type, Shape: t.Shape}}, Tensors: []*tensor.Tensor{t}})
	}},
	{"nodes of the model", func(f *forger, y *forgery, size int) error {
		b, last := graph.Extend(f.model), f.model.Outputs[0].Name
		for range min(size/24, graph.MaxNodes-len(f.model.Nodes)) {
			last = b.Op("Neg", last)
		}
		return y.trains(f, b, last)
	}},
	{"initializers of the model", func(f *forger, y *forgery, size int) error {
		b, last := graph.Extend(f.model), f.model.Outputs[0].Name
		for i := range min(size/60, graph.MaxNodes-len(f.model.Nodes)) {
			last = b.Op("Add", last, b.Init(fmt.Sprintf("x%d", i), tensor.Must(tensor.New(tensor.Float32, nil))))
		}
		return y.trains(f, b, last)
	}},
	{"large initializer", func(f *forger, y *forgery, size int) error {
		b := graph.Extend(f.model)
		x := b.Init("x", tensor.Must(tensor.New(tensor.Float32, tensor.Shape{size/4 + 1, 1})))
		y.recipe(f, func(r *train.Recipe) { r.Optimizer, r.Beta1, r.Beta2, r.Epsilon = "adamw", 0.9, 0.9, 1e-8 })
		return y.trains(f, b, b.Op("Add", f.model.Outputs[0].Name, b.Op("ReduceSum", x)))
	}},
	{"empty ONNX", func(_ *forger, y *forgery, size int) error {
		y.file(replay.RoleModel, field(7, repeated(byte(1+4*(size%2)), size/2))) // nodes, or initializers
		return nil
	}},
	{"deep ONNX", func(_ *forger, y *forgery, size int) error { y.file(replay.RoleModel, deep(7, size)); return nil }},
	{"batch", func(f *forger, y *forgery, size int) error {
		y.lease.Order.Problem.Batch = 1 << 20
		y.recipe(f, func(r *train.Recipe) { r.Batch, r.Accumulate, r.Recompute = 1<<20, 1<<16, 1<<8 })
		return nil
	}},
	{"shards", func(f *forger, y *forgery, size int) error {
		b, last := graph.Extend(f.model), f.model.Outputs[0].Name
		for i := range min(size/60, 980) {
			last = b.Op("Add", last, b.Init(fmt.Sprintf("x%d", i), tensor.Must(tensor.New(tensor.Float32, nil))))
		}
		if err := y.trains(f, b, last); err != nil {
			return err
		}
		p := &y.lease.Order.Problem
		p.Shards, p.Records = 1024, 1<<20
		units := make([]job.Unit, p.Shards)
		for i := range units {
			r := *y.lease.Units[0].Receipt
			units[i], r.Unit = y.lease.Units[0], i
			units[i].Receipt = &r
		}
		y.lease.Units = units
		y.lease.Merges[0].Inputs = slices.Repeat(y.lease.Merges[0].Inputs, p.Shards)
		return nil
	}},
	{"records", func(_ *forger, y *forgery, size int) error {
		t, err := tensor.New(tensor.Int32, tensor.Shape{size/8 + 1, 2})
		if err != nil {
			return err
		}
		y.file(replay.RoleData, canon.Encode(t.Encode))
		return nil
	}},
}

// repeated is a protobuf message of n empty members of a list.
func repeated(number byte, n int) []byte { return bytes.Repeat([]byte{number<<3 | 2, 0}, n) }

// field is a protobuf message of one message.
func field(number protowire.Number, inner []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), inner)
}

// deep nests a field in itself.
func deep(number protowire.Number, size int) []byte {
	var b []byte
	for depth := 0; len(b) < size && depth < 20_000; depth++ { // each level copies the inner ones
		b = field(number, b)
	}
	return b
}

// end lets the work end in a state.
func (y *forgery) end(s *graph.State) error {
	root, err := s.Root()
	if err != nil {
		return err
	}
	l := &y.lease
	if l.Merges[0].Root != l.Order.Problem.End(l.Units[0].Receipt) {
		delete(y.entries, "state/"+l.Merges[0].Root.String())
	}
	l.Merges[0].Root = root
	y.entries["state/"+root.String()] = canon.Encode(s.Encode)
	return nil
}

// trains lets the order train a model with another output.
func (y *forgery) trains(f *forger, b *graph.Builder, output string) error {
	g := *b.Graph()
	g.Outputs = []graph.Value{{Name: output, Type: f.model.Outputs[0].Type, Shape: f.model.Outputs[0].Shape}}
	file, err := onnx.Write(&g)
	if err == nil {
		y.file(replay.RoleModel, file)
	}
	return err
}

// recipe changes how the order trains.
func (y *forgery) recipe(f *forger, change func(*train.Recipe)) {
	r := f.job.Recipe
	change(&r)
	y.lease.Order.Problem.Recipe = canon.Marshal(&r)
}

// huge makes an order as large as orders can be, all of whose states are one.
func huge(y *forgery, size int) error {
	l, p := &y.lease, &y.lease.Order.Problem
	p.Shards, p.Steps = max(min(size/(32*job.MaxSegments), job.MaxUnits), 1), job.MaxSegments
	p.Records = p.Shards
	points := slices.Repeat([]canon.Hash{p.Start}, job.MaxSegments+1)
	l.Units = make([]job.Unit, p.Shards)
	for i := range l.Units {
		l.Units[i] = job.Unit{Status: job.Accepted, Provider: "provider", Attested: []job.Attestation{{Custodian: "custodian"}}, Receipt: &job.Receipt{
			Unit: i, Provider: "provider", Start: p.Start, Checkpoints: points,
		}}
	}
	for name := range y.entries {
		if len(name) > 64 {
			delete(y.entries, name) // states
		}
	}
	l.Merges[0].Root, l.Merges[0].Inputs = p.Start, slices.Repeat([]canon.Hash{p.Start}, p.Shards)
	return nil
}

// mutate changes bytes of some entries of an honest bundle, and lets digests fit.
func (f *forger) mutate(y *forgery) error {
	whole, err := f.bundle(f.copied())
	if err != nil {
		return err
	}
	y.entries, err = entries(whole)
	if err != nil {
		return err
	}
	before, r := maps.Clone(y.entries), f.random
	names := slices.Sorted(maps.Keys(before))
	for range 1 + r.IntN(3) {
		name := names[r.IntN(len(names))]
		b := bytes.Clone(y.entries[name])
		if len(b) == 0 {
			continue
		}
		at := r.IntN(len(b))
		switch r.IntN(5) {
		case 0:
			b[at] ^= 1 << r.IntN(8)
		case 1: // lengths grow
			b[at] = 0xff
		case 2:
			b = b[:at]
		case 3:
			b = slices.Insert(b, at, b[:at]...)
		case 4:
			b = slices.Insert(b, at, 0xff, 0xff, 0xff, 0xff, 0x7f)
		}
		y.entries[name] = b
	}
	if maps.EqualFunc(before, y.entries, bytes.Equal) { // a length of nothing was put in
		return f.mutate(y)
	}
	return nil
}
