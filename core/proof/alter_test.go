package proof

import (
	"fmt"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// What Alter changes is one bit of one element, and the state stays canonical.
func TestAlter(t *testing.T) {
	state := func(ts ...*tensor.Tensor) *graph.State {
		s := &graph.State{Tensors: ts}
		for i, x := range ts {
			s.Slots = append(s.Slots, graph.Slot{Name: fmt.Sprint(i), Type: x.Type, Shape: x.Shape})
		}
		return s
	}
	floats := func(words ...tensor.Word) *tensor.Tensor {
		x := tensor.Must(tensor.New(tensor.Float32, tensor.Shape{len(words)}))
		for i, w := range words {
			x.Set(i, w)
		}
		return x
	}
	odd := floats(0, 0x8000_0000, 0x7f80_0000, 0x7fc0_0000) // zeros, infinite, not a number
	for name, s := range map[string]*graph.State{
		"floats":         state(floats(0x3f80_0000, 0x0080_0000, 0x7f7f_ffff, 0), tensor.Scalar(int64(7))),
		"one among many": state(odd, floats(0, 0, 0, 0xbf80_0001, 0), tensor.Must(tensor.Bools(tensor.Shape{}, true))),
		"no floats":      state(odd, tensor.Scalar(int64(7)), tensor.Must(tensor.Bools(tensor.Shape{}, true))),
	} {
		chosen := map[string]bool{}
		for i := range byte(50) {
			output := []byte{i}
			a := Alter(s, output)
			bits := 0
			for i, x := range a.Tensors {
				if err := x.Canon(); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				for j := range x.Len() {
					if d := x.At(j) ^ s.Tensors[i].At(j); d != 0 {
						bits++
						chosen[fmt.Sprint(i, j)] = true
						if d != 1 {
							t.Errorf("%s: bits %x", name, d)
						}
					}
				}
			}
			if bits != 1 {
				t.Errorf("%s: %d elements were altered", name, bits)
			}
			again, err := Alter(s, output).Root()
			if root, err2 := a.Root(); err != nil || err2 != nil || root != again {
				t.Errorf("%s: altered twice, differently", name)
			}
		}
		if name == "floats" && len(chosen) != 3 {
			t.Errorf("altered %v, want each of the three that are normal", chosen)
		}
	}
	if s := state(odd); Alter(s, []byte{1}) != s {
		t.Error("a state without numbers was altered")
	}
}
