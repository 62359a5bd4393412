package rows

import (
	"fmt"
	"strings"

	"github.com/tally-network/tally/core/tensor"
)

// scanner reads nested lists of numbers.
type scanner struct {
	text string
	at   int
}

// skip passes c if it comes next, after any white space, and reports whether it did.
func (s *scanner) skip(c byte) bool {
	for s.at < len(s.text) && strings.IndexByte(" \t\r\n", s.text[s.at]) >= 0 {
		s.at++
	}
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

// number passes a number, or what stands in its place. A string may hold anything.
func (s *scanner) number() string {
	from := s.at
	if s.skip('"') {
		for s.at < len(s.text) && s.text[s.at] != '"' {
			if s.text[s.at] == '\\' {
				s.at++
			}
			s.at++
		}
		s.at = min(s.at+1, len(s.text))
	} else if n := strings.IndexAny(s.text[s.at:], ",]"); n >= 0 {
		s.at += n
	} else {
		s.at = len(s.text)
	}
	return strings.TrimSpace(s.text[from:s.at])
}

// shape returns the extents of the value that comes next, as its first parts show them.
func (s *scanner) shape(outer tensor.Shape, depth int) (tensor.Shape, error) {
	if s.skip('{') {
		return nil, fmt.Errorf("an object stands where a number or a list of numbers is wanted")
	}
	if !s.skip('[') {
		s.number()
		return outer, nil
	}
	if depth+1 >= tensor.MaxRank {
		return nil, fmt.Errorf("lists are nested more than %d deep", tensor.MaxRank-1)
	}
	if s.skip(']') {
		return nil, fmt.Errorf("a list is empty")
	}
	inner, err := s.shape(nil, depth+1)
	n := 1
	for err == nil && s.skip(',') {
		_, err = s.shape(nil, depth+1)
		n++
	}
	if err == nil && !s.skip(']') {
		err = fmt.Errorf("a list does not end")
	}
	return append(tensor.Shape{n}, inner...), err
}

// filler reads the elements of one record.
type filler struct {
	scanner
	into *tensor.Tensor
	at   int // next element
}

// fill reads a value of a shape, and nothing beside it.
func (f *filler) fill(s tensor.Shape) error {
	if err := f.value(s); err != nil {
		return err
	}
	if rest := strings.TrimSpace(f.text[f.scanner.at:]); rest != "" {
		return fmt.Errorf("%.20s follows the value", rest)
	}
	return nil
}

func (f *filler) value(s tensor.Shape) error {
	if len(s) == 0 {
		if f.skip('[') || f.skip('{') {
			return fmt.Errorf("a list or an object stands where the first record has a number")
		}
		w, err := word(f.into.Type, f.number())
		if err != nil {
			return err
		}
		f.into.Set(f.at, w)
		f.at++
		return nil
	}
	if !f.skip('[') {
		return fmt.Errorf("%.20s stands where the first record has a list", f.number())
	}
	for i := range s[0] {
		if i > 0 && !f.skip(',') {
			return fmt.Errorf("a list has %d members where the first record has %d: all records have one shape; pad them", i, s[0])
		}
		if err := f.value(s[1:]); err != nil {
			return err
		}
	}
	if !f.skip(']') {
		return fmt.Errorf("a list has more than the %d members of the first record: all records have one shape; pad them", s[0])
	}
	return nil
}
