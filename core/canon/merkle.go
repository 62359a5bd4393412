package canon

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// ErrProof says that a Merkle proof does not lead to the root it is held against.
var ErrProof = errors.New("merkle proof does not match its root")

// Span is a run of leaves that forms one subtree.
type Span struct{ Lo, N int }

// Full returns the span of a whole tree over n leaves.
func Full(n int) Span { return Span{0, n} }

// Split returns the two children of s. A span of fewer than two leaves has none.
func (s Span) Split() (left, right Span, ok bool) {
	if s.N < 2 {
		return s, Span{}, false
	}
	k := 1 << (bits.Len(uint(s.N-1)) - 1) // the largest power of two below N
	return Span{s.Lo, k}, Span{s.Lo + k, s.N - k}, true
}

// Has reports whether leaf i lies in s.
func (s Span) Has(i int) bool { return i >= s.Lo && i < s.Lo+s.N }

// Expand returns, from left to right, the descendants of s that lie depth
// levels below it; leaves above that level stand for themselves.
func (s Span) Expand(depth int) []Span {
	l, r, ok := s.Split()
	if !ok || depth <= 0 {
		return []Span{s}
	}
	return append(l.Expand(depth-1), r.Expand(depth-1)...)
}

// Join returns the hash of s from the hashes of s.Expand(depth). It returns
// ErrProof when their number is wrong.
func (s Span) Join(depth int, hashes []Hash) (Hash, error) {
	h, rest := s.join(depth, hashes)
	if rest == nil || len(rest) != 0 {
		return Hash{}, ErrProof
	}
	return h, nil
}

func (s Span) join(depth int, hashes []Hash) (Hash, []Hash) {
	l, r, ok := s.Split()
	if !ok || depth <= 0 {
		if len(hashes) == 0 {
			return Hash{}, nil
		}
		return hashes[0], hashes[1:]
	}
	a, hashes := l.join(depth-1, hashes)
	if hashes == nil {
		return Hash{}, nil
	}
	b, hashes := r.join(depth-1, hashes)
	return inner(a, b), hashes
}

// Climb returns the hash of s that leaf i and the path beside it imply. The
// path runs from the leaf upwards and has exactly one hash a level.
func (s Span) Climb(i int, leaf Hash, path []Hash) (Hash, error) {
	if !s.Has(i) {
		return Hash{}, ErrProof
	}
	l, r, ok := s.Split()
	if !ok {
		if len(path) != 0 {
			return Hash{}, ErrProof
		}
		return leaf, nil
	}
	if len(path) == 0 {
		return Hash{}, ErrProof
	}
	beside, path := path[len(path)-1], path[:len(path)-1]
	if l.Has(i) {
		h, err := l.Climb(i, leaf, path)
		return inner(h, beside), err
	}
	h, err := r.Climb(i, leaf, path)
	return inner(beside, h), err
}

func inner(l, r Hash) Hash { return Sum(DomainNode, l[:], r[:]) }

// RootOf returns the root of a tree over n leaves whose top hash is top.
func RootOf(n int, top Hash) Hash {
	var c [8]byte
	binary.LittleEndian.PutUint64(c[:], uint64(n))
	return Sum(DomainTree, c[:], top[:])
}

// Root returns the root over leaves. An empty tree has one as well.
func Root(leaves []Hash) Hash { return RootOf(len(leaves), Top(leaves)) }

// Top returns the hash of the topmost node over leaves, which does not bind
// their number; it is zero for none.
func Top(leaves []Hash) Hash {
	if len(leaves) == 0 {
		return Hash{}
	}
	return top(leaves)
}

func top(leaves []Hash) Hash {
	l, _, ok := Full(len(leaves)).Split()
	if !ok {
		return leaves[0]
	}
	return inner(top(leaves[:l.N]), top(leaves[l.N:]))
}

// Verify checks that leaf stands at position i under the root of a tree of n
// leaves.
func Verify(root Hash, n, i int, leaf Hash, path []Hash) error {
	h, err := Full(n).Climb(i, leaf, path)
	if err != nil {
		return err
	}
	if RootOf(n, h) != root {
		return ErrProof
	}
	return nil
}

// Tree is a Merkle tree with every inner hash kept, for proofs.
type Tree struct {
	leaves []Hash
	inner  []Hash // by the leaf at which the node splits
}

// NewTree builds the tree over leaves, which it keeps.
func NewTree(leaves []Hash) *Tree {
	t := &Tree{leaves: leaves, inner: make([]Hash, len(leaves))}
	if len(leaves) > 0 {
		t.build(Full(len(leaves)))
	}
	return t
}

func (t *Tree) build(s Span) Hash {
	l, r, ok := s.Split()
	if !ok {
		return t.leaves[s.Lo]
	}
	h := inner(t.build(l), t.build(r))
	t.inner[r.Lo] = h
	return h
}

// Len returns the number of leaves.
func (t *Tree) Len() int { return len(t.leaves) }

// Leaf returns leaf i.
func (t *Tree) Leaf(i int) Hash { return t.leaves[i] }

// Root returns the root, which binds the number of leaves.
func (t *Tree) Root() Hash {
	if len(t.leaves) == 0 {
		return Root(nil)
	}
	return RootOf(len(t.leaves), t.Node(Full(len(t.leaves))))
}

// Node returns the hash of s, which must be a subtree of t.
func (t *Tree) Node(s Span) Hash {
	if _, r, ok := s.Split(); ok {
		return t.inner[r.Lo]
	}
	return t.leaves[s.Lo]
}

// Nodes returns the hashes of the given subtrees.
func (t *Tree) Nodes(spans []Span) []Hash {
	out := make([]Hash, len(spans))
	for i, s := range spans {
		out[i] = t.Node(s)
	}
	return out
}

// Path returns the hashes beside leaf i, from the leaf up to the top of s.
func (t *Tree) Path(s Span, i int) []Hash {
	l, r, ok := s.Split()
	if !ok {
		return nil
	}
	if l.Has(i) {
		return append(t.Path(l, i), t.Node(r))
	}
	return append(t.Path(r, i), t.Node(l))
}

// Prove returns the path of leaf i in the whole tree.
func (t *Tree) Prove(i int) []Hash { return t.Path(Full(len(t.leaves)), i) }
