package pattern

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tally-network/tally/format/tokenizer/chars"
)

// Bounds of what an expression may ask for.
const (
	maxText   = 1 << 12 // bytes of an expression
	maxDepth  = 32      // groups in groups
	maxRepeat = 512     // copies that {m,n} asks for
	maxCode   = 1 << 13 // instructions
	anyNumber = -1      // no upper limit
)

// kind tells nodes apart.
type kind uint8

const (
	nodeSet kind = iota
	nodeSequence
	nodeAlternatives
	nodeRepeat
	nodeLook
	nodeAtomic
	nodeLineStart
	nodeLineEnd
)

// node is a part of an expression.
type node struct {
	kind     kind
	set      *set
	parts    []*node
	min, max int
	lazy     bool
	negative bool // of a look-ahead
}

type parser struct {
	text  string
	at    int
	depth int
	fold  bool // (?i: is open
}

// Compile reads an expression.
func Compile(text string) (*Pattern, error) {
	p := &parser{text: text}
	if len(text) > maxText || !utf8.ValidString(text) {
		return nil, fmt.Errorf("a regular expression of %d bytes: it must be UTF-8 of at most %d", len(text), maxText)
	}
	n, err := p.alternatives()
	if err == nil && p.at < len(text) {
		err = errors.New("a ) that closes no group")
	}
	if err != nil {
		return nil, fmt.Errorf("regular expression %.60q, byte %d: %w", text, p.at, err)
	}
	c := &compiler{}
	c.emit(n)
	c.add(instruction{op: opMatch})
	if c.tooLong {
		return nil, fmt.Errorf("regular expression %.60q: more than %d instructions", text, maxCode)
	}
	return &Pattern{code: c.code, empty: canBeEmpty(n)}, nil
}

func (p *parser) more() bool { return p.at < len(p.text) }

// skip passes a text if it comes next.
func (p *parser) skip(s string) bool {
	if strings.HasPrefix(p.text[p.at:], s) {
		p.at += len(s)
		return true
	}
	return false
}

func (p *parser) rune() rune {
	r, n := utf8.DecodeRuneInString(p.text[p.at:])
	p.at += n
	return r
}

func (p *parser) alternatives() (*node, error) {
	out := &node{kind: nodeAlternatives}
	for {
		n, err := p.sequence()
		if err != nil {
			return nil, err
		}
		if out.parts = append(out.parts, n); !p.skip("|") {
			break
		}
	}
	if len(out.parts) == 1 {
		return out.parts[0], nil
	}
	return out, nil
}

func (p *parser) sequence() (*node, error) {
	out := &node{kind: nodeSequence}
	for p.more() && p.text[p.at] != '|' && p.text[p.at] != ')' {
		n, err := p.atom()
		if err == nil {
			n, err = p.repeated(n)
		}
		if err != nil {
			return nil, err
		}
		out.parts = append(out.parts, n)
	}
	return out, nil
}

func (p *parser) atom() (*node, error) {
	switch r := p.rune(); r {
	case '(':
		return p.group()
	case '[':
		s, err := p.class()
		return &node{kind: nodeSet, set: s}, err
	case '.':
		return &node{kind: nodeSet, set: newSet(func(s *set) { s.add('\n', '\n'); s.negate = true })}, nil
	case '^':
		return &node{kind: nodeLineStart}, nil
	case '$':
		return &node{kind: nodeLineEnd}, nil
	case '*', '+', '?':
		return nil, fmt.Errorf("%q repeats nothing", r)
	case '\\':
		var err error
		s := newSet(func(s *set) { err = p.escape(s) })
		return &node{kind: nodeSet, set: s}, err
	default:
		var err error
		s := newSet(func(s *set) { err = p.literal(s, r, r) })
		return &node{kind: nodeSet, set: s}, err
	}
}

