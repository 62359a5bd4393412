package proof

import (
	"errors"
	"fmt"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Question is what somebody who says that it keeps the data of a receipt must
// show: one tile of one of the receipt's states, or of the training records.
// Everything is drawn from a seed that was not known when the question was asked:
// the state, the tensor among those of the state, the tile among those of the
// tensor.
type Question struct {
	Root  canon.Hash // of a state, or of the records
	State int        // place of the state among the receipt's checkpoints; −1: the records
	Seed  canon.Hash
}

// Ask returns the question that a seed puts to who keeps the given states and
// records.
func Ask(seed canon.Hash, states []canon.Hash, records canon.Hash) Question {
	if i := int(below(seed[:], 0, uint64(len(states)+1))); i < len(states) {
		return Question{states[i], i, seed}
	}
	return Question{records, -1, seed}
}

func (q *Question) slot(slots int) int { return int(below(q.Seed[:], 1, uint64(slots))) }
func (q *Question) tile(tiles int) int { return int(below(q.Seed[:], 2, uint64(tiles))) }

// Shown is the answer to a question: the tensor opened in its state, and the tile
// opened in the tensor. The records are no part of a state: their Slot is empty.
type Shown struct {
	Slot  canon.Opening
	Type  tensor.DType
	Shape tensor.Shape
	Tile  []byte
	Path  []canon.Hash
}

// MaxShown bounds the encoding of an answer in bytes: a tile, two paths, a name.
const MaxShown = 16 << 10

const (
	maxTile = tensor.TileSide * tensor.TileSide * 8
	maxPath = 64
)

// ShowState answers a question about a state.
func (q Question) ShowState(s *graph.State) (Shown, error) {
	k, err := s.Keyed()
	if err != nil {
		return Shown{}, err
	}
	if k.Len() == 0 {
		return Shown{}, errors.New("a state without tensors has no tile")
	}
	i := q.slot(k.Len())
	a := q.ShowTensor(s.Tensors[i])
	a.Slot = k.Open(i)
	return a, nil
}

// ShowTensor answers a question about the training records.
func (q Question) ShowTensor(t *tensor.Tensor) Shown {
	a := Shown{Type: t.Type, Shape: t.Shape}
	if tree := canon.NewTree(t.Leaves()); tree.Len() > 0 {
		i := q.tile(tree.Len())
		a.Tile, a.Path = t.Tile(nil, i), tree.Prove(i)
	}
	return a
}

// Check returns an error unless a answers the question. The roots bind how many
// tensors a state has, and how many tiles a tensor: nobody can choose what to show.
func (q Question) Check(a *Shown) error {
	if err := a.Shape.Check(); err != nil {
		return err
	}
	if !a.Type.Valid() {
		return fmt.Errorf("%v is no type of elements", a.Type)
	}
	l := tensor.LayoutOf(a.Type, a.Shape)
	top, n := canon.Hash{}, l.Tiles()
	if n > 0 {
		i := q.tile(n)
		if len(a.Tile) != l.TileBytes(i) {
			return fmt.Errorf("tile %d is shown with %d bytes, it has %d", i, len(a.Tile), l.TileBytes(i))
		}
		var err error
		if top, err = canon.Full(n).Climb(i, tensor.TileHash(a.Tile), a.Path); err != nil {
			return fmt.Errorf("tile %d: %w", i, err)
		}
	} else if len(a.Tile)+len(a.Path) > 0 {
		return errors.New("a tile is shown of a tensor that has none")
	}
	root := l.Root(canon.RootOf(n, top))
	if q.State < 0 {
		if root != q.Root || a.Slot.N != 0 {
			return errors.New("the tile does not lead to the order's training records, which are no state's tensor")
		}
		return nil
	}
	switch {
	case a.Slot.N < 1 || a.Slot.N > graph.MaxSlots:
		return fmt.Errorf("the tensor is shown among %d", a.Slot.N)
	case a.Slot.Index != q.slot(a.Slot.N):
		return fmt.Errorf("tensor %d of %d is shown, tensor %d is asked for", a.Slot.Index, a.Slot.N, q.slot(a.Slot.N))
	case a.Slot.Entry.Value != root:
		return fmt.Errorf("the tile does not lead to tensor %q", a.Slot.Entry.Key)
	}
	if err := a.Slot.Verify(q.Root); err != nil {
		return fmt.Errorf("tensor %q of checkpoint %d: %w", a.Slot.Entry.Key, q.State, err)
	}
	return nil
}

// Code walks the fields of a.
func (a *Shown) Code(c *canon.Codec) {
	c.Int(&a.Slot.N, graph.MaxSlots)
	c.Int(&a.Slot.Index, graph.MaxSlots)
	c.String(&a.Slot.Entry.Key, canon.MaxKey)
	c.Hash(&a.Slot.Entry.Value)
	c.Hashes(&a.Slot.Path, maxPath)
	c.U8((*uint8)(&a.Type))
	canon.With(c, &a.Shape, tensor.Shape.Encode, tensor.DecodeShape)
	c.Blob(&a.Tile, maxTile)
	c.Hashes(&a.Path, maxPath)
}
