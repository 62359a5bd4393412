package jsonlines

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tally-network/tally/format/table"
)

// scanner reads tokens of JSON, all in one line.
type scanner struct {
	text []byte
	at   int
}

// space passes white space within a line.
func (s *scanner) space() {
	for s.at < len(s.text) && (s.text[s.at] == ' ' || s.text[s.at] == '\t' || s.text[s.at] == '\r') {
		s.at++
	}
}

// skip passes c if it comes next, after any space, and reports whether it did.
func (s *scanner) skip(c byte) bool {
	if s.space(); s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

// next returns the byte that comes next, after any space; a line end at the end of the text.
func (s *scanner) next() byte {
	if s.space(); s.at < len(s.text) {
		return s.text[s.at]
	}
	return '\n'
}

// word passes a word if it comes next.
func (s *scanner) word(w string) bool {
	if s.space(); bytes.HasPrefix(s.text[s.at:], []byte(w)) {
		s.at += len(w)
		return true
	}
	return false
}

// rest tells what comes next, for people.
func (s *scanner) rest() string {
	line, _, _ := bytes.Cut(s.text[s.at:], []byte{'\n'})
	if len(line) == 0 {
		return "the end of the line"
	}
	return fmt.Sprintf("%.20q", line[:min(len(line), 20)])
}

// quoted reads a text. It lies in the file, unless it has escapes.
func (s *scanner) quoted() ([]byte, error) {
	if !s.skip('"') {
		return nil, fmt.Errorf("a text in quotes is wanted before %s", s.rest())
	}
	from, escaped := s.at, false
	for ; s.at < len(s.text) && s.text[s.at] != '\n'; s.at++ {
		switch c := s.text[s.at]; {
		case c == '\\':
			escaped = true
			if s.at++; s.at == len(s.text) || s.text[s.at] == '\n' {
				return nil, errors.New("a text does not end")
			}
		case c == '"':
			s.at++
			if !escaped {
				return s.text[from : s.at-1], nil
			}
			var text string
			if err := json.Unmarshal(s.text[from-1:s.at], &text); err != nil {
				return nil, err
			}
			return []byte(text), nil
		case c < ' ':
			return nil, fmt.Errorf("a text has a control character, byte %d: write it as \\u%04x", c, c)
		}
	}
	return nil, errors.New("a text does not end")
}

// objects reports whether an object comes next, or a list that begins with one.
func (s *scanner) objects() bool {
	ahead := *s
	for ahead.skip('[') {
	}
	return ahead.next() == '{'
}

// value reads a value of any kind as its text.
func (s *scanner) value() ([]byte, error) {
	s.space()
	from, depth := s.at, 0
	for s.at < len(s.text) && s.text[s.at] != '\n' {
		switch s.text[s.at] {
		case '"':
			if _, err := s.quoted(); err != nil {
				return nil, err
			}
			continue
		case '{', '[':
			depth++
		case '}', ']', ',':
			if depth == 0 {
				return s.valid(from)
			}
			if s.text[s.at] != ',' {
				depth--
			}
		}
		s.at++
	}
	return s.valid(from)
}

// valid returns the text from a place on if it is a value.
func (s *scanner) valid(from int) ([]byte, error) {
	if text := s.text[from:s.at]; json.Valid(text) {
		return bytes.TrimSpace(text), nil
	}
	s.at = from
	return nil, fmt.Errorf("%s begins no value of JSON that ends in its line", s.rest())
}

// number reads a number. The grammar is JSON's, which is narrower than that of tables.
func (s *scanner) number() (n table.Number, text []byte, err error) {
	s.space()
	n, end := table.ScanNumber(s.text, s.at)
	text = s.text[s.at:end]
	if len(text) == 0 || !strict(text) {
		for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
			if s.word(word) {
				return n, nil, fmt.Errorf("JSON has no number %s: write it as a text, %q, or null for a missing value", word, word)
			}
		}
		return n, nil, fmt.Errorf("a number is wanted before %s", s.rest())
	}
	s.at = end
	return n, text, nil
}

// strict reports whether a number is one of JSON: no plus, no zero before digits, digits on both
// sides of a point.
func strict(b []byte) bool {
	if b[0] == '-' {
		b = b[1:]
	}
	digit := func(i int) bool { return i >= 0 && i < len(b) && b[i]-'0' < 10 }
	if !digit(0) || b[0] == '0' && digit(1) {
		return false
	}
	point := bytes.IndexByte(b, '.')
	return point < 0 || digit(point-1) && digit(point+1)
}
