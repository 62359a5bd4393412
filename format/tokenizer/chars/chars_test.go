package chars

import "testing"

func TestClasses(t *testing.T) {
	for _, x := range []struct {
		r  rune
		c  Class
		in bool
	}{
		{'a', Letter, true}, {'1', Letter, false}, {'½', Number, true}, {'½', Word, true}, {'½', RustWord, false},
		{' ', Space, true}, {0x85, Space, true}, {0x200b, Space, false}, {0x301, Mark, true}, {'$', Symbol, true},
		{'$', Punct, false}, {'$', Punctuation, true}, {0x1c89, Letter, true}, {0, Control, true}, {'\t', Control, false},
		{'中', Han, true}, {'中', OtherLetter, true}, {'A', Upper, true}, {'ß', Lower, true}, {'ǅ', Title, true},
		{0x301, Combining, true}, {0x301, Nonspacing, true}, {0xac00, Normal, true}, {'a', Normal, false}, {-1, Letter, false},
		{0x110000, Letter, false}, {0x10ffff, Letter, false},
	} {
		if In(x.r, Of(x.c)) != x.in {
			t.Errorf("%U in class %d: %v", x.r, x.c, !x.in)
		}
	}
	if Of(Letter, Space)&Of(Space) == 0 {
		t.Error("a union lacks its parts")
	}
}

func TestToLower(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "abc": "abc", "aBC": "abc", "ÀÉ x": "àé x", "İ": "i̇", "ΣΑΣ": "σασ", "\U0001e900": "\U0001e922", "\u1c89": "\u1c8a",
	} {
		if got := ToLower(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}
