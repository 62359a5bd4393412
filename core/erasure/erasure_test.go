package erasure_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/klauspost/reedsolomon"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/erasure"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// codes are some of all sizes, the largest that a lease can have among them.
var codes = []erasure.Code{{Fragments: 1, Needed: 1}, {Fragments: 3, Needed: 1}, {Fragments: 4, Needed: 2}, {Fragments: 5, Needed: 3}, {Fragments: 7, Needed: 7}, {Fragments: 16, Needed: 5}, {Fragments: 256, Needed: 100}}

// noise returns a state of all types and of shapes of which some are smaller than a
// tile, some no multiple of it, one empty.
func noise(r *rand.Rand) *graph.State {
	s := &graph.State{}
	for i, typ := range tensor.DTypes {
		for j, shape := range []tensor.Shape{{}, {0, 7}, {5}, {70}, {64, 32}, {3, 23, 33}, {200, 3}} {
			t := tensor.Must(tensor.New(typ, shape))
			for k := range t.Bytes() {
				t.Bytes()[k] = byte(r.Uint32())
				if typ == tensor.Bool {
					t.Bytes()[k] &= 1
				}
			}
			if err := t.Canon(); err != nil {
				panic(err)
			}
			s.Slots = append(s.Slots, graph.Slot{Name: fmt.Sprintf("%02d-%d", i, j), Type: typ, Shape: shape})
			s.Tensors = append(s.Tensors, t)
		}
	}
	return s
}

func equal(a, b *graph.State) bool {
	return bytes.Equal(canon.Encode(a.Encode), canon.Encode(b.Encode))
}

func fragments(t testing.TB, c erasure.Code, s *graph.State) (held []erasure.Held) {
	t.Helper()
	for i := range c.Fragments {
		p, err := c.Fragment(s, i)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Fits(c.Slots(s.Slots)); err != nil {
			t.Fatal(err)
		}
		held = append(held, erasure.Held{Number: i, Fragment: p})
	}
	return held
}

// Any fragments, as many as are needed, make up the state; one less does not.
func TestAnyFragmentsRebuild(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range codes {
		s := noise(r)
		held := fragments(t, c, s)
		for range 12 {
			r.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
			got, err := c.Rebuild(s.Slots, held[:c.Needed])
			if err != nil || !equal(got, s) {
				t.Fatalf("%+v: %v", c, err)
			}
		}
		if _, err := c.Rebuild(s.Slots, held[:c.Needed-1]); err == nil {
			t.Errorf("%+v: too few fragments made up a state", c)
		}
	}
}

// All choices of a small code.
func TestEveryChoiceRebuilds(t *testing.T) {
	c := erasure.Code{Fragments: 6, Needed: 3}
	s := noise(rand.New(rand.NewPCG(3, 4)))
	held := fragments(t, c, s)
	for set := range 1 << c.Fragments {
		var some []erasure.Held
		for i, h := range held {
			if set>>i&1 == 1 {
				some = append(some, h)
			}
		}
		if got, err := c.Rebuild(s.Slots, some); (err == nil) != (len(some) >= c.Needed) || err == nil && !equal(got, s) {
			t.Fatalf("fragments %06b: %v", set, err)
		}
	}
}

// A whole tile of a fragment is what the library makes of the stripe.
func TestCodeIsThatOfTheLibrary(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, c := range codes {
		if c.Fragments == c.Needed {
			continue
		}
		lib, err := reedsolomon.New(c.Needed, c.Fragments-c.Needed, reedsolomon.WithCauchyMatrix())
		if err != nil {
			t.Fatal(err)
		}
		shards := make([][]byte, c.Fragments)
		for i := range shards {
			shards[i] = make([]byte, 4096)
			for j := range shards[i] {
				shards[i][j] = byte(r.Uint32())
			}
		}
		if err := lib.Encode(shards); err != nil {
			t.Fatal(err)
		}
		if c.Needed == 1 { // the library takes copies then
			continue
		}
		for i, want := range shards {
			got := make([]byte, len(want))
			if c.Tile(got, i, shards[:c.Needed]); !bytes.Equal(got, want) {
				t.Fatalf("%+v: fragment %d differs from the library's", c, i)
			}
		}
	}
}

