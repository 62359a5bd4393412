package tensor_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/tensor"
)

// Whoever has the crown, and some runs of tiles, checks and proves these by the tensor's own root.
func TestCrownProvesPartsOfATensor(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, s := range []tensor.Shape{{1, 1}, {32 * 256, 3}, {32*256 + 1, 3}, {40_000, 7}, {100, 40_000}, {3000, 200}} {
		whole := tensor.Must(tensor.New(tensor.Int32, s))
		for i := range tensor.Of[int32](whole) {
			tensor.Of[int32](whole)[i] = r.Int32()
		}
		l := tensor.LayoutOf(whole.Type, whole.Shape)
		leaves := whole.Leaves()
		made := tensor.NewCrown(l, leaves)
		var c tensor.Crown
		if err := canon.Unmarshal(canon.Marshal(made), &c); err != nil {
			t.Fatalf("%v: %v", s, err)
		}
		if c.Root() != whole.Root() {
			t.Fatalf("%v: a crown has another root than its tensor", s)
		}
		first := r.IntN(s[0])
		n := 1 + r.IntN(s[0]-first)
		from, to := c.Runs(first, n)
		if lo, rows := c.Rows(from, to); lo > first || lo+rows < first+n {
			t.Fatalf("%v: records %d to %d are not in runs %d to %d", s, first, first+n-1, from, to-1)
		}
		part := tensor.Part{Tensor: tensor.Must(tensor.New(tensor.Int32, s)), Crown: &c}
		for run := from; run < to; run++ {
			span := c.Run(run)
			for i := span.Lo; i < span.Lo+span.N; i++ {
				part.SetTile(i, whole.Tile(nil, i))
			}
			of := leaves[span.Lo:][:span.N]
			if err := c.Check(run, of); err != nil {
				t.Errorf("%v: %v", s, err)
			}
			wrong := slices.Clone(of)
			wrong[r.IntN(len(wrong))][0] ^= 1
			if c.Check(run, wrong) == nil || c.Check(run, of[:len(of)-1]) == nil {
				t.Errorf("%v: run %d may have other tiles", s, run)
			}
		}
		for range 10 {
			row := first + r.IntN(n)
			tile, _ := l.Find(row*s[1] + r.IntN(s[1]))
			top, path := part.Prove(tile)
			if l.Root(top) != whole.Root() || canon.Verify(top, l.Tiles(), tile, leaves[tile], path) != nil {
				t.Errorf("%v: tile %d is not proved", s, tile)
			}
		}
	}
}

func TestCrownIsRefused(t *testing.T) {
	good := tensor.NewCrown(tensor.LayoutOf(tensor.Int32, tensor.Shape{32 * 300, 8}), make([]canon.Hash, 300))
	for name, change := range map[string]func(*tensor.Crown){
		"more runs than tiles": func(c *tensor.Crown) { c.Tops = append(c.Tops, canon.Hash{}) },
		"fewer runs":           func(c *tensor.Crown) { c.Tops = c.Tops[1:] },
		"no tiles":             func(c *tensor.Crown) { c.Tops, c.Shape = nil, tensor.Shape{0, 8} },
		"no type":              func(c *tensor.Crown) { c.Type = 0 },
	} {
		c := *good
		change(&c)
		var back tensor.Crown
		if err := canon.Unmarshal(canon.Marshal(&c), &back); err == nil {
			t.Errorf("%s: a crown of %d runs of %v is read", name, len(back.Tops), back.Shape)
		}
	}
	if _, err := tensor.Over(tensor.Int32, tensor.Shape{2, 2}, make([]byte, 15), nil); err == nil {
		t.Error("a tensor lies in less than its bytes")
	}
}
