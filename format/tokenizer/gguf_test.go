package tokenizer

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/format/gguf"
)

// ggufOf returns what a GGUF file would say of a family's tokenizer of byte-pair encoding.
func ggufOf(t *testing.T, name, pre string) GGUF {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Added []struct {
			ID      int
			Content string
			Special bool
		} `json:"added_tokens"`
		Model struct {
			Vocab  map[string]int
			Merges [][2]string
		}
	}
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	g := GGUF{Model: "gpt2", Pre: pre, BOS: None, EOS: None, Unknown: None, CLS: None, SEP: None}
	put := func(id int, token string, kind int32) {
		for len(g.Tokens) <= id {
			g.Tokens, g.Types = append(g.Tokens, ""), append(g.Types, normalToken)
		}
		g.Tokens[id], g.Types[id] = token, kind
	}
	for token, id := range file.Model.Vocab {
		put(id, token, normalToken)
	}
	for _, a := range file.Added {
		kind := int32(userToken)
		if a.Special {
			kind = controlToken
		}
		put(a.ID, a.Content, kind)
	}
	for _, m := range file.Model.Merges {
		g.Merges = append(g.Merges, m[0]+" "+m[1])
	}
	return g
}

// What a GGUF file says of a tokenizer gives the ids of its tokenizer.json.
func TestGGUFOfBytePairs(t *testing.T) {
	all := readAnswers(t)
	for name, pre := range map[string]string{"gpt2": "gpt-2", "llama3": "llama-bpe", "qwen2": "qwen2", "smollm": "smollm", "o200k": "gpt-4o"} {
		g := ggufOf(t, name, pre)
		if name == "llama3" {
			g.BOS = 0
		}
		s, err := g.Spec()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		tok, err := New(s)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, f := range all.Families {
			for i := 0; f.Name == name && i < len(f.Answers); i++ {
				if d := differs(tok, all.Texts[i], f.Answers[i]); d != "" {
					t.Errorf("%s: %s", name, d)
				}
			}
		}
	}
}

// A tokenizer.json is written with the name of its cuts, or refused.
func TestToGGUF(t *testing.T) {
	for name, want := range map[string]string{
		"gpt2": "gpt-2", "llama3": "llama-bpe", "qwen2": "qwen2", "smollm": "smollm", "o200k": "gpt-4o",
		"gemma": "without bytes as its letters", "bert-cased": "a tokenizer of WordPiece", "roberta": "1 tokens before texts and 1 behind them",
		"deepseek": "no name for how",
	} {
		b, err := os.ReadFile("testdata/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		g, err := ToGGUF(b)
		if err != nil && strings.Contains(err.Error(), want) {
			continue
		}
		if err != nil || g.Pre != want {
			t.Errorf("%s: %q (%v), want %q", name, g.Pre, err, want)
		}
		if name == "llama3" && (g.BOS != 0 || !*g.AddBOS) {
			t.Errorf("%s: %d begins texts: %v", name, g.BOS, *g.AddBOS)
		}
		var file bytes.Buffer
		if err := gguf.Write(&file, g.Pairs(), nil); err != nil {
			t.Fatal(err)
		}
		f, err := gguf.Read(bytes.NewReader(file.Bytes()), int64(file.Len()))
		if err != nil {
			t.Fatal(err)
		}
		if again, err := FromGGUF(f); err != nil || !reflect.DeepEqual(again, g) {
			t.Errorf("%s: what was written is read back as another (%v)", name, err)
		}
	}
}

// Every name that is supported has expressions that can be compiled, and covers all of a text.
func TestPreSplits(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(preSplits)) {
		g := ggufOf(t, "gpt2", name)
		if preSplits[name].addBOS {
			g.BOS = 0
		}
		s, err := g.Spec()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		tok, err := New(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range readAnswers(t).Texts {
			ids, err := tok.Encode(text, false)
			if err != nil {
				t.Fatal(err)
			}
			want := text
			if s.Normalizer != nil {
				want, _ = s.Normalizer.Normalize(text)
			}
			if got, err := tok.Decode(ids, false); err != nil || got != want {
				t.Errorf("%s: %+q came back as %+q (%v)", name, text, got, err)
			}
		}
	}
}

func TestGGUFOfScores(t *testing.T) {
	yes := true
	g := GGUF{Model: "llama", BOS: 1, EOS: 2, Unknown: 0, CLS: None, SEP: None}
	add := func(token string, score float32, kind int32) {
		g.Tokens, g.Scores, g.Types = append(g.Tokens, token), append(g.Scores, score), append(g.Types, kind)
	}
	add("<unk>", 0, unknownToken)
	add("<s>", 0, controlToken)
	add("</s>", 0, controlToken)
	for _, b := range []string{"<0xC3>", "<0xA9>", "<0x0A>"} {
		add(b, 0, byteToken)
	}
	for i, token := range []string{"▁t", "he", "▁the", "▁", "t", "h", "e", "n"} {
		add(token, float32(-i), normalToken)
	}
	for _, x := range []struct {
		text, want, back string
	}{
		{"the", "<s> ▁the", "the"}, {"then the", "<s> ▁the n ▁the", "then the"}, {"é\n", "<s> ▁ <0xC3> <0xA9> <0x0A>", "é\n"}, {" the", "<s> ▁ ▁the", " the"}, {"", "<s>", ""},
		{"n</s>n", "<s> ▁ n </s> ▁ n", "n n"},
	} {
		s, err := g.Spec()
		if err != nil {
			t.Fatal(err)
		}
		tok, err := New(s)
		if err != nil {
			t.Fatal(err)
		}
		ids, err := tok.Encode(x.text, true)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, id := range ids {
			name, _ := tok.Token(id)
			names = append(names, name)
		}
		if got := strings.Join(names, " "); got != x.want {
			t.Errorf("%q: %s, want %s", x.text, got, x.want)
		}
		if back, err := tok.Decode(ids, true); err != nil || back != x.back {
			t.Errorf("%q came back as %q (%v)", x.text, back, err)
		}
	}
	no := false
	g.AddSpace, g.AddBOS, g.AddEOS = &no, &no, &yes
	s, err := g.Spec()
	if err != nil {
		t.Fatal(err)
	}
	tok, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	if ids, err := tok.Encode("the", true); err != nil || !slices.Equal(ids, []int32{10, 7, 2}) {
		t.Errorf("%v (%v)", ids, err)
	}
}

// Phi-3's special tokens take the white space behind them, but for three.
func TestGGUFOfPhi3(t *testing.T) {
	g := GGUF{
		Architecture: "phi3", Model: "llama", Pre: "default", BOS: 1, EOS: None, Unknown: 0, CLS: None, SEP: None,
		Tokens: []string{"<unk>", "<s>", "<0x0A>", "▁", "a", "▁a", "<|user|>", "<|endoftext|>"}, Scores: []float32{0, 0, 0, -2, -3, -1, -1000, -1000},
		Types: []int32{unknownToken, controlToken, byteToken, normalToken, normalToken, normalToken, controlToken, controlToken},
	}
	s, err := g.Spec()
	if err != nil {
		t.Fatal(err)
	}
	tok, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]int32{
		"<|user|>\n a<|user|> \n\n": {1, 6, 5, 6}, "<|endoftext|>\na": {1, 7, 3, 2, 4}, "<s>\na": {1, 1, 3, 2, 4},
	} {
		if ids, err := tok.Encode(text, true); err != nil || !slices.Equal(ids, want) {
			t.Errorf("%q: %v (%v), want %v", text, ids, err, want)
		}
	}
}

