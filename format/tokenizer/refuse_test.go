package tokenizer

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

// small is a tokenizer.json with parts put in their places.
func small(parts ...string) []byte {
	const vocab = `{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}`
	fields := map[string]string{"version": `"1.0"`, "model": vocab}
	for i := 0; i < len(parts); i += 2 {
		fields[parts[i]] = parts[i+1]
	}
	var out []string
	for key, v := range fields {
		out = append(out, fmt.Sprintf("%q:%s", key, v))
	}
	return []byte("{" + strings.Join(out, ",") + "}")
}

func TestParseRefuses(t *testing.T) {
	const token = `{"id":3,"content":"<x>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}`
	for _, x := range []struct{ part, value, why string }{
		{"model", `null`, `"model" is wanted`},
		{"model", `{"type":"WordLevel","vocab":{},"unk_token":"x"}`, `type "WordLevel" is not supported`},
		{"model", `{"type":"BPE","vocab":{"a":0,"a":1},"merges":[]}`, `has ids 0 and 1`},
		{"model", `{"type":"BPE","vocab":{"a":0,"b":0},"merges":[]}`, `is also that of`},
		{"model", `{"type":"BPE","vocab":{"a":4000000000},"merges":[]}`, `whole number from 0`},
		{"model", `{"type":"BPE","vocab":{"a":-1},"merges":[]}`, `whole number from 0`},
		{"model", `{"type":"BPE","vocab":{"a":1.0},"merges":[]}`, `whole number from 0`},
		{"model", `{"type":"BPE","vocab":{"":0},"merges":[]}`, `a token is empty`},
		{"model", `{"type":"BPE","vocab":{"a":0},"merges":["a a"]}`, `are no tokens`},
		{"model", `{"type":"BPE","vocab":{"a":0},"merges":["aa"]}`, `two tokens with a space`},
		{"model", `{"type":"BPE","vocab":{"a":0},"merges":[["a"]]}`, `is no pair`},
		{"model", `{"type":"BPE","vocab":{"a":0},"merges":[["a","a","a"]]}`, `more than two`},
		{"model", `{"type":"BPE","vocab":{"a":0}}`, `"merges" is wanted`},
		{"model", `{"type":"BPE","dropout":0.1,"vocab":{"a":0},"merges":[]}`, `chance`},
		{"model", `{"type":"BPE","novel":1,"vocab":{"a":0},"merges":[]}`, `key is not supported`},
		{"model", `{"type":"Unigram","unk_id":9,"vocab":[["a",0]]}`, `unknown token 9`},
		{"model", `{"type":"Unigram","vocab":[["a"]]}`, `a token and its score`},
		{"model", `{"type":"Unigram","vocab":[["a",NaN]]}`, `no value`},
		{"model", `{"type":"Unigram","vocab":[["a",0,0]]}`, `more than a token`},
		{"model", `{"type":"WordPiece","vocab":{}}`, `"unk_token" is wanted`},
		{"version", `"2.0"`, `want 1.0`}, {"version", `1`, `'"' is wanted`}, {"novel", `1`, `key is not supported`}, {"truncation", `nil`, `no value`},
		{"normalizer", `{"type":"Precompiled","precompiled_charsmap":"x"}`, `illegal base64`},
		{"normalizer", `{"type":"Precompiled","precompiled_charsmap":"AAAA"}`, `character map of 3 bytes`},
		{"normalizer", `{"type":"Precompiled","precompiled_charsmap":"/////wAAAAA="}`, `with a trie of 4294967295`},
		{"normalizer", `{"type":"ByteLevel"}`, `"ByteLevel" is not supported`},
		{"normalizer", `{"type":"NFC","novel":1}`, `key is not supported`},
		{"normalizer", `{"type":"Replace","pattern":{"Regex":"a*"},"content":"b"}`, `matches nothing`},
		{"normalizer", `{"type":"Replace","pattern":{"String":""},"content":"b"}`, `it is empty`},
		{"normalizer", `{"type":"Replace","pattern":{"String":"a","Regex":"b"},"content":"b"}`, `either String or Regex`},
		{"normalizer", strings.Repeat(`{"type":"Sequence","normalizers":[`, 10) + strings.Repeat(`]}`, 10), `inside each other`},
		{"pre_tokenizer", `{"type":"Sequence","pretokenizers":[` + strings.Repeat(`{"type":"Sequence","pretokenizers":[{"type":"Whitespace"},{"type":"Whitespace"}]},`, 20) + `{"type":"Whitespace"}]}`, `more than 32 parts`},
		{"pre_tokenizer", `{"type":"UnicodeScripts"}`, `"UnicodeScripts" is not supported`},
		{"pre_tokenizer", `{"type":"Split","pattern":{"Regex":"(?<=a)"},"behavior":"Isolated","invert":false}`, `this kind of group`},
		{"pre_tokenizer", `{"type":"Split","pattern":{"String":"a"},"behavior":"Dropped","invert":false}`, `want one of`},
		{"pre_tokenizer", `{"type":"Metaspace","replacement":"▁▁"}`, `one character`},
		{"pre_tokenizer", `{"type":"Metaspace","replacement":"▁","prepend_scheme":"first","add_prefix_space":false}`, `contradicts`},
		{"pre_tokenizer", `{"type":"Sequence","pretokenizers":[{"type":"Whitespace"},{"type":"Metaspace","replacement":"▁","prepend_scheme":"first"}]}`, `prepend_scheme first`},
		{"post_processor", `{"type":"TemplateProcessing","single":[],"pair":[],"special_tokens":{}}`, `the text 0 times`},
		{"post_processor", `{"type":"TemplateProcessing","single":[{"Sequence":{"id":"B","type_id":0}}],"pair":[],"special_tokens":{}}`, `or no text`},
		{"post_processor", `{"type":"BertProcessing","sep":["x",7],"cls":["y",0]}`, `special token 7`},
		{"post_processor", `{"type":"BertProcessing","sep":["x"],"cls":["y",0]}`, `a token and its id`},
		{"decoder", `{"type":"CTC"}`, `"CTC" is not supported`}, {"decoder", `{"type":"Strip","content":"","start":0,"stop":0}`, `one character`},
		{"decoder", `{"type":"BPEDecoder","suffix":""}`, `it is empty`},
		{"added_tokens", `[` + strings.Replace(token, "3", "4", 1) + `]`, `would give it 3`},
		{"added_tokens", `[` + token + `,` + token + `]`, `would give it 4`},
		{"added_tokens", `[{"id":3}]`, `"content" is wanted`},
		{"added_tokens", `[` + strings.Replace(strings.Replace(token, "<x>", "a", 1), "3", "1", 1) + `]`, `in the vocabulary`},
	} {
		text := small(x.part, x.value)
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), x.why) {
			t.Errorf("%s: %v, want %q", text, err, x.why)
		}
	}
	for text, why := range map[string]string{
		"": "is wanted", "[]": "'{' is wanted", "{": "ends where", "{}x": "behind the value", `{"model":{},"model":{}}`: "given twice", "\xff": "not UTF-8",
		`{"model":` + strings.Repeat("[", 99): "inside each other", `{"model":}`: "no value", `{"model":{},"version":"\ud800"}`: "surrogate", "{\"version\":\"\n\"}": "control character",
		`{"model":{},"version":"\x"}`: "no escape", `{"version":"`: "ends inside a text",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%.40q: %v, want %q", text, err, why)
		}
	}
	if _, err := Parse(make([]byte, MaxFile+1)); err == nil {
		t.Error("a file without end")
	}
}

