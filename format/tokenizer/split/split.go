package split

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tally-network/tally/format/tokenizer/chars"
	"github.com/tally-network/tally/format/tokenizer/pattern"
)

// Piece is a part of a text.
type Piece struct {
	Text  string
	First bool // whether the text that is encoded starts with it
}

// part returns a part of the piece.
func (p Piece) part(from, to int) Piece {
	return Piece{Text: p.Text[from:to], First: p.First && from == 0}
}

// Yield takes one piece.
type Yield func(Piece) error

// Splitter cuts a piece into pieces. It may be used by several goroutines.
type Splitter interface {
	Split(p Piece, yield Yield) error
}

// Behavior says what becomes of what a splitter looks for.
type Behavior uint8

// The behaviors.
const (
	Isolated           Behavior = iota // it is a piece
	Removed                            // it goes
	MergedWithPrevious                 // it ends the piece before
	MergedWithNext                     // it begins the piece behind
	Contiguous                         // it is a piece, with others beside it
)

var behaviors = []string{"Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"}

// BehaviorOf returns the behavior of a name in a file.
func BehaviorOf(name string) (Behavior, error) {
	i := slices.Index(behaviors, name)
	if i < 0 {
		return 0, fmt.Errorf("behavior %.30q, want one of %v", name, behaviors)
	}
	return Behavior(i), nil
}

// cutter makes pieces of matches, and of what is between them.
type cutter struct {
	piece    Piece
	yield    Yield
	behavior Behavior
	invert   bool

	held     bool // a part waits for what comes behind it
	from, to int
	match    bool // whether that part ends in a match
}

// add takes the next part of the text.
func (c *cutter) add(from, to int, match bool) error {
	if from == to {
		return nil
	}
	match = match != c.invert
	joins := false
	switch c.behavior {
	case Isolated:
		return c.yield(c.piece.part(from, to))
	case Removed:
		if match {
			return nil
		}
		return c.yield(c.piece.part(from, to))
	case Contiguous:
		joins = c.match == match
	case MergedWithPrevious:
		joins = match && !c.match
	case MergedWithNext:
		joins = !match && c.match
	}
	if joins && c.held {
		c.to, c.match = to, match
		return nil
	}
	if err := c.end(); err != nil {
		return err
	}
	c.held, c.from, c.to, c.match = true, from, to, match
	return nil
}

func (c *cutter) end() error {
	if !c.held {
		return nil
	}
	c.held = false
	return c.yield(c.piece.part(c.from, c.to))
}

// Regex cuts where an expression matches.
type Regex struct {
	source   string
	scan     scanner
	pattern  *pattern.Pattern
	behavior Behavior
	invert   bool
}

// NewRegex returns a splitter by an expression. Invert exchanges what matches and what does not.
func NewRegex(expression string, b Behavior, invert bool) (*Regex, error) {
	r := &Regex{source: expression, behavior: b, invert: invert}
	if s, ok := scanners[expression]; ok && b == Isolated {
		r.scan = s
		return r, nil
	}
	var err error
	if r.pattern, err = pattern.Compile(expression); err != nil {
		return nil, err
	}
	if r.pattern.CanBeEmpty() && b != Isolated && b != Removed {
		return nil, fmt.Errorf("regular expression %.60q matches nothing, which has no side to merge with", expression)
	}
	return r, nil
}

// Isolates returns the expression, and whether what it matches becomes pieces of its own. What lies between does as well, or is left out.
func (r *Regex) Isolates() (expression string, ok bool) {
	return r.source, r.behavior == Isolated && !r.invert || r.behavior == Removed && r.invert
}

// Split cuts a piece.
func (r *Regex) Split(p Piece, yield Yield) error {
	if r.scan != nil {
		return r.scan.split(p, yield)
	}
	c := cutter{piece: p, yield: yield, behavior: r.behavior, invert: r.invert}
	m := r.pattern.Match(p.Text)
	at := 0
	for {
		start, end, found, err := m.Next(at)
		if err != nil {
			return err
		}
		if !found {
			break
		}
		if err = c.add(at, start, false); err == nil {
			err = c.add(start, end, true)
		}
		if err != nil {
			return err
		}
		at = end
	}
	if err := c.add(at, len(p.Text), false); err != nil {
		return err
	}
	return c.end()
}

// Text cuts at a text.
type Text struct {
	Delimiter string
	Behavior  Behavior
	Invert    bool
}

// Split cuts a piece.
func (t Text) Split(p Piece, yield Yield) error {
	c := cutter{piece: p, yield: yield, behavior: t.Behavior, invert: t.Invert}
	at := 0
	for t.Delimiter != "" {
		i := strings.Index(p.Text[at:], t.Delimiter)
		if i < 0 {
			break
		}
		if err := c.add(at, at+i, false); err != nil {
			return err
		}
		if err := c.add(at+i, at+i+len(t.Delimiter), true); err != nil {
			return err
		}
		at += i + len(t.Delimiter)
	}
	if err := c.add(at, len(p.Text), false); err != nil {
		return err
	}
	return c.end()
}

