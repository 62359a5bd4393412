package canon_test

import (
	"fmt"
	"testing"

	"github.com/tally-network/tally/core/canon"
)

// grown is an accumulator with every complete subtree kept, and the leaves of it.
type grown struct {
	canon.Accumulator
	leaves   []canon.Hash
	complete map[string]canon.Hash
}

func (g *grown) add() {
	leaf := canon.Sum(canon.DomainSettlement, fmt.Append(nil, len(g.leaves)))
	for k, h := range g.Append(leaf) {
		g.complete[fmt.Sprint(k, len(g.leaves)>>k)] = h
	}
	g.leaves = append(g.leaves, leaf)
}

func (g *grown) at(k uint8, j uint64) (canon.Hash, error) {
	h, ok := g.complete[fmt.Sprint(k, j)]
	if !ok {
		return h, fmt.Errorf("no complete subtree %d of level %d", j, k)
	}
	return h, nil
}

// The accumulator has the root of the tree over its leaves, and every leaf can be proved in
// every later state of it, and in no other way.
func TestAccumulator(t *testing.T) {
	g := &grown{complete: map[string]canon.Hash{}}
	var before []canon.Accumulator
	for n := range 70 {
		if g.Root() != canon.Root(g.leaves) || g.N != uint64(n) {
			t.Fatalf("%d leaves: root %v, want %v", n, g.Root(), canon.Root(g.leaves))
		}
		b, err := canon.Encoded(&g.Accumulator)
		if err != nil {
			t.Fatal(err)
		}
		var again canon.Accumulator
		if err := canon.Unmarshal(b, &again); err != nil || again.Root() != g.Root() {
			t.Fatalf("%d leaves, read again: %v", n, err)
		}
		before = append(before, again)
		g.add()
	}
	for n, a := range before {
		for i := range n {
			path, err := canon.PathAmong(uint64(n), uint64(i), g.at)
			if err != nil {
				t.Fatal(err)
			}
			p := canon.Position{Index: uint64(i), Path: path}
			if err := a.Verify(g.leaves[i], p); err != nil {
				t.Fatalf("leaf %d of %d: %v", i, n, err)
			}
			if a.Verify(g.leaves[i+1], p) == nil {
				t.Fatalf("leaf %d of %d is proved at the place of leaf %d", i+1, n, i)
			}
			for name, bad := range map[string]canon.Position{
				"another index": {Index: uint64(i+1) % uint64(n+1), Path: path},
				"beyond":        {Index: uint64(n), Path: path},
				"a longer path": {Index: uint64(i), Path: append([]canon.Hash{{}}, path...)},
			} {
				if a.Verify(g.leaves[i], bad) == nil {
					t.Fatalf("leaf %d of %d is proved with %s", i, n, name)
				}
			}
			if other := before[(n+1)%len(before)]; other.Verify(g.leaves[i], p) == nil {
				t.Fatalf("leaf %d of %d is proved in a tree of %d", i, n, other.N)
			}
		}
	}
	if _, err := canon.PathAmong(3, 3, g.at); err == nil {
		t.Error("a leaf that is not there has a path")
	}
}

// An accumulator that was appended to leaves the one that it was copied from alone.
func TestAppendCopies(t *testing.T) {
	g := &grown{complete: map[string]canon.Hash{}}
	for range 6 {
		g.add()
	}
	a, root := g.Accumulator, g.Root()
	b := a
	b.Append(canon.Hash{1})
	b.Append(canon.Hash{2})
	if a.Root() != root {
		t.Error("appending to a copy changed the original")
	}
}

func FuzzAccumulator(f *testing.F) {
	f.Add([]byte{0, 0}, []byte{0, 0})
	f.Add(append([]byte{1, 1}, make([]byte, 32)...), []byte{0, 0})
	f.Fuzz(func(t *testing.T, accumulator, position []byte) {
		var a canon.Accumulator
		var p canon.Position
		if canon.Unmarshal(accumulator, &a) != nil || canon.Unmarshal(position, &p) != nil {
			return
		}
		a.Root()
		if a.Verify(canon.Hash{7}, p) == nil {
			t.Errorf("%d leaves, index %d: an invented leaf is proved", a.N, p.Index)
		}
	})
}