func TestParse(t *testing.T) {
	tok, err := Parse(small())
	if err != nil {
		t.Fatal(err)
	}
	if id, ok := tok.ID("ab"); !ok || id != 2 || tok.Size() != 3 {
		t.Errorf("%d, size %d", id, tok.Size())
	}
	if name, ok := tok.Token(1); !ok || name != "b" {
		t.Errorf("%q", name)
	}
	if _, ok := tok.ID("x"); ok {
		t.Error("x is a token")
	}
	if _, err := tok.Encode("a\xff", false); err == nil || !strings.Contains(err.Error(), "byte 1 is not UTF-8") {
		t.Errorf("%v", err)
	}
	for _, id := range []int32{-1, 3} {
		if _, err := tok.Decode([]int32{0, id}, false); err == nil || !strings.Contains(err.Error(), "place 1") {
			t.Errorf("%v", err)
		}
	}
	if _, err := New(Spec{}); err == nil {
		t.Error("a tokenizer of nothing")
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"gpt2", "bert-cased", "odd"} {
		b, err := os.ReadFile("testdata/" + name + ".json")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add(small("pre_tokenizer", `{"type":"Split","pattern":{"Regex":"a|b"},"behavior":"Contiguous","invert":true}`, "decoder", `{"type":"Metaspace","replacement":"▁"}`))
	f.Add(small("model", `{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["a",-1.5]],"byte_fallback":true}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		tok, err := Parse(b)
		if err != nil {
			return
		}
		const text = "a b  It's é🙂\r\n123"
		ids, err := tok.Encode(text, true)
		if err != nil {
			return
		}
		back, err := tok.Decode(ids, false)
		if err == nil && !utf8.ValidString(back) {
			t.Fatalf("%q", back)
		}
	})
}

// Tokenizers of bytes give every text back.
func FuzzEncode(f *testing.F) {
	var toks []*Tokenizer
	for _, name := range []string{"gpt2", "llama3", "smollm", "deepseek", "o200k"} {
		toks = append(toks, family(f, name))
	}
	f.Add("It's 123\r\n  é 🙂 <|endoftext|> \u0301")
	f.Fuzz(func(t *testing.T, text string) {
		for _, tok := range toks {
			ids, err := tok.Encode(text, false)
			if !utf8.ValidString(text) {
				if err == nil {
					t.Fatalf("%q was encoded", text)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			s := tok.Stream(false)
			var back bytes.Buffer
			for _, id := range ids {
				part, err := s.Push(id)
				if err != nil || !utf8.ValidString(part) {
					t.Fatalf("%q (%v)", part, err)
				}
				back.WriteString(part)
			}
			rest, err := s.Flush()
			if back.WriteString(rest); err != nil || back.String() != text {
				t.Fatalf("%q came back as %q (%v)", text, back.String(), err)
			}
		}
	})
}

// bench is text of several kinds, over and over.
func bench(b *testing.B) string {
	var one strings.Builder
	all := readAnswers(b)
	for _, i := range []int{6, 15, 16, 6, 17, 19, 6, 22, 25, 41, 6, 15} {
		one.WriteString(all.Texts[i] + "\n")
	}
	src, err := os.ReadFile("read.go")
	if err != nil {
		b.Fatal(err)
	}
	doc, err := os.ReadFile("../../ARCHITECTURE.md")
	if err != nil {
		b.Fatal(err)
	}
	return strings.Repeat(one.String()+string(doc)+string(src), 20)
}

func BenchmarkEncode(b *testing.B) {
	text := bench(b)
	if name := os.Getenv("TALLY_BENCH_TEXT"); name != "" { // for testdata/make.py time
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for _, name := range []string{"gpt2", "llama3", "qwen2", "o200k", "smollm", "roberta", "llama2", "mistral", "bert-uncased", "t5", "xlnet"} {
		tok := family(b, name)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tok.Encode(text, false); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
