// Package merkle hashes tensors and states fast: on several threads, and several tiles or nodes at a
// time where the machine has the instructions.
//
// Call [StateRoot] for a model's state, [Root] for one tensor, [Roots] for several at once; [Crown] for what
// parts of a tensor are checked by.
//
// Invariant: the roots are those that core/tensor and core/graph define, bit for bit, on
// any number of threads.
package merkle

import (
	"encoding/binary"
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
	leaves := hashTiles(tensors, threads)
	roots := make([]canon.Hash, len(tensors))
	for i, t := range tensors {
		n := len(leaves[i]) / canon.HashSize
		roots[i] = tensor.LayoutOf(t.Type, t.Shape).Root(canon.RootOf(n, top(leaves[i], threads)))
	}
	return roots
}

// Leaves returns the hashes of t's tiles, hashing on several threads.
func Leaves(t *tensor.Tensor, threads int) []canon.Hash {
	hashes := hashTiles([]*tensor.Tensor{t}, threads)[0]
	out := make([]canon.Hash, len(hashes)/canon.HashSize)
	for i := range out {
		out[i] = canon.Hash(hashes[i*canon.HashSize:])
	}
	return out
}

// Crown returns t's crown, hashing on several threads.
func Crown(t *tensor.Tensor, threads int) *tensor.Crown {
	return tensor.NewCrown(tensor.LayoutOf(t.Type, t.Shape), Leaves(t, threads))
}

// hashTiles returns for each tensor the hashes of its tiles, one after the other.
func hashTiles(tensors []*tensor.Tensor, threads int) [][]byte {
	leaves := make([][]byte, len(tensors))
	ends := make([]int, len(tensors)) // tiles of this tensor and those before it
	total := 0
	for i, t := range tensors {
		n := tensor.LayoutOf(t.Type, t.Shape).Tiles()
		leaves[i] = make([]byte, n*canon.HashSize)
		total += n
		ends[i] = total
	}
	hashers := make([]tileHasher, max(threads, 1))
	some := func(worker, lo, hi int) error {
		h := &hashers[worker]
		for i := sort.SearchInts(ends, lo+1); lo < hi; i++ {
			begin, end := ends[i]-len(leaves[i])/canon.HashSize, min(hi, ends[i])
			h.add(tensors[i], leaves[i], lo-begin, end-begin)
			lo = end
		}
		h.finish()
		return nil
	}
	_ = engine.Split(threads, total, tuning.TileGrain, some) // it cannot fail
	return leaves
}

// tileHasher hashes tiles of any tensors, by their lengths in bytes.
type tileHasher struct{ tiles map[int]*tiles }

// tiles are those of one length. Those of zeros are hashed once: pages are filled up with them.
type tiles struct {
	*batch
	room  []byte // for tiles whose rows lie apart
	zeros canon.Hash
}

// add sees to it that the leaves of the tiles lo…hi−1 of t are set, by finish at the latest.
func (h *tileHasher) add(t *tensor.Tensor, leaves []byte, lo, hi int) {
	l, word := tensor.LayoutOf(t.Type, t.Shape), t.Type.Size()
	var same *tiles
	size := -1
	for i := lo; i < hi; i++ {
		row, col := l.TileAt(i)
		rows := min(tensor.TileSide, l.Rows-row*tensor.TileSide)
		width := min(tensor.TileSide, l.Cols-col*tensor.TileSide) * word
		if rows*width != size {
			size = rows * width
			same = h.of(size)
		}
		first := t.Bytes()[(row*l.Cols+col)*tensor.TileSide*word:]
		tile := first[:width]
		if rows > 1 {
			tile = same.joined(first, rows, width, l.Cols*word)
		}
		leaf := (*hash)(leaves[i*canon.HashSize:])
		if !zero(tile) {
			same.batch.add(leaf, tile)
			continue
		}
		if same.zeros.IsZero() {
			same.zeros = tensor.TileHash(tile)
		}
		*leaf = same.zeros
	}
}

// of returns the tiles of one length in bytes.
func (h *tileHasher) of(size int) *tiles {
	if h.tiles == nil {
		h.tiles = map[int]*tiles{}
	}
	if h.tiles[size] == nil {
		h.tiles[size] = &tiles{batch: newBatch(canon.DomainTile, size)}
	}
	return h.tiles[size]
}

// joined copies rows, which lie a step apart, to where the next tile can wait.
func (t *tiles) joined(first []byte, rows, width, step int) []byte {
	size := rows * width
	if t.room == nil {
		t.room = make([]byte, asm.DigestLanes*size)
	}
	tile := t.room[t.n*size:][:size]
	for y := range rows {
		copy(tile[y*width:][:width], first[y*step:])
	}
	return tile
}

// finish hashes the tiles that wait.
func (h *tileHasher) finish() {
	for _, same := range h.tiles {
		same.sum()
	}
}

func zero(b []byte) bool {
	for len(b) >= 8 && binary.LittleEndian.Uint64(b) == 0 {
		b = b[8:]
	}
	return len(b) < 8 && !slices.ContainsFunc(b, func(x byte) bool { return x != 0 })
}

// top returns the hash of the topmost node over leaves, as canon.Top does, hashing on several threads. The leaves change.
func top(leaves []byte, threads int) canon.Hash {
	parts := slices.Collect(slices.Chunk(leaves, tuning.NodeGrain*canon.HashSize)) // subtrees, as their size is a power of two
	tops := make([]canon.Hash, len(parts))
	some := func(_, lo, hi int) error {
		b := newBatch(canon.DomainNode, 2*canon.HashSize)
		for i := lo; i < hi; i++ {
			tops[i] = b.top(parts[i])
		}
		return nil
	}
	_ = engine.Split(threads, len(parts), 1, some) // it cannot fail
	return canon.Top(tops)
}

// top replaces nodes by their parents until there are few, which are not worth a batch.
func (b *batch) top(level []byte) canon.Hash {
	const size = canon.HashSize
	for len(level) > asm.DigestLanes*size {
		parents := len(level) / (2 * size)
		for i := range parents {
			b.add((*hash)(level[i*size:]), level[2*i*size:][:2*size])
		}
		b.sum()
		level = append(level[:parents*size], level[2*parents*size:]...) // one that is left over goes up as it is
	}
	few := make([]canon.Hash, len(level)/size)
	for i := range few {
		few[i] = canon.Hash(level[i*size:])
	}
	return canon.Top(few)
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
