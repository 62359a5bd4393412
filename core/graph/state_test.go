package graph

import (
	"bytes"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/tensor"
)

// spelt is the encoding of a state, field by field.
func spelt(s *State) []byte {
	return canon.Encode(func(e *canon.Encoder) {
		e.Uint(uint64(len(s.Slots)))
		for i, slot := range s.Slots {
			e.String(slot.Name)
			s.Tensors[i].Encode(e)
		}
	})
}

// A state's parts are its encoding, which is as long as Size says.
func TestStateParts(t *testing.T) {
	s := &State{}
	for _, shape := range []tensor.Shape{{}, {3, 5}, {0, 2}, {70, 40}} {
		want := spelt(s)
		if !bytes.Equal(canon.Encode(s.Encode), want) {
			t.Errorf("%d tensors: Encode appends something else than the fields", len(s.Slots))
		}
		if got := bytes.Join(s.Parts(), nil); !bytes.Equal(got, want) || s.Size() != len(want) {
			t.Errorf("%d tensors: %d bytes in parts, Size is %d, Encode appends %d", len(s.Slots), len(got), s.Size(), len(want))
		}
		x := tensor.Must(tensor.New(tensor.Float32, shape))
		for i := range x.Len() {
			x.Set(i, tensor.F32(float32(i)))
		}
		s.Slots = append(s.Slots, Slot{Name: x.Shape.String(), Type: x.Type, Shape: shape})
		s.Tensors = append(s.Tensors, x)
	}
	if want := spelt(s); !bytes.Equal(bytes.Join(s.Parts(), nil), want) {
		t.Error("the parts of four tensors are not their encoding")
	}
}
