package record_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/record"
	"github.com/tally-network/tally/core/tensor"
)

// What a graph reads of records is what was packed, of every type.
func TestFieldsAreReadAsPacked(t *testing.T) {
	values := map[string]*tensor.Tensor{}
	var fields record.Fields
	for typ := tensor.DType(0); typ < 64; typ++ {
		if !typ.Valid() {
			continue
		}
		for suffix, s := range map[string][]int{"": {}, "5": {5}, "23": {2, 3}} {
			name := typ.String() + suffix
			values[name] = whole(typ, func(r, c int) int { return (r*31 + c*7) % 120 * (1 - (r+c)%2*2) }, s...)
			if typ == tensor.Bool {
				values[name] = whole(typ, func(r, c int) int { return (r + c) % 2 }, s...)
			}
			fields = append(fields, record.Field{Name: name, Type: typ, Shape: s})
		}
	}
	slices.SortFunc(fields, func(a, b record.Field) int { return strings.Compare(a.Name, b.Name) })
	data, err := fields.Pack(values)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		got, err := fields.Unpack(data, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		if !got.Equal(values[f.Name]) {
			t.Errorf("unpacked, %s differs", f.Name)
		}
	}
	for f, got := range read(t, fields, data) {
		if !got.Equal(values[f]) {
			t.Errorf("read by a graph, %s is %v, packed were %v", f, got.Bytes(), values[f].Bytes())
		}
	}
}

func TestFieldsRefuse(t *testing.T) {
	many := make(record.Fields, 300)
	for want, fs := range map[string]record.Fields{
		"0 fields":         {},
		"300 fields":       many,
		"has 0 bytes":      {{Type: tensor.Int8}},
		"has 200 bytes":    {{Name: strings.Repeat("x", 200), Type: tensor.Int8}},
		"are called":       {{Name: "x", Type: tensor.Int8}, {Name: "x", Type: tensor.Int8}},
		"no known type":    {{Name: "x"}},
		"has 0 elements":   {{Name: "x", Type: tensor.Int8, Shape: tensor.Shape{0}}},
		"takes more than":  {{Name: "x", Type: tensor.Float64, Shape: tensor.Shape{1 << 28}}},
		`field "x": shape`: {{Name: "x", Type: tensor.Int8, Shape: tensor.Shape{-1}}},
	} {
		if err := fs.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got: %v", want, err)
		}
	}
	x := record.Fields{{Name: "x", Type: tensor.Int8, Shape: tensor.Shape{2}}, {Name: "y", Type: tensor.Int8}}
	ok := whole(tensor.Int8, placeOf, 2)
	for want, values := range map[string]map[string]*tensor.Tensor{
		`"x" has no values`: {"y": whole(tensor.Int8, placeOf)},
		"int8[2] a record":  {"x": whole(tensor.Int8, placeOf, 3), "y": whole(tensor.Int8, placeOf)},
		`"y" has 1 records`: {"x": ok, "y": tensor.Must(tensor.New(tensor.Int8, tensor.Shape{1}))},
	} {
		if _, err := x.Pack(values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got: %v", want, err)
		}
	}
}

// read returns what a graph reads of records, by field.
func read(t *testing.T, fs record.Fields, records *tensor.Tensor) map[string]*tensor.Tensor {
	t.Helper()
	rows := records.Shape[0]
	b := graph.NewBuilder("fields")
	values := fs.Read(b, b.Input("batch", records.Type, records.Shape), rows)
	for _, f := range fs {
		b.Output(values[f.Name], f.Type, nil)
	}
	g := b.Graph()
	typed, err := op.Infer(g, lower.FP32)
	if err != nil {
		t.Fatal(err)
	}
	binding := lower.Binding{Groups: 1, Slots: []graph.Slot{{Name: "batch", Type: records.Type, Shape: records.Shape}}, Inputs: []graph.Ref{{Kind: graph.RefSlot}}}
	for i, f := range fs {
		binding.Results = append(binding.Results, graph.Slot{Name: f.Name, Type: f.Type, Shape: typed.Outputs[i].Shape})
		binding.Outputs = append(binding.Outputs, i)
	}
	p, err := typed.Program(binding)
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Run(graph.Inputs{States: []*graph.State{{Slots: binding.Slots, Tensors: []*tensor.Tensor{records}}}}, graph.Reference, nil)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*tensor.Tensor{}
	for i, f := range fs {
		out[f.Name] = s.Tensors[i]
	}
	return out
}

const records = 24

// whole makes elements of any type by their bits, which are those of whole numbers.
func whole(typ tensor.DType, of func(record, column int) int, columns ...int) *tensor.Tensor {
	t := tensor.Must(tensor.New(typ, append(tensor.Shape{records}, columns...)))
	n := tensor.Shape(columns).Elements()
	for i := range t.Len() {
		v := of(i/n, i%n)
		if typ.Float() {
			v = max(v, -v) // of others, bits may be those of a NaN
		}
		t.Set(i, tensor.Word(int64(v)))
	}
	return t
}

func placeOf(r, c int) int { return (r + c) % 7 }
