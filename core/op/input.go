package op

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// What operators ask of their inputs and attributes.

// wantType returns an error unless input i has the type.
func wantType(c *lower.Call, i int, t tensor.DType) error {
	if c.In[i].Type != t {
		return fmt.Errorf("input %q is %v, but should be %v", c.Inputs[i], c.In[i].Type, t)
	}
	return nil
}

// wantOneType returns an error unless all inputs from the first on have one type.
func wantOneType(c *lower.Call, first int) error {
	for i := first; i < len(c.In); i++ {
		if !c.Has(i) {
			return fmt.Errorf("input %d is missing", i)
		}
		if c.In[i].Type != c.In[first].Type {
			return fmt.Errorf("inputs %q and %q are %v and %v; cast one of them", c.Inputs[first], c.Inputs[i], c.In[first].Type, c.In[i].Type)
		}
	}
	return nil
}

// wantNumbers returns an error unless all inputs are numbers of one type.
func wantNumbers(c *lower.Call) error {
	if err := wantOneType(c, 0); err != nil {
		return err
	}
	if !c.In[0].Type.Numeric() {
		return fmt.Errorf("it does not take %v", c.In[0].Type)
	}
	return nil
}

// wantFloats returns an error unless all inputs are of float types.
func wantFloats(c *lower.Call) error {
	for i, v := range c.In {
		if c.Has(i) && !v.Type.Float() {
			return fmt.Errorf("input %q is %v, but should be a float; cast it", c.Inputs[i], v.Type)
		}
	}
	return nil
}

// intsInput returns the constant integers of input i, which has at most one axis.
func intsInput(c *lower.Call, i int) ([]int, error) {
	t, err := c.Constant(i)
	if err != nil {
		return nil, err
	}
	if !t.Type.Integer() || len(t.Shape) > 1 || t.Len() > maxVector {
		return nil, fmt.Errorf("input %q is %v%v, but should be a short list of integers", c.Inputs[i], t.Type, t.Shape)
	}
	out := make([]int, t.Len())
	for j := range out {
		out[j] = int(int64(t.At(j)))
	}
	return out, nil
}

// maxVector bounds the lists of axes, extents and sizes that operators take.
const maxVector = 1 << 16

// axisOf returns axis a of a tensor, counted from the end if negative.
func axisOf(a, rank int) (int, error) {
	if a < -rank || a >= rank {
		return 0, fmt.Errorf("axis %d does not exist in a tensor with %d axes", a, rank)
	}
	if a < 0 {
		a += rank
	}
	return a, nil
}

// axesOf returns the given axes in ascending order; none may come twice.
func axesOf(list []int, rank int) ([]int, error) {
	out := make([]int, len(list))
	for i, a := range list {
		var err error
		if out[i], err = axisOf(a, rank); err != nil {
			return nil, err
		}
	}
	slices.Sort(out)
	if len(slices.Compact(slices.Clone(out))) != len(list) {
		return nil, fmt.Errorf("axes %v name one twice", list)
	}
	return out, nil
}

// firstGrad returns the gradients of an operator that has one for its first input
// alone.
func firstGrad(c *lower.Call, dx string) []string {
	out := make([]string, len(c.In))
	out[0] = dx
	return out
}

func one(v lower.View, err error) ([]lower.View, error) { return []lower.View{v}, err }
