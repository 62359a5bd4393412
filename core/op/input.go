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

// wantOnto returns an error unless input i broadcasts to the shape of the first.
func wantOnto(c *lower.Call, i int) error {
	if s, err := c.In[i].Shape.Broadcast(c.In[0].Shape); err != nil || !s.Equal(c.In[0].Shape) {
		return fmt.Errorf("input %q has shape %v, which does not broadcast to %v", c.Inputs[i], c.In[i].Shape, c.In[0].Shape)
	}
	return nil
}

// inputName returns the name of input i, empty if it is not given.
func inputName(c *lower.Call, i int) string {
	if c.Has(i) {
		return c.Inputs[i]
	}
	return ""
}

// maxVector bounds the lists of axes, extents and sizes that operators take.
const maxVector = 1 << 16

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

// floatsInput returns the constant floats of input i.
func floatsInput(c *lower.Call, i int) ([]float64, error) {
	t, err := c.Constant(i)
	if err != nil {
		return nil, err
	}
	if !t.Type.Float() || len(t.Shape) > 1 || t.Len() > maxVector {
		return nil, fmt.Errorf("input %q is %v%v, but should be a short list of floats", c.Inputs[i], t.Type, t.Shape)
	}
	out := make([]float64, t.Len())
	for j := range out {
		out[j] = tensor.FloatOf(t.Type, t.At(j))
	}
	return out, nil
}

// scalarInput returns the one constant number of input i, truncated.
func scalarInput(c *lower.Call, i int) (int, error) {
	t, err := c.Constant(i)
	if err != nil {
		return 0, err
	}
	if t.Len() != 1 || !t.Type.Numeric() {
		return 0, fmt.Errorf("input %q is %v%v, but should be one number", c.Inputs[i], t.Type, t.Shape)
	}
	if t.Type.Float() {
		v := tensor.FloatOf(t.Type, t.At(0))
		if !(v > -tensor.MaxDim && v < tensor.MaxDim) {
			return 0, fmt.Errorf("input %q is %v, which is out of range", c.Inputs[i], v)
		}
		return int(v), nil
	}
	return int(t.At(0)), nil
}

// intInput returns the constant integer of input i, or a default.
func intInput(c *lower.Call, i, missing int) (int, error) {
	if !c.Has(i) {
		return missing, nil
	}
	v, err := intsInput(c, i)
	if err == nil && len(v) != 1 {
		err = fmt.Errorf("input %q has %d elements, but should have one", c.Inputs[i], len(v))
	}
	if err != nil {
		return 0, err
	}
	return v[0], nil
}

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

// typeNamed returns the type that an attribute names.
func typeNamed(c *lower.Call, attr string) (tensor.DType, error) {
	t := tensor.DType(c.Int(attr))
	if int(t) != c.Int(attr) || !t.Valid() {
		return 0, fmt.Errorf("element type %d is not supported; use a type of numbers, or bool", c.Int(attr))
	}
	return t, nil
}

// typeAttr returns the element type that an attribute names, or another if it
// names none.
func typeAttr(c *lower.Call, name string, otherwise tensor.DType) (tensor.DType, error) {
	v := c.Int(name)
	if v == 0 {
		return otherwise, nil
	}
	t := tensor.DType(v)
	if int(t) != v || !t.Valid() {
		return 0, fmt.Errorf("%s names element type %d, which is not supported", name, v)
	}
	return t, nil
}

// intsAttr returns an attribute of integers; none if it is not given.
func intsAttr(c *lower.Call, name string) []int {
	if a := c.Node.Attr(name); a != nil {
		return toInts(a.Ints)
	}
	return nil
}

func toInts(v []int64) []int {
	out := make([]int, len(v))
	for i, x := range v {
		out[i] = int(x)
	}
	return out
}
