package onnx

import (
	"errors"
	"fmt"
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Rules that more than one operator needs.

// dropped is for an attribute that said what is so anyway.
func dropped(attr string) rule {
	return func(w *rewrite) { w.take(attr, graph.AttrInt) }
}

// unlessGiven states the value that an absent attribute had.
func unlessGiven(a graph.Attr) rule {
	return func(w *rewrite) {
		if w.n.Attr(a.Name) == nil {
			w.put(a)
		}
	}
}

// renamedValue gives values of a text attribute their new names.
func renamedValue(attr string, names map[string]string) rule {
	return func(w *rewrite) {
		if a := w.n.Attr(attr); a != nil && names[a.String] != "" {
			a.String = names[a.String]
		}
	}
}

// toInput turns an attribute of integers into the input at place at: one
// integer into a tensor of the given shape. An absent one stays absent unless it
// stood for missing.
func toInput(attr string, at int, one tensor.Shape, missing ...int64) rule {
	return func(w *rewrite) {
		list := missing
		switch a := w.take(attr, graph.AttrInts, graph.AttrInt); {
		case a != nil && a.Kind == graph.AttrInts:
			list, one = a.Ints, tensor.Shape{len(a.Ints)}
		case a != nil:
			list = []int64{a.Int}
		case missing == nil:
			if w.input(at) != "" {
				w.fail(fmt.Errorf("%d inputs where operator set %d takes %d", len(w.n.Inputs), w.set, at))
			}
			return
		}
		if t, err := tensor.From(one, list); err != nil {
			w.fail(err)
		} else {
			w.setInput(at, w.hold(attr, t))
		}
	}
}

// listToInput turns a list of integers into the input at place at.
func listToInput(attr string, at int) rule { return toInput(attr, at, nil) }

// floatToInput turns a float into the input at place at, of the type of the
// first one.
func floatToInput(attr string, at int) rule {
	return func(w *rewrite) {
		if a := w.take(attr, graph.AttrFloat); a != nil {
			held := w.hold(attr, tensor.Scalar(tensor.CanonNaN(a.Float)))
			w.setInput(at, w.op("CastLike", []string{held, w.input(0)}))
		}
	}
}

// absentIfEmpty is for an input that had to be given and could be without
// elements.
func absentIfEmpty(at int) rule {
	return func(w *rewrite) {
		if name := w.input(at); name != "" {
			empty, err := w.empty(name)
			if err != nil {
				w.fail(err)
			} else if empty {
				w.n.Inputs[at] = ""
			}
		}
	}
}

// flattened is for operators that took all axes from one on as a single one,
// and now take one axis.
func flattened(w *rewrite) {
	axis := int64(1)
	if a := w.take("axis", graph.AttrInt); a != nil {
		axis = a.Int
	}
	if axis == -1 { // the last axis alone, then as now
		return
	}
	x := w.input(0)
	if x == "" {
		w.fail(errors.New("its input is missing"))
		return
	}
	shape := w.op("Shape", []string{x})
	flat := w.op("Flatten", []string{x}, graph.Attr{Name: "axis", Kind: graph.AttrInt, Int: axis})
	if w.err != nil {
		return
	}
	w.n.Inputs[0] = flat
	w.swap(0, "Reshape", []string{shape})
}

// ones returns a list of as many ones as the list has elements.
func (w *rewrite) ones(list string) string {
	one := tensor.Must(tensor.From(tensor.Shape{1}, []int64{1}))
	return w.op("ConstantOfShape", []string{w.op("Shape", []string{list})}, graph.Tensor("value", one))
}

// aligned is for operators that took a second operand whose axes lay against
// those of the first from a given one on.
func aligned(w *rewrite) {
	w.take("broadcast", graph.AttrInt) // shapes that were equal broadcast, too
	a := w.take("axis", graph.AttrInt)
	if a == nil || len(w.n.Inputs) != 2 {
		return
	}
	// As many axes of extent 1 follow as the first operand has beyond.
	rest := w.op("Shape", []string{w.input(0)}, graph.Attr{Name: "start", Kind: graph.AttrInt, Int: a.Int})
	have := w.op("Shape", []string{w.input(1)})
	beyond := w.op("Slice", []string{rest, w.op("Shape", []string{have}), w.ints("end", math.MaxInt64)})
	shape := w.op("Concat", []string{have, w.ones(beyond)}, graph.Int("axis", 0))
	b := w.op("Reshape", []string{w.input(1), shape})
	if w.err == nil {
		w.n.Inputs[1] = b
	}
}

// renamed is for operators that have another name now.
func renamed(op string) rule {
	return func(w *rewrite) { w.n.Op = op }
}
