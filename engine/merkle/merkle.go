// Package merkle hashes tensors and states fast: on several threads, and two tiles at a
// time where the machine has the instructions.
//
// Call [StateRoot] for a model's state, [Root] for one tensor, [Roots] for several at once.
//
// Invariant: the roots are those that core/tensor and core/graph define, bit for bit, on
// any number of threads.
package merkle

import (
	"encoding/binary"
	"runtime"
	"slices"
	"sort"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// Roots returns the tensors' roots, hashing tiles on several threads.
func Roots(tensors []*tensor.Tensor, threads int) []canon.Hash {
	leaves := make([][]canon.Hash, len(tensors))
	ends := make([]int, len(tensors)) // tiles of this tensor and those before it
	total := 0
	for i, t := range tensors {
		n := tensor.LayoutOf(t.Type, t.Shape).Tiles()
		leaves[i] = make([]canon.Hash, n)
		total += n
		ends[i] = total
	}
	hash := func(_, lo, hi int) error {
		for i := sort.SearchInts(ends, lo+1); lo < hi; {
			begin := ends[i] - len(leaves[i])
			end := min(hi, ends[i], lo+tuning.YieldTiles)
			hashTiles(tensors[i], leaves[i][lo-begin:end-begin], lo-begin)
			if lo = end; lo == ends[i] {
				i++
			}
			runtime.Gosched() // to threads of a computation beside, which wait for one another all the time
		}
		return nil
	}
	_ = engine.Split(threads, total, tuning.TileGrain, hash) // hash cannot fail
	roots := make([]canon.Hash, len(tensors))
	for i, t := range tensors {
		roots[i] = tensor.LayoutOf(t.Type, t.Shape).Root(canon.Root(leaves[i]))
	}
	return roots
}

// hashTiles sets dst to the hashes of the tiles of t from number at on, two at a
// time where the machine can. Tiles of zeros are hashed once: pages are filled up with them.
func hashTiles(t *tensor.Tensor, dst []canon.Hash, at int) {
	if !asm.HasSHA256x2() {
		t.LeavesFrom(dst, at)
		return
	}
	l := tensor.LayoutOf(t.Type, t.Shape)
	const room = tensor.TileSide * tensor.TileSide * 8
	begun := canon.Begin(nil, canon.DomainTile)
	x := append(make([]byte, 0, room+2*64), begun...)
	y := append(make([]byte, 0, room+2*64), begun...)
	zeros := map[int]canon.Hash{} // by their bytes
	for len(dst) > 0 {
		a := t.Tile(x, at)
		if zero(a[len(begun):]) {
			h, known := zeros[len(a)]
			if !known {
				h = canon.SumOf(a)
				zeros[len(a)] = h
			}
			dst[0] = h
			dst, at = dst[1:], at+1
			continue
		}
		if len(dst) == 1 || l.TileBytes(at) != l.TileBytes(at+1) {
			t.LeavesFrom(dst[:1], at)
			dst, at = dst[1:], at+1
			continue
		}
		b := t.Tile(y, at+1)
		dst[0], dst[1] = asm.SumSHA256x2(a, b, ahead(t, l, at+2))
		dst, at = dst[2:], at+2
	}
}

func zero(b []byte) bool {
	for len(b) >= 8 && binary.LittleEndian.Uint64(b) == 0 {
		b = b[8:]
	}
	return len(b) < 8 && !slices.ContainsFunc(b, func(x byte) bool { return x != 0 })
}

// ahead is the memory of a tile and of the one beside it.
func ahead(t *tensor.Tensor, l tensor.Layout, tile int) asm.Prefetch {
	first, err := l.Element(tile, 0)
	if err != nil { // there is none
		return asm.Prefetch{}
	}
	size := t.Type.Size()
	row := tile / l.Side
	return asm.Prefetch{First: &t.Bytes()[first*size], Step: l.Cols * size, Rows: min(tensor.TileSide, l.Rows-row*tensor.TileSide)}
}

// Root returns t's root, hashing on several threads.
func Root(t *tensor.Tensor, threads int) canon.Hash {
	return Roots([]*tensor.Tensor{t}, threads)[0]
}

// StateRoot returns s's root, hashing on several threads.
func StateRoot(s *graph.State, threads int) (canon.Hash, error) {
	entries := make([]canon.Entry, len(s.Slots))
	for i, root := range Roots(s.Tensors, threads) {
		entries[i] = canon.Entry{Key: s.Slots[i].Name, Value: root}
	}
	k, err := canon.NewKeyed(entries)
	if err != nil {
		return canon.Hash{}, err
	}
	return k.Root(), nil
}
