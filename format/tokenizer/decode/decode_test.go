package decode

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tally-network/tally/format/tokenizer/normalize"
	"github.com/tally-network/tally/format/tokenizer/split"
)

func replace(from, to string) Replace { return Replace{normalize.Replace{Old: from, New: to}} }

func TestDecoders(t *testing.T) {
	llama := []Decoder{replace("▁", " "), ByteFallback{}, Fuse{}, Strip{' ', 1, 0}}
	for _, x := range []struct {
		decoders []Decoder
		tokens   string // with | between them
		want     string // the parts that come out, with | between them
	}{
		{nil, "a|b", "a| b|"},
		{[]Decoder{WordPiece{"##", true}}, "un|##aff|is|n't|.|do|not", "un|aff| is|n't|.| do| not|"},
		{[]Decoder{WordPiece{"##", false}}, "##a|.", "##a| .|"},
		{[]Decoder{Metaspace{"▁", split.Always}}, "▁a|▁b▁", "a| b |"}, {[]Decoder{Metaspace{"▁", split.Never}}, "▁a|▁b", " a| b|"},
		{[]Decoder{BPE{"</w>"}}, "a</w>|b|c</w>", "|a |b|c"}, {[]Decoder{BPE{"</w>"}}, "", "|"},
		{llama, "▁▁a|▁b", " a| b|"}, {llama, "▁|▁|a", "| |a|"}, {llama, "<0xE2>|<0x82>|<0xAC>|x", "||€|x|"},
		{llama, "<0xE2>|<0x82>|x", "||\ufffd\ufffdx|"}, {llama, "<0x41>|<0xFF>|<0x41>", "A|||\ufffd\ufffd"},
		{[]Decoder{ByteFallback{Exact: true}, Fuse{}}, "<0x41>|<0xFF>|<0x41>|b", "|||\ufffd\ufffd\ufffdb|"},
		{[]Decoder{ByteLevel{}}, "Ã|©|Ġa|x y", "|é| a|x y|"}, {[]Decoder{ByteLevel{}}, "ðŁ|ĻĤ|ð", "|🙂||\ufffd"}, {[]Decoder{ByteLevel{}}, "ðŁ|a|âĤ|âĤ|¬", "|\ufffda||\ufffd|€|"},
		{[]Decoder{Fuse{}, replace("ab", "x")}, "a|b|", "|||x"}, {[]Decoder{Fuse{}, Strip{'.', 1, 2}}, ".|.a|..|..", "|.a||..|"},
		{[]Decoder{Strip{'.', 1, 1}}, "..a..|.", ".a.||"}, {[]Decoder{Fuse{}, BPE{"</w>"}}, "a</w>|b</w>", "||ab"},
	} {
		r := Start(x.decoders)
		var out []string
		for _, token := range strings.Split(x.tokens, "|") {
			text, err := r.Push(token)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, text)
		}
		text, err := r.Flush()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(append(out, text), "|"); got != x.want {
			t.Errorf("%v of %s: %q, want %q", x.decoders, x.tokens, got, x.want)
		}
	}
}

func TestErrorsComeOut(t *testing.T) {
	r := Start([]Decoder{replace("", "x"), Fuse{}})
	if _, err := r.Push("a"); err == nil {
		t.Error("nothing was replaced")
	}
	if _, err := r.Flush(); err == nil {
		t.Error("an error was forgotten")
	}
}

// However bytes are cut into tokens, only whole characters come out, and the same ones.
func FuzzBytes(f *testing.F) {
	f.Add([]byte("é🙂\xff\xf0\x9f\x80a\xed\xa0\x80"), uint64(0x5555))
	f.Fuzz(func(t *testing.T, b []byte, cuts uint64) {
		text, rest := complete(b)
		if !utf8.ValidString(text) || utf8.FullRune(rest) {
			t.Fatalf("%q, %q", text, rest)
		}
		r := Start([]Decoder{ByteLevel{}})
		var got strings.Builder
		from := 0
		for i := range b {
			if cuts>>(i%64)&1 == 0 && i+1 < len(b) {
				continue
			}
			out, err := r.Push(split.ToBytes(string(b[from : i+1])))
			if err != nil || !utf8.ValidString(out) {
				t.Fatalf("%q (%v)", out, err)
			}
			got.WriteString(out)
			from = i + 1
		}
		if got.String() != text {
			t.Fatalf("%q in parts: %q, want %q", b, got.String(), text)
		}
	})
}
