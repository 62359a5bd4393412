package op

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Values that are there from the beginning, and the operator that leaves them.

var _ = define(
	lower.Operator{Name: "Constant", Min: 0, Max: 0, Outputs: 1, Lower: lowerConstant, Attrs: []graph.Attr{
		graph.Tensor("value", nil), graph.Int("value_int", 0), graph.Float("value_float", 0), graph.Ints("value_ints"),
		{Name: "value_floats", Kind: graph.AttrFloats},
	}},
	lower.Operator{Name: "ConstantOfShape", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{graph.Tensor("value", nil)},
		Lower: func(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
			list, err := intsInput(c, 0)
			if err != nil {
				return nil, err
			}
			s := tensor.Shape(list)
			if err := s.Check(); err != nil {
				return nil, err
			}
			t := c.AttrOrDefault("value").Tensor
			if t == nil {
				t = scalarOf(tensor.Float32, 0)
			}
			if t.Len() != 1 {
				return nil, fmt.Errorf("value has %d elements, but should have one", t.Len())
			}
			v, err := e.Reshape(e.Const(t), tensor.Shape{})
			return one(v.Broadcast(s), err)
		}},
	identity("Identity"),
)

// identity is an operator that leaves its input.
func identity(name string) lower.Operator {
	return lower.Operator{Name: name, Min: 1, Max: 1, Outputs: 1,
		Lower: func(c *lower.Call, e *lower.Emitter) ([]lower.View, error) { return c.In, nil },
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			return dy, nil
		}}
}

func lowerConstant(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	if len(c.Attrs) != 1 {
		return nil, fmt.Errorf("it has %d attributes, but takes exactly one value", len(c.Attrs))
	}
	var t *tensor.Tensor
	var err error
	switch a := c.Attrs[0]; a.Name {
	case "value":
		t = a.Tensor
	case "value_int":
		t = tensor.Scalar(a.Int)
	case "value_float":
		t = tensor.Scalar(tensor.CanonNaN(a.Float))
	case "value_ints":
		t, err = tensor.From(tensor.Shape{len(a.Ints)}, a.Ints)
	case "value_floats":
		if t, err = tensor.New(tensor.Float32, tensor.Shape{len(a.Floats)}); err == nil {
			for i, x := range a.Floats {
				t.Set(i, tensor.F32(x))
			}
		}
	}
	if err != nil {
		return nil, err
	}
	if t == nil {
		return nil, fmt.Errorf("its value is missing")
	}
	return []lower.View{e.Const(t)}, nil
}
