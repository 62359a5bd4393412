package proof

import (
	"slices"

	"github.com/tally-network/tally/core/beacon"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Altered returns the segment of a forced attempt whose end is presented wrong: an
// audit meets it with the odds that its wage has to that of a whole unit, and what
// one auditor finds says little about the segments of another.
func Altered(output []byte, segments int) int { return beacon.Lots(output).Pick(segments, 1)[0] }

// Alter returns the state that is presented there: s with the lowest bit of one
// element flipped, which the output of the provider's VRF picks. It picks a float32
// that is neither zero, subnormal, infinite nor not a number; with its lowest bit
// flipped it is none of these either, so the state stays canonical and nothing gives
// it away. A state without such an element has one of an integer tensor altered; s
// is returned if it has none of these.
func Alter(s *graph.State, output []byte) *graph.State {
	draw := func(what string, n int) []int {
		return beacon.Lots(canon.Encode(func(e *canon.Encoder) {
			e.String(what)
			e.Blob(output)
		})).Pick(n, n)
	}
	tensors := draw("tensor", len(s.Tensors))
	for _, fits := range []func(tensor.DType, tensor.Word) bool{normal, integer} {
		for _, t := range tensors {
			x := s.Tensors[t]
			n := x.Len()
			if n == 0 {
				continue
			}
			first := draw("element", min(n, 1<<10))[0] // a draw lists all it draws from
			for k := range n {
				i := (first + k) % n
				w := x.At(i)
				if !fits(x.Type, w) {
					continue
				}
				c := &graph.State{Slots: s.Slots, Tensors: slices.Clone(s.Tensors)}
				c.Tensors[t] = x.Clone()
				c.Tensors[t].Set(i, w^1)
				return c
			}
		}
	}
	return s
}

func normal(t tensor.DType, w tensor.Word) bool {
	const exponent = 0x7f80_0000
	return t == tensor.Float32 && w&exponent != 0 && w&exponent != exponent
}

func integer(t tensor.DType, _ tensor.Word) bool { return t == tensor.Int32 || t == tensor.Int64 }