func (p *parser) group() (*node, error) {
	out := &node{kind: nodeSequence}
	fold := p.fold
	switch {
	case p.skip("?:"):
	case p.skip("?i:"):
		p.fold = true
	case p.skip("?="):
		out = &node{kind: nodeLook}
	case p.skip("?!"):
		out = &node{kind: nodeLook, negative: true}
	case p.skip("?>"):
		out = &node{kind: nodeAtomic}
	case p.skip("?"):
		return nil, errors.New("this kind of group is not supported")
	}
	if p.depth++; p.depth > maxDepth {
		return nil, fmt.Errorf("more than %d groups inside each other", maxDepth)
	}
	n, err := p.alternatives()
	if err != nil {
		return nil, err
	}
	if !p.skip(")") {
		return nil, errors.New("a group is not closed")
	}
	p.depth--
	p.fold = fold
	out.parts = []*node{n}
	return out, nil
}

// repeated reads what repeats a node.
func (p *parser) repeated(n *node) (*node, error) {
	out := &node{kind: nodeRepeat, parts: []*node{n}, max: anyNumber}
	counted := false
	switch {
	case p.skip("*"):
	case p.skip("+"):
		out.min = 1
	case p.skip("?"):
		out.max = 1
	default:
		ok, err := p.count(out)
		if err != nil || !ok {
			return n, err
		}
		counted = true
	}
	if n.kind == nodeLook || n.kind == nodeLineStart || n.kind == nodeLineEnd {
		return nil, errors.New("what takes no characters is repeated")
	}
	switch {
	case !p.more() || strings.IndexByte("?+*{", p.text[p.at]) < 0:
		return out, nil
	case counted:
		return nil, errors.New("a sign after {m,n} is not supported: Oniguruma reads it in its own way")
	case p.skip("?"):
		out.lazy = true
	case p.skip("+"):
		out = &node{kind: nodeAtomic, parts: []*node{out}}
	}
	if p.more() && strings.IndexByte("?+*{", p.text[p.at]) >= 0 {
		return nil, errors.New("what repeats is repeated")
	}
	return out, nil
}

// count reads {m}, {m,}, {,n} or {m,n}. Other braces are characters.
func (p *parser) count(out *node) (bool, error) {
	end := strings.IndexByte(p.text[p.at:], '}')
	if !p.more() || p.text[p.at] != '{' || end < 0 {
		return false, nil
	}
	from, to, comma := strings.Cut(p.text[p.at+1:p.at+end], ",")
	low, errLow := strconv.ParseUint(from, 10, 16)
	high, errHigh := strconv.ParseUint(to, 10, 16)
	switch {
	case from == "" && to == "" || from != "" && errLow != nil || to != "" && errHigh != nil:
		return false, nil
	case !comma:
		high = low
	}
	if out.min = int(low); to != "" || !comma {
		out.max = int(high)
	}
	if out.max != anyNumber && out.max < out.min || max(out.min, out.max) > maxRepeat {
		return false, fmt.Errorf("repetition {%d,%d}: it must grow, up to %d", out.min, out.max, maxRepeat)
	}
	p.at += end + 1
	return true, nil
}

// class reads what stands between brackets.
func (p *parser) class() (*set, error) {
	var err error
	s := newSet(func(s *set) {
		s.negate = p.skip("^")
		first, inner := true, 0
		for err == nil {
			begins := first
			first = false
			switch {
			case !p.more():
				err = errors.New("a class is not closed")
			case begins && p.text[p.at] == ']':
				err = errors.New("an empty class, or a ] without \\")
			case p.skip("]"):
				if inner--; inner < 0 {
					return
				}
			case strings.HasPrefix(p.text[p.at:], "[:") || strings.HasPrefix(p.text[p.at:], "[^") || strings.HasPrefix(p.text[p.at:], "&&"):
				err = errors.New("[: and [^ in classes, and &&, are not supported")
			case p.skip("["): // adds what is in it
				inner++
				first = true
			default:
				err = p.item(s)
			}
		}
	})
	return s, err
}

// item reads one item of a class: a class, a character or a range.
func (p *parser) item(s *set) error {
	if p.skip("\\") {
		r, single, err := p.escapedRune()
		if err != nil {
			return err
		}
		if !single {
			return p.escape(s)
		}
		return p.rangeFrom(s, r)
	}
	return p.rangeFrom(s, p.rune())
}