// A tile of a fragment follows from a stripe alone.
func TestTileFollowsFromItsStripe(t *testing.T) {
	s := noise(rand.New(rand.NewPCG(7, 8)))
	for _, c := range codes[:6] {
		for _, h := range fragments(t, c, s) {
			for i, x := range s.Tensors {
				l, p := tensor.LayoutOf(x.Type, x.Shape), h.Fragment.Tensors[i]
				for n := range tensor.LayoutOf(p.Type, p.Shape).Tiles() {
					var stripe [][]byte
					for lo, hi := c.Stripe(n, l.Tiles()); lo < hi; lo++ {
						stripe = append(stripe, x.Tile(nil, lo))
					}
					want := p.Tile(nil, n)
					got := make([]byte, len(want))
					if c.Tile(got, h.Number, stripe); !bytes.Equal(got, want) || len(got) != l.TileBytes(0) {
						t.Fatalf("%+v, fragment %d, tensor %v%v, tile %d", c, h.Number, x.Type, x.Shape, n)
					}
				}
			}
		}
	}
}

func TestRebuildRefuses(t *testing.T) {
	c := erasure.Code{Fragments: 4, Needed: 2}
	s := noise(rand.New(rand.NewPCG(9, 10)))
	held := fragments(t, c, s)
	other := *held[1].Fragment
	other.Slots = slices.Clone(other.Slots)
	other.Slots[3].Shape = tensor.Shape{1}
	for name, bad := range map[string][]erasure.Held{
		"nothing":        nil,
		"one twice":      {held[2], held[2]},
		"no such number": {held[0], {Number: 4, Fragment: held[1].Fragment}},
		"a negative one": {held[0], {Number: -1, Fragment: held[1].Fragment}},
		"other slots":    {held[0], {Number: 1, Fragment: &other}},
	} {
		if _, err := c.Rebuild(s.Slots, bad); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for _, bad := range []erasure.Code{{}, {Fragments: 1, Needed: 2}, {Fragments: 257, Needed: 2}} {
		if _, err := bad.Fragment(s, 0); err == nil {
			t.Errorf("%+v: accepted", bad)
		}
	}
	if _, err := c.Fragment(s, 4); err == nil {
		t.Error("fragment 4 of 4")
	}
}

// Tiles are set as they are read.
func TestSetTile(t *testing.T) {
	for _, x := range noise(rand.New(rand.NewPCG(11, 12))).Tensors {
		y := tensor.Must(tensor.New(x.Type, x.Shape))
		for i := range tensor.LayoutOf(x.Type, x.Shape).Tiles() {
			y.SetTile(i, x.Tile(nil, i))
		}
		if !x.Equal(y) {
			t.Errorf("%v%v changed", x.Type, x.Shape)
		}
	}
}

func large() *graph.State {
	x := tensor.Must(tensor.New(tensor.Float32, tensor.Shape{2048, 2048}))
	r := rand.New(rand.NewPCG(13, 14))
	for i := range x.Len() {
		x.Set(i, tensor.Word(r.Uint32()>>2))
	}
	return &graph.State{Slots: []graph.Slot{{Name: "w", Type: x.Type, Shape: x.Shape}}, Tensors: []*tensor.Tensor{x}}
}

func BenchmarkFragment(b *testing.B) {
	s, c := large(), erasure.Code{Fragments: 16, Needed: 5}
	b.SetBytes(int64(len(s.Tensors[0].Bytes())))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Fragment(s, 9); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRebuild(b *testing.B) {
	s, c := large(), erasure.Code{Fragments: 16, Needed: 5}
	held := fragments(b, c, s)[7:12]
	b.SetBytes(int64(len(s.Tensors[0].Bytes())))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Rebuild(s.Slots, held); err != nil {
			b.Fatal(err)
		}
	}
}
