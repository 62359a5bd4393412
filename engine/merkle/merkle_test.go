package merkle

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

func randomTensor(r *rand.Rand, s tensor.Shape) *tensor.Tensor {
	x := tensor.Must(tensor.New(tensor.Float32, s))
	for i := range x.Len() {
		x.Set(i, tensor.F32(r.Float32()))
	}
	return x
}

func TestRootsEqualTheDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	s := &graph.State{}
	for i, shape := range []tensor.Shape{{}, {300, 400}, {0, 5}, {7}, {5, 0}, {1, 2000}, {33, 65, 31}, {3 << 16}} {
		s.Slots = append(s.Slots, graph.Slot{Name: string(rune('a' + i)), Type: tensor.Float32, Shape: shape})
		s.Tensors = append(s.Tensors, randomTensor(r, shape))
	}
	for i, keep := range []int{0, 1, 97 * 50, 200 * 50} { // zeros from there on, but for the last
		x := randomTensor(r, tensor.Shape{201, 50})
		clear(tensor.Of[float32](x)[keep:])
		x.Set(x.Len()-1, tensor.F32(float32(i%2)))
		s.Slots = append(s.Slots, graph.Slot{Name: string(rune('k' + i)), Type: tensor.Float32, Shape: x.Shape})
		s.Tensors = append(s.Tensors, x)
	}
	want, err := s.Root()
	if err != nil {
		t.Fatal(err)
	}
	for threads := 1; threads <= 4; threads++ {
		got, err := StateRoot(s, threads)
		if err != nil || got != want {
			t.Errorf("%d threads: state root %v, want %v (%v)", threads, got, want, err)
		}
		for i, x := range s.Tensors {
			if Root(x, threads) != x.Root() {
				t.Errorf("%d threads: root of %v differs", threads, s.Slots[i].Shape)
			}
		}
	}
	s.Slots[0].Name = "z"
	if _, err := StateRoot(s, 2); err == nil {
		t.Error("a state out of order has a root")
	}
}

func BenchmarkRoot(b *testing.B) {
	for _, shape := range []tensor.Shape{{1024, 1024}, {1 << 20}} {
		x := randomTensor(rand.New(rand.NewPCG(1, 1)), shape)
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%v/t%d", shape, threads), func(b *testing.B) {
				b.SetBytes(int64(len(x.Bytes())))
				b.ReportAllocs()
				for b.Loop() {
					Root(x, threads)
				}
			})
		}
	}
}
