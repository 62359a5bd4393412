package beacon

import (
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/tally-network/tally/core/canon"
)

// Purpose is what is drawn. Draws of different purposes do not depend on one another.
type Purpose string

// The purposes. The strings are consensus: never reuse one.
const (
	Succession Purpose = "succession" // of a lead
	Files      Purpose = "files"      // custodians of an order's files
	Custodians Purpose = "custodians" // of an attempt
	Auditors   Purpose = "auditors"   // of an attempt
	Questions  Purpose = "questions"  // what a custodian must show
	Replicas   Purpose = "replicas"   // providers that compute a unit beside one another
	Inner      Purpose = "inner"      // the step within a segment to which replicas commit
	Clearing   Purpose = "clearing"   // what is chance in an auction
	Seats      Purpose = "seats"      // of a member of consensus
)

// Lots is the chance from which one draw is made, and all that follows from it. It may also
// be the output of a VRF, which only its owner knows.
type Lots []byte

// Draw returns the lots for a purpose and a subject. The subject names all that tells one
// draw from another: so an attempt has one draw of a purpose, however often it is asked for.
func Draw(value canon.Hash, p Purpose, subject []byte) Lots {
	h := canon.Sum(canon.DomainLots, canon.Encode(func(e *canon.Encoder) {
		e.Hash(value)
		e.String(string(p))
		e.Blob(subject)
	}))
	return h[:]
}

// Below returns number at of the draw: one below n, which is at least 1. It is the first
// 64-bit word that lies under the largest multiple of n, so that every number is equally likely.
func (l Lots) Below(at, n uint64) uint64 {
	limit := -n % n // 2⁶⁴ mod n
	for try := uint64(0); ; try++ {
		h := canon.Sum(canon.DomainDraw, canon.Encode(func(e *canon.Encoder) {
			e.Blob(l)
			e.Uint(at)
			e.Uint(try)
		}))
		if w := binary.LittleEndian.Uint64(h[:]); w >= limit {
			return w % n
		}
	}
}

// Fraction returns fraction at of the draw: 256 bits after the binary point, from the highest on. It
// does not depend on the number of the same place.
func (l Lots) Fraction(at uint64) canon.Hash {
	return canon.Sum(canon.DomainDraw, canon.Encode(func(e *canon.Encoder) {
		e.Blob(l)
		e.Uint(at)
	}))
}

// Pick returns k of the numbers 0…n−1, without replacement, each order equally likely: a
// Fisher–Yates shuffle. With k ≥ n it returns all of them.
func (l Lots) Pick(n, k int) []int {
	k = min(k, n)
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	for i := range k {
		j := i + int(l.Below(uint64(i), uint64(n-i)))
		all[i], all[j] = all[j], all[i]
	}
	return all[:k]
}

// errWeights is returned for weights that do not add up.
var errWeights = errors.New("the weights of a draw add up to more than 64 bits hold")

// Weighted returns k places of weights, without replacement: each next one is drawn in
// proportion to the weights that are left. So nobody gains by dividing its weight among many names.
// What weighs nothing is never drawn. It takes k·log n steps beside the n that it reads.
func (l Lots) Weighted(weights []uint64, k int) ([]int, error) {
	sums, total, some, err := sumsOf(weights)
	if err != nil {
		return nil, err
	}
	out := make([]int, 0, max(min(k, some), 0))
	for i := range cap(out) {
		at := sums.find(l.Below(uint64(i), total))
		sums.less(at, weights[at])
		total -= weights[at]
		out = append(out, at)
	}
	return out, nil
}

// sums is a Fenwick tree: place i−1 holds the sum of the i&−i weights up to weight i.
type sums []uint64

func sumsOf(weights []uint64) (s sums, total uint64, some int, err error) {
	s = make(sums, len(weights))
	for i, w := range weights {
		var carry uint64
		if total, carry = bits.Add64(total, w, 0); carry != 0 {
			return nil, 0, 0, errWeights
		}
		if w > 0 {
			some++
		}
		s[i] += w
		if up := i + (i+1)&-(i+1); up < len(s) {
			s[up] += s[i]
		}
	}
	return s, total, some, nil
}

// find returns the first place up to which the weights add up to more than x.
func (s sums) find(x uint64) (at int) {
	for step := 1 << (bits.Len(uint(len(s))) - 1); step > 0; step /= 2 {
		if next := at + step; next <= len(s) && s[next-1] <= x {
			at, x = next, x-s[next-1]
		}
	}
	return at
}

func (s sums) less(at int, w uint64) {
	for i := at + 1; i <= len(s); i += i & -i {
		s[i-1] -= w
	}
}