func (p *parser) rangeFrom(s *set, from rune) error {
	rest := p.text[p.at:]
	if len(rest) < 2 || rest[0] != '-' || rest[1] == ']' {
		return p.literal(s, from, from)
	}
	p.at++
	to := p.rune()
	if to == '\\' {
		r, single, err := p.escapedRune()
		if err != nil || !single {
			return errors.Join(err, errors.New("a range that ends in a class"))
		}
		to = r
	}
	if to == '[' || to < from {
		return errors.New("a range that runs backwards, or ends in a class")
	}
	return p.literal(s, from, to)
}

// literal adds characters, in both cases where case does not count.
func (p *parser) literal(s *set, from, to rune) error {
	s.add(from, to)
	if !p.fold {
		return nil
	}
	if to >= utf8.RuneSelf {
		return errors.New("(?i:…) around characters beyond ASCII is not supported")
	}
	for r := from; r <= to; r++ {
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			s.add(f, f)
		}
	}
	return nil
}

// escapedRune reads an escape, after its \, that stands for one character. For another one
// it reads nothing.
func (p *parser) escapedRune() (r rune, single bool, err error) {
	if !p.more() {
		return 0, false, errors.New("\\ at the end")
	}
	digits := 0
	switch c := p.text[p.at]; {
	case c == 'x':
		if p.at++; p.skip("{") {
			if digits = strings.IndexByte(p.text[p.at:], '}'); digits < 1 || digits > 6 {
				return 0, false, errors.New("\\x{…} wants one to six digits")
			}
			defer func() { p.at++ }()
		} else {
			digits = 2
		}
	case c == 'u':
		p.at++
		digits = 4
	case strings.IndexByte("nrtfv", c) >= 0:
		p.at++
		return rune("\n\r\t\f\v"[strings.IndexByte("nrtfv", c)]), true, nil
	case c < utf8.RuneSelf && (unicode.IsLetter(rune(c)) || unicode.IsDigit(rune(c))):
		return 0, false, nil
	default:
		return p.rune(), true, nil
	}
	if len(p.text)-p.at < digits {
		return 0, false, errors.New("a code point lacks digits")
	}
	v, err := strconv.ParseUint(p.text[p.at:p.at+digits], 16, 32)
	if err != nil || !utf8.ValidRune(rune(v)) || digits == 2 && v >= utf8.RuneSelf {
		return 0, false, fmt.Errorf("%q is no code point", p.text[p.at:p.at+digits])
	}
	p.at += digits
	return rune(v), true, nil
}

// properties are the classes that \p{…} may name.
var properties = map[string]chars.Class{
	"L": chars.Letter, "N": chars.Number, "M": chars.Mark, "P": chars.Punct, "S": chars.Symbol, "Nd": chars.Digit,
	"Lu": chars.Upper, "Ll": chars.Lower, "Lt": chars.Title, "Lm": chars.Modifier, "Lo": chars.OtherLetter, "Han": chars.Han,
}

// escape adds what an escape stands for, after its \.
func (p *parser) escape(s *set) error {
	r, single, err := p.escapedRune()
	if err != nil {
		return err
	}
	if single {
		return p.literal(s, r, r)
	}
	switch c := p.rune(); c {
	case 's', 'S':
		s.addClass(chars.Space, c == 'S')
	case 'd', 'D':
		s.addClass(chars.Digit, c == 'D')
	case 'w', 'W':
		s.addClass(chars.Word, c == 'W')
	case 'p', 'P':
		end := strings.IndexByte(p.text[p.at:], '}')
		if !p.skip("{") || end < 0 {
			return errors.New("\\p wants a name in braces")
		}
		name := p.text[p.at : p.at+end-1]
		not := c == 'P'
		if bare, ok := strings.CutPrefix(name, "^"); ok {
			name, not = bare, !not
		}
		class, ok := properties[name]
		if !ok {
			return fmt.Errorf("class %.20q is not supported", name)
		}
		p.at += end
		s.addClass(class, not)
	default:
		return fmt.Errorf("\\%c is not supported", c)
	}
	if p.fold {
		return errors.New("classes in (?i:…) are not supported")
	}
	return nil
}
