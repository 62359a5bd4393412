package affine

import "github.com/tally-network/tally/core/tensor"

// DependsOn reports whether what operand arg reads changes along an axis of p, one of
// its output or a folded one.
func DependsOn(p *tensor.Primitive, arg, axis int) bool {
	if p.Shape[axis] == 1 {
		return false
	}
	if p.Args[arg].Flat {
		return true
	}
	for d := range p.Args[arg].Dims {
		if b, _ := NewBound(p, arg, d); b.Steps[axis] != 0 {
			return true
		}
	}
	return false
}

// Windowed reports whether some coordinate of operand arg moves along an output axis
// and along a folded one, as the input of a convolution does.
func Windowed(p *tensor.Primitive, arg, axis int) bool {
	for d := range p.Args[arg].Dims {
		b, _ := NewBound(p, arg, d)
		for i, step := range b.Steps[len(p.Shape):] {
			if b.Steps[axis] != 0 && step != 0 && p.Fold[i] > 1 {
				return true
			}
		}
	}
	return false
}

// BoundsOf returns the coordinates of operand arg that need a bounds check. Their
// steps go by axis of p.
func BoundsOf(p *tensor.Primitive, arg int) (out []Bound) {
	for d := range p.Args[arg].Dims {
		if b, mayMiss := NewBound(p, arg, d); mayMiss {
			out = append(out, b)
		}
	}
	return out
}

// Repetition reports whether p reads the elements of an operand in their order from the
// first on, each some times in a row, and how many.
func Repetition(p *tensor.Primitive, arg int) (times int, ok bool) {
	base, strides, inside := Linear(p, arg)
	if !inside || base != 0 {
		return 0, false
	}
	shape := append(p.Shape.Clone(), p.Fold...)
	times, next, trailing := 1, 1, true
	for a := len(shape) - 1; a >= 0; a-- {
		switch {
		case shape[a] == 1:
		case trailing && strides[a] == 0:
			times *= shape[a]
		case strides[a] == next:
			trailing = false
			next *= shape[a]
		default:
			return 0, false
		}
	}
	return times, true
}

// Linear returns the linear form of operand arg over all axes of p. inside is
// false where a position may lie outside the operand or depends on an index.
func Linear(p *tensor.Primitive, arg int) (base int, strides []int, inside bool) {
	if p.Args[arg].Flat {
		return 0, append(p.Shape.Strides(), make([]int, len(p.Fold))...), true
	}
	return p.Reader(arg)
}

// Span is the number of elements that a map or a fold reads of an operand.
func Span(p *tensor.Primitive) int {
	if p.Fn.Kind() == tensor.KindFold {
		return p.Shape.Elements() * p.Terms()
	}
	return p.Shape.Elements()
}
