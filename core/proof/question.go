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
// tensor. Who keeps fragments is asked for a tile of its fragment of a state.
type Question struct {
	Root  canon.Hash // of a state, of the records, or over the fragments
	State int        // place of the state among the receipt's checkpoints; −1: the records
	Of    int        // how many fragments Root is over; 0: it is not over fragments
	Seed  canon.Hash
}

// Ask returns the question that a seed puts to who keeps the given states and
// records.
func Ask(seed canon.Hash, states []canon.Hash, records canon.Hash) Question {
	if i := int(below(seed[:], 0, uint64(len(states)+1))); i < len(states) {
		return Question{Root: states[i], State: i, Seed: seed}
	}
	return Question{Root: records, State: -1, Seed: seed}
}

// AskFragment returns the question that a seed puts to who keeps the records, and of
// each checkpoint after the first, of which there are so many, its fragment.
func AskFragment(seed canon.Hash, fragments canon.Hash, of int, records canon.Hash) Question {
	if i := int(below(seed[:], 0, uint64(of+1))); i < of {
		return Question{Root: fragments, State: i + 1, Of: of, Seed: seed}
	}
	return Question{Root: records, State: -1, Seed: seed}
}

func (q *Question) slot(slots int) int { return int(below(q.Seed[:], 1, uint64(slots))) }
func (q *Question) tile(tiles int) int { return int(below(q.Seed[:], 2, uint64(tiles))) }

// Shown is the answer to a question: the tensor opened in its state, and the tile
// opened in the tensor. The records are no part of a state: their Slot is empty.
type Shown struct {
	Beside []canon.Hash // of a fragment: its path among the fragments of the receipt's checkpoints
	Slot   canon.Opening
	Type   tensor.DType
	Shape  tensor.Shape
	Tile   []byte
	Path   []canon.Hash
}

// MaxShown bounds the encoding of an answer in bytes: a tile, two paths, a name.
const MaxShown = 16 << 10

const (
	maxTile = tensor.TileSide * tensor.TileSide * 8
	maxPath = 64
)

// ShowState answers a question about a state.
func (q Question) ShowState(s *graph.State) (Shown, error) {
	return show(s, q.slot, q.tile)
}

// ShowFragment answers a question about a fragment, given the roots of all.
func (q Question) ShowFragment(fragment *graph.State, roots []canon.Hash) (Shown, error) {
	a, err := show(fragment, q.slot, q.tile)
	if err == nil {
		a.Beside = canon.NewTree(roots).Prove(q.State - 1)
	}
	return a, err
}

// ShowTensor answers a question about the training records.
func (q Question) ShowTensor(t *tensor.Tensor) Shown { return showTile(t, q.tile) }

// show opens what is picked among the tensors of a state and the tiles of a tensor.
func show(s *graph.State, slot, tile func(n int) int) (Shown, error) {
	k, err := s.Keyed()
	if err != nil {
		return Shown{}, err
	}
	if k.Len() == 0 {
		return Shown{}, errors.New("a state without tensors has no tile")
	}
	i := slot(k.Len())
	a := showTile(s.Tensors[i], tile)
	a.Slot = k.Open(i)
	return a, nil
}

func showTile(t *tensor.Tensor, tile func(n int) int) Shown {
	a := Shown{Type: t.Type, Shape: t.Shape}
	if tree := canon.NewTree(t.Leaves()); tree.Len() > 0 {
		i := tile(tree.Len())
		a.Tile, a.Path = t.Tile(nil, i), tree.Prove(i)
	}
	return a
}

// Check returns an error unless a answers the question. The roots bind how many
// tensors a state has, and how many tiles a tensor: nobody can choose what to show.
func (q Question) Check(a *Shown) error {
	root, err := a.tensor(q.tile)
	if err != nil {
		return err
	}
	if q.State < 0 {
		if root != q.Root || a.Slot.N != 0 || len(a.Beside) != 0 {
			return errors.New("the tile does not lead to the order's training records, which are no state's tensor")
		}
		return nil
	}
	state, err := a.state(root)
	if err != nil {
		return err
	}
	if i := q.slot(a.Slot.N); a.Slot.Index != i {
		return fmt.Errorf("tensor %d of %d is shown, tensor %d is asked for", a.Slot.Index, a.Slot.N, i)
	}
	return a.leads(state, q.Root, q.State, q.Of)
}

// tensor returns the root of the tensor that a tile leads to, if it is the one that
// is picked among so many.
func (a *Shown) tensor(tile func(n int) int) (root canon.Hash, err error) {
	if err := a.Shape.Check(); err != nil {
		return root, err
	}
	if !a.Type.Valid() {
		return root, fmt.Errorf("%v is no type of elements", a.Type)
	}
	l := tensor.LayoutOf(a.Type, a.Shape)
	top, n := canon.Hash{}, l.Tiles()
	if n > 0 {
		i := tile(n)
		if i >= n {
			return root, fmt.Errorf("tile %d is shown of %d", i, n)
		}
		if len(a.Tile) != l.TileBytes(i) {
			return root, fmt.Errorf("tile %d is shown with %d bytes, it has %d", i, len(a.Tile), l.TileBytes(i))
		}
		if top, err = canon.Full(n).Climb(i, tensor.TileHash(a.Tile), a.Path); err != nil {
			return root, fmt.Errorf("tile %d: %w", i, err)
		}
	} else if len(a.Tile)+len(a.Path) > 0 {
		return root, errors.New("a tile is shown of a tensor that has none")
	}
	return l.Root(canon.RootOf(n, top)), nil
}

// state returns the root of the state that a tensor leads to.
func (a *Shown) state(tensor canon.Hash) (root canon.Hash, err error) {
	switch {
	case a.Slot.N < 1 || a.Slot.N > graph.MaxSlots:
		return root, fmt.Errorf("the tensor is shown among %d", a.Slot.N)
	case a.Slot.Entry.Value != tensor:
		return root, fmt.Errorf("the tile does not lead to tensor %q", a.Slot.Entry.Key)
	}
	if root, err = a.Slot.Root(); err != nil {
		err = fmt.Errorf("tensor %q: %w", a.Slot.Entry.Key, err)
	}
	return root, err
}

// leads returns an error unless a state is that with the given root, or the fragment of
// checkpoint number at under the root over so many fragments.
func (a *Shown) leads(state, root canon.Hash, at, fragments int) error {
	if fragments == 0 {
		if state != root || len(a.Beside) != 0 {
			return fmt.Errorf("tensor %q does not lead to checkpoint %d", a.Slot.Entry.Key, at)
		}
		return nil
	}
	if err := canon.Verify(root, fragments, at-1, state, a.Beside); err != nil {
		return fmt.Errorf("tensor %q does not lead to the fragment of checkpoint %d: %w", a.Slot.Entry.Key, at, err)
	}
	return nil
}

// Code walks the fields of a.
func (a *Shown) Code(c *canon.Codec) {
	c.Hashes(&a.Beside, maxPath)
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
