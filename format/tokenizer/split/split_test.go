package split

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

func cut(t testing.TB, s Splitter, text string) (out []string) {
	t.Helper()
	err := s.Split(Piece{Text: text, First: true}, func(p Piece) error {
		if p.Text == "" {
			t.Fatalf("an empty piece of %q", text)
		}
		out = append(out, p.Text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func must(t testing.TB, expression string, b Behavior, invert bool) Splitter {
	t.Helper()
	r, err := NewRegex(expression, b, invert)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSplitters(t *testing.T) {
	for _, x := range []struct {
		s        Splitter
		in, want string
	}{
		{Text{"-", Isolated, false}, "the-final--countdown", "the|-|final|-|-|countdown"},
		{Text{"-", Removed, false}, "the-final--countdown", "the|final|countdown"},
		{Text{"-", MergedWithPrevious, false}, "the-final--countdown", "the-|final-|-|countdown"},
		{Text{"-", MergedWithNext, false}, "the-final--countdown", "the|-final|-|-countdown"},
		{Text{"-", Contiguous, false}, "-the-final--countdown", "-|the|-|final|--|countdown"},
		{Text{"-", Removed, true}, "-a--b", "-|-|-"},
		{Text{}, "ab", "ab"},
		{must(t, `\s+`, Removed, false), " a  b", "a|b"},
		{must(t, `\w`, Contiguous, true), "ab, c", "ab|, |c"},
		{must(t, GPT2, Isolated, false), "It's  a\n\n b1!", "It|'s| | a|\n\n| b|1|!"},
		{must(t, Llama3, Isolated, false), "IT'S 12345\r\n\tx !?\n", "IT|'S| |123|45|\r\n|\tx| !?\n"},
		{must(t, Qwen2, Isolated, false), "x12 y", "x|1|2| y"},
		{Digits{}, "a12½b", "a|12½|b"}, {Digits{true}, "a12", "a|1|2"},
		{Punctuation{Isolated}, "a,b$!", "a|,|b|$|!"}, {WhitespaceSplit{}, " a\u3000b ", "a|b"},
		{Bert{}, " a,b  c!", "a|,|b|c|!"}, {Whitespace{}, "a_b, ½ c--", "a_b|,|½|c|--"},
		{Metaspace{"▁", Always, false}, "a b  c", "▁a|▁b|▁|▁c"}, {Metaspace{"▁", Never, false}, "a b", "a|▁b"}, {Metaspace{"▁", First, true}, "a b", "▁a▁b"},
		{Metaspace{"▁", First, false}, " a ", "▁a|▁"},
		{ByteLevel{PrefixSpace: true, Regex: true}, "é a", "ĠÃ©|Ġa"}, {ByteLevel{Raw: true}, "é a", "é a"}, {ByteLevel{Regex: true, Raw: true}, "é a", "é| a"},
	} {
		if got := strings.Join(cut(t, x.s, x.in), "|"); got != x.want {
			t.Errorf("%#v of %q: %q, want %q", x.s, x.in, got, x.want)
		}
	}
	var first []bool
	m := Metaspace{Sign: "▁", Scheme: First}
	for _, p := range []Piece{{"a b", true}, {"a b", false}} {
		if err := m.Split(p, func(p Piece) error { first = append(first, p.First); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if len(first) != 4 || !first[0] || first[1] || first[2] || first[3] {
		t.Errorf("first pieces: %v", first)
	}
}

func TestRefused(t *testing.T) {
	if _, err := NewRegex("(", Isolated, false); err == nil {
		t.Error("half an expression")
	}
	if _, err := NewRegex("a*", MergedWithNext, false); err == nil {
		t.Error("an expression that matches nothing is merged")
	}
	if _, err := BehaviorOf("Split"); err == nil {
		t.Error("a behavior that is none")
	}
	if _, err := SchemeOf("last"); err == nil {
		t.Error("a scheme that is none")
	}
}

func TestBytes(t *testing.T) {
	seen := map[rune]bool{}
	for b := range 256 {
		r := ByteRune(byte(b))
		back, ok := RuneByte(r)
		if seen[r] || !ok || back != byte(b) {
			t.Errorf("byte %#x is %q", b, r)
		}
		seen[r] = true
	}
	for _, r := range []rune{-1, ' ', 0xad, 0x144, 0x2581} {
		if _, ok := RuneByte(r); ok {
			t.Errorf("%U stands for a byte", r)
		}
	}
	if got, ok := FromBytes(ToBytes("é\n")); !ok || got != "é\n" {
		t.Errorf("%q", got)
	}
	if _, ok := FromBytes("a b"); ok {
		t.Error("a space stands for a byte")
	}
}

// alphabet is what random texts are made of.
var alphabet = []string{
	"a", "B", "é", "中", "한", "ſ", "x", "s", "S", "ll", "'", "’", "1", "23", "½", "٣", " ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "\u2028",
	"!", "-", "_", "$", "🙂", "👨\u200d👩\u200d👧", "\u0301", "\u200b", "\x00", "re", "VE", "d", "\u1c89", "\x85", "\u180e",
}

// The scanners cut as their expressions say.
func TestScannersAgreeWithExpressions(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for expression, scan := range scanners {
		slow := must(t, "(?:"+expression+")", Isolated, false)
		for range 20000 {
			var b strings.Builder
			for range r.IntN(14) {
				b.WriteString(alphabet[r.IntN(len(alphabet))])
			}
			text := b.String()
			var got []string
			if err := scan.split(Piece{Text: text}, func(p Piece) error { got = append(got, p.Text); return nil }); err != nil {
				t.Fatal(err)
			}
			if want := cut(t, slow, text); strings.Join(got, "|") != strings.Join(want, "|") {
				t.Fatalf("%q by %.20s: %q, want %q", text, expression, got, want)
			}
		}
	}
}

func FuzzScan(f *testing.F) {
	f.Add("It's 123\r\n  x")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 500 || !utf8.ValidString(text) {
			return
		}
		for expression, scan := range scanners {
			var got []string
			if err := scan.split(Piece{Text: text}, func(p Piece) error { got = append(got, p.Text); return nil }); err != nil {
				t.Fatal(err)
			}
			if want := cut(t, must(t, "(?:"+expression+")", Isolated, false), text); strings.Join(got, "|") != strings.Join(want, "|") {
				t.Fatalf("%q by %.20s: %q, want %q", text, expression, got, want)
			}
		}
	})
}
