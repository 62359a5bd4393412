package onnx

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/elements"
)

// MaxBytes is the size above which models are refused unless Options say
// otherwise. One protobuf message cannot be larger.
const MaxBytes = 1<<31 - 1

// Versions of the file format that are read.
const (
	oldestIR = 3
	newestIR = 14
)

// Options say what a model may be. The zero value takes self-contained models
// of at most MaxBytes with static shapes.
type Options struct {
	MaxBytes int64          // of the model file and its external data; 0 means MaxBytes
	Dims     map[string]int // extents of symbolic dimensions, such as batch

	// Files opens a file of external data by its path from the model's folder, as
	// bounded.Beside does: a regular one, and no other than the model may name. It tells the
	// size, too. Nil refuses external data.
	Files func(path string) (*os.File, int64, error)

	// Shapes are those of the inputs, by name, for models that leave them open.
	// Symbolic dimensions follow from them. Where they are given, the shapes
	// that a file states for outputs are not read: op.Infer finds them.
	Shapes map[string]tensor.Shape
}

// unsupported is the error for what ONNX allows and this package does not
// take. It is errors.ErrUnsupported.
type unsupported string

func (u unsupported) Error() string        { return string(u) }
func (u unsupported) Is(target error) bool { return target == errors.ErrUnsupported }

// ErrNoInput is what the error wraps about a shape for an input that a model does not have.
var ErrNoInput = errors.New("the model has no input")

// SymbolError is about all symbolic dimensions that have no size. It is
// errors.ErrUnsupported.
type SymbolError struct {
	Symbols []string // in order, one to maxSymbols
}

// maxSymbols bounds how many dimensions a SymbolError names.
const maxSymbols = 16

func (e *SymbolError) Error() string {
	return fmt.Sprintf("symbolic dimensions %q have no size: give each one, for example %q, or export the model with fixed shapes", e.Symbols, e.Symbols[0]+"=1")
}

// Is makes it errors.ErrUnsupported.
func (e *SymbolError) Is(target error) bool { return target == errors.ErrUnsupported }

// Read returns the graph of the model in the first size bytes of src, with its
// nodes in canonical order. Errors name the node or value, and are
// errors.ErrUnsupported if the model may be valid and is not supported.
func Read(src io.ReaderAt, size int64, opt Options) (*graph.Graph, error) {
	if opt.MaxBytes == 0 {
		opt.MaxBytes = MaxBytes
	}
	if size < 0 || size > opt.MaxBytes {
		return nil, fmt.Errorf("read ONNX model: file has %d bytes, limit %d", size, opt.MaxBytes)
	}
	r := &reader{file: newFile(src, size), opt: opt, bound: map[string]bool{}, open: map[string]bool{}}
	r.opt.Dims = maps.Clone(opt.Dims)
	g, err := r.model()
	if err != nil {
		return nil, fmt.Errorf("read ONNX model: %w", err)
	}
	return g, nil
}

// reader holds what reading one model needs and collects.
type reader struct {
	*file
	opt   Options
	bound map[string]bool // symbolic dimensions seen
	open  map[string]bool // those without a size: they count as 1 until all are known
	loads []load

	*scope    // what is being read
	functions map[functionKey]*function
	calls     int // of functions
	parts     []part
	outer     int64 // bytes of the parts
}

// load is a tensor that waits for its elements.
type load struct {
	into *tensor.Tensor // type and shape only
	name string
	from io.Reader // nil: the external part
	part part
}

func (r *reader) model() (*graph.Graph, error) {
	m, err := r.message(&modelSchema, field{at: 0, end: r.size})
	if err != nil {
		return nil, err
	}
	var version, set int64
	var body field
	for x, err := range m.fields() {
		if err != nil {
			return nil, err
		}
		switch x.num {
		case modelIRVersion:
			version, err = r.int(x)
		case modelOpset:
			err = r.opset(x, &set)
		case modelGraph:
			body = x
		case modelFunction:
			err = r.function(x)
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case version < oldestIR || version > newestIR:
		return nil, unsupported(fmt.Sprintf("IR version %d: versions %d to %d are read", version, oldestIR, newestIR))
	case set == 0:
		return nil, unsupported("the model imports no operator set of the default domain")
	case set < OldestSet || set > NewestSet:
		return nil, unsupported(fmt.Sprintf("operator set %d: sets %d to %d are read; convert the model (onnx.version_converter) or export it again", set, OldestSet, NewestSet))
	case !m.has(modelGraph):
		return nil, errors.New("the model has no graph")
	}
	g, err := r.graph(body, scope{set: int(set)})
	if g != nil { // a wrong name leaves the dimensions of the right one open, so this comes first
		if err := r.checkShapes(g.Inputs); err != nil {
			return nil, err
		}
	}
	if len(r.open) > 0 {
		return nil, &SymbolError{slices.Sorted(maps.Keys(r.open))}
	}
	if err == nil {
		err = overridden(g)
	}
	if err != nil {
		return nil, err
	}
	return r.finish(g)
}

// opset reads one opset_import. Other domains may be imported: what counts is
// whether a node uses them.
func (r *reader) opset(x field, set *int64) error {
	m, err := r.message(&opsetSchema, x)
	if err != nil {
		return err
	}
	var domain string
	var version int64
	for y, err := range m.fields() {
		if err != nil {
			return err
		}
		if y.num == opsetDomain {
			domain, err = r.text(y, graph.MaxName)
		} else {
			version, err = r.int(y)
		}
		if err != nil {
			return fmt.Errorf("opset_import: %w", err)
		}
	}
	if !defaultDomain(domain) {
		return nil
	}
	if *set != 0 {
		return errors.New("the default operator domain is imported twice")
	}
	if version < 1 {
		return fmt.Errorf("operator set version %d", version)
	}
	*set = version
	return nil
}

func defaultDomain(s string) bool { return s == "" || s == "ai.onnx" }

// finish orders and checks the graph, then loads its tensors.
func (r *reader) finish(g *graph.Graph) (*graph.Graph, error) {
	for _, name := range slices.Sorted(maps.Keys(r.opt.Dims)) {
		if !r.bound[name] {
			return nil, fmt.Errorf("a size is given for dimension %q, which no input or output has", name)
		}
	}
	g, err := g.Canonical()
	if err != nil {
		return nil, err
	}
	if err := validate(g); err != nil {
		return nil, err
	}
	if err := checkParts(r.parts); err != nil {
		return nil, err
	}
	for _, l := range r.loads {
		if err := r.load(l); err != nil {
			return nil, fmt.Errorf("tensor %q: %w", l.name, err)
		}
	}
	return g, nil
}

func (r *reader) load(l load) error {
	from := l.from
	if from == nil {
		f, _, err := r.opt.Files(l.part.path)
		if err != nil {
			return err
		}
		defer f.Close()
		from = io.NewSectionReader(f, l.part.at, l.part.end-l.part.at)
	}
	t, err := elements.Read(from, l.into.Type, l.into.Shape, nil)
	if err != nil {
		return err
	}
	*l.into = *t
	return nil
}
