package cpu

import "github.com/tally-network/tally/core/tensor"

// elementwise is a map: operands are brought side by side, a chunk at a time,
// and one loop without branches on the function computes the chunk.
type elementwise struct {
	n     int
	views []*view
	loop  func(k *elementwise, w *worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int)
}

func newMap(p *tensor.Primitive) kernel {
	k := &elementwise{n: p.Shape.Elements(), loop: mapLoop(p)}
	if k.loop == nil {
		return nil
	}
	for i := range p.Args {
		k.views = append(k.views, newView(p, i, axes(0, len(p.Shape))))
	}
	return k
}

func (k *elementwise) pieces() int { return k.n }

func (k *elementwise) run(w *worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) error {
	for ; lo < hi; lo += chunk {
		k.loop(k, w, out, args, lo, min(lo+chunk, hi))
	}
	return nil
}

type mapFunc = func(k *elementwise, w *worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int)

// operand returns elements lo…hi−1 of operand i.
func operand[T tensor.Element](k *elementwise, w *worker, args []*tensor.Tensor, i, lo, hi int) []T {
	var none T
	return load(k.views[i], args, row[T](w, i, args[i].Type), lo, hi-lo, none)
}

// unary, binary and choose make a kernel of a loop over slices of one length.
func unary[D, S tensor.Element](f func(dst []D, x []S)) mapFunc {
	return func(k *elementwise, w *worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) {
		f(tensor.Of[D](out)[lo:hi], operand[S](k, w, args, 0, lo, hi))
	}
}

func binary[D, S tensor.Element](f func(dst []D, x, y []S)) mapFunc {
	return func(k *elementwise, w *worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) {
		x, y := operand[S](k, w, args, 0, lo, hi), operand[S](k, w, args, 1, lo, hi)
		f(tensor.Of[D](out)[lo:hi], x, y[:len(x)])
	}
}

func choose[T tensor.Element](k *elementwise, w *worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) {
	dst := tensor.Of[T](out)[lo:hi]
	c := operand[uint8](k, w, args, 0, lo, hi)[:len(dst)]
	x := operand[T](k, w, args, 1, lo, hi)[:len(dst)]
	y := operand[T](k, w, args, 2, lo, hi)[:len(dst)]
	for i := range dst {
		if c[i] != 0 {
			dst[i] = x[i]
		} else {
			dst[i] = y[i]
		}
	}
}

// mapLoop returns the loop for p, or nil if there is none.
func mapLoop(p *tensor.Primitive) mapFunc {
	from := p.Args[len(p.Args)-1].Type
	switch p.Fn {
	case tensor.Where:
		switch from {
		case tensor.Float32:
			return choose[float32]
		case tensor.Int32:
			return choose[int32]
		case tensor.Int64:
			return choose[int64]
		case tensor.Bool:
			return choose[uint8]
		}
	case tensor.Cast:
		return castLoop(from, p.Type)
	case tensor.And:
		return binary(func(dst, x, y []uint8) {
			for i := range dst {
				dst[i] = x[i] & y[i]
			}
		})
	case tensor.Or:
		return binary(func(dst, x, y []uint8) {
			for i := range dst {
				dst[i] = x[i] | y[i]
			}
		})
	case tensor.Not:
		return unary(func(dst, x []uint8) {
			for i := range dst {
				dst[i] = x[i] ^ 1
			}
		})
	}
	switch from {
	case tensor.Float32:
		if f := floatLoop(p.Fn); f != nil {
			return f
		}
		return compareLoop[float32](p.Fn)
	case tensor.Int32:
		if f := integerLoop[int32](p.Fn); f != nil {
			return f
		}
		return compareLoop[int32](p.Fn)
	case tensor.Int64:
		if f := integerLoop[int64](p.Fn); f != nil {
			return f
		}
		return compareLoop[int64](p.Fn)
	case tensor.Bool:
		return compareLoop[uint8](p.Fn)
	}
	return nil
}
