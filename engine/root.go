package engine

import (
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// tileGrain is the number of tiles that are worth a goroutine: 256 KiB of
// float32, about a tenth of a millisecond.
const tileGrain = 64

// Root returns t's root, hashing on several threads.
func Root(t *tensor.Tensor, threads int) canon.Hash {
	leaves := make([]canon.Hash, tensor.LayoutOf(t.Type, t.Shape).Tiles())
	hash := func(_, lo, hi int) error {
		buf := make([]byte, 0, tensor.TileSide*tensor.TileSide*8)
		for i := lo; i < hi; i++ {
			buf = t.Tile(buf[:0], i)
			leaves[i] = tensor.TileHash(buf)
		}
		return nil
	}
	_ = Split(threads, len(leaves), tileGrain, hash) // hash cannot fail
	return tensor.LayoutOf(t.Type, t.Shape).Root(canon.Root(leaves))
}

// StateRoot returns s's root, hashing on several threads.
func StateRoot(s *graph.State, threads int) (canon.Hash, error) {
	k, err := StateTree(s, threads)
	if err != nil {
		return canon.Hash{}, err
	}
	return k.Root(), nil
}

// StateTree returns the tree that s.Keyed returns, hashing on several threads.
func StateTree(s *graph.State, threads int) (*canon.Keyed, error) {
	entries := make([]canon.Entry, len(s.Slots))
	// Tensors in parallel, and the tiles of a large one again: the latter
	// spreads what the former cannot.
	err := Split(threads, len(entries), 1, func(_, lo, hi int) error {
		for i := lo; i < hi; i++ {
			entries[i] = canon.Entry{Key: s.Slots[i].Name, Value: Root(s.Tensors[i], threads)}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return canon.NewKeyed(entries)
}
