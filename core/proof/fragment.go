package proof

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/erasure"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// WrongFragment shows that what somebody keeps as its fragment of a checkpoint is none:
// one tile of the fragment, and the tiles of the checkpoint that it should follow from.
// Where the tensors' names, types, shapes or number are wrong already, the first of
// these tiles is enough, of any tensor in the last case.
type WrongFragment struct {
	State    int // place of the checkpoint, from 1
	Stripe   int // number of the tile in the fragment
	Fragment Shown
	Tiles    []Shown // of the stripe, opened in the checkpoint
}

// MaxWrongFragment bounds the encoding of a WrongFragment in bytes: the tiles of a code
// with the most fragments that a lease can have, and one.
const MaxWrongFragment = 6 * MaxShown

// Check returns an error unless w shows that the root over the fragments of all states
// but the first is not what the code makes of these states. About a root that is,
// nobody can show that.
func (w *WrongFragment) Check(c erasure.Code, fragment int, fragments canon.Hash, states []canon.Hash) error {
	if w.State < 1 || w.State >= len(states) || len(w.Tiles) < 1 || len(w.Tiles) > c.Needed {
		return fmt.Errorf("%d tiles of checkpoint %d, want 1 to %d of one up to %d", len(w.Tiles), w.State, c.Needed, len(states)-1)
	}
	if err := w.Fragment.at(w.Stripe, fragments, w.State, len(states)-1); err != nil {
		return fmt.Errorf("fragment: %w", err)
	}
	shown := &w.Tiles[0]
	of := tensor.LayoutOf(shown.Type, shown.Shape)
	for i := range w.Tiles {
		if err := w.Tiles[i].at(min(w.Stripe, of.Tiles())*c.Needed+i, states[w.State], w.State, 0); err != nil {
			return fmt.Errorf("checkpoint: %w", err)
		}
		if s := &w.Tiles[i].Slot; s.Index != shown.Slot.Index {
			return fmt.Errorf("tiles of tensors %d and %d", shown.Slot.Index, s.Index)
		}
	}
	a, b := &w.Fragment.Slot, &shown.Slot
	switch want := c.Layout(of); {
	case a.N != b.N:
		return nil
	case a.Index != b.Index:
		return fmt.Errorf("tensor %d of the fragment, and tensor %d of the checkpoint", a.Index, b.Index)
	case a.Entry.Key != b.Entry.Key || w.Fragment.Type != want.Type || !w.Fragment.Shape.Equal(want.Shape):
		return nil
	}
	if lo, hi := c.Stripe(w.Stripe, of.Tiles()); len(w.Tiles) != hi-lo {
		return fmt.Errorf("%d tiles of stripe %d, it has %d", len(w.Tiles), w.Stripe, max(hi-lo, 0))
	}
	var stripe [][]byte
	for i := range w.Tiles {
		stripe = append(stripe, w.Tiles[i].Tile)
	}
	right := make([]byte, len(w.Fragment.Tile))
	if c.Tile(right, fragment, stripe); bytes.Equal(right, w.Fragment.Tile) {
		return errors.New("the fragment is right")
	}
	return nil
}

// at checks that a shows a tile of a state, or of a fragment, under a root. Of a tensor
// without tiles it shows none.
func (a *Shown) at(tile int, root canon.Hash, state, fragments int) error {
	h, err := a.tensor(func(int) int { return tile })
	if err == nil {
		h, err = a.state(h)
	}
	if err != nil {
		return err
	}
	return a.leads(h, root, state, fragments)
}

// FindWrongFragment returns what shows that a custodian's fragment of a state is not what the
// code makes of it, nil if it is. The roots are those of the custodian's fragments.
func FindWrongFragment(c erasure.Code, fragment, at int, state, kept *graph.State, roots []canon.Hash) (*WrongFragment, error) {
	right, err := c.Fragment(state, fragment)
	if err != nil {
		return nil, err
	}
	slot, stripe := differs(right, kept)
	if slot < 0 {
		return nil, nil
	}
	w := &WrongFragment{State: at, Stripe: stripe}
	this := func(i int) func(int) int { return func(int) int { return i } }
	// One that has fewer tensors, or more, differs wherever it is looked at.
	if w.Fragment, err = show(kept, func(n int) int { return min(slot, n-1) }, this(stripe)); err != nil {
		return nil, err
	}
	w.Fragment.Beside = canon.NewTree(roots).Prove(at - 1)
	x := state.Tensors[slot]
	lo, hi := c.Stripe(stripe, tensor.LayoutOf(x.Type, x.Shape).Tiles())
	for i := lo; i < max(hi, lo+1); i++ {
		a, err := show(state, this(slot), this(i))
		if err != nil {
			return nil, err
		}
		w.Tiles = append(w.Tiles, a)
	}
	return w, nil
}

// differs returns where two states do: at a tile of a tensor, the first if the
// tensors are not alike; the tensor is −1 if they do not.
func differs(a, b *graph.State) (slot, tile int) {
	if len(a.Slots) != len(b.Slots) {
		return 0, 0
	}
	for i, s := range a.Slots {
		x, y := a.Tensors[i], b.Tensors[i]
		if t := b.Slots[i]; s.Name != t.Name || x.Type != y.Type || !x.Shape.Equal(y.Shape) {
			return i, 0
		}
		for n := range tensor.LayoutOf(x.Type, x.Shape).Tiles() {
			if !bytes.Equal(x.Tile(nil, n), y.Tile(nil, n)) {
				return i, n
			}
		}
	}
	return -1, 0
}

// Code walks the fields of w.
func (w *WrongFragment) Code(c *canon.Codec) {
	c.Int(&w.State, maxFragments)
	c.Int(&w.Stripe, tensor.MaxElements)
	w.Fragment.Code(c)
	canon.Seq(c, &w.Tiles, erasure.MaxFragments, 41, func(c *canon.Codec, a *Shown) { a.Code(c) })
}

// maxFragments bounds the checkpoints of a receipt.
const maxFragments = 1 << 16
