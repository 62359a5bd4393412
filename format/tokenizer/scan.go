package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Bounds of a file.
const (
	MaxFile  = 64 << 20 // bytes
	maxDepth = 24       // values in values
	maxKeys  = 64       // keys of an object, but for vocabularies
)

// raw is a value as it stands in the file; its syntax has been checked down to texts and numbers.
type raw []byte

// scanner reads JSON. It allocates nothing but the texts it returns.
type scanner struct {
	b     []byte
	at    int
	depth int
}

func (s *scanner) space() {
	for s.at < len(s.b) && strings.IndexByte(" \t\r\n", s.b[s.at]) >= 0 {
		s.at++
	}
}

// skip passes c if it comes next, after any white space.
func (s *scanner) skip(c byte) bool {
	s.space()
	if s.at < len(s.b) && s.b[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *scanner) want(c byte) error {
	if s.skip(c) {
		return nil
	}
	if s.at == len(s.b) {
		return fmt.Errorf("the value ends where %q is wanted", c)
	}
	return fmt.Errorf("%q where %q is wanted", s.b[s.at], c)
}

// list reads items between open and close, separated by commas.
func (s *scanner) list(open, close byte, item func() error) error {
	if s.depth++; s.depth > maxDepth {
		return fmt.Errorf("more than %d values inside each other", maxDepth)
	}
	defer func() { s.depth-- }()
	if err := s.want(open); err != nil || s.skip(close) {
		return err
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
		if err == nil {
			err = s.want(':')
		}
		if err != nil {
			return err
		}
		if err = member(key); err != nil {
			return fmt.Errorf("%.60q: %w", key, err)
		}
		return nil
	})
}

// value passes a value and returns it.
func (s *scanner) value() (raw, error) {
	s.space()
	start := s.at
	if s.at == len(s.b) {
		return nil, errors.New("a value is missing")
	}
	var err error
	switch s.b[s.at] {
	case '{':
		err = s.list('{', '}', func() error {
			_, err := s.quoted()
			if err == nil {
				err = s.want(':')
			}
			if err == nil {
				_, err = s.value()
			}
			return err
		})
	case '[':
		err = s.list('[', ']', func() error { _, err := s.value(); return err })
	case '"':
		_, err = s.quoted()
	default:
		if word := s.bare(); !json.Valid(word) {
			err = fmt.Errorf("%.20q is no value", word)
		}
	}
	return s.b[start:s.at], err
}

// bare passes a number, or a word such as null, and returns it.
func (s *scanner) bare() []byte {
	s.space()
	start := s.at
	for s.at < len(s.b) && strings.IndexByte(",]}: \t\r\n", s.b[s.at]) < 0 {
		s.at++
	}
	return s.b[start:s.at]
}

// quoted passes a text and returns what is between its quotes.
func (s *scanner) quoted() ([]byte, error) {
	if err := s.want('"'); err != nil {
		return nil, err
	}
	start := s.at
	for ; s.at < len(s.b) && s.b[s.at] != '"'; s.at++ {
		if s.b[s.at] < ' ' {
			return nil, fmt.Errorf("control character %#02x in a text", s.b[s.at])
		}
		if s.b[s.at] == '\\' {
			s.at++
		}
	}
	if s.at >= len(s.b) {
		return nil, errors.New("the file ends inside a text")
	}
	s.at++
	return s.b[start : s.at-1], nil
}

// text reads a text.
func (s *scanner) text() (string, error) {
	b, err := s.quoted()
	if err != nil {
		return "", err
	}
	at := bytes.IndexByte(b, '\\')
	if at < 0 {
		return string(b), nil
	}
	out := append(make([]byte, 0, len(b)), b[:at]...)
	for len(b) > at {
		if b[at] != '\\' {
			out = append(out, b[at])
			at++
			continue
		}
		r, n, err := unescape(b[at:])
		if err != nil {
			return "", err
		}
		out = utf8.AppendRune(out, r)
		at += n
	}
	return string(out), nil
}

