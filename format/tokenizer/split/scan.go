package split

import (
	"unicode/utf8"

	"github.com/tally-network/tally/format/tokenizer/chars"
)

// The expressions that have scanners.
const (
	GPT2   = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	Llama3 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	Qwen2  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// scanner returns where the word ends that starts at a place. There is always one.
type scanner func(t *table, text string, at int) int

var scanners = map[string]scanner{
	GPT2:   scanGPT2,
	Llama3: func(t *table, text string, at int) int { return scanModern(t, text, at, 3) },
	Qwen2:  func(t *table, text string, at int) int { return scanModern(t, text, at, 1) },
}

func (s scanner) split(p Piece, yield Yield) error {
	t := newTable()
	for at := 0; at < len(p.Text); {
		end := s(t, p.Text, at)
		if err := yield(p.part(at, end)); err != nil {
			return err
		}
		at = end
	}
	return nil
}

// kind is what the scanners tell apart.
type kind uint8

const (
	other  kind = iota
	letter      // \p{L}
	number      // \p{N}
	space       // \s, but for
	lineEnd
)

// table gives the kinds of characters.
type table struct {
	beyond chars.Table
}

var ascii = func() (out [utf8.RuneSelf]kind) {
	for c := range out {
		switch {
		case 'a' <= c|32 && c|32 <= 'z':
			out[c] = letter
		case '0' <= c && c <= '9':
			out[c] = number
		case c == '\r' || c == '\n':
			out[c] = lineEnd
		case c == ' ' || '\t' <= c && c <= '\r':
			out[c] = space
		}
	}
	return out
}()

func newTable() *table { return &table{chars.Load()} }

// at returns the kind of the character at a place, and its length, which is 0 at the end.
func (t *table) at(text string, at int) (kind, int) {
	if at >= len(text) {
		return other, 0
	}
	if c := text[at]; c < utf8.RuneSelf {
		return ascii[c], 1
	}
	r, n := utf8.DecodeRuneInString(text[at:])
	switch of := t.beyond.Of(r); {
	case of&chars.Of(chars.Letter) != 0:
		return letter, n
	case of&chars.Of(chars.Number) != 0:
		return number, n
	case of&chars.Of(chars.Space) != 0:
		return space, n
	}
	return other, n
}

// run passes characters of one kind, at most some of them.
func (t *table) run(text string, at int, s kind, most int) int {
	for ; most > 0; most-- {
		got, n := t.at(text, at)
		if n == 0 || got != s {
			break
		}
		at += n
	}
	return at
}

const noLimit = 1 << 62

// contraction returns the length of an English contraction after its apostrophe, or 0.
func contraction(text string, at int, fold bool) int {
	if at >= len(text) {
		return 0
	}
	lower := func(i int) byte {
		if i >= len(text) {
			return 0
		}
		c := text[i]
		if fold && 'A' <= c && c <= 'Z' {
			c |= 32
		}
		return c
	}
	switch c := lower(at); c {
	case 's', 't', 'm', 'd':
		return 1
	case 'r', 'v':
		if lower(at+1) == 'e' {
			return 2
		}
	case 'l':
		if lower(at+1) == 'l' {
			return 2
		}
	case 0xc5: // ſ is an s where case does not count
		if fold && lower(at+1) == 0xbf {
			return 2
		}
	}
	return 0
}

// blank returns where a word ends that starts with white space at a place: before the last
// space, if something follows that could have it.
func (t *table) blank(text string, at int, first int) int {
	last, end := at, at+first
	for {
		s, n := t.at(text, end)
		if n == 0 {
			return end
		}
		if s != space && s != lineEnd {
			break
		}
		last = end
		end += n
	}
	if last == at {
		return end
	}
	return last
}

func scanGPT2(t *table, text string, at int) int {
	if text[at] == '\'' {
		if n := contraction(text, at+1, false); n > 0 {
			return at + 1 + n
		}
	}
	start := at
	s, n := t.at(text, at)
	if text[at] == ' ' {
		if next, m := t.at(text, at+1); m > 0 && next != space && next != lineEnd {
			start, s, n = at+1, next, m
		}
	}
	if s == space || s == lineEnd {
		return t.blank(text, at, n)
	}
	return t.run(text, start+n, s, noLimit)
}

// scanModern is the scanner of Llama 3 and, with one digit a word, of Qwen 2.
func scanModern(t *table, text string, at, digits int) int {
	if text[at] == '\'' {
		if n := contraction(text, at+1, true); n > 0 {
			return at + 1 + n
		}
	}
	s, n := t.at(text, at)
	switch s {
	case letter:
		return t.run(text, at+n, letter, noLimit)
	case number:
		return t.run(text, at+n, number, digits-1)
	}
	next, m := t.at(text, at+n)
	if s != lineEnd && m > 0 && next == letter {
		return t.run(text, at+n+m, letter, noLimit)
	}
	if s == other || text[at] == ' ' && m > 0 && next == other {
		end := t.run(text, at+n, other, noLimit)
		for end < len(text) && (text[end] == '\r' || text[end] == '\n') {
			end++
		}
		return end
	}
	// White space: up to its last line end, if it has one.
	lines := 0
	for end := at; ; {
		s, n := t.at(text, end)
		if n == 0 || s != space && s != lineEnd {
			break
		}
		if end += n; s == lineEnd {
			lines = end
		}
	}
	if lines > 0 {
		return lines
	}
	return t.blank(text, at, n)
}
