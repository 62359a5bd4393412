package pattern

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// matches returns all matches in a text.
func matches(t *testing.T, expression, text string) (out []string) {
	t.Helper()
	p, err := Compile(expression)
	if err != nil {
		t.Fatal(err)
	}
	m := p.Match(text)
	for at := 0; ; {
		start, end, found, err := m.Next(at)
		if err != nil {
			t.Fatal(err)
		}
		if !found {
			return out
		}
		out = append(out, text[start:end])
		at = end
	}
}

func TestMatches(t *testing.T) {
	for _, x := range []struct{ expression, text, want string }{
		{`a|ab`, "abab", "a a"},
		{`ab|a`, "abaa", "ab a a"},
		{`a*`, "baaac", "aaa"},
		{`a{1,2}`, "aaa", "aa a"},
		{`a{,2}b`, "aaab", "aab"},
		{`a{2,}`, "aaa a", "aaa"},
		{`a{x}`, "aa{x}", "a{x}"},
		{`a+?`, "aa", "a a"},
		{`a++a|b`, "aab", "b"},
		{`(?>a|ab)c|b`, "abc", "b"},
		{`(?:ab)+`, "ababa", "abab"},
		{`(ab){2}`, "ababab", "abab"},
		{`(?:a|b)*c`, "abbac", "abbac"},
		{`(?:a*)*b`, "aab", "aab"},
		{`(?:|a)+b`, "aab", "aab"},
		{`a(?!b)`, "abac", "a"},
		{`a(?=b).`, "abac", "ab"},
		{`[^a-c\-]+`, "a-dxb", "dx"},
		{`[a\]]+`, "]a", "]a"},
		{`^a|b$`, "a\na b", "a a b"},
		{`\x41\x{42}\u0043`, "ABC", "ABC"},
		{`\p{^L}+\P{N}`, "a1b2c", "1b 2c"},
		{`[^(\s|[.,!])]+`, "a(b) c.d", "a b c d"},
		{`[\S]+`, "a b", "a b"},
		{`(?i:'ll|'s)`, "'lL'ſ'x", "'lL 'ſ"},
		{`é+`, "eéé", "éé"},
		{`.`, "a\nb", "a b"},
		{`\d{1,3}(?=(?:\d{3})*(?!\d))`, "1234567", "1 234 567"},
	} {
		if got := strings.Join(matches(t, x.expression, x.text), " "); got != x.want {
			t.Errorf("%s in %q: %q, want %q", x.expression, x.text, got, x.want)
		}
	}
}

func TestRefused(t *testing.T) {
	for expression, why := range map[string]string{
		`(a`: "not closed", `a)`: "closes no group", `[a`: "not closed", `[]`: "empty class", `[a[^b]]`: "not supported", `[a&&b]`: "not supported", `[[:alpha:]]`: "not supported", `[a[b]`: "not closed", `[a[]]`: "empty class",
		`(?<=a)b`: "kind of group", `(?<n>a)`: "kind of group", `\1`: "not supported", `\bx`: "not supported", `\p{Greek}`: "not supported", `\pL`: "braces",
		`a{1,2}+`: "in its own way", `a**`: "is repeated", `a+++`: "repeated", `*a`: "repeats nothing", `(?=a)*`: "takes no characters",
		`a{3,2}`: "must grow", `a{9999}`: "must grow", `\`: "at the end", `[z-a]`: "backwards", `[a-\s]`: "range", `(?i:é)`: "beyond ASCII",
		`(?i:\s)`: "in (?i:", `\xé`: "no code point", `\u12`: "lacks digits", `\x{110000}`: "no code point", `\xff`: "no code point",
		strings.Repeat("(", 99):         "inside each other",
		"((((a{99}){99}){99}){99}){99}": "instructions",
		"((((){500}){500}){500}){500}":  "instructions",
		strings.Repeat("a", maxText+1):  "at most",
		"\xff":                          "UTF-8",
	} {
		if _, err := Compile(expression); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%.40s: %v, want %q", expression, err, why)
		}
	}
}

// An expression that goes back for ever ends with an error, soon.
func TestSteps(t *testing.T) {
	p, err := Compile(`(?:a|a)*b`)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if _, _, _, err := p.Find(strings.Repeat("a", 1000)); !errors.Is(err, ErrSteps) {
		t.Errorf("%v", err)
	}
	t.Log(time.Since(start))
	if p, err = Compile(`\s+$`); err != nil {
		t.Fatal(err)
	}
	if s, e, ok, err := p.Find(strings.Repeat(" ", 1000) + "x  "); err != nil || !ok || e-s != 2 {
		t.Errorf("%d %d %v %v", s, e, ok, err)
	}
}

func FuzzPattern(f *testing.F) {
	f.Add(`(?i:'s|'t)|[^\r\n\p{L}\p{N}]?\p{L}+|\s+(?!\S)`, "it's  a\n")
	f.Add(`(?:a*)*?b{2,3}`, "aabb")
	f.Fuzz(func(t *testing.T, expression, text string) {
		p, err := Compile(expression)
		if err != nil || len(text) > 200 {
			return
		}
		m := p.Match(strings.ToValidUTF8(text, "x"))
		m.m.steps = 1 << 16
		for at := 0; ; {
			_, end, found, err := m.Next(at)
			if err != nil || !found {
				return
			}
			if end <= at {
				t.Fatalf("%q in %q stands still", expression, text)
			}
			at = end
		}
	})
}
