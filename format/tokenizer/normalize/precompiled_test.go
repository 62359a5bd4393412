package normalize

import (
	"encoding/binary"
	"testing"
	"unicode/utf8"
)

func TestCharsmapRefused(t *testing.T) {
	of := func(n uint32, rest ...byte) []byte { return append(binary.LittleEndian.AppendUint32(nil, n), rest...) }
	for what, b := range map[string][]byte{
		"nothing": nil, "half a size": {1, 2, 3}, "no trie": of(0, 0, 0, 0, 0), "a trie beyond the end": of(8, 0, 0, 0, 0), "a trie in parts": of(3, 0, 0, 0, 0),
		"no UTF-8": of(4, 0, 0, 0, 0, 0xff), "too much": make([]byte, maxCharsmap+1),
	} {
		if _, err := NewPrecompiled(b); err == nil {
			t.Errorf("%s was read", what)
		}
	}
}

// Marks that package uniseg does not know join what known ones join.
func TestClusters(t *testing.T) {
	for text, want := range map[string]int{
		"a": 1, "a\u0897": 4, "a\u0897\u0301b": 6, "a\u0301\u1ae0b": 6, "\n\u0897": 1, "\u0897": 3, "\r\nx": 2, "a\u0897\u200d\u1ae1b": 10, "ab\u0897": 1,
	} {
		if got := cluster(text); got != want {
			t.Errorf("%+q begins with a cluster of %d bytes, want %d", text, got, want)
		}
	}
}

// No map makes other text than UTF-8, or reads beyond its end.
func FuzzPrecompiled(f *testing.F) {
	// a → "x": the unit of a is at offset 1 xor 'a', its value behind it.
	units := make([]uint32, 256)
	units[0] = 1 << 10
	units[1^'a'] = 'a' | 1<<8 | 2<<10
	units[1^'a'^2] = 1 << 31
	b := binary.LittleEndian.AppendUint32(nil, uint32(4*len(units)))
	for _, u := range units {
		b = binary.LittleEndian.AppendUint32(b, u)
	}
	b = append(b, "x\x00"...)
	if p, err := NewPrecompiled(b); err != nil {
		f.Fatal(err)
	} else if got, err := p.Normalize("abañ"); err != nil || got != "xbxñ" {
		f.Fatalf("%q (%v)", got, err)
	}
	f.Add(b, "abc ñ\r\n")
	f.Fuzz(func(t *testing.T, b []byte, text string) {
		p, err := NewPrecompiled(b)
		if err != nil || !utf8.ValidString(text) {
			return
		}
		if got, err := p.Normalize(text); err != nil || !utf8.ValidString(got) {
			t.Fatalf("%q (%v)", got, err)
		}
	})
}
