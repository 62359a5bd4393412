package normalize

import (
	"testing"

	"github.com/tally-network/tally/format/tokenizer/pattern"
)

func TestNormalizers(t *testing.T) {
	spaces, err := pattern.Compile(" {2,}")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		n        Normalizer
		in, want string
	}{
		{NFC, "e\u0301", "é"}, {NFD, "é", "e\u0301"}, {NFKC, "ﬁ①", "fi1"}, {NFKD, "ﬁé", "fie\u0301"}, {NFC, "abc", "abc"},
		{NFKC, "㋿", "㋿"}, {NFKC, "e\u0301㋿e\u0301", "é㋿é"}, {NFD, "\U00011938", "\U00011938"}, {NFC, "\U00011935\U00011930", "\U00011935\U00011930"},
		{Lowercase{}, "ÀB", "àb"}, {StripAccents{}, "e\u0301x", "ex"}, {StripAccents{}, "é", "é"},
		{Bert{Clean: true}, "a\x00b\tc\u200dd\u3000e", "ab cd e"}, {Bert{Chinese: true}, "a中b", "a 中 b"},
		{Bert{Accents: true}, "Éa", "Ea"}, {Bert{Lowercase: true}, "É", "é"}, {Bert{}, "É\t", "É\t"},
		{Replace{Old: " ", New: "▁"}, " a b", "▁a▁b"}, {Replace{Pattern: spaces, New: " "}, "a   b c  ", "a b c "}, {Replace{Pattern: spaces}, "ab", "ab"},
		{Prepend{"▁"}, "a", "▁a"}, {Prepend{"▁"}, "", ""}, {Strip{true, false}, " \u3000a ", "a "}, {Strip{false, true}, " a\n", " a"}, {Strip{true, true}, "  ", ""},
		{Nmt{}, "a\x01b\u200bc", "ab c"}, {Sequence{NFD, StripAccents{}, Lowercase{}}, "ÉA", "ea"}, {Sequence{}, "x", "x"},
	} {
		if got, err := x.n.Normalize(x.in); err != nil || got != x.want {
			t.Errorf("%#v of %q: %q (%v), want %q", x.n, x.in, got, err, x.want)
		}
	}
	if _, err := (Sequence{Replace{New: "x"}}).Normalize("a"); err == nil {
		t.Error("nothing was replaced by something")
	}
}
