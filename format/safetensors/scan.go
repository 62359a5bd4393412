package safetensors

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
)

// scanner reads the part of JSON that a header can have. It allocates nothing
// but the texts it returns.
type scanner struct {
	b  []byte
	at int
}

// space passes white space.
func (s *scanner) space() {
	for s.at < len(s.b) && strings.IndexByte(" \t\r\n", s.b[s.at]) >= 0 {
		s.at++
	}
}

// skip passes c if it comes next, after any white space, and reports whether
// it did.
func (s *scanner) skip(c byte) bool {
	s.space()
	if s.at < len(s.b) && s.b[s.at] == c {
		s.at++
		return true
	}
	return false
}

// want passes c, or fails.
func (s *scanner) want(c byte) error {
	if s.skip(c) {
		return nil
	}
	if s.at == len(s.b) {
		return fmt.Errorf("the header ends where %q is wanted", c)
	}
	return fmt.Errorf("%q at byte %d where %q is wanted", s.b[s.at], s.at, c)
}

// list reads items between open and close, separated by commas.
func (s *scanner) list(open, close byte, item func() error) error {
	if err := s.want(open); err != nil {
		return err
	}
	if s.skip(close) {
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		if !s.skip(',') {
			return s.want(close)
		}
	}
}

// object calls member with each key, to read its value.
func (s *scanner) object(member func(key string) error) error {
	return s.list('{', '}', func() error {
		key, err := s.text()
		if err != nil {
			return err
		}
		if err = s.want(':'); err == nil {
			err = member(key)
		}
		if err != nil {
			return fmt.Errorf("%.100q: %w", key, err)
		}
		return nil
	})
}

// text reads a string.
func (s *scanner) text() (string, error) {
	if err := s.want('"'); err != nil {
		return "", err
	}
	start, escaped := s.at, false
	for ; s.at < len(s.b) && s.b[s.at] != '"'; s.at++ {
		if s.b[s.at] == '\\' {
			s.at++
			escaped = true
		}
	}
	if s.at >= len(s.b) {
		return "", errors.New("the header ends inside a text")
	}
	s.at++
	raw := s.b[start : s.at-1]
	if escaped {
		var out string
		err := json.Unmarshal(s.b[start-1:s.at], &out)
		return out, err
	}
	for _, c := range raw {
		if c < ' ' {
			return "", fmt.Errorf("control character %#02x in a text", c)
		}
	}
	return string(raw), nil
}

// number reads a whole number from 0 to limit.
func (s *scanner) number(limit int64) (int64, error) {
	s.space()
	start := s.at
	var v int64
	for ; s.at < len(s.b) && '0' <= s.b[s.at] && s.b[s.at] <= '9'; s.at++ {
		if v > (math.MaxInt64-9)/10 {
			return 0, fmt.Errorf("a number at byte %d is above %d", start, limit)
		}
		v = 10*v + int64(s.b[s.at]-'0')
	}
	switch digits := s.at - start; {
	case digits == 0 || digits > 1 && s.b[start] == '0':
		return 0, fmt.Errorf("no whole number at byte %d", start)
	case v > limit:
		return 0, fmt.Errorf("a number at byte %d is above %d", start, limit)
	}
	return v, nil
}

// numbers reads an array of at most n whole numbers from 0 to limit.
func (s *scanner) numbers(n int, limit int64) (out []int64, err error) {
	err = s.list('[', ']', func() error {
		if len(out) == n {
			return fmt.Errorf("more than %d numbers", n)
		}
		v, err := s.number(limit)
		out = append(out, v)
		return err
	})
	return out, err
}
