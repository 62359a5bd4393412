package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"

	xcases "golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// isASCII says that the standard library's cases are enough: they map each code point to one.
func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func upper(s string) string {
	if isASCII(s) {
		return strings.ToUpper(s)
	}
	return xcases.Upper(language.Und).String(s)
}

func lower(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	return xcases.Lower(language.Und).String(s)
}

// capitalize puts the first character in title case, and the others in lower case.
func capitalize(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return titled(s[:n]) + lowerAfter(s, n)
}

// lowerAfter is the lower case of what follows n bytes. A sigma is final only after a letter, so
// these bytes count.
func lowerAfter(s string, n int) string {
	return lower(s)[len(lower(s[:n])):]
}

// titled is one character in title case.
func titled(c string) string { return xcases.Title(language.Und).String(c) }

// eachLower calls f with each character of a text, and with what it is in the text's lower case. A
// sigma has two forms there, of the same length.
func eachLower(s string, f func(c rune, small string)) {
	small := lower(s)
	for _, c := range s {
		n := len(lower(string(c)))
		f(c, small[:n])
		small = small[n:]
	}
}

// title puts each character in title case that follows no cased one, and others in lower case.
func title(s string) string {
	var b strings.Builder
	isInside := false
	eachLower(s, func(c rune, small string) {
		if isInside {
			b.WriteString(small)
		} else {
			b.WriteString(titled(string(c)))
		}
		isInside = isLower(c) || isUpper(c) || unicode.IsTitle(c)
	})
	return b.String()
}

func swapcase(s string) string {
	var b strings.Builder
	eachLower(s, func(c rune, small string) {
		switch {
		case isUpper(c):
			b.WriteString(small)
		case isLower(c):
			b.WriteString(upper(string(c)))
		default:
			b.WriteRune(c)
		}
	})
	return b.String()
}

func isLower(c rune) bool { return unicode.IsLower(c) || unicode.Is(unicode.Other_Lowercase, c) }

func isUpper(c rune) bool { return unicode.IsUpper(c) || unicode.Is(unicode.Other_Uppercase, c) }

// cases reports whether a text has lower case, and whether it has upper or title case.
func cases(s string) (hasLower, hasUpper bool) {
	for _, c := range s {
		hasLower = hasLower || isLower(c)
		hasUpper = hasUpper || isUpper(c) || unicode.IsTitle(c)
	}
	return hasLower, hasUpper
}

// digitsApart are what Unicode calls digits and not decimal digits: in circles, raised and so on.
var digitsApart = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0xb2, 0xb3, 1}, {0xb9, 0xb9, 1}, {0x1369, 0x1371, 1}, {0x19da, 0x19da, 1}, {0x2070, 0x2070, 1}, {0x2074, 0x2079, 1},
		{0x2080, 0x2089, 1}, {0x2460, 0x2468, 1}, {0x2474, 0x247c, 1}, {0x2488, 0x2490, 1}, {0x24ea, 0x24ea, 1}, {0x24f5, 0x24fd, 1},
		{0x24ff, 0x24ff, 1}, {0x2776, 0x277e, 1}, {0x2780, 0x2788, 1}, {0x278a, 0x2792, 1},
	},
	R32:         []unicode.Range32{{0x10a40, 0x10a43, 1}, {0x10e60, 0x10e68, 1}, {0x11052, 0x1105a, 1}, {0x1f100, 0x1f10a, 1}},
	LatinOffset: 2,
}

func isDigit(c rune) bool { return unicode.IsDigit(c) || unicode.Is(digitsApart, c) }

// every reports whether a text has characters, and f holds of each.
func every(s string, f func(rune) bool) bool {
	return s != "" && strings.IndexFunc(s, func(c rune) bool { return !f(c) }) < 0
}
