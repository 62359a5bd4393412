package tokenizer

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/tally-network/tally/format/gguf"
)

// What a GGUF file says of its tokenizer is taken over, each under its own name.
func TestFromGGUF(t *testing.T) {
	yes := true
	want := GGUF{
		Architecture: "phi3", Model: "gpt2", Pre: "smollm", Tokens: []string{"a", "b"}, Scores: []float32{-1, 2}, Types: []int32{1, 3}, Merges: []string{"a b"},
		BOS: 0, EOS: 1, Unknown: None, CLS: None, SEP: None, EOT: 1, EOM: None, AddBOS: &yes,
	}
	var b bytes.Buffer
	pair := func(key string, v gguf.Value) gguf.Pair { return gguf.Pair{Key: ggml + key, Data: v} }
	err := gguf.Write(&b, []gguf.Pair{
		{Key: architecture, Data: gguf.Of("phi3")},
		pair("model", gguf.Of(want.Model)), pair("pre", gguf.Of(want.Pre)), pair("tokens", gguf.ArrayOf(want.Tokens...)), pair("scores", gguf.ArrayOf(want.Scores...)),
		pair("token_type", gguf.ArrayOf(want.Types...)), pair("merges", gguf.ArrayOf(want.Merges...)), pair("bos_token_id", gguf.Of(uint32(0))), pair("eos_token_id", gguf.Of(uint32(1))),
		pair("unknown_token_id", gguf.Of(^uint32(0))), pair("eot_token_id", gguf.Of(uint32(1))), pair("add_bos_token", gguf.Of(true)),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Read(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	got, err := FromGGUF(f)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if ends := got.Ends(); !slices.Equal(ends, []int32{1, 1}) {
		t.Errorf("replies end with %v", ends)
	}
	special, err := SpecialOfGGUF(f)
	if want := map[string]string{"bos_token": "a", "eos_token": "b"}; err != nil || !maps.Equal(special, want) {
		t.Errorf("%v, %v, want %v", special, err, want)
	}
}
