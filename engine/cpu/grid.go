package cpu

import "github.com/tally-network/tally/core/tensor"

// grid is a list of axes as one flat index, row-major.
type grid struct {
	extents []int
	n       int
}

// simple reports whether a linear form over the grid has one stride.
func (g *grid) simple() bool { return len(g.extents) == 1 }

// table fills dst with the values of a linear form at from, from+1, …
func (g *grid) table(dst []int, base int, steps []int, from int) {
	var coord [tensor.MaxAxes]int
	v := base
	for a := len(g.extents) - 1; a >= 0; a-- {
		coord[a] = from % g.extents[a]
		from /= g.extents[a]
		v += coord[a] * steps[a]
	}
	inner := len(g.extents) - 1
	for {
		n := min(g.extents[inner]-coord[inner], len(dst))
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
			if coord[a] < g.extents[a] {
				break
			}
			coord[a] = 0
			v -= g.extents[a] * steps[a]
		}
	}
}

// at returns the value of a linear form at one index.
func (g *grid) at(base int, steps []int, i int) int {
	var one [1]int
	g.table(one[:], base, steps, i)
	return one[0]
}