// unescape returns what an escape stands for, and its length.
func unescape(b []byte) (rune, int, error) {
	if len(b) < 2 {
		return 0, 0, errors.New("a text ends in \\")
	}
	if i := strings.IndexByte(`"\/bfnrt`, b[1]); i >= 0 {
		return rune("\"\\/\b\f\n\r\t"[i]), 2, nil
	}
	r, ok := unit(b)
	if !ok {
		return 0, 0, fmt.Errorf("\\%c is no escape", b[1])
	}
	if !utf16.IsSurrogate(r) {
		return r, 6, nil
	}
	low, ok := unit(b[6:])
	if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
		return 0, 0, errors.New("half a surrogate pair in a text")
	}
	return r, 12, nil
}

// unit reads \uXXXX.
func unit(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	v, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	return rune(v), err == nil
}

// integer reads a whole number from 0 to limit.
func (s *scanner) integer(limit int) (int, error) {
	v := s.bare()
	n, err := strconv.ParseUint(string(v[:min(len(v), 20)]), 10, 63)
	if err != nil || len(v) > 20 || len(v) > 1 && v[0] == '0' || n > uint64(limit) {
		return 0, fmt.Errorf("%.20q, want a whole number from 0 to %d", v, limit)
	}
	return int(n), nil
}

// float reads a number.
func (s *scanner) float() (float64, error) {
	v := s.bare()
	if len(v) > 64 || !json.Valid(v) {
		return 0, fmt.Errorf("%.20q, want a number", v)
	}
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil {
		return 0, fmt.Errorf("%.20q, want a number", v)
	}
	return f, nil
}

// done refuses what stands behind a value.
func (s *scanner) done() error {
	if s.space(); s.at < len(s.b) {
		return fmt.Errorf("%q behind the value", s.b[s.at])
	}
	return nil
}

// object is an object of which all keys are known.
type object map[string]raw

// objectOf reads an object whose keys are among those.
func objectOf(r raw, keys ...string) (object, error) {
	s := &scanner{b: r}
	o := object{}
	err := s.object(func(key string) error {
		if _, twice := o[key]; twice {
			return errors.New("given twice")
		}
		if len(o) == maxKeys {
			return fmt.Errorf("more than %d keys", maxKeys)
		}
		known := len(keys) == 0
		for _, k := range keys {
			known = known || k == key
		}
		if !known {
			return fmt.Errorf("this key is not supported here, want one of %v", keys)
		}
		var err error
		o[key], err = s.value()
		return err
	})
	if err == nil {
		err = s.done()
	}
	return o, err
}

// has reports whether a key has a value other than null.
func (o object) has(key string) bool {
	v, ok := o[key]
	return ok && string(v) != "null"
}

// need returns an error unless the keys have values.
func (o object) need(keys ...string) error {
	for _, k := range keys {
		if !o.has(k) {
			return fmt.Errorf("%q is wanted", k)
		}
	}
	return nil
}

// text returns a text, or without one an empty text.
func (o object) text(key string) (string, error) {
	if !o.has(key) {
		return "", nil
	}
	s := &scanner{b: o[key]}
	v, err := s.text()
	return v, about(key, err)
}

// flag returns a truth, or without one another.
func (o object) flag(key string, without bool) (bool, error) {
	if !o.has(key) {
		return without, nil
	}
	switch string(o[key]) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("%q: want true or false", key)
}

// flags reads several flags; without one it keeps what it finds.
func (o object) flags(into map[string]*bool) error {
	for key, v := range into {
		var err error
		if *v, err = o.flag(key, *v); err != nil {
			return err
		}
	}
	return nil
}

// integer returns a whole number, or without one another.
func (o object) integer(key string, limit, without int) (int, error) {
	if !o.has(key) {
		return without, nil
	}
	s := &scanner{b: o[key]}
	v, err := s.integer(limit)
	return v, about(key, err)
}

// items calls item with each item of a list.
func items(r raw, item func(raw) error) error {
	s := &scanner{b: r}
	n := 0
	err := s.list('[', ']', func() error {
		v, err := s.value()
		if err == nil {
			err = item(v)
		}
		if err != nil {
			err = fmt.Errorf("item %d: %w", n, err)
		}
		n++
		return err
	})
	if err == nil {
		err = s.done()
	}
	return err
}

func about(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
