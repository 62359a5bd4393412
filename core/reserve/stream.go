package reserve

import (
	"errors"
	"math/big"
)

// Stream divides what comes in over time among parts of a weight, each by what it weighed when it came. Nobody has to
// be there. The zero value has had nothing.
type Stream struct {
	per   big.Int // utally for a unit of weight, times 2^shift, since the beginning
	shift uint
}

// Mark is how far a part of a stream has been taken.
type Mark struct {
	per   big.Int
	shift uint
}

const (
	spare    = 64      // bits beyond those of a weight: a stream loses less than a utally in 2⁶⁴ of them
	maxShift = 1 << 16 // bits: bounds weights, and what a stored value may take
)

// Errors of streams.
var (
	ErrWeight   = errors.New("the weight is zero, negative or too large")
	ErrEncoding = errors.New("not a stored stream")
	ErrMark     = errors.New("the mark is ahead of the stream")
)

// StreamOf returns a stream by what Bytes gave.
func StreamOf(per []byte, shift uint32) (s Stream, err error) {
	if shift > maxShift || len(per) > maxShift/8 {
		return s, ErrEncoding
	}
	s.per.SetBytes(per)
	s.shift = uint(shift)
	return s, nil
}

// Bytes returns a stream as it is stored.
func (s *Stream) Bytes() (per []byte, shift uint32) { return s.per.Bytes(), uint32(s.shift) }

// Mark returns how far the stream is now.
func (s *Stream) Mark() Mark {
	m := Mark{shift: s.shift}
	m.per.Set(&s.per)
	return m
}

// MarkOf returns a mark by what Bytes gave.
func MarkOf(per []byte, shift uint32) (Mark, error) {
	s, err := StreamOf(per, shift)
	return s.Mark(), err
}

// Bytes returns a mark as it is stored.
func (m *Mark) Bytes() (per []byte, shift uint32) { return m.per.Bytes(), uint32(m.shift) }

// Pour adds pay utally, for all parts of a weight. What rounding leaves nobody takes.
func (s *Stream) Pour(pay uint64, weight *big.Int) error {
	if weight.Sign() <= 0 || weight.BitLen()+spare > maxShift {
		return ErrWeight
	}
	if need := uint(weight.BitLen() + spare); s.shift < need { // exact: a shift to the left
		s.per.Lsh(&s.per, need-s.shift)
		s.shift = need
	}
	part := new(big.Int).SetUint64(pay)
	part.Lsh(part, s.shift)
	s.per.Add(&s.per, part.Quo(part, weight))
	return nil
}

// Since returns what a part of a weight has had since a mark, in utally and rounded down.
func (s *Stream) Since(m *Mark, weight *big.Int) (uint64, error) {
	was := new(big.Int).Set(&m.per)
	switch {
	case weight.Sign() < 0:
		return 0, ErrWeight
	case m.shift > s.shift:
		return 0, ErrMark
	}
	was.Lsh(was, s.shift-m.shift)
	gain := new(big.Int).Sub(&s.per, was)
	if gain.Sign() < 0 {
		return 0, ErrMark
	}
	gain.Mul(gain, weight)
	if gain.Rsh(gain, s.shift); !gain.IsUint64() {
		return 0, ErrWeight
	}
	return gain.Uint64(), nil
}