func TestGGUFOfWordPiece(t *testing.T) {
	g := GGUF{
		Model: "bert", BOS: None, EOS: None, Unknown: 1, CLS: 2, SEP: 3,
		Tokens: []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "▁un", "aff", "able", "▁,", "▁a"},
		Types:  []int32{controlToken, unknownToken, controlToken, controlToken, normalToken, normalToken, normalToken, normalToken, normalToken},
	}
	s, err := g.Spec()
	if err != nil {
		t.Fatal(err)
	}
	tok, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := tok.Encode("Unaffable, á x[SEP]", true)
	if want := []int32{2, 4, 5, 6, 7, 8, 1, 3, 3}; err != nil || !slices.Equal(ids, want) {
		t.Errorf("%v (%v), want %v", ids, err, want)
	}
	if text, err := tok.Decode(ids, true); err != nil || text != "unaffable, a" {
		t.Errorf("%q (%v)", text, err)
	}
	g.Tokens[8] = "▁A"
	if _, err := g.Spec(); err == nil || !strings.Contains(err.Error(), "capital letters") {
		t.Errorf("%v", err)
	}
}

func TestGGUFRefused(t *testing.T) {
	yes := true
	good := func() GGUF { return ggufOf(t, "gpt2", "gpt-2") }
	for why, change := range map[string]func(*GGUF){
		"is not supported, want gpt2": func(g *GGUF) { g.Model = "t5" },
		"pre \"viking\" is not":       func(g *GGUF) { g.Pre = "viking" },
		"types and":                   func(g *GGUF) { g.Types = g.Types[1:] },
		"has type 9":                  func(g *GGUF) { g.Types[3] = 9 },
		"two tokens with a space":     func(g *GGUF) { g.Merges[0] = "ab" },
		"are no tokens":               func(g *GGUF) { g.Merges[0] = "a nothing" },
		"does not name it":            func(g *GGUF) { g.AddBOS = &yes },
		"add_space_prefix":            func(g *GGUF) { g.AddSpace = &yes },
		"add_sep_token":               func(g *GGUF) { g.AddSEP = &yes },
		"has ids":                     func(g *GGUF) { g.Tokens[5] = g.Tokens[6] },
		"scores":                      func(g *GGUF) { g.Model, g.Pre = "llama", "" },
		"for the model llama":         func(g *GGUF) { g.Model = "llama" },
		"unknown token, CLS":          func(g *GGUF) { g.Model, g.Tokens, g.Types = "bert", []string{"a"}, nil },
	} {
		g := good()
		change(&g)
		if _, err := g.Spec(); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%v, want %q", err, why)
		}
	}
}
