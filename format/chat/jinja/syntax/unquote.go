package syntax

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsSpace reports what Python's str.isspace does: Unicode's white space, and four separators.
func IsSpace(c rune) bool { return c >= 0x1c && c <= 0x1f || unicode.IsSpace(c) }

var simpleEscapes = map[byte]string{
	'\\': "\\", '\'': "'", '"': "\"", 'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v", '\n': "",
}

// unquote returns what a string in quotes means. As in Jinja, other than ASCII is escaped before
// escapes are read, so that a backslash before it stands for itself.
func unquote(s string) (string, error) {
	s = s[1 : len(s)-1]
	if strings.IndexByte(s, '\\') < 0 {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		n, err := unescape(&b, s[i+1:])
		if err != nil {
			return "", err
		}
		i += n
	}
	return b.String(), nil
}

// unescape writes what an escape means, of which s is what follows its backslash, and returns its
// length there.
func unescape(b *strings.Builder, s string) (int, error) {
	c := s[0]
	if plain, ok := simpleEscapes[c]; ok {
		b.WriteString(plain)
		return 1, nil
	}
	wide := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
	switch {
	case wide > 0:
		if len(s) < 1+wide {
			return 0, fmt.Errorf("\\%c wants %d digits", c, wide)
		}
		code, err := strconv.ParseUint(s[1:1+wide], 16, 32)
		if err != nil || !utf8.ValidRune(rune(min(code, utf8.MaxRune+1))) {
			return 0, fmt.Errorf("\\%c%.8q is no character", c, s[1:1+wide])
		}
		b.WriteRune(rune(code))
		return 1 + wide, nil
	case c >= '0' && c <= '7':
		n := 1
		for n < 3 && n < len(s) && s[n] >= '0' && s[n] <= '7' {
			n++
		}
		code, _ := strconv.ParseUint(s[:n], 8, 16)
		b.WriteRune(rune(code))
		return n, nil
	case c == 'N':
		return 0, errors.New(`\N is not supported: write the character itself`)
	case c < utf8.RuneSelf:
		b.WriteByte('\\')
		b.WriteByte(c)
		return 1, nil
	}
	r, n := utf8.DecodeRuneInString(s)
	switch {
	case r <= 0xff:
		fmt.Fprintf(b, `\x%02x`, r)
	case r <= 0xffff:
		fmt.Fprintf(b, `\u%04x`, r)
	default:
		fmt.Fprintf(b, `\U%08x`, r)
	}
	return n, nil
}
