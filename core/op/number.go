package op

import (
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Element types in lowering: constants of any type, and halves, which are
// computed in float32 and rounded once.

// scalarOf returns a tensor without axes that holds v.
func scalarOf(t tensor.DType, v int) *tensor.Tensor {
	if t.Float() {
		return floatOf(t, float64(v))
	}
	x := tensor.Must(tensor.New(t, tensor.Shape{}))
	x.Set(0, tensor.Word(v))
	return x
}

// fits reports whether an integer type has v.
func fits(t tensor.DType, v int) bool {
	return int(int64(scalarOf(t, v).At(0))) == v && (v >= 0 || t.Signed())
}

// floatOf returns a tensor without axes of a float type that holds v, rounded.
func floatOf(t tensor.DType, v float64) *tensor.Tensor {
	x := tensor.Must(tensor.New(t, tensor.Shape{}))
	x.Set(0, tensor.FloatWord(t, v))
	return x
}

// floatLike names a constant of the type of the first input, which is a float.
func floatLike(c *lower.Call, b *graph.Builder, v float64) string {
	return b.Const(floatOf(c.In[0].Type, v))
}

// scalarLike names a constant of the type of the first input.
func scalarLike(c *lower.Call, b *graph.Builder, v int) string {
	return b.Const(scalarOf(c.In[0].Type, v))
}

// inFloat32 is the expansion of an operator that takes floats: on halves it is the
// same operator on float32, rounded once to the type of the first input.
func inFloat32(expand expandFunc) expandFunc {
	return func(c *lower.Call, b *graph.Builder) ([]string, error) {
		t := c.In[0].Type
		if !t.Half() {
			return expand(c, b)
		}
		in := make([]string, len(c.Inputs))
		for i, name := range c.Inputs {
			if in[i] = name; c.Has(i) && c.In[i].Type.Half() {
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
