// Package erasure cuts a state into fragments so that a few of them make it up again.
//
// The tiles of each tensor, in their order, are taken in stripes of as many as are
// needed, the last filled up with zero tiles. Of each stripe a fragment holds one tile:
// Σ G[fragment][i] · tile i over the field of 256 elements, byte by byte. A tile at an edge of its
// matrix stands for itself followed by zeros. G is a Reed–Solomon code in Cauchy's form: the
// identity, so that the first fragments are the tiles themselves, and under it 1/(fragment ⊕ i),
// in closed form.
//
// Choose a [Code]. [Code.Fragment] cuts a fragment, and [Code.Rebuild] makes up the state.
//
// A fragment of a state is a state again, of unsigned integers as wide as the elements:
// it is encoded, stored, committed to and opened like one.
//
// Invariants: a fragment follows from the state alone; any Needed fragments make up the
// state, bit for bit; a tile of a fragment follows from Needed tiles of the state.
//
// Source: Reed and Solomon 1960; Blömer et al. 1995 for the matrix. Its bytes are
// those of klauspost/reedsolomon with WithCauchyMatrix, which the tests compare.
package erasure

// MaxFragments bounds the fragments of a code: the numbers of fragments are elements of the
// field.
const MaxFragments = 256

// Code cuts states into Fragments, of which any Needed make them up again:
// 1 ≤ Needed ≤ Fragments ≤ MaxFragments.
type Code struct{ Fragments, Needed int }

// Valid reports whether c is a code.
func (c Code) Valid() bool {
	return c.Needed >= 1 && c.Needed <= c.Fragments && c.Fragments <= MaxFragments
}

// Cuts reports whether fragments are smaller than what they are of.
func (c Code) Cuts() bool { return c.Needed > 1 }

// row returns the coefficients of a fragment.
func (c Code) row(fragment int) []byte {
	row := make([]byte, c.Needed)
	for i := range row {
		if fragment >= c.Needed {
			row[i] = inverse(byte(fragment ^ i))
		}
	}
	if fragment < c.Needed {
		row[fragment] = 1
	}
	return row
}

// Tile sets dst to the tile of a fragment that follows from the tiles of a stripe, of
// which there are at most c.Needed, each at most as long as dst.
func (c Code) Tile(dst []byte, fragment int, stripe [][]byte) { combine(dst, c.row(fragment), stripe) }

// Stripe returns the numbers from lo up to but not including hi of the tiles in a
// stripe of a tensor with n tiles.
func (c Code) Stripe(stripe, n int) (lo, hi int) {
	lo = min(stripe, n/c.Needed+1) * c.Needed
	return lo, min(lo+c.Needed, n)
}
