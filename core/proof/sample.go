package proof

import (
	"errors"
	"fmt"

	"github.com/tally-network/tally/core/beacon"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Sample is the one tile that a custodian must show, to answer a question about what it
// attested to: a tile of one of the receipt's states, or of the training records.
// Everything is drawn from a seed that was not known when the question was asked: the
// state, the tensor of the state, the tile of the tensor. A custodian of fragments shows
// a tile of its fragment of a state.
type Sample struct {
	Root  canon.Hash // of a state, of the records, or over the fragments
	State int        // place of the state among the receipt's checkpoints; −1: the records
	Of    int        // how many fragments Root is over; 0: it is not over fragments
	Seed  canon.Hash
}

// SampleStates draws from a seed what a custodian of whole states, and of the records unless
// their root is zero, must show.
func SampleStates(seed canon.Hash, states []canon.Hash, records canon.Hash) Sample {
	if i := drawState(seed, len(states), records); i < len(states) {
		return Sample{Root: states[i], State: i, Seed: seed}
	}
	return Sample{Root: records, State: -1, Seed: seed}
}

// drawState draws one of n states, or n for the records.
func drawState(seed canon.Hash, n int, records canon.Hash) int {
	if !records.IsZero() {
		n++
	}
	return int(beacon.Lots(seed[:]).Below(0, uint64(n)))
}

// SampleFragments draws from a seed what a custodian of fragments, and of the records unless
// their root is zero, must show. It keeps one fragment of each of so many checkpoints: all but the first.
func SampleFragments(seed canon.Hash, fragments canon.Hash, of int, records canon.Hash) Sample {
	if i := drawState(seed, of, records); i < of {
		return Sample{Root: fragments, State: i + 1, Of: of, Seed: seed}
	}
	return Sample{Root: records, State: -1, Seed: seed}
}

func (s *Sample) slot(slots int) int { return int(beacon.Lots(s.Seed[:]).Below(1, uint64(slots))) }
func (s *Sample) tile(tiles int) int { return int(beacon.Lots(s.Seed[:]).Below(2, uint64(tiles))) }

// Shown is a sample as it is answered: the tensor opened in its state, and the tile
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

// ShowState answers a sample of a state.
func (s Sample) ShowState(state *graph.State) (Shown, error) {
	return show(state, s.slot, s.tile)
}

// ShowFragment answers a sample of a fragment, given the roots of all.
func (s Sample) ShowFragment(fragment *graph.State, roots []canon.Hash) (Shown, error) {
	a, err := show(fragment, s.slot, s.tile)
	if err == nil {
		a.Beside = canon.NewTree(roots).Prove(s.State - 1)
	}
	return a, err
}

// ShowTensor answers a sample of the training records.
func (s Sample) ShowTensor(t *tensor.Tensor) Shown { return showTile(t, s.tile) }

// TileOf returns which tile of the records a sample of them asks for.
func (s Sample) TileOf(records tensor.Layout) int { return s.tile(records.Tiles()) }

// ShowPart answers a sample of the records, of which the run of that tile need be here alone.
func (s Sample) ShowPart(p tensor.Part) Shown {
	i := s.TileOf(p.Crown.Layout())
	_, path := p.Prove(i)
	return Shown{Type: p.Type, Shape: p.Shape, Tile: p.Tile(nil, i), Path: path}
}

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

// Check returns an error unless a is what was drawn. The roots bind how many
// tensors a state has, and how many tiles a tensor: nobody can choose what to show.
func (s Sample) Check(a *Shown) error {
	root, err := a.tensor(s.tile)
	if err != nil {
		return err
	}
	if s.State < 0 {
		if root != s.Root || a.Slot.N != 0 || len(a.Beside) != 0 {
			return errors.New("the tile does not lead to the order's training records, which are no state's tensor")
		}
		return nil
	}
	state, err := a.state(root)
	if err != nil {
		return err
	}
	if i := s.slot(a.Slot.N); a.Slot.Index != i {
		return fmt.Errorf("tensor %d of %d is shown, tensor %d is asked for", a.Slot.Index, a.Slot.N, i)
	}
	return a.leads(state, s.Root, s.State, s.Of)
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
