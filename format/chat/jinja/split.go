package jinja

import (
	"github.com/tally-network/tally/format/chat/jinja/syntax"

	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// split cuts a text at a separator, or at white space, at most so often, from either end.
func (r *run) split(a []Value, fromRight bool) (Value, error) {
	s, most := a[0].(string), int64(-1)
	if given(a[2]) {
		var ok bool
		if most, ok = index(a[2]); !ok {
			return nil, fmt.Errorf("the number of splits%w", unfit(a[2]))
		}
	}
	if most < 0 || most > int64(len(s)) {
		most = int64(len(s)) + 1
	}
	if err := r.make(len(s)); err != nil {
		return nil, err
	}
	if !given(a[1]) || a[1] == nil {
		if err := r.parts(s, syntax.IsSpace); err != nil {
			return nil, err
		}
		return r.listOf(words(s, int(most), fromRight))
	}
	sep, ok := a[1].(string)
	switch {
	case !ok:
		return nil, fmt.Errorf("a separator%w", unfit(a[1]))
	case sep == "":
		return nil, errors.New("the separator is empty")
	}
	if err := r.times(partSize, int64(strings.Count(s, sep))); err != nil {
		return nil, err
	}
	if !fromRight {
		return r.listOf(strings.SplitN(s, sep, int(most)+1))
	}
	var parts []string
	for range most {
		i := strings.LastIndex(s, sep)
		if i < 0 {
			break
		}
		parts = append(parts, s[i+len(sep):])
		s = s[:i]
	}
	parts = append(parts, s)
	slices.Reverse(parts)
	return r.listOf(parts)
}

// partSize is what a part of a text takes in a list.
const partSize = 48

// parts counts the parts of a text between characters, before they are made.
func (r *run) parts(s string, between func(c rune) bool) error {
	n := int64(1)
	for _, c := range s {
		if between(c) {
			n++
		}
	}
	return r.times(partSize, n)
}

// words cuts a text at white space.
func words(s string, most int, fromRight bool) (parts []string) {
	if fromRight {
		for s = strings.TrimRightFunc(s, syntax.IsSpace); s != ""; s = strings.TrimRightFunc(s, syntax.IsSpace) {
			i := strings.LastIndexFunc(s, syntax.IsSpace)
			if len(parts) == most || i < 0 {
				parts = append(parts, s)
				break
			}
			_, n := utf8.DecodeRuneInString(s[i:])
			parts = append(parts, s[i+n:])
			s = s[:i]
		}
		slices.Reverse(parts)
		return parts
	}
	for s = strings.TrimLeftFunc(s, syntax.IsSpace); s != ""; s = strings.TrimLeftFunc(s, syntax.IsSpace) {
		i := strings.IndexFunc(s, syntax.IsSpace)
		if len(parts) == most || i < 0 {
			return append(parts, s)
		}
		parts = append(parts, s[:i])
		s = s[i:]
	}
	return parts
}

// lines cuts a text at the ends of lines, as Python knows them.
func lines(s string, keep bool) (parts []string) {
	for s != "" {
		i := strings.IndexFunc(s, endsLine)
		if i < 0 {
			return append(parts, s)
		}
		_, n := utf8.DecodeRuneInString(s[i:])
		if strings.HasPrefix(s[i:], "\r\n") {
			n = 2
		}
		if keep {
			parts = append(parts, s[:i+n])
		} else {
			parts = append(parts, s[:i])
		}
		s = s[i+n:]
	}
	return parts
}

func endsLine(c rune) bool {
	return c >= '\n' && c <= '\r' || c >= 0x1c && c <= 0x1e || c == 0x85 || c == 0x2028 || c == 0x2029
}
