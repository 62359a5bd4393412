package grammar_test

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/tally-network/tally/format/gguf"
	"github.com/tally-network/tally/format/tokenizer"
	"github.com/tally-network/tally/model/grammar"
	"github.com/tally-network/tally/model/grammar/jsonschema"
)

// tokens are those of the model that TALLY_GGUF names, or as many as it would have.
func tokens(b *testing.B) (n int, of func(id int32) []byte) {
	b.Helper()
	path := os.Getenv("TALLY_GGUF")
	if path == "" {
		r := rand.New(rand.NewPCG(1, 2))
		texts := make([][]byte, 49152)
		for id := range texts {
			texts[id] = append(texts[id], " "[:r.IntN(2)]...)
			for range 1 + r.IntN(9) {
				texts[id] = append(texts[id], "etaoinshrdlucmfw"[r.IntN(16)])
			}
			if id < 256 {
				texts[id] = []byte{byte(id)}
			}
		}
		return len(texts), func(id int32) []byte { return texts[id] }
	}
	file, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		b.Fatal(err)
	}
	f, err := gguf.Read(file, info.Size())
	if err != nil {
		b.Fatal(err)
	}
	g, err := tokenizer.FromGGUF(f)
	if err != nil {
		b.Fatal(err)
	}
	spec, err := g.Spec()
	if err != nil {
		b.Fatal(err)
	}
	t, err := tokenizer.New(spec)
	if err != nil {
		b.Fatal(err)
	}
	return t.Size(), func(id int32) []byte {
		text, _ := t.Bytes(id)
		return text
	}
}

// What a form costs: once for a model, once for a form, once for a state, and for each token.
func BenchmarkIndex(b *testing.B) {
	n, of := tokens(b)
	v := grammar.NewVocabulary(n, of)
	form, err := jsonschema.Compile([]byte(`{"type":"object"}`))
	if err != nil {
		b.Fatal(err)
	}
	x, err := grammar.NewIndex(form, v)
	if err != nil {
		b.Fatal(err)
	}
	inText := 0 // the state within a string, in which most tokens may come
	for _, c := range `{"a` {
		for id := range int32(n) {
			if string(v.Text(id)) == string(c) {
				inText, _ = x.Next(inText, id)
				break
			}
		}
	}
	for _, c := range []struct {
		name string
		run  func()
	}{
		{"vocabulary", func() { grammar.NewVocabulary(n, of) }},
		{"form", func() { _, _ = grammar.NewIndex(form, v) }},
		{"state/string", func() { x.MakeMask(inText) }},
		{"state/start", func() { x.MakeMask(0) }},
		{"token", func() { x.Mask(inText); x.Next(inText, 70) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.run()
			}
		})
	}
}
