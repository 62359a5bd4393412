package affine

import "slices"

// Axes returns the numbers lo…hi−1.
func Axes(lo, hi int) []int {
	out := make([]int, hi-lo)
	for i := range out {
		out[i] = lo + i
	}
	return out
}

// Last returns the step along the innermost axis.
func Last(steps []int) int { return steps[len(steps)-1] }

// Strides is how far a linear form moves along each axis.
type Strides []int

// Pick returns the strides along the given axes; axis −1 does not move.
func (s Strides) Pick(axes []int) []int {
	out := make([]int, len(axes))
	for i, a := range axes {
		if a >= 0 {
			out[i] = s[a]
		}
	}
	return out
}

// Merge collapses neighbouring axes wherever stepping off the end of the inner one is,
// for all forms, a step along the outer one. A merged axis goes by the number of its
// innermost part. Axes of one element are dropped; if none is left, axis −1 of extent
// 1 stands for them.
func Merge(shape []int, axes []int, all []Strides) (keep, extents []int) {
	for _, a := range axes {
		if shape[a] == 1 {
			continue
		}
		if n := len(keep) - 1; n >= 0 && runsOn(all, keep[n], a, shape[a]) {
			keep[n] = a
			extents[n] *= shape[a]
			continue
		}
		keep, extents = append(keep, a), append(extents, shape[a])
	}
	if len(keep) == 0 {
		keep, extents = []int{-1}, []int{1}
	}
	return keep, extents
}

func runsOn(all []Strides, outer, inner, extent int) bool {
	for _, s := range all {
		if s[outer] != s[inner]*extent {
			return false
		}
	}
	return true
}

// Constant reports whether a form does not move along axes of the given extents, but
// for those of one element.
func Constant(steps []int, extents ...[]int) bool {
	for i, n := range slices.Concat(extents...) {
		if n > 1 && steps[i] != 0 {
			return false
		}
	}
	return true
}
