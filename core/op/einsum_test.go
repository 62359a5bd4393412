package op_test

import (
	"strings"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

var _ = add(
	sums("matrices", "ij, jk -> ik", "ij,jk->ik", f(2, 3), f(3, 4)),
	sums("implicit", "ba", "ba->ab", f(2, 3)),
	sums("implicit, of which a letter comes twice", "Zij,jk", "Zij,jk->Zik", f(2, 2, 3), f(3, 2)),
	sums("batches that repeat", "...ij,...jk->...ik", "eij,fejk->feik", f(1, 2, 3), f(2, 3, 3, 2)),
	sums("ellipsis at the end", "i...->...i", "iab->abi", f(2, 3, 2)),
	sums("diagonal", "iij->ji", "iij->ji", f(3, 3, 2)),
	sums("trace", "ii->", "ii->", f(3, 3)),
	sums("sum of one", "ij->j", "ij->j", f(3, 2)),
	sums("scalar", "->", "->", f()),
	sums("outer product", "i,j->ji", "i,j->ji", f(3), f(2)),
	sums("three", "bi,ijk,bk->bj", "bi,ijk,bk->bj", f(2, 3), f(3, 2, 2), f(2, 2)),
	sums("diagonals of two, and sums of one alone", "iik,jl->ij", "iik,jl->ij", f(2, 2, 2), f(3, 2)),
	sums("an extent of one repeats", "ij,ij->i", "ij,ij->i", f(2, 1), f(2, 3)),
	sums("an extent of one, to the end", "ij,ik,kj->jk", "ij,ik,kj->jk", f(2, 1), f(2, 1), f(3, 2)),
	sums("integers", "ij,j->i", "ij,j->i", ints(tensor.Int8, -5, 5, 2, 3), ints(tensor.Int8, -5, 5, 3)),
)

// einsum is the meaning of Einsum for an equation without ellipses.
func einsum(text string) func([]array) []array {
	left, right, _ := strings.Cut(text, "->")
	terms := strings.Split(left, ",")
	return func(in []array) []array {
		extent := map[rune]int{}
		var order []rune
		for i, term := range terms {
			for a, x := range term {
				if extent[x] == 0 {
					order = append(order, x)
				}
				extent[x] = max(extent[x], in[i].shape[a])
			}
		}
		var shape, all []int
		for _, x := range right {
			shape = append(shape, extent[x])
		}
		for _, x := range order {
			all = append(all, extent[x])
		}
		at, value := make([]int, len(all)), map[rune]int{}
		coords := func(term string) (out []int) {
			for _, x := range term {
				out = append(out, value[x])
			}
			return out
		}
		y := array{shape, make([]float64, elements(shape))}
		strides := tensor.Shape(shape).Strides()
		for i := range elements(all) {
			tensor.Shape(all).Coords(i, at)
			for d, x := range order {
				value[x] = at[d]
			}
			product := 1.0
			for j, term := range terms {
				product *= in[j].at(coords(term))
			}
			o := 0
			for d, v := range coords(right) {
				o += v * strides[d]
			}
			y.v[o] += product
		}
		return []array{y}
	}
}

func sums(name, equation, meaning string, in ...arg) sample {
	return sample{name: "Einsum, " + name, op: "Einsum", attrs: []graph.Attr{graph.String("equation", equation)}, in: in, want: einsum(meaning)}
}
