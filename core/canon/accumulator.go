package canon

import "math/bits"

// MaxAccumulated bounds the leaves of an Accumulator.
const MaxAccumulated = 1 << 48

// An Accumulator is a Merkle tree that only grows, of which its peaks alone are kept: the tops
// of the complete subtrees that its leaves fall into, the largest first.
//
//	       ·
//	   ┌───┴───┐
//	   a       │            seven leaves: a over four of them,
//	┌──┴──┐    b    c       b over two, c over the last
//	0 1 2 3   4 5   6
//
// Its root is Root of the same leaves, so that Verify checks paths into it.
type Accumulator struct {
	N     uint64 // leaves
	Peaks []Hash // one for each bit that is set in N
}

// Append adds a leaf. It returns the tops of the subtrees that this completes, from the leaf
// itself upwards: member k is over 2ᵏ leaves.
func (a *Accumulator) Append(leaf Hash) (complete []Hash) {
	complete = []Hash{leaf}
	peaks := a.Peaks
	for n := a.N; n&1 == 1; n >>= 1 {
		leaf = inner(peaks[len(peaks)-1], leaf)
		peaks = peaks[:len(peaks)-1]
		complete = append(complete, leaf)
	}
	a.N++
	a.Peaks = append(peaks[:len(peaks):len(peaks)], leaf)
	return complete
}

// Root returns the root over all leaves, which binds their number.
func (a *Accumulator) Root() Hash {
	if a.N == 0 {
		return Root(nil)
	}
	top := a.Peaks[len(a.Peaks)-1]
	for i := len(a.Peaks) - 2; i >= 0; i-- {
		top = inner(a.Peaks[i], top)
	}
	return RootOf(int(a.N), top)
}

// Code walks the fields of a.
func (a *Accumulator) Code(w *Codec) {
	w.U64(&a.N)
	w.Hashes(&a.Peaks, bits.Len64(MaxAccumulated))
	if a.N > MaxAccumulated || len(a.Peaks) != bits.OnesCount64(a.N) {
		w.Fail("%d peaks of %d leaves", len(a.Peaks), a.N)
	}
}

// Position is where a leaf stands in an Accumulator: before how many others were added, and
// the hashes beside it, from the leaf upwards.
type Position struct {
	Index uint64
	Path  []Hash
}

// Code walks the fields of p.
func (p *Position) Code(w *Codec) {
	w.U64(&p.Index)
	w.Hashes(&p.Path, bits.Len64(MaxAccumulated))
}

// Verify returns ErrProof unless leaf stands in a at p.
func (a *Accumulator) Verify(leaf Hash, p Position) error {
	if p.Index >= a.N {
		return ErrProof
	}
	return Verify(a.Root(), int(a.N), int(p.Index), leaf, p.Path)
}

// PathAmong returns the path of leaf i in the tree of the first n leaves, later ones or not.
// complete returns the top of the complete subtree that is number j of those over 2ᵏ leaves,
// from the left.
func PathAmong(n, i uint64, complete func(k uint8, j uint64) (Hash, error)) (path []Hash, err error) {
	if i >= n || n > MaxAccumulated {
		return nil, ErrProof
	}
	s := Full(int(n))
	for s.N > 1 && err == nil {
		l, r, _ := s.Split()
		beside := r
		if s = l; r.Has(int(i)) {
			s, beside = r, l
		}
		var h Hash
		h, err = topOf(beside, complete)
		path = append(path, h)
	}
	for a, b := 0, len(path)-1; a < b; a, b = a+1, b-1 {
		path[a], path[b] = path[b], path[a]
	}
	return path, err
}

// topOf returns the hash of a subtree, from those of the complete ones.
func topOf(s Span, complete func(k uint8, j uint64) (Hash, error)) (Hash, error) {
	if s.N&(s.N-1) == 0 { // its leaves begin at a multiple of their number
		return complete(uint8(bits.TrailingZeros(uint(s.N))), uint64(s.Lo/s.N))
	}
	l, r, _ := s.Split()
	left, err := topOf(l, complete)
	if err != nil {
		return Hash{}, err
	}
	right, err := topOf(r, complete)
	return inner(left, right), err
}
