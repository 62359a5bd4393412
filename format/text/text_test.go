package text

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/tally-network/tally/core/tensor"
)

func train(t testing.TB, text string, size int) *Tokenizer {
	tok, err := Train(text, size)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestVocabulary(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		size int
		want string
	}{
		"all fit":              {"banana", 256, "abn"},
		"the most frequent":    {"banana", 3, "an"},
		"ties by code point":   {"dcbaé\né\n", 5, "\nabé"},
		"only one":             {"zzay", 2, "z"},
		"exactly":              {"abc", 4, "abc"},
		"beyond 16 bits":       {"a😀😀", 2, "😀"},
		"the replacement rune": {"�a", 3, "a�"},
	} {
		tok := train(t, c.text, c.size)
		if got := string(tok.runes); got != c.want || tok.Size() != utf8.RuneCountInString(c.want)+1 {
			t.Errorf("%s: got %q with %d tokens", name, got, tok.Size())
		}
		for i, r := range tok.runes {
			if ids, err := tok.Encode(string(r)); err != nil || len(ids) != 1 || ids[0] != int32(i+1) {
				t.Errorf("%s: %q is %v", name, r, ids)
			}
		}
	}
}

func TestEncodeAndDecode(t *testing.T) {
	tok := train(t, "hello, world", 256)
	ids, err := tok.Encode("hold!")
	if err != nil || ids[4] != Unknown || slices.Contains(ids[:4], Unknown) {
		t.Fatalf("got %v (%v)", ids, err)
	}
	if back, err := tok.Decode(ids); err != nil || back != "hold�" {
		t.Fatalf("got %q (%v)", back, err)
	}
	for _, bad := range []int32{-1, int32(tok.Size()), 1 << 30} {
		if s, err := tok.Decode([]int32{1, bad}); err == nil {
			t.Errorf("token %d is %q", bad, s)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(1, 200, -1).Draw(t, "text")
		tok, err := Train(text, DefaultVocabulary)
		if err != nil {
			t.Fatal(err)
		}
		ids, err := tok.Encode(text)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := tok.Decode(ids); err != nil || back != text {
			t.Fatalf("%q came back as %q (%v)", text, back, err)
		}
	})
}

func TestTextRefused(t *testing.T) {
	var distinct strings.Builder
	for r := rune(0x10000); r < 0x10000+maxDistinct+1; r++ {
		distinct.WriteRune(r)
	}
	for name, c := range map[string]struct {
		text, want string
		size       int
	}{
		"empty":          {"", "empty", 256},
		"Latin-1":        {"na\xefve", "byte 2 of the text is not UTF-8", 256},
		"cut rune":       {"caf\xc3", "byte 3", 256},
		"surrogate":      {"�a\xed\xa0\x80", "byte 4", 256},
		"no room":        {"abc", "take 2 to 32768", 1},
		"too much room":  {"abc", "take 2 to 32768", MaxVocabulary + 1},
		"too many runes": {distinct.String(), "more than 65536 different characters", 256},
	} {
		if _, err := Train(c.text, c.size); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, wanted %q", name, err, c.want)
		}
	}
	tok := train(t, "abc", 256)
	for _, text := range []string{"", "a\xff"} {
		if _, err := tok.Encode(text); err == nil {
			t.Errorf("%q was encoded", text)
		}
		if _, _, err := Split(text); err == nil {
			t.Errorf("%q was split", text)
		}
	}
}

func TestTokenizerFile(t *testing.T) {
	tok := train(t, "a \"tally\" <stick>\\\n\t\u2028 é😀", 256)
	got := tok.Encoded()
	if want := `{"type":"character","version":1,"characters":"\t\n \"<>\\aciklstyé\u2028😀"}` + "\n"; string(got) != want {
		t.Fatalf("got %s want %s", got, want)
	}
	back, err := ReadTokenizer(bytes.NewReader(got))
	if err != nil || !slices.Equal(back.runes, tok.runes) || !bytes.Equal(back.Encoded(), got) {
		t.Fatalf("%s came back as %v (%v)", got, back, err)
	}
	rapid.Check(t, func(t *rapid.T) {
		tok, err := Train(rapid.StringN(1, 300, -1).Draw(t, "text"), rapid.IntRange(2, 300).Draw(t, "size"))
		if err != nil {
			t.Fatal(err)
		}
		back, err := ReadTokenizer(bytes.NewReader(tok.Encoded()))
		if err != nil || !slices.Equal(back.runes, tok.runes) {
			t.Fatalf("%s: %v", tok.Encoded(), err)
		}
	})
}

func TestLargestTokenizerFileCanBeRead(t *testing.T) {
	var b strings.Builder
	for r := range rune(MaxVocabulary) {
		b.WriteRune(r)
	}
	tok := train(t, b.String(), MaxVocabulary)
	if back, err := ReadTokenizer(bytes.NewReader(tok.Encoded())); err != nil || back.Size() != MaxVocabulary {
		t.Fatal(err)
	}
}

