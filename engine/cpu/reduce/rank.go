package reduce

import (
	"cmp"
	"slices"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/kernel"
)

// rank finds the ranks of all elements of a row by sorting it, instead of
// comparing each with every other. It takes what TopK asks: of a row's elements
// among themselves.
type rank struct {
	p          *tensor.Primitive
	n          int
	descending bool
	rows       []int       // extents of the other axes
	out, in    affine.Form // where a row starts
	step, from int         // from one element of a row to the next
	order      func(x, y tensor.Word) int
}

// NewRank returns the kernel of the ranks p, nil if its rows are not ranked among themselves.
func NewRank(p *tensor.Primitive) kernel.Kernel {
	r := len(p.Shape)
	a := int(p.Imm[0])
	if len(p.Fold) != 1 || p.Fold[0] != p.Shape[a] {
		return nil
	}
	base, terms, linear := p.Reader(0)
	again, elements, linearToo := p.Reader(1)
	if !linear || !linearToo || base != again || !p.Args[0].Shape.Equal(p.Args[1].Shape) {
		return nil
	}
	k := &rank{p: p, n: p.Shape[a], descending: p.Imm[1] == 0, order: orderOf(p.Args[0].Type)}
	strides := p.Shape.Strides()
	k.step, k.from = strides[a], elements[a]
	k.in.Base = base
	for i := range r {
		switch {
		case i == a:
			if terms[i] != 0 || terms[r] != elements[i] {
				return nil
			}
		case terms[i] != elements[i]:
			return nil
		default:
			k.rows = append(k.rows, p.Shape[i])
			k.out.Steps, k.in.Steps = append(k.out.Steps, strides[i]), append(k.in.Steps, elements[i])
		}
	}
	return k
}

// orderOf compares elements of a type; all NaNs are one, above all numbers.
func orderOf(t tensor.DType) func(x, y tensor.Word) int {
	if t.Float() {
		return func(x, y tensor.Word) int { return -cmp.Compare(-tensor.FloatOf(t, x), -tensor.FloatOf(t, y)) }
	}
	if t.Unsigned() {
		return cmp.Compare[tensor.Word]
	}
	return func(x, y tensor.Word) int { return cmp.Compare(int64(x), int64(y)) }
}

func (k *rank) Blocks() int { return tensor.Shape(k.rows).Elements() * min(k.n, 1) }

func (k *rank) Run(w *kernel.Worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) error {
	if &args[0].Bytes()[0] != &args[1].Bytes()[0] {
		return k.apart(w, out, args, lo, hi)
	}
	coord := make([]int, len(k.rows))
	values := make([]tensor.Word, k.n)
	sorted := make([]int, k.n)
	ranks := tensor.Of[int64](out)
	for row := lo; row < hi; row++ {
		if w.Stopped() {
			return kernel.ErrStopped
		}
		tensor.Shape(k.rows).Coords(row, coord)
		o, x := k.out.At(coord), k.in.At(coord)
		for i := range sorted {
			values[i], sorted[i] = args[0].At(x+i*k.from), i
		}
		slices.SortFunc(sorted, func(i, j int) int {
			c := k.order(values[i], values[j])
			if k.descending {
				c = -c
			}
			return cmp.Or(c, cmp.Compare(i, j))
		})
		for rank, i := range sorted {
			ranks[o+i*k.step] = int64(rank)
		}
	}
	return nil
}

// apart is for elements ranked among those of another tensor, by definition.
func (k *rank) apart(w *kernel.Worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) error {
	c := kernel.NewCell(k.p, args)
	coord := make([]int, len(k.rows))
	for row := lo; row < hi; row++ {
		tensor.Shape(k.rows).Coords(row, coord)
		o := k.out.At(coord)
		for i := range k.n {
			if w.Stopped() {
				return kernel.ErrStopped
			}
			if err := kernel.Evaluate(c, out, o+i*k.step); err != nil {
				return err
			}
		}
	}
	return nil
}
