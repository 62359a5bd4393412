package syntax

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind is what a token is. Operators and delimiters are tokens of kind operator, told apart by text.
type kind int

const (
	end kind = iota
	data
	printBegin
	printEnd
	blockBegin
	blockEnd
	word
	text
	integer
	decimal
	operator
)

type token struct {
	kind kind
	text string // of data and text: what it means
	line int
}

// String is the token as messages name it.
func (t token) String() string {
	switch t.kind {
	case end:
		return "the template's end"
	case printEnd, blockEnd:
		return "the tag's end"
	case data, printBegin, blockBegin:
		return "text"
	}
	return fmt.Sprintf("%.40q", t.text)
}

// lexer cuts a template into tokens.
type lexer struct {
	source string
	at     int
	tokens []token
	line   int
	// fresh says that nothing, or a line's end, comes before the place that is read.
	fresh bool
}

// lex returns a template's tokens. White space is trimmed as options trim_blocks and lstrip_blocks say.
func lex(source string) ([]token, error) {
	source = newlines(source)
	l := &lexer{source: strings.TrimSuffix(source, "\n"), line: 1, fresh: true}
	for l.at < len(l.source) {
		if err := l.next(); err != nil {
			return nil, fmt.Errorf("line %d: %w", l.line, err)
		}
	}
	l.emit(end, "")
	return l.tokens, nil
}

func newlines(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}

func (l *lexer) emit(k kind, text string) { l.tokens = append(l.tokens, token{k, text, l.line}) }

// pass goes on to a place.
func (l *lexer) pass(to int) {
	l.line += strings.Count(l.source[l.at:to], "\n")
	if to > l.at {
		l.fresh = l.source[to-1] == '\n'
	}
	l.at = to
}

// next reads text up to a tag, and the tag.
func (l *lexer) next() error {
	open := l.tag()
	if open < 0 {
		l.emit(data, l.source[l.at:])
		l.pass(len(l.source))
		return nil
	}
	body, sign := open+2, byte(0)
	if body < len(l.source) && (l.source[body] == '-' || l.source[body] == '+') {
		sign = l.source[body]
		body++
	}
	what := l.source[open+1]
	l.text(l.source[l.at:open], sign, what != '{')
	switch what {
	case '#':
		return l.comment(body)
	case '{':
		l.pass(body)
		l.emit(printBegin, "")
		return l.inside(printEnd)
	}
	if to, ok := rawBegin(l.source, body); ok {
		l.pass(to)
		return l.raw()
	}
	l.pass(body)
	l.emit(blockBegin, "")
	return l.inside(blockEnd)
}

// tag returns the place of the next tag, or -1.
func (l *lexer) tag() int {
	for at := l.at; ; at++ {
		i := strings.IndexByte(l.source[at:], '{')
		if i < 0 {
			return -1
		}
		if at += i; at+1 < len(l.source) && strings.IndexByte("{%#", l.source[at+1]) >= 0 {
			return at
		}
	}
}

// text emits what stands before a tag, less the white space that the tag's sign takes.
func (l *lexer) text(s string, sign byte, isBlock bool) {
	switch {
	case sign == '-':
		s = strings.TrimRightFunc(s, IsSpace)
	case sign == 0 && isBlock:
		if line := strings.LastIndexByte(s, '\n') + 1; (line > 0 || l.fresh) && strings.TrimFunc(s[line:], IsSpace) == "" {
			s = s[:line]
		}
	}
	if s != "" {
		l.emit(data, s)
	}
}

func (l *lexer) comment(body int) error {
	i := strings.Index(l.source[body:], "#}")
	if i < 0 && body == len(l.source) {
		l.pass(body) // a comment without a text needs no end, in Jinja
		return nil
	}
	if i < 0 {
		return errors.New("a comment has no end: add #}")
	}
	l.pass(l.closed(body, body+i))
	return nil
}

// closed returns the place after a tag that ends with two characters at a place.
func (l *lexer) closed(body, at int) int {
	to := at + 2
	switch {
	case at > body && l.source[at-1] == '-':
		return to + spaces(l.source[to:])
	case at > body && l.source[at-1] == '+':
		return to
	case strings.HasPrefix(l.source[to:], "\n"):
		return to + 1
	}
	return to
}

func spaces(s string) int { return len(s) - len(strings.TrimLeftFunc(s, IsSpace)) }

// rawBegin returns the place after the tag that begins raw text, if one is open at a place.
func rawBegin(s string, at int) (int, bool) {
	at += spaces(s[at:])
	if !strings.HasPrefix(s[at:], "raw") {
		return 0, false
	}
	at += len("raw")
	at += spaces(s[at:])
	if strings.HasPrefix(s[at:], "-%}") {
		return at + 3 + spaces(s[at+3:]), true
	}
	return at + 2, strings.HasPrefix(s[at:], "%}")
}

// raw reads text in which tags mean nothing, up to endraw.
func (l *lexer) raw() error {
	for open := l.at; ; open += 2 {
		i := strings.Index(l.source[open:], "{%")
		if i < 0 && l.at == len(l.source) {
			return nil
		}
		if i < 0 {
			return errors.New("a raw block has no end: add {% endraw %}")
		}
		open += i
		at, sign := open+2, byte(0)
		if at < len(l.source) && (l.source[at] == '-' || l.source[at] == '+') {
			sign = l.source[at]
			at++
		}
		at += spaces(l.source[at:])
		if !strings.HasPrefix(l.source[at:], "endraw") {
			continue
		}
		body := at + len("endraw")
		at = body + spaces(l.source[body:])
		if at < len(l.source) && (l.source[at] == '-' || l.source[at] == '+') {
			at++
		}
		if !strings.HasPrefix(l.source[at:], "%}") {
			continue
		}
		l.text(l.source[l.at:open], sign, true)
		l.pass(l.closed(body, at))
		return nil
	}
}

