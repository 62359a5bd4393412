package sim

import (
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// forgery is a way to make up the states of a unit.
type forgery struct {
	name string
	// states returns the states after each step and how many steps were computed
	// for them.
	states func(t *training, from canon.Hash, unit int) (roots []canon.Hash, computed int, err error)
}

// forgeries, from those that do nearly all of the work to those that do none.
var forgeries = []forgery{
	{"wrong arithmetic by one ulp", inSegment(segments-1, func(t *training, root canon.Hash, _, _ int) (canon.Hash, int, error) {
		bent, err := t.bend(root, 1)
		return bent, 1, err
	})},
	{"garbage", inSegment(segments-1, func(t *training, root canon.Hash, _, _ int) (canon.Hash, int, error) {
		bent, err := t.bend(root, 1<<22)
		return bent, 0, err
	})},
	{"skipped steps", inSegment(segments-1, func(t *training, root canon.Hash, _, step int) (canon.Hash, int, error) {
		s, err := t.count(root, step+1)
		return s, 0, err
	})},
	{"smaller batches", everywhere(func(t *training, from canon.Hash, unit, step int) (canon.Hash, int, error) {
		rows := t.rows(unit, step)
		copy(rows[batch/2:], rows[:batch/2])
		to, err := t.stepOn(from, rows)
		return to, step % 2, err // half of the cost
	})},
	{"other data", everywhere(func(t *training, from canon.Hash, unit, step int) (canon.Hash, int, error) {
		rows := t.rows(unit, step)
		for i := range rows {
			rows[i] = (rows[i] + 1) % records
		}
		to, err := t.stepOn(from, rows)
		return to, 1, err
	})},
	{"replayed checkpoints", func(t *training, from canon.Hash, unit int) ([]canon.Hash, int, error) {
		roots, err := t.play(from, unit^1, 0, steps) // those of the other shard, which somebody else computes
		return roots, 0, err
	}},
	{"interpolation", toward(1)},
	{"infinitesimal updates", toward(1e-6)},
	{"top-q blindfold", func(t *training, from canon.Hash, unit int) ([]canon.Hash, int, error) {
		// The largest updates are real; they are the first of a training. Between
		// what lies behind them and the end, states are interpolated.
		roots, err := t.play(from, unit, 0, interval)
		if err != nil {
			return nil, 0, err
		}
		rest, _, err := toward(0.1)(t, roots[interval], unit)
		if err != nil {
			return nil, 0, err
		}
		return append(roots, rest[interval+1:]...), interval, nil
	}},
}

// everywhere makes up every step.
func everywhere(step func(t *training, from canon.Hash, unit, step int) (canon.Hash, int, error)) func(*training, canon.Hash, int) ([]canon.Hash, int, error) {
	return func(t *training, from canon.Hash, unit int) ([]canon.Hash, int, error) {
		roots, computed := []canon.Hash{from}, 0
		for s := range steps {
			to, cost, err := step(t, roots[s], unit, s)
			if err != nil {
				return nil, 0, err
			}
			roots, computed = append(roots, to), computed+cost
		}
		return roots, computed, nil
	}
}

// inSegment makes up the last step of one segment and computes the others.
func inSegment(g int, forge func(t *training, honest canon.Hash, unit, step int) (canon.Hash, int, error)) func(*training, canon.Hash, int) ([]canon.Hash, int, error) {
	last := (g+1)*interval - 1
	return everywhere(func(t *training, from canon.Hash, unit, step int) (canon.Hash, int, error) {
		if step != last {
			to, err := t.step(from, unit, step)
			return to, 1, err
		}
		return forge(t, from, unit, step)
	})
}

// toward interpolates between the start and a model that lies as far away as
// the honest result, times a share: to the thief of a model they look alike.
func toward(share float32) func(*training, canon.Hash, int) ([]canon.Hash, int, error) {
	return func(t *training, from canon.Hash, unit int) ([]canon.Hash, int, error) {
		stolen, err := t.play(from, unit^1, 0, steps)
		if err != nil {
			return nil, 0, err
		}
		a, b := t.states[from], t.states[stolen[steps]]
		return everywhere(func(t *training, at canon.Hash, _, step int) (canon.Hash, int, error) {
			w := float32(share*float32(step+1)) / steps
			mixed := edit(a, func(i int, x *tensor.Tensor) {
				v, target := tensor.Of[float32](x), tensor.Of[float32](b.Tensors[i])
				for j := range v {
					v[j] += float32(w * (target[j] - v[j]))
				}
			})
			root, err := t.keep(mixed)
			if err != nil {
				return root, 0, err
			}
			root, err = t.count(root, step+1)
			return root, 0, err
		})(t, from, unit)
	}
}

// edit returns a copy of a state with f applied to its float32 tensors.
func edit(s *graph.State, f func(i int, x *tensor.Tensor)) *graph.State {
	c := &graph.State{Slots: s.Slots, Tensors: slices.Clone(s.Tensors)}
	for i, x := range c.Tensors {
		if x.Type == tensor.Float32 {
			c.Tensors[i] = x.Clone()
			f(i, c.Tensors[i])
		}
	}
	return c
}

// bend returns a state whose last parameter differs in some bits of one element.
func (t *training) bend(root canon.Hash, bits uint64) (canon.Hash, error) {
	s := t.states[root]
	last := 0
	for i, x := range s.Tensors {
		if x.Type == tensor.Float32 && x.Len() > 1 {
			last = i
		}
	}
	return t.keep(edit(s, func(i int, x *tensor.Tensor) {
		if i == last {
			x.Set(0, x.At(0)^bits)
		}
	}))
}

// count returns a state whose counter of steps is set, as if they had been done.
func (t *training) count(root canon.Hash, done int) (canon.Hash, error) {
	s := t.states[root]
	c := &graph.State{Slots: s.Slots, Tensors: slices.Clone(s.Tensors)}
	for i, slot := range c.Slots {
		if slot.Name == "step" {
			c.Tensors[i] = tensor.Scalar(int64(done))
		}
	}
	return t.keep(c)
}

// garble returns a move with one bit of its encoding changed, nil if that is
// none.
func garble(m dispute.Move) dispute.Move {
	b := dispute.EncodeMove(m)
	b[len(b)/2] ^= 1
	m, err := dispute.DecodeMove(b)
	if err != nil {
		return nil
	}
	return m
}
