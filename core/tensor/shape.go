package tensor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/canon"
)

// Limits on what a shape may be, checked before anything is allocated.
const (
	MaxRank     = 8
	MaxDim      = 1 << 40
	MaxElements = 1 << 40
)

// Shape is the extent of each axis. A scalar has none.
type Shape []int

// Check returns an error unless s is within the limits.
func (s Shape) Check() error {
	if len(s) > MaxRank {
		return fmt.Errorf("shape %v has %d axes, limit %d", s, len(s), MaxRank)
	}
	n := 1
	for _, d := range s {
		if d < 0 || d > MaxDim {
			return fmt.Errorf("shape %v: extent %d is not between 0 and 2^40", s, d)
		}
		d = max(d, 1) // a zero extent must not hide an overflow of the others
		if n > MaxElements/d {
			return fmt.Errorf("shape %v has more than 2^40 elements", s)
		}
		n *= d
	}
	return nil
}

// Elements returns the number of elements of a checked shape.
func (s Shape) Elements() int {
	n := 1
	for _, d := range s {
		n *= d
	}
	return n
}

// Equal reports whether s and t have the same axes.
func (s Shape) Equal(t Shape) bool { return slices.Equal(s, t) }

// Clone returns a copy of s.
func (s Shape) Clone() Shape { return slices.Clone(s) }

// Strides returns, for each axis, the distance in elements between neighbours
// in row-major order.
func (s Shape) Strides() []int {
	out := make([]int, len(s))
	n := 1
	for i := len(s) - 1; i >= 0; i-- {
		out[i] = n
		n *= s[i]
	}
	return out
}

// Coords writes the coordinates of flat index i into at, which has one place
// an axis.
func (s Shape) Coords(i int, at []int) {
	for d := len(s) - 1; d >= 0; d-- {
		at[d] = i % s[d]
		i /= s[d]
	}
}

// Matrix returns s as rows × columns: the last axis is the columns.
func (s Shape) Matrix() (rows, cols int) {
	if len(s) == 0 {
		return 1, 1
	}
	return Shape(s[:len(s)-1]).Elements(), s[len(s)-1]
}

// Broadcast returns the shape that s and t broadcast to, by NumPy's rule.
func (s Shape) Broadcast(t Shape) (Shape, error) {
	if len(s) < len(t) {
		s, t = t, s
	}
	out := s.Clone()
	for i := range t {
		j := len(s) - len(t) + i
		switch {
		case s[j] == t[i] || t[i] == 1:
		case s[j] == 1:
			out[j] = t[i]
		default:
			return nil, fmt.Errorf("shapes %v and %v do not broadcast: %d against %d", s, t, s[j], t[i])
		}
	}
	return out, out.Check()
}

// String returns s as [2 3].
func (s Shape) String() string {
	parts := make([]string, len(s))
	for i, d := range s {
		parts[i] = fmt.Sprint(d)
	}
	return "[" + strings.Join(parts, " ") + "]"
}

// Encode appends the canonical encoding of s.
func (s Shape) Encode(e *canon.Encoder) {
	canon.List(e, s, func(e *canon.Encoder, d int) { e.Uint(uint64(d)) })
}

// DecodeShape reads what Encode wrote and checks it.
func DecodeShape(d *canon.Decoder) Shape {
	s := Shape(canon.ReadList(d, MaxRank, 1, func(d *canon.Decoder) int { return int(d.Uint(MaxDim)) }))
	if err := s.Check(); err != nil {
		d.Fail("%v", err)
		return nil
	}
	return s
}
