package onnx

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/tally-network/tally/core/graph"
)

// Summary is what can be told of a model before it is read, supported or not.
type Summary struct {
	Inputs    []string // that no initializer gives a value
	Outputs   []string
	Operators []string // of the graph's own nodes, sorted: Relu, or com.example.Foo
}

// Inspect returns the summary of the model in the first size bytes of src.
func Inspect(src io.ReaderAt, size int64) (*Summary, error) {
	if size < 0 || size > MaxBytes {
		return nil, fmt.Errorf("inspect ONNX model: file has %d bytes, limit %d", size, int64(MaxBytes))
	}
	i := &inspection{reader: &reader{file: newFile(src, size)}, held: map[string]bool{}, ops: map[string]bool{}}
	if err := i.fields(&modelSchema, field{at: 0, end: size}, i.model); err != nil {
		return nil, fmt.Errorf("inspect ONNX model: %w", err)
	}
	i.Inputs = slices.DeleteFunc(i.Inputs, func(s string) bool { return i.held[s] })
	i.Operators = slices.Sorted(maps.Keys(i.ops))
	return &i.Summary, nil
}

type inspection struct {
	*reader
	Summary
	held map[string]bool // initializers
	ops  map[string]bool
}

// fields gives the fields of x, whose schema is only used to tell them apart.
func (i *inspection) fields(of *schema, x field, do func(field) error) error {
	m := message{file: i.file, of: of, at: x.at, end: x.end}
	for y, err := range m.fields() {
		if err == nil {
			err = do(y)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (i *inspection) model(x field) error {
	if x.num != modelGraph {
		return nil
	}
	return i.fields(&graphSchema, x, i.part)
}

func (i *inspection) part(x field) error {
	switch x.num {
	case graphInput:
		return i.text(&valueSchema, x, valueName, func(s string) { i.Inputs = append(i.Inputs, s) })
	case graphOutput:
		return i.text(&valueSchema, x, valueName, func(s string) { i.Outputs = append(i.Outputs, s) })
	case graphConst:
		return i.text(&tensorSchema, x, tensorName, func(s string) { i.held[s] = true })
	case graphNode:
		op, domain := "", ""
		err := i.text(&nodeSchema, x, nodeOp, func(s string) { op = s })
		if err == nil {
			err = i.text(&nodeSchema, x, nodeDomain, func(s string) { domain = s })
		}
		if !defaultDomain(domain) {
			op = domain + "." + op
		}
		i.ops[op] = true
		return err
	}
	return nil
}

// text gives the text of field num of the message x, if it has one.
func (i *inspection) text(of *schema, x field, num int, do func(string)) error {
	return i.fields(of, x, func(y field) error {
		if int(y.num) != num {
			return nil
		}
		if err := i.charge(1, 2*nameCost); err != nil {
			return err
		}
		s, err := i.reader.text(y, graph.MaxName)
		if err == nil {
			do(s)
		}
		return err
	})
}
