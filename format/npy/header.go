package npy

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tally-network/tally/core/tensor"
)

// scanner reads the part of Python's syntax that a header can have.
type scanner struct {
	text string
	at   int
}

// parse reads the dictionary that a header is.
func parse(text string) (*layout, error) {
	h, s, given := &layout{}, &scanner{text: text}, map[string]bool{}
	err := s.list('{', '}', func() error {
		key, err := s.quoted()
		if err != nil {
			return err
		}
		if given[key] {
			return fmt.Errorf("%q is given twice", key)
		}
		given[key] = true
		if err := s.want(':'); err != nil {
			return err
		}
		switch key {
		case "descr":
			h.descr, err = s.quoted()
		case "fortran_order":
			h.fortran, err = s.truth()
		case "shape":
			h.shape, err = s.tuple()
		default:
			err = fmt.Errorf("unknown key %.20q", key)
		}
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case strings.Trim(s.text[s.at:], " \n\x00") != "":
		return nil, errors.New("only spaces may follow the dictionary")
	case len(given) != 3:
		return nil, errors.New("descr, fortran_order and shape are wanted")
	}
	return h, nil
}

// skip passes c if it comes next, after any white space, and reports whether
// it did.
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

// want passes c, or fails.
func (s *scanner) want(c byte) error {
	if !s.skip(c) {
		return fmt.Errorf("%q is wanted at byte %d", c, s.at)
	}
	return nil
}

// list reads items between open and close, each followed by a comma that the
// last one can do without.
func (s *scanner) list(open, close byte, item func() error) error {
	if err := s.want(open); err != nil {
		return err
	}
	for !s.skip(close) {
		if err := item(); err != nil {
			return err
		}
		if !s.skip(',') {
			return s.want(close)
		}
	}
	return nil
}

// quoted reads a text in either kind of quotes, without escapes.
func (s *scanner) quoted() (string, error) {
	quote := byte('\'')
	if s.skip('"') {
		quote = '"'
	} else if err := s.want(quote); err != nil {
		return "", err
	}
	text, _, found := strings.Cut(s.text[s.at:], string(quote))
	if !found || strings.ContainsAny(text, "\\\n") {
		return "", fmt.Errorf("no plain text at byte %d", s.at)
	}
	s.at += len(text) + 1
	return text, nil
}

func (s *scanner) truth() (bool, error) {
	s.skip(' ')
	for word, v := range map[string]bool{"True": true, "False": false} {
		if strings.HasPrefix(s.text[s.at:], word) {
			s.at += len(word)
			return v, nil
		}
	}
	return false, fmt.Errorf("a truth value, True or False, is wanted at byte %d", s.at)
}

// tuple reads a shape.
func (s *scanner) tuple() (tensor.Shape, error) {
	shape := tensor.Shape{}
	err := s.list('(', ')', func() error {
		if len(shape) == tensor.MaxRank {
			return fmt.Errorf("more than %d axes", tensor.MaxRank)
		}
		s.skip(' ')
		end := s.at
		for end < len(s.text) && '0' <= s.text[end] && s.text[end] <= '9' {
			end++
		}
		d, err := strconv.Atoi(s.text[s.at:end])
		if err != nil {
			return fmt.Errorf("no extent at byte %d", s.at)
		}
		s.at = end
		s.skip('L') // Python 2 ended long numbers so
		shape = append(shape, d)
		return nil
	})
	return shape, err
}
