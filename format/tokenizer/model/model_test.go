package model

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func vocabulary(t testing.TB, tokens ...string) *Vocabulary {
	t.Helper()
	v, err := NewVocabulary(tokens, false)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// spelled returns the tokens of a word, with spaces between them.
func spelled(t testing.TB, m Model, v *Vocabulary, word string) string {
	t.Helper()
	var s Scratch
	ids, err := m.Append(nil, word, &s)
	if err != nil {
		return "error: " + err.Error()
	}
	again, err := m.Append(nil, word, &s)
	if err != nil || !slices.Equal(ids, again) {
		t.Fatalf("%q gives %v, then %v (%v)", word, ids, again, err)
	}
	var out []string
	for _, id := range ids {
		token, ok := v.Token(id)
		if !ok {
			t.Fatalf("%q gives %d, which is no token", word, id)
		}
		out = append(out, token)
	}
	return strings.Join(out, " ")
}

func TestBPE(t *testing.T) {
	v := vocabulary(t, "<unk>", "a", "b", "c", "ab", "abc", "##b", "a##b", "c</w>", "<0xC3>", "<0xA9>", "é", "bc")
	for _, x := range []struct {
		o          BPEOptions
		merges     string // pairs
		word, want string
	}{
		{BPEOptions{}, "a b ab c", "abcab", "abc ab"},
		{BPEOptions{}, "b c a b", "abc", "a bc"},
		{BPEOptions{}, "a b", "xab", "ab"},
		{BPEOptions{Unknown: "<unk>"}, "a b", "xyab", "<unk> <unk> ab"},
		{BPEOptions{Unknown: "<unk>", FuseUnknown: true}, "a b", "xyabx", "<unk> ab <unk>"},
		{BPEOptions{Strict: true}, "", "x", "error: " + errUnknown.Error()},
		{BPEOptions{Unknown: "none"}, "", "x", `error: the unknown token "none" is not in the vocabulary of the model`},
		{BPEOptions{Unknown: "<unk>", ByteFallback: true}, "", "xé", "<unk> é"},
		{BPEOptions{Unknown: "<unk>", ByteFallback: true}, "", "xéy", "<unk> é <unk>"},
		{BPEOptions{IgnoreMerges: true}, "", "abc", "abc"},
		{BPEOptions{Prefix: "##"}, "a ##b", "ab", "a##b"},
		{BPEOptions{Suffix: "</w>"}, "", "ac", "a c</w>"},
	} {
		var merges [][2]string
		for p := strings.Fields(x.merges); len(p) > 0; p = p[2:] {
			merges = append(merges, [2]string{p[0], p[1]})
		}
		v := v
		if x.o.Prefix != "" {
			v = vocabulary(t, "a", "##b", "ab")
			x.want = "ab"
		}
		m, err := NewBPE(v, merges, x.o)
		if err != nil {
			t.Errorf("%+v: %v", x, err)
			continue
		}
		if got := spelled(t, m, v, x.word); got != x.want {
			t.Errorf("%+v: %s", x, got)
		}
	}
	// An unknown character waits until the bytes behind it are out, as in the reference.
	v = vocabulary(t, "<unk>", "a", "<0xC3>", "<0xA9>")
	m, err := NewBPE(v, nil, BPEOptions{Unknown: "<unk>", ByteFallback: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := spelled(t, m, v, "xéa"); got != "<0xC3> <0xA9> <unk> a" {
		t.Error(got)
	}
}

// Both ways to merge give the same tokens.
func TestMergesAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	tokens := []string{"a", "b", "c"}
	var merges [][2]string
	for len(tokens) < 60 {
		a, b := tokens[r.IntN(len(tokens))], tokens[r.IntN(len(tokens))]
		if !slices.Contains(tokens, a+b) && len(a+b) < 9 {
			tokens = append(tokens, a+b)
		}
		merges = append(merges, [2]string{a, b})
		if !slices.Contains(tokens, a+b) {
			merges = merges[:len(merges)-1]
		}
	}
	m, err := NewBPE(vocabulary(t, tokens...), merges, BPEOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 5000 {
		word := make([]byte, 1+r.IntN(40))
		for i := range word {
			word[i] = "abc"[r.IntN(3)]
		}
		var s Scratch
		if err := m.symbols(string(word), &s); err != nil {
			t.Fatal(err)
		}
		long := m.mergeLong(nil, &s)
		s = Scratch{}
		if err := m.symbols(string(word), &s); err != nil {
			t.Fatal(err)
		}
		if short := m.mergeShort(nil, &s); !slices.Equal(short, long) {
			t.Fatalf("%s: %v and %v", word, short, long)
		}
	}
}

func TestWordPiece(t *testing.T) {
	v := vocabulary(t, "[UNK]", "un", "##aff", "##able", "##a", "aff", "é", "##é")
	m, err := NewWordPiece(v, "[UNK]", "##", 12)
	if err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]string{
		"unaffable": "un ##aff ##able", "aff": "aff", "unx": "[UNK]", "éé": "é ##é", "unaffableunaffable": "[UNK]", "ééééééééééééé": "[UNK]", "": "", "##a": "##a",
	} {
		if got := spelled(t, m, v, word); got != want {
			t.Errorf("%s: %s, want %s", word, got, want)
		}
	}
	if m, err = NewWordPiece(v, "none", "##", 12); err != nil {
		t.Fatal(err)
	}
	if got := spelled(t, m, v, "x"); !strings.HasPrefix(got, "error") {
		t.Error(got)
	}
	if _, err = NewWordPiece(v, "", "", -1); err == nil {
		t.Error("words of less than no characters")
	}
}

func TestUnigram(t *testing.T) {
	v := vocabulary(t, "<unk>", "a", "b", "ab", "abc", "c", "xy", "<0xC3>", "<0xA9>")
	scores := []float64{0, -3, -3, -2, -9, -3, -50, -9, -9}
	m, err := NewUnigram(v, scores, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]string{"abc": "ab c", "abab": "ab ab", "xab": "<unk> ab", "xyz": "xy <unk>", "axya": "a xy a", "é": "<0xC3> <0xA9>", "zé": "<unk>", "": ""} {
		if got := spelled(t, m, v, word); got != want {
			t.Errorf("%s: %s, want %s", word, got, want)
		}
	}
	if m, err = NewUnigram(v, scores, -1, true); err != nil {
		t.Fatal(err)
	}
	if got := spelled(t, m, v, "z"); !strings.HasPrefix(got, "error") {
		t.Error(got)
	}
	if _, err = NewUnigram(v, scores[1:], 0, false); err == nil {
		t.Error("a token without a score")
	}
	if _, err = NewUnigram(v, scores, 99, false); err == nil {
		t.Error("an unknown token that is none")
	}
}

func TestScored(t *testing.T) {
	v := vocabulary(t, "a", "b", "c", "ab", "bc", "abc", "<0xC3>", "<0xA9>")
	m, err := NewScored(v, []float32{0, 0, 0, -2, -1, -5, 0, 0})
	if err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]string{"abc": "abc", "abab": "ab ab", "bcb": "bc b", "é": "<0xC3> <0xA9>", "": "", "x": `error: no token covers "x", nor byte 0x78 of it`} {
		if got := spelled(t, m, v, word); got != want {
			t.Errorf("%s: %s, want %s", word, got, want)
		}
	}
	for _, pair := range [][2]float32{{2, 1}, {1, 0}, {0, -1}, {-1, -2}, {1e30, 3}} {
		m, err := NewScored(vocabulary(t, "x", "y"), pair[:])
		if err != nil || m.order[0] >= m.order[1] {
			t.Errorf("%v: %v %v", pair, m.order, err)
		}
	}
}

func TestVocabulary(t *testing.T) {
	if _, err := NewVocabulary([]string{"a", "", "a"}, false); err == nil || !strings.Contains(err.Error(), "has ids 0 and 2") {
		t.Errorf("%v", err)
	}
	v, err := NewVocabulary([]string{"a", "", "a"}, true)
	if err != nil {
		t.Fatal(err)
	}
	if id, ok := v.ID("a"); !ok || id != 2 || v.Len() != 1 || v.Size() != 3 {
		t.Errorf("%d %d %d", id, v.Len(), v.Size())
	}
	for _, id := range []int32{-1, 1, 3} {
		if _, ok := v.Token(id); ok {
			t.Errorf("%d is a token", id)
		}
	}
	if _, err := NewVocabulary([]string{strings.Repeat("a", MaxToken+1)}, false); err == nil {
		t.Error("a token without end")
	}
	for _, pair := range [][2]string{{"a", "x"}, {"x", "a"}, {"a", "a"}} {
		if _, err := NewBPE(v, [][2]string{pair}, BPEOptions{}); err == nil {
			t.Errorf("%v are merged", pair)
		}
	}
	if _, err := NewBPE(v, [][2]string{{"a", "a"}}, BPEOptions{Prefix: "#"}); err == nil {
		t.Error("what lacks the prefix is merged")
	}
	if _, err := NewBPE(v, nil, BPEOptions{Prefix: "#", Bytes: true}); err == nil {
		t.Error("bytes with a prefix")
	}
}

// What a scratch keeps is bounded.
func TestScratchIsBounded(t *testing.T) {
	m, err := NewBPE(vocabulary(t, "0", "1", "2", "3", "4", "5", "6", "7", "8", "9"), nil, BPEOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var s Scratch
	for i := range 3 * cacheWords {
		if _, err := m.Append(nil, fmt.Sprint(i), &s); err != nil {
			t.Fatal(err)
		}
		if len(s.words) > cacheWords || len(s.known) > cacheIDs {
			t.Fatalf("%d words, %d tokens", len(s.words), len(s.known))
		}
	}
	if _, err := m.Append(nil, strings.Repeat("7", 3*keepSymbols), &s); err != nil || cap(s.symbols) > keepSymbols {
		t.Errorf("%d symbols stay (%v)", cap(s.symbols), err)
	}
}
