package cpu

import "github.com/tally-network/tally/core/tensor"

// integerDot is a contraction of integers. They wrap, so that no order shows.
type integerDot[T integer] struct {
	n, terms int
	a, b     *view // output axes, then folded ones
}

func newIntegerDot[T integer](p *tensor.Primitive) kernel {
	all := axes(0, len(p.Shape)+len(p.Fold))
	return &integerDot[T]{p.Shape.Elements(), p.Terms(), newView(p, 0, all), newView(p, 1, all)}
}

func (k *integerDot[T]) pieces() int { return k.n }

func (k *integerDot[T]) run(w *worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) error {
	dst := tensor.Of[T](out)
	bufA, bufB := row[T](w, 0), row[T](w, 1)
	for o := lo; o < hi; o++ {
		acc := T(0)
		for t := 0; t < k.terms; t += chunk {
			n := min(chunk, k.terms-t)
			x := load(k.a, args, bufA, o*k.terms+t, n, 0)
			y := load(k.b, args, bufB, o*k.terms+t, n, 0)
			for i, v := range x {
				acc += v * y[i]
			}
		}
		dst[o] = acc
	}
	return nil
}
