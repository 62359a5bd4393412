package lm

import (
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/tensor"
)

// Sequence is what a model keeps of the tokens that it has read: the keys and values of each. Its zero value has none.
type Sequence struct {
	Capacity int // tokens that it will have at most, as far as is known; 0: the context
	past     int
	kept     []*tensor.Tensor // keys and values of layer after layer, [room, Shared, HeadSize], of which the first past are in use

	pages []canon.Hash // roots of the first ones that are full, as far as they are known
}

// Len returns how many tokens there are.
func (q *Sequence) Len() int { return q.past }

// Cut forgets all tokens but the first n.
func (q *Sequence) Cut(n int) {
	q.past = max(0, min(n, q.past))
	q.pages = q.pages[:min(len(q.pages), q.past/Chunk)]
}

// Bytes is what the sequence takes.
func (q *Sequence) Bytes() int {
	n := 0
	for _, x := range q.kept {
		n += len(x.Bytes())
	}
	return n
}

// Copy returns a sequence of the first n tokens, which goes its own way.
func (q *Sequence) Copy(n int) (*Sequence, error) {
	if len(q.kept) == 0 {
		return &Sequence{}, nil
	}
	c := &Sequence{past: max(0, min(n, q.past)), kept: make([]*tensor.Tensor, len(q.kept))}
	c.pages = slices.Clone(q.pages[:min(len(q.pages), c.past/Chunk)])
	for i, x := range q.kept {
		s := x.Shape.Clone()
		s[0] = max(c.past, 1)
		y, err := tensor.New(x.Type, s)
		if err != nil {
			return nil, err
		}
		copy(y.Bytes(), x.Bytes())
		c.kept[i] = y
	}
	return c, nil
}

// keep puts n rows of keys or values x, from one on, behind those that there are, and returns all.
func (q *Sequence) keep(at int, x *tensor.Tensor, row, n, most int) (*tensor.Tensor, error) {
	need := q.past + n
	token := x.Shape[1:].Elements() * x.Type.Size()
	if old := q.kept[at]; old == nil || old.Shape[0] < need {
		s := x.Shape.Clone()
		if q.Capacity > 0 {
			most = min(q.Capacity, most)
		}
		s[0] = max(min(max(2*q.past, Chunk), most), need)
		room, err := tensor.New(x.Type, s)
		if err != nil {
			return nil, err
		}
		if old != nil {
			copy(room.Bytes(), old.Bytes()[:q.past*token])
		}
		q.kept[at] = room
	}
	copy(q.kept[at].Bytes()[q.past*token:], x.Bytes()[row*token:][:n*token])
	return rowsOf(q.kept[at], 0, need)
}
