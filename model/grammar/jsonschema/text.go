package jsonschema

import (
	"bytes"
	"errors"
	"regexp/syntax"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tally-network/tally/model/grammar"
)

// span is characters from one to another.
type span struct{ low, high rune }

// anyChar is what a string may have.
var anyChar = []span{{0, utf8.MaxRune}}

// string writes any string.
func (c *compiler) string(next node) node {
	return c.Text(`"`, c.Loop(c.Text(`"`, next), func(next node) node { return chars(c.Builder, anyChar, next) }))
}

// anyString accepts any string.
var anyString = sync.OnceValue(func() *grammar.Automaton {
	c := compiler{Builder: grammar.NewBuilder()}
	a, err := c.Build(c.string(c.End()))
	if err != nil {
		panic(err) // it is the same always
	}
	return a
})

// chars writes a character of some, as it stands in a string. Spans are sorted, and apart.
func chars(b *grammar.Builder, of []span, next node) node {
	var all, escaped []node
	tails := [4]node{next, none, none, none} // so many bytes that continue a character
	for i := 1; i < len(tails); i++ {
		tails[i] = b.Bytes(0x80, 0xBF, tails[i-1])
	}
	for _, s := range of {
		for _, r := range "\b\t\n\f\r\"\\" {
			if s.low <= r && r <= s.high {
				escape := spelling(r)[1]
				escaped = append(escaped, b.Bytes(escape, escape, next))
			}
		}
		for _, plain := range []span{{' ', '!'}, {'#', '['}, {']', 0x7F}} {
			if low, high := max(s.low, plain.low), min(s.high, plain.high); low <= high {
				all = append(all, b.Bytes(byte(low), byte(high), next))
			}
		}
		for _, wide := range []span{{0x80, 0x7FF}, {0x800, 0xD7FF}, {0xE000, 0xFFFF}, {0x10000, utf8.MaxRune}} {
			if low, high := max(s.low, wide.low), min(s.high, wide.high); low <= high {
				all = append(all, between(b, utf8.AppendRune(nil, low), utf8.AppendRune(nil, high), span{0x80, 0xBF}, tails[:]))
			}
		}
	}
	if len(escaped) > 0 {
		all = append(all, b.Bytes('\\', '\\', b.Either(escaped...)))
	}
	return b.Either(all...)
}

// between writes bytes from low to high in the order of texts, all of their length. Those behind the first are of a range; tails[n] is any n
// of these, and then what follows.
func between(b *grammar.Builder, low, high []byte, of span, tails []node) node {
	rest := len(low) - 1
	l, h := low[0], high[0]
	if rest == 0 {
		return b.Bytes(l, h, tails[0])
	}
	if l == h {
		return b.Bytes(l, h, between(b, low[1:], high[1:], of, tails))
	}
	least, most := bytes.Repeat([]byte{byte(of.low)}, rest), bytes.Repeat([]byte{byte(of.high)}, rest)
	var all []node
	if !bytes.Equal(low[1:], least) {
		all = append(all, b.Bytes(l, l, between(b, low[1:], most, of, tails)))
		l++
	}
	if !bytes.Equal(high[1:], most) {
		all = append(all, b.Bytes(h, h, between(b, least, high[1:], of, tails)))
		h--
	}
	if l <= h {
		all = append(all, b.Bytes(l, h, tails[rest]))
	}
	return b.Either(all...)
}

// formats are patterns of the formats that are supported. Each accepts a part of what the format allows.
var formats = map[string]string{
	"date":      "^" + date + "$",
	"time":      "^" + clock + "$",
	"date-time": "^" + date + "T" + clock + "$",
	"duration":  `^P(?:[1-9]\d{0,5}D(?:T[1-9]\d?H)?|T(?:[1-9]\d{0,5}H)?(?:[1-9]\d{0,5}M)?[1-9]\d{0,5}S)$`,
	"uuid":      "^[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$",
	"email":     `^[A-Za-z0-9_+-]+(?:\.[A-Za-z0-9_+-]+)*@[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*(?:\.[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*)*\.[A-Za-z]{2,20}$`,
	"ipv4":      "^(?:" + octet + `\.){3}` + octet + "$",
	"uri":       `^https?://[a-z0-9]+(?:-[a-z0-9]+)*(?:\.[a-z0-9]+(?:-[a-z0-9]+)*)*\.[a-z]{2,20}(?::[1-9]\d{0,3})?(?:/[A-Za-z0-9._~-]*)*(?:\?[A-Za-z0-9._~=&-]*)?$`,
}

