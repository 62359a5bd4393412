// Package chars tells classes of code points as the reference implementation of tokenizers
// sees them.
//
// Call [In] with the classes that are asked for, and [ToLower] for lower case. That
// implementation draws on four libraries, each with its own version of Unicode, and Go
// has another. A split that goes by the wrong one gives other tokens. So the classes were
// asked of the implementation itself, code point by code point.
//
// Invariants: every function is pure, and every answer is that of the version of
// tokenizers that the tables name, whatever Unicode this Go has.
//
// Source: Unicode's general categories; testdata/classes.py makes the tables.
package chars

import (
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Class is one class of code points.
type Class uint8

// The classes. Regular expressions of the reference implementation go by those up to
// Han; its own code, written in Rust, by the others.
const (
	Letter      Class = iota // \p{L}
	Number                   // \p{N}
	Space                    // \s, and white space for Rust too
	Mark                     // \p{M}
	Punct                    // \p{P}
	Symbol                   // \p{S}
	Word                     // \w
	Digit                    // \d, which is \p{Nd}
	Upper                    // \p{Lu}
	Lower                    // \p{Ll}
	Title                    // \p{Lt}
	Modifier                 // \p{Lm}
	OtherLetter              // \p{Lo}
	Han                      // \p{Han}
	RustWord                 // \w of Rust's regular expressions
	RustNumber               // numeric for Rust
	Punctuation              // what counts as punctuation for BERT, ASCII's symbols too
	Control                  // what BERT's cleaning removes
	Combining                // what StripAccents removes
	Nonspacing               // what BERT's stripping of accents removes
	Normal                   // what takes part in normalization
)

// Set is a union of classes.
type Set uint32

// Of returns the union of classes.
func Of(classes ...Class) (s Set) {
	for _, c := range classes {
		s |= 1 << c
	}
	return s
}

// pages is a table of all code points in two steps: the page of 256 that a code point is
// on, and its place there. Equal pages are kept once.
type pages struct {
	index [(unicode.MaxRune + 1) >> 8]uint16
	sets  [][256]Set
}

var table = sync.OnceValue(func() *pages {
	all := make([]Set, unicode.MaxRune+1)
	for c, runs := range tables {
		at := int64(0)
		words := strings.Fields(runs)
		for i := 0; i+1 < len(words); i += 2 {
			gap, _ := strconv.ParseInt(words[i], 36, 32)
			n, _ := strconv.ParseInt(words[i+1], 36, 32)
			for at += gap; n > 0; n-- {
				all[at] |= 1 << c
				at++
			}
		}
	}
	p := &pages{}
	seen := map[[256]Set]uint16{}
	for i := range p.index {
		page := [256]Set(all[i<<8:])
		at, ok := seen[page]
		if !ok {
			at = uint16(len(p.sets))
			seen[page] = at
			p.sets = append(p.sets, page)
		}
		p.index[i] = at
	}
	return p
})

// Table answers [In] without the cost of finding the tables each time.
type Table struct{ p *pages }

// Load returns the tables. The first call unpacks them, in some milliseconds.
func Load() Table { return Table{table()} }

// Of returns the classes of a code point; one beyond Unicode has none.
func (t Table) Of(r rune) Set {
	if uint32(r) > unicode.MaxRune {
		return 0
	}
	return t.p.sets[t.p.index[r>>8]][r&255]
}

// In reports whether a code point is of a class of the set.
func In(r rune, s Set) bool { return Load().Of(r)&s != 0 }

var lowers = sync.OnceValue(func() map[rune]string {
	m := map[rune]string{}
	for _, w := range strings.Fields(lowered) {
		from, to, _ := strings.Cut(w, ":")
		r, _ := strconv.ParseInt(from, 16, 32)
		var b strings.Builder
		for _, x := range strings.Split(to, ",") {
			v, _ := strconv.ParseInt(x, 16, 32)
			b.WriteRune(rune(v))
		}
		m[rune(r)] = b.String()
	}
	return m
})

// ToLower returns the text with each code point in lower case, whatever stands beside it.
func ToLower(s string) string {
	i := 0
	for i < len(s) && s[i] < utf8.RuneSelf && (s[i] < 'A' || s[i] > 'Z') {
		i++
	}
	if i == len(s) {
		return s
	}
	b := make([]byte, i, len(s)+8)
	copy(b, s)
	exceptions := lowers()
	for _, r := range s[i:] {
		switch {
		case 'A' <= r && r <= 'Z':
			b = append(b, byte(r+'a'-'A'))
		case r < utf8.RuneSelf:
			b = append(b, byte(r))
		default:
			if l, ok := exceptions[r]; ok {
				b = append(b, l...)
			} else {
				b = utf8.AppendRune(b, unicode.ToLower(r))
			}
		}
	}
	return string(b)
}
