package op

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Element types in lowering: constants of any type, and halves, which are
// computed in float32 and rounded once.

// number returns a tensor without axes that holds v.
func number(t tensor.DType, v int) *tensor.Tensor {
	if t.Float() {
		return real(t, float64(v))
	}
	x := tensor.Must(tensor.New(t, tensor.Shape{}))
	x.Set(0, tensor.Word(v))
	return x
}

// fits reports whether an integer type has v.
func fits(t tensor.DType, v int) bool {
	return int(int64(number(t, v).At(0))) == v && (v >= 0 || t.Signed())
}

// real returns a tensor without axes of a float type that holds v, rounded.
func real(t tensor.DType, v float64) *tensor.Tensor {
	x := tensor.Must(tensor.New(t, tensor.Shape{}))
	x.Set(0, tensor.FloatWord(t, v))
	return x
}

// real names a constant of the type of the first input, which is a float.
func (c *Call) real(b *graph.Builder, v float64) string { return b.Const(real(c.In[0].Type, v)) }

// number names a constant of the type of the first input.
func (c *Call) number(b *graph.Builder, v int) string { return b.Const(number(c.In[0].Type, v)) }

// floats returns an error unless all inputs are of float types.
func (c *Call) floats() error {
	for i, v := range c.In {
		if c.has(i) && !v.Type.Float() {
			return fmt.Errorf("input %q is %v, but should be a float; cast it", c.Inputs[i], v.Type)
		}
	}
	return nil
}

type expansion = func(*Call, *graph.Builder) ([]string, error)

// wide is the expansion of an operator that takes floats: on halves it is the
// same operator on float32, rounded once to the type of the first input.
func wide(expand expansion) expansion {
	return func(c *Call, b *graph.Builder) ([]string, error) {
		t := c.In[0].Type
		if !t.Half() {
			return expand(c, b)
		}
		in := make([]string, len(c.Inputs))
		for i, name := range c.Inputs {
			if in[i] = name; c.has(i) && c.In[i].Type.Half() {
				in[i] = castTo(b, name, tensor.Float32)
			}
		}
		out := b.With(c.Attrs...).Ops(c.Op, len(c.Outputs), in...)
		for i, y := range out {
			out[i] = castTo(b, y, t)
		}
		return out, nil
	}
}

// summed calls f with v in a type of which there are sums, and returns its
// result in the type of v: of halves, in float32 and rounded once.
func (l *lowering) summed(v view, f func(view) (view, error)) (view, error) {
	t := v.Type
	if !t.Half() {
		return f(v)
	}
	v, err := l.cast(v, tensor.Float32)
	if err == nil {
		v, err = f(v)
	}
	if err != nil {
		return view{}, err
	}
	return l.cast(v, t)
}