const (
	date  = `[1-9]\d{3}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))`
	clock = `(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,6})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)`
	octet = `(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`
)

// text writes a string of a schema.
func (c *compiler) text(s *value, at string, next node) (node, error) {
	lowest, err := bound(s, "minLength", at, 0)
	if err != nil {
		return none, err
	}
	most, err := bound(s, "maxLength", at, -1)
	if err != nil {
		return none, err
	}
	if most >= 0 && most < lowest {
		return none, nil
	}
	counted := func(b *grammar.Builder, next node) node {
		return b.Text(`"`, b.Repeat(lowest, most, b.Text(`"`, next), func(next node) node { return chars(b, anyChar, next) }))
	}
	var patterns []*syntax.Regexp
	for _, keyword := range []string{"pattern", "format"} {
		v := s.get(keyword)
		if v == nil {
			continue
		}
		p, err := patternOf(v, keyword, at)
		if err != nil {
			return none, err
		}
		patterns = append(patterns, p)
	}
	if len(patterns) == 0 {
		return counted(c.Builder, next), nil
	}
	a := c.texts[s]
	if a == nil {
		if a, err = c.matching(patterns, at); err == nil && (lowest > 0 || most >= 0) {
			var other *grammar.Automaton
			b := c.Part()
			if other, err = b.Build(counted(b, b.End())); err == nil {
				a, err = b.Intersect(a, other)
			}
		}
		if errors.Is(err, grammar.ErrEmpty) {
			return none, nil
		} else if err != nil {
			return none, err
		}
		c.texts[s] = a
	}
	return c.Embed(a, next), nil
}

// patternOf reads a pattern, or the one of a format.
func patternOf(v *value, keyword, at string) (*syntax.Regexp, error) {
	text := v.text
	if keyword == "format" {
		known, ok := formats[v.text]
		if !ok || v.of != isString {
			return nil, wrong(at, keyword, "the format %.60q is not supported: want date-time, date, time, duration, email, ipv4, uri or uuid, or a pattern", v.text)
		}
		text = known
	}
	if why := unsafe(text); why != "" || v.of != isString {
		return nil, wrong(at, keyword, "the pattern %.60q is not supported: %s", text, why)
	}
	p, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, wrong(at, keyword, "the pattern %.60q is not supported: %v", text, err)
	}
	return p, nil
}

// unsafe says what of a pattern would mean something else to ECMAScript than to Go.
func unsafe(pattern string) string {
	for i := 0; i < len(pattern); i++ {
		rest := pattern[i:]
		switch {
		case rest[0] == '\\' && len(rest) == 1:
			return "it ends with a backslash"
		case rest[0] == '\\':
			isLetter := rest[1] >= '0' && rest[1] <= '9' || rest[1] >= 'A' && rest[1] <= 'Z' || rest[1] >= 'a' && rest[1] <= 'z' || rest[1] >= utf8.RuneSelf
			if isLetter && !strings.ContainsRune("dDwWsSnrtfv", rune(rest[1])) {
				return `of escapes with letters it may have \d \D \w \W \s \S \n \r \t \f \v`
			}
			i++
		case strings.HasPrefix(rest, "(?") && !strings.HasPrefix(rest, "(?:"):
			return "of groups it may have (…) and (?:…)"
		case strings.HasPrefix(rest, "[:"), strings.HasPrefix(rest, "[]"), strings.HasPrefix(rest, "[^]"), strings.HasPrefix(rest, "[[") || strings.HasPrefix(rest, "[^["):
			return "a class that begins with [ ] or : is written with a backslash before it"
		}
	}
	return ""
}

// matching returns the automaton of the strings that all patterns match.
func (c *compiler) matching(patterns []*syntax.Regexp, at string) (a *grammar.Automaton, err error) {
	for _, p := range patterns {
		m := matcher{Builder: c.Part()}
		start := m.Text(`"`, m.branch(p, m.Text(`"`, m.End())))
		if m.why != "" {
			return nil, wrong(at, "pattern", "the pattern %.60q is not supported: %s", p, m.why)
		}
		one, err := m.Build(start)
		if err == nil && a != nil {
			one, err = m.Intersect(a, one)
		}
		if err != nil {
			return nil, err
		}
		a = one
	}
	return a, nil
}

