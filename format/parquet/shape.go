package parquet

import (
	"errors"
	"fmt"

	"github.com/tally-network/tally/core/tensor"
)

// shaper finds the one shape of all records by the repetition levels of their values: level 0
// begins a record, level k goes on in list k.
type shaper struct {
	depth int          // of lists
	shape tensor.Shape // of the first record, once the second has begun
	first []uint8      // levels of the first record
	at    int          // values of the record so far
	n     int          // records that have begun
	bad   bool
}

// add takes the level of the next value.
func (s *shaper) add(level int) {
	if level > s.depth {
		s.bad = true
		return
	}
	if s.n == 0 && level != 0 {
		s.bad = true
	}
	if level == 0 {
		s.end()
		s.n, s.at = s.n+1, 0
	}
	if s.n <= 1 {
		s.first = append(s.first, uint8(level))
	} else if s.at >= len(s.first) || s.first[s.at] != uint8(level) {
		s.bad = true
	}
	s.at++
}

// end closes a record.
func (s *shaper) end() {
	if s.n == 1 {
		s.settle()
	}
	if s.n > 0 && s.at != len(s.first) {
		s.bad = true
	}
}

// settle finds the shape of the first record, whose lists may differ.
func (s *shaper) settle() {
	s.shape = make(tensor.Shape, s.depth)
	inner := 1 // values of a list one level further down
	for axis := s.depth; axis > 0; axis-- {
		n := 0 // until a list of this level ends
		for i := 0; i < len(s.first) && (i == 0 || int(s.first[i]) >= axis); i++ {
			n++
		}
		if n%inner != 0 {
			s.bad = true
		}
		s.shape[axis-1] = n / inner
		inner = n
	}
	for i, level := range s.first { // what every place says if all lists are alike
		want, size := s.depth, 1
		for axis := s.depth; axis > 0; axis-- {
			if size *= s.shape[axis-1]; size == 0 || i%size != 0 {
				break
			}
			want = axis - 1
		}
		if int(level) != want {
			s.bad = true
		}
	}
}

// total returns the shape of so many records together.
func (s *shaper) total(records int) (tensor.Shape, error) {
	if s.n != records {
		return nil, fmt.Errorf("%d lists in %d records", s.n, records)
	}
	s.end()
	if s.bad {
		return nil, errors.New("its lists have several shapes: all records have one shape; pad them")
	}
	shape := append(tensor.Shape{records}, s.shape...)
	return shape, shape.Check()
}
