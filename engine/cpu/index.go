package cpu

import "github.com/tally-network/tally/core/tensor"

// mover is an index primitive: a copy by runs, or a join of several.
type mover[T tensor.Element] struct {
	n      int
	views  []*view // the last is copied first, so that the first wins
	absent T
}

func newIndex(p *tensor.Primitive) kernel {
	switch p.Type {
	case tensor.Float32:
		return newMover(p, tensor.AsF32(p.Imm[0]))
	case tensor.Int32:
		return newMover(p, int32(p.Imm[0]))
	case tensor.Int64:
		return newMover(p, int64(p.Imm[0]))
	case tensor.Bool:
		return newMover(p, uint8(p.Imm[0]))
	}
	return nil
}

func newMover[T tensor.Element](p *tensor.Primitive, absent T) kernel {
	k := &mover[T]{n: p.Shape.Elements(), absent: absent}
	data := 1 // a copy's other operands are indexes
	if p.Fn == tensor.Join {
		data = len(p.Args)
	}
	for i := range data {
		k.views = append(k.views, newView(p, i, axes(0, len(p.Shape))))
	}
	return k
}

func (k *mover[T]) pieces() int { return k.n }

func (k *mover[T]) run(_ *worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) error {
	dst := tensor.Of[T](out)[lo:hi]
	if last := k.views[len(k.views)-1]; len(last.bounds) != 0 {
		fill(dst, k.absent)
	}
	for i := len(k.views) - 1; i >= 0; i-- {
		overlay(k.views[i], args, dst, lo)
	}
	return nil
}