// matcher writes a pattern as a form.
type matcher struct {
	*grammar.Builder
	why string // something is not supported
}

// branch writes a string in which an alternative of a pattern is found: anywhere, unless it is anchored.
func (m *matcher) branch(p *syntax.Regexp, next node) node {
	switch p.Op {
	case syntax.OpAlternate:
		var all []node
		for _, s := range p.Sub {
			all = append(all, m.branch(s, next))
		}
		return m.Either(all...)
	case syntax.OpCapture:
		return m.branch(p.Sub[0], next)
	}
	parts := []*syntax.Regexp{p}
	if p.Op == syntax.OpConcat {
		parts = p.Sub
	}
	anything := func(next node) node { return chars(m.Builder, anyChar, next) }
	starts, ends := false, false
	for len(parts) > 0 && parts[0].Op == syntax.OpBeginText {
		parts, starts = parts[1:], true
	}
	for len(parts) > 0 && parts[len(parts)-1].Op == syntax.OpEndText {
		parts, ends = parts[:len(parts)-1], true
	}
	if !ends {
		next = m.Loop(next, anything)
	}
	if next = m.sequence(parts, next); !starts {
		next = m.Loop(next, anything)
	}
	return next
}

func (m *matcher) sequence(parts []*syntax.Regexp, next node) node {
	for i := len(parts) - 1; i >= 0; i-- {
		next = m.part(parts[i], next)
	}
	return next
}

// part writes what a part of a pattern matches.
func (m *matcher) part(p *syntax.Regexp, next node) node {
	body := func(next node) node { return m.part(p.Sub[0], next) }
	switch p.Op {
	case syntax.OpNoMatch:
		return none
	case syntax.OpEmptyMatch:
		return next
	case syntax.OpLiteral:
		for i := len(p.Rune) - 1; i >= 0; i-- {
			next = chars(m.Builder, []span{{p.Rune[i], p.Rune[i]}}, next)
		}
		return next
	case syntax.OpCharClass:
		return chars(m.Builder, classOf(p.Rune), next)
	case syntax.OpAnyCharNotNL:
		return chars(m.Builder, []span{{0, '\n' - 1}, {'\n' + 1, '\r' - 1}, {'\r' + 1, 0x2027}, {0x202A, utf8.MaxRune}}, next)
	case syntax.OpCapture:
		return body(next)
	case syntax.OpStar:
		return m.Repeat(0, -1, next, body)
	case syntax.OpPlus:
		return m.Repeat(1, -1, next, body)
	case syntax.OpQuest:
		return m.Repeat(0, 1, next, body)
	case syntax.OpRepeat:
		return m.Repeat(p.Min, p.Max, next, body)
	case syntax.OpConcat:
		return m.sequence(p.Sub, next)
	case syntax.OpAlternate:
		var all []node
		for _, s := range p.Sub {
			all = append(all, m.part(s, next))
		}
		return m.Either(all...)
	}
	m.why = "^ and $ are supported at its ends alone, \\b nowhere"
	return none
}

// spaces are what \s has in ECMAScript and not in Go: a class without a space, as \S is, goes without them too.
var spaces = []span{{'\v', '\v'}, {0xA0, 0xA0}, {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}}

// classOf returns a class as spans.
func classOf(runes []rune) (out []span) {
	hasSpace := false
	for i := 0; i < len(runes); i += 2 {
		out = append(out, span{runes[i], runes[i+1]})
		hasSpace = hasSpace || runes[i] <= ' ' && ' ' <= runes[i+1]
	}
	if hasSpace {
		return out
	}
	for _, gone := range spaces {
		var rest []span
		for _, s := range out {
			if below := (span{s.low, min(s.high, gone.low-1)}); below.low <= below.high {
				rest = append(rest, below)
			}
			if above := (span{max(s.low, gone.high+1), s.high}); above.low <= above.high {
				rest = append(rest, above)
			}
		}
		out = rest
	}
	return out
}
