package learn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/format/tokenizer"
	"github.com/tally-network/tally/format/tokenizer/learn"
)

func read(t testing.TB, texts ...string) *learn.Words {
	t.Helper()
	w := &learn.Words{}
	for _, text := range texts {
		if err := w.Read(t.Context(), strings.NewReader(text), nil); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func file(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func trained(t testing.TB, w *learn.Words, o learn.Options) (*learn.Trained, *tokenizer.Tokenizer) {
	t.Helper()
	tr, err := w.Train(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Parse(tr.Encoded())
	if err != nil {
		t.Fatal(err)
	}
	return tr, tok
}

// Hugging Face's library learns the same tokens, in the same order, and encodes other texts equally.
func TestTokenizersAreHuggingFaces(t *testing.T) {
	var cases []struct {
		Vocabulary, Size, Merges int
		Frequency                int64
		Special, Tokens          []string
		Last                     [][2]string
		IDs                      []int32
	}
	if err := json.Unmarshal([]byte(file(t, "pieces.json")), &cases); err != nil {
		t.Fatal(err)
	}
	w := read(t, file(t, "text.txt"))
	for _, c := range cases {
		tr, tok := trained(t, w, learn.Options{Vocabulary: c.Vocabulary, Special: c.Special, Frequency: c.Frequency})
		if len(tr.Tokens) != c.Size || len(tr.Merges) != c.Merges {
			t.Errorf("%d tokens by %d merges, want %d by %d", len(tr.Tokens), len(tr.Merges), c.Size, c.Merges)
			continue
		}
		if got := tr.Tokens[len(tr.Tokens)-len(c.Tokens):]; !slices.Equal(got, c.Tokens) {
			t.Errorf("of %d tokens the last are %q, want %q", c.Vocabulary, got, c.Tokens)
		}
		if n := len(c.Last); !slices.Equal(tr.Merges[len(tr.Merges)-n:], c.Last) {
			t.Errorf("of %d tokens the last merges are %q, want %q", c.Vocabulary, tr.Merges[len(tr.Merges)-n:], c.Last)
		}
		held := file(t, "held.txt")
		ids, err := tok.Encode(held, false)
		if err != nil || !slices.Equal(ids, c.IDs) {
			t.Errorf("of %d tokens: encoded as %v, %v; want %v", c.Vocabulary, ids, err, c.IDs)
		}
		if back, err := tok.Decode(ids, false); err != nil || back != held {
			t.Errorf("decoded as %q, %v", back, err)
		}
	}
}

// What is learnt follows from the words alone: neither their order counts, nor how they are spread over texts.
func TestOrderDoesNotCount(t *testing.T) {
	text := file(t, "text.txt")
	lines := strings.SplitAfter(text, "\n")
	o := learn.Options{Vocabulary: 700, Frequency: 2}
	want, _ := trained(t, read(t, text), o)
	for range 3 {
		slices.Reverse(lines)
		for _, w := range []*learn.Words{read(t, lines...), read(t, strings.Join(lines[:9], ""), strings.Join(lines[9:], ""))} {
			if got, _ := trained(t, w, o); string(got.Encoded()) != string(want.Encoded()) {
				t.Fatal("other tokens of the same words")
			}
		}
	}
}

// A long line is cut, and what is read of it is all of it.
func TestLongLines(t *testing.T) {
	for _, c := range []struct {
		text     string
		distinct int
	}{
		{strings.Repeat(" word", 1<<19), 1},
		{strings.Repeat("天", 1<<20), 1},  // words that are too long, and what is behind the last cut
		{strings.Repeat("天。", 1<<20), 2}, // no space to cut at
		{strings.Repeat("x", 1<<11) + " y", 1},
	} {
		w := &learn.Words{}
		err := w.Read(t.Context(), strings.NewReader(c.text), nil)
		if err != nil || w.Distinct() != c.distinct {
			t.Errorf("%.20q: %d words, %v, want %d", c.text, w.Distinct(), err, c.distinct)
		}
	}
}

func TestRefuses(t *testing.T) {
	broken := &learn.Words{}
	for text, want := range map[string]string{"good\nbad \xff\n": "line 2 is not UTF-8", "cut \xe5\xa4": "line 1 is not UTF-8"} {
		if err := broken.Read(t.Context(), strings.NewReader(text), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	failed := errors.New("the disk is gone")
	if err := broken.Read(t.Context(), io.MultiReader(strings.NewReader("a\n"), failing{failed}), nil); !errors.Is(err, failed) {
		t.Error(err)
	}
	w := read(t, "some words")
	for want, o := range map[string]learn.Options{
		"a vocabulary of 255 tokens: take 256": {Vocabulary: 255},
		"take 257":                             {Vocabulary: 256, Special: []string{"<s>"}},
		"to 1048576":                           {Vocabulary: 1<<20 + 1},
		"named twice":                          {Vocabulary: 300, Special: []string{"<s>", "<s>"}},
		"has 0 bytes":                          {Vocabulary: 300, Special: []string{""}},
		"is one character":                     {Vocabulary: 300, Special: []string{"a"}},
	} {
		if _, err := w.Train(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got: %v", want, err)
		}
	}
	if _, err := (&learn.Words{}).Train(t.Context(), learn.Options{Vocabulary: 300}); err == nil || !strings.Contains(err.Error(), "no words") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Train(ctx, learn.Options{Vocabulary: 300}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := w.Read(ctx, strings.NewReader(strings.Repeat("a\n", 2000)), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func BenchmarkTrain(b *testing.B) {
	text := file(b, "text.txt")
	for _, n := range []int{512, 2048} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := read(b, text).Train(b.Context(), learn.Options{Vocabulary: n, Frequency: 1}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