func TestReadTokenizerRefuses(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"empty":         {"", "unexpected end"},
		"no JSON":       {"{", "unexpected end"},
		"another type":  {`{"type":"BPE","version":1,"characters":"ab"}` + "\n", `type "BPE"`},
		"newer":         {`{"type":"character","version":2,"characters":"ab"}` + "\n", "version 2"},
		"no characters": {`{"type":"character","version":1,"characters":""}` + "\n", "0 characters"},
		"disorder":      {`{"type":"character","version":1,"characters":"ba"}` + "\n", `'a' after 'b'`},
		"repeated":      {`{"type":"character","version":1,"characters":"aa"}` + "\n", `'a' after 'a'`},
		"other key":     {`{"type":"character","version":1,"characters":"ab","x":1}` + "\n", "form"},
		"key twice":     {`{"type":"character","type":"character","version":1,"characters":"ab"}` + "\n", "form"},
		"case":          {`{"Type":"character","version":1,"characters":"ab"}` + "\n", "form"},
		"escaped":       {`{"type":"character","version":1,"characters":"a\u0062"}` + "\n", "form"},
		"half a pair":   {`{"type":"character","version":1,"characters":"a\ud83d"}` + "\n", "form"},
		"not UTF-8":     {`{"type":"character","version":1,"characters":"a` + "\xff" + `"}` + "\n", "form"},
		"no line end":   {`{"type":"character","version":1,"characters":"ab"}`, "form"},
		"more":          {`{"type":"character","version":1,"characters":"ab"}` + "\n{}", "after top-level"},
		"too large":     {strings.Repeat(" ", maxFile+1), "more than"},
	} {
		if tok, err := ReadTokenizer(strings.NewReader(c.in)); err == nil {
			t.Errorf("%s: read %q", name, tok.runes)
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, wanted %q", name, err, c.want)
		}
	}
	if _, err := ReadTokenizer(iotest.ErrReader(io.ErrClosedPipe)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("an error of the reader became %v", err)
	}
}

func TestReadText(t *testing.T) {
	if text, err := Read(strings.NewReader("tally"), 5); err != nil || text != "tally" {
		t.Fatalf("got %q (%v)", text, err)
	}
	for name, c := range map[string]struct{ in, want string }{
		"too long": {"tally!", "more than 5 bytes"}, "empty": {"", "empty"}, "not UTF-8": {"\xff", "byte 0"},
	} {
		if _, err := Read(strings.NewReader(c.in), 5); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSplit(t *testing.T) {
	for text, held := range map[string]string{
		"0123456789":            "9",
		"012345678é":            "é",
		"éééééééééé0123456789":  "89",
		strings.Repeat("a", 19): "a",
	} {
		train, heldOut, err := Split(text)
		if err != nil || train+heldOut != text || heldOut != held {
			t.Errorf("%q: %q and %q (%v)", text, train, heldOut, err)
		}
	}
	if _, _, err := Split("012345678"); err == nil {
		t.Error("nine characters have a tenth")
	}
}

func TestRecords(t *testing.T) {
	got, err := Records([]int32{1, 2, 3, 4, 5, 6, 7, 8}, 3)
	if err != nil {
		t.Fatal(err)
	}
	if want := tensor.Must(tensor.From(tensor.Shape{2, 4}, []int32{1, 2, 3, 4, 4, 5, 6, 7})); !got.Equal(want) {
		t.Fatalf("got %v %v", got.Shape, tensor.Of[int32](got))
	}
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfN(rapid.Int32Range(0, 9), 2, 200).Draw(t, "ids")
		context := rapid.IntRange(1, len(ids)-1).Draw(t, "context")
		got, err := Records(ids, context)
		if err != nil {
			t.Fatal(err)
		}
		n := got.Shape[0]
		if dropped := len(ids) - 1 - n*context; dropped < 0 || dropped >= context {
			t.Fatalf("%d of %d tokens are dropped", dropped, len(ids))
		}
		for i := range n {
			row := tensor.Of[int32](got)[i*(context+1) : (i+1)*(context+1)]
			if !slices.Equal(row, ids[i*context:i*context+context+1]) {
				t.Fatalf("record %d is %v", i, row)
			}
		}
	})
	for name, c := range map[string]struct{ tokens, context int }{
		"none": {0, 1}, "one": {1, 1}, "too few": {8, 8}, "no context": {8, 0}, "negative": {8, -1}, "huge": {8, MaxContext + 1},
	} {
		if got, err := Records(make([]int32, c.tokens), c.context); err == nil {
			t.Errorf("%s: got %v", name, got.Shape)
		}
	}
}

func FuzzReadTokenizer(f *testing.F) {
	f.Add([]byte(`{"type":"character","version":1,"characters":"\n ab"}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		tok, err := ReadTokenizer(bytes.NewReader(b))
		if err == nil && !bytes.Equal(tok.Encoded(), b) {
			t.Fatalf("%q is read, and written as %q", b, tok.Encoded())
		}
	})
}

func prose() string {
	return strings.Repeat("Split the stick down its length, so that each half carries one side of every notch.\n", 12000)
}

func BenchmarkTrain(b *testing.B) {
	text := prose()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Train(text, DefaultVocabulary); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	text := prose()
	tok := train(b, text, DefaultVocabulary)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tok.Encode(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRecords(b *testing.B) {
	text := prose()
	ids, err := train(b, text, DefaultVocabulary).Encode(text)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(4 * len(ids)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Records(ids, 64); err != nil {
			b.Fatal(err)
		}
	}
}