// class cuts at each character of a class.
func class(p Piece, s chars.Set, b Behavior, yield Yield) error {
	c := cutter{piece: p, yield: yield, behavior: b}
	table := chars.Load()
	at := 0
	for i, r := range p.Text {
		if table.Of(r)&s == 0 {
			continue
		}
		if err := c.add(at, i, false); err != nil {
			return err
		}
		n := utf8.RuneLen(r)
		if err := c.add(i, i+n, true); err != nil {
			return err
		}
		at = i + n
	}
	if err := c.add(at, len(p.Text), false); err != nil {
		return err
	}
	return c.end()
}

// Digits cuts around numbers.
type Digits struct {
	Individual bool // each digit is a piece
}

// Split cuts a piece.
func (d Digits) Split(p Piece, yield Yield) error {
	b := Contiguous
	if d.Individual {
		b = Isolated
	}
	return class(p, chars.Of(chars.RustNumber), b, yield)
}

// Punctuation cuts at each character of punctuation.
type Punctuation struct{ Behavior Behavior }

// Split cuts a piece.
func (s Punctuation) Split(p Piece, yield Yield) error {
	return class(p, chars.Of(chars.Punctuation), s.Behavior, yield)
}

// WhitespaceSplit cuts at white space, and removes it.
type WhitespaceSplit struct{}

// Split cuts a piece.
func (WhitespaceSplit) Split(p Piece, yield Yield) error {
	return class(p, chars.Of(chars.Space), Removed, yield)
}

// Bert cuts at white space, which it removes, and around punctuation.
type Bert struct{}

// Split cuts a piece.
func (Bert) Split(p Piece, yield Yield) error {
	table := chars.Load()
	space, punctuation := chars.Of(chars.Space), chars.Of(chars.Punctuation)
	at := 0
	for i, r := range p.Text {
		of := table.Of(r)
		if of&(space|punctuation) == 0 {
			continue
		}
		if at < i {
			if err := yield(p.part(at, i)); err != nil {
				return err
			}
		}
		at = i + utf8.RuneLen(r)
		if of&punctuation != 0 {
			if err := yield(p.part(i, at)); err != nil {
				return err
			}
		}
	}
	if at == len(p.Text) {
		return nil
	}
	return yield(p.part(at, len(p.Text)))
}

// Whitespace keeps runs of word characters, and runs of others that are not white space.
type Whitespace struct{}

// Split cuts a piece.
func (Whitespace) Split(p Piece, yield Yield) error {
	table := chars.Load()
	space, word := chars.Of(chars.Space), chars.Of(chars.RustWord)
	kind := func(r rune) chars.Set { return table.Of(r) & (space | word) }
	for at := 0; at < len(p.Text); {
		r, n := utf8.DecodeRuneInString(p.Text[at:])
		k, end := kind(r), at+n
		for end < len(p.Text) {
			if r, n = utf8.DecodeRuneInString(p.Text[end:]); kind(r) != k {
				break
			}
			end += n
		}
		if k != space {
			if err := yield(p.part(at, end)); err != nil {
				return err
			}
		}
		at = end
	}
	return nil
}

// Scheme says before which pieces Metaspace puts its sign.
type Scheme uint8

// The schemes.
const (
	Always Scheme = iota
	First         // only before the piece that the text starts with
	Never
)

var schemes = []string{"always", "first", "never"}

// SchemeOf returns the scheme of a name in a file.
func SchemeOf(name string) (Scheme, error) {
	i := slices.Index(schemes, name)
	if i < 0 {
		return 0, fmt.Errorf("prepend_scheme %.30q, want one of %v", name, schemes)
	}
	return Scheme(i), nil
}

// Metaspace writes a sign for each space, and cuts before each sign.
type Metaspace struct {
	Sign   string // one character, as a rule ▁
	Scheme Scheme
	Whole  bool // does not cut
}

// Split cuts a piece.
func (m Metaspace) Split(p Piece, yield Yield) error {
	p.Text = strings.ReplaceAll(p.Text, " ", m.Sign)
	if !strings.HasPrefix(p.Text, m.Sign) && (m.Scheme == Always || m.Scheme == First && p.First) {
		p.Text = m.Sign + p.Text
	}
	for at := 0; !m.Whole; {
		i := strings.Index(p.Text[min(at+1, len(p.Text)):], m.Sign)
		if i < 0 {
			return yield(p.part(at, len(p.Text)))
		}
		if err := yield(p.part(at, at+1+i)); err != nil {
			return err
		}
		at += 1 + i
	}
	return yield(p)
}
