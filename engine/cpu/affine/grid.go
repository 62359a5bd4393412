package affine

import "github.com/tally-network/tally/core/tensor"

// Grid is an index space: a list of axes as one flat index, row-major. There is at
// least one axis.
type Grid struct {
	Extents []int
	N       int // their product
}

// OneAxis reports whether a linear form over the grid has one stride.
func (g *Grid) OneAxis() bool { return len(g.Extents) == 1 }

// Offsets fills dst with the values of the linear form base + Σ steps·coordinates at
// the flat indexes from, from+1, …
func (g *Grid) Offsets(dst []int, base int, steps []int, from int) {
	var coord [tensor.MaxAxes]int
	v := base
	for a := len(g.Extents) - 1; a >= 0; a-- {
		coord[a] = from % g.Extents[a]
		from /= g.Extents[a]
		v += coord[a] * steps[a]
	}
	inner := len(g.Extents) - 1
	for {
		n := min(g.Extents[inner]-coord[inner], len(dst))
		for i := range dst[:n] {
			dst[i] = v + i*steps[inner]
		}
		if dst = dst[n:]; len(dst) == 0 {
			return
		}
		v -= coord[inner] * steps[inner]
		coord[inner] = 0
		for a := inner - 1; a >= 0; a-- {
			coord[a]++
			v += steps[a]
			if coord[a] < g.Extents[a] {
				break
			}
			coord[a] = 0
			v -= g.Extents[a] * steps[a]
		}
	}
}

// Offset returns the value of a linear form at one flat index.
func (g *Grid) Offset(base int, steps []int, i int) int {
	var one [1]int
	g.Offsets(one[:], base, steps, i)
	return one[0]
}

// Contiguous reports whether offsets follow each other, one by one.
func Contiguous(at []int) bool {
	for i, x := range at {
		if x != at[0]+i {
			return false
		}
	}
	return true
}

// Form is a linear form over some loops: Base + Σ Steps·coordinates.
type Form struct {
	Base  int
	Steps []int
}

// At returns the value at coordinates, of which there may be fewer than steps.
func (w *Form) At(coord []int) int {
	i := w.Base
	for l, c := range coord {
		i += w.Steps[l] * c
	}
	return i
}
