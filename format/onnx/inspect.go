package onnx

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/tally-network/tally/core/graph"
)

// Summary is what can be told of a model before it is read, supported or not.
type Summary struct {
	Inputs    []string // that no initializer gives a value
	Outputs   []string
	Operators []string // of the graph's own nodes, sorted: Relu, or com.example.Foo
	Producer  string   // the program that wrote the file
	Metadata  []Entry  // what its author says of it, such as a license, in order
}

// Entry is a key and its value.
type Entry struct{ Key, Value string }

// What is told of metadata; longer and further ones are left out.
const (
	maxEntries  = 64
	maxMetadata = 1 << 12 // bytes
)

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
	switch x.num {
	case modelProducer:
		return i.short(x, &i.Producer)
	case modelMetadata:
		var e Entry
		err := i.fields(&entrySchema, x, func(y field) error {
			switch y.num {
			case entryKey:
				return i.short(y, &e.Key)
			case entryValue:
				return i.short(y, &e.Value)
			}
			return nil
		})
		if e.Key != "" && e.Value != "" && len(i.Metadata) < maxEntries {
			i.Metadata = append(i.Metadata, e)
		}
		return err
	case modelGraph:
		return i.fields(&graphSchema, x, i.part)
	}
	return nil
}

// short reads text that people wrote, unless it is long, or none: what it says changes no model.
func (i *inspection) short(x field, to *string) error {
	if x.end-x.at > maxMetadata || len(i.Metadata) == maxEntries {
		return nil
	}
	if err := i.charge(1, maxMetadata); err != nil {
		return err
	}
	s, err := i.blob(x, maxMetadata)
	if err == nil && utf8.ValidString(s) {
		*to = s
	}
	return err
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