// inside reads the tokens of a tag, up to its end.
func (l *lexer) inside(closing kind) error {
	var open []byte // brackets that wait for their ends
	for l.at < len(l.source) {
		rest := l.source[l.at:]
		if len(open) == 0 {
			if to, ok := l.tagEnd(rest, closing); ok {
				l.pass(to)
				l.emit(closing, "")
				return nil
			}
		}
		if n := spaces(rest); n > 0 {
			l.pass(l.at + n)
			continue
		}
		k, n, err := scan(l.source, l.at)
		if err != nil {
			return err
		}
		s := rest[:n]
		switch {
		case k == text:
			if s, err = unquote(s); err != nil {
				return err
			}
		case k == operator && strings.Contains("([{", s):
			open = append(open, ")]}"[strings.Index("([{", s)])
		case k == operator && strings.Contains(")]}", s):
			if len(open) == 0 || open[len(open)-1] != s[0] {
				return fmt.Errorf("%s closes nothing", s)
			}
			open = open[:len(open)-1]
		}
		if len(open) > maxNesting {
			return fmt.Errorf("more than %d brackets in each other", maxNesting)
		}
		l.emit(k, s)
		l.pass(l.at + n)
	}
	return nil // the parser will miss the end
}

// tagEnd returns the place after a tag that ends here.
func (l *lexer) tagEnd(rest string, closing kind) (int, bool) {
	mark := "%}"
	if closing == printEnd {
		mark = "}}"
	}
	sign := 0
	if rest[0] == '-' || rest[0] == '+' && closing == blockEnd {
		sign = 1
	}
	if !strings.HasPrefix(rest[sign:], mark) {
		return 0, false
	}
	if closing == printEnd && sign == 0 {
		return l.at + 2, true
	}
	return l.closed(l.at, l.at+sign), true
}

// operators of two characters come first.
var operators = []string{"**", "//", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".", ":", "|", ",", ";"}

// scan returns kind and length of the token at a place, where no white space is.
func scan(s string, at int) (kind, int, error) {
	rest := s[at:]
	if c := rest[0]; c >= '0' && c <= '9' {
		if n := decimalLen(rest); n > 0 && (at == 0 || s[at-1] != '.') {
			return decimal, n, nil
		}
		return integer, integerLen(rest), nil
	}
	if n := wordLen(rest); n > 0 {
		return word, n, nil
	}
	if rest[0] == '\'' || rest[0] == '"' {
		for i := 1; i < len(rest); i++ {
			switch rest[i] {
			case '\\':
				i++
			case rest[0]:
				return text, i + 1, nil
			}
		}
		return 0, 0, errors.New("a string has no end")
	}
	for _, o := range operators {
		if strings.HasPrefix(rest, o) {
			return operator, len(o), nil
		}
	}
	c, _ := utf8.DecodeRuneInString(rest)
	return 0, 0, fmt.Errorf("%q begins nothing", c)
}

func wordLen(s string) int {
	for i, c := range s {
		if c != '_' && !unicode.IsLetter(c) && (i == 0 || !unicode.In(c, unicode.Nd, unicode.Mn, unicode.Mc)) {
			return i
		}
	}
	return len(s)
}

// digits returns how far digits reach that single underscores may part.
func digits(s string, valid string) int {
	n := 0
	for n < len(s) {
		at := n
		if s[at] == '_' && n > 0 {
			at++
		}
		if at == len(s) || strings.IndexByte(valid, s[at]) < 0 {
			break
		}
		n = at + 1
	}
	return n
}

const tenDigits = "0123456789"

// decimalLen returns the length of a number with a fraction or an exponent; 0 if there is none.
func decimalLen(s string) int {
	n := digits(s, tenDigits)
	isDecimal := false
	if n < len(s) && s[n] == '.' {
		if m := digits(s[n+1:], tenDigits); m > 0 {
			n, isDecimal = n+1+m, true
		}
	}
	if n < len(s) && (s[n] == 'e' || s[n] == 'E') {
		at := n + 1
		if at < len(s) && (s[at] == '+' || s[at] == '-') {
			at++
		}
		if m := digits(s[at:], tenDigits); m > 0 {
			n, isDecimal = at+m, true
		}
	}
	if !isDecimal {
		return 0
	}
	return n
}

// integerLen returns the length of an integer, in base 2, 8, 10 or 16.
func integerLen(s string) int {
	if s[0] != '0' {
		return digits(s, tenDigits)
	}
	if len(s) > 1 {
		bases := map[byte]string{'b': "01", 'o': "01234567", 'x': "0123456789abcdefABCDEF"}
		if valid, ok := bases[s[1]|0x20]; ok {
			at := 2
			if at < len(s) && s[at] == '_' {
				at++
			}
			if at < len(s) && s[at] != '_' {
				if m := digits(s[at:], valid); m > 0 {
					return at + m
				}
			}
		}
	}
	return digits(s, "0")
}
