package graph

import (
	"fmt"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/tensor"
)

// Slot is the name and type of one tensor of a state.
type Slot struct {
	Name  string
	Type  tensor.DType
	Shape tensor.Shape
}

// MaxSlots bounds the tensors of a state.
const MaxSlots = 1 << 16

// State is named tensors in ascending order of their names.
type State struct {
	Slots   []Slot
	Tensors []*tensor.Tensor
}

// Find returns the tensor called name, or nil.
func (s *State) Find(name string) *tensor.Tensor {
	for i, slot := range s.Slots {
		if slot.Name == name {
			return s.Tensors[i]
		}
	}
	return nil
}

// Keyed returns the tree over (name, tensor root) from which openings of single
// tensors are made.
func (s *State) Keyed() (*canon.Keyed, error) {
	entries := make([]canon.Entry, len(s.Slots))
	for i, slot := range s.Slots {
		entries[i] = canon.Entry{Key: slot.Name, Value: s.Tensors[i].Root()}
	}
	return canon.NewKeyed(entries)
}

// Root returns the state root. The slots must be in order.
func (s *State) Root() (canon.Hash, error) {
	k, err := s.Keyed()
	if err != nil {
		return canon.Hash{}, err
	}
	return k.Root(), nil
}

// Encode appends all names and tensors.
func (s *State) Encode(e *canon.Encoder) {
	parts := s.Parts()
	e.Grow(length(parts))
	for _, p := range parts {
		e.Raw(p)
	}
}

// Parts gives, one after the other, what Encode appends, without a copy of the elements.
func (s *State) Parts() [][]byte {
	parts := [][]byte{canon.Encode(func(e *canon.Encoder) { e.Uint(uint64(len(s.Slots))) })}
	for i, slot := range s.Slots {
		t := s.Tensors[i]
		head := canon.Encode(func(e *canon.Encoder) {
			e.String(slot.Name)
			t.Head(e)
		})
		parts = append(parts, head, t.Bytes())
	}
	return parts
}

// Size returns the length in bytes of what Encode appends, and encodes none of
// the elements.
func (s *State) Size() int { return length(s.Parts()) }

func length(parts [][]byte) (n int) {
	for _, p := range parts {
		n += len(p)
	}
	return n
}

// DecodeState reads what Encode wrote.
func DecodeState(d *canon.Decoder) *State {
	s := &State{}
	n := int(d.Uint(MaxSlots))
	for i := range n {
		name := d.String(canon.MaxKey)
		t := tensor.Decode(d)
		if d.Err() != nil {
			return nil
		}
		if i > 0 && s.Slots[i-1].Name >= name {
			d.Fail("tensor %q after %q", name, s.Slots[i-1].Name)
			return nil
		}
		s.Slots = append(s.Slots, Slot{name, t.Type, t.Shape})
		s.Tensors = append(s.Tensors, t)
	}
	return s
}

// Fits returns an error unless s has exactly the given slots.
func (s *State) Fits(slots []Slot) error {
	if len(s.Slots) != len(slots) {
		return fmt.Errorf("state has %d tensors, the program wants %d", len(s.Slots), len(slots))
	}
	for i, want := range slots {
		if got := s.Slots[i]; got.Name != want.Name || got.Type != want.Type || !got.Shape.Equal(want.Shape) {
			return fmt.Errorf("state has %q %v%v, the program wants %q %v%v", got.Name, got.Type, got.Shape, want.Name, want.Type, want.Shape)
		}
	}
	return nil
}
