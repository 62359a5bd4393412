package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/tally-network/tally/format/gguf"
)

// written returns a GGUF file of some metadata and no weights.
func written(t *testing.T, pairs ...gguf.Pair) *gguf.File {
	t.Helper()
	var b bytes.Buffer
	if err := gguf.Write(&b, pairs, nil); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Read(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFromGGUF(t *testing.T) {
	pairs := []gguf.Pair{
		{Key: "tokenizer.chat_template", Data: gguf.Of("{{ bos_token }}{{ unk_token is defined }}")},
		{Key: "tokenizer.chat_template.tool_use", Data: gguf.Of("tools{{ eos_token }}")},
		{Key: "tokenizer.ggml.tokens", Data: gguf.ArrayOf("<b>", "<e>")},
		{Key: "tokenizer.ggml.bos_token_id", Data: gguf.Of(uint32(0))}, {Key: "tokenizer.ggml.eos_token_id", Data: gguf.Of(uint32(1))},
	}
	tmpl, err := FromGGUF(written(t, pairs...))
	if err != nil {
		t.Fatal(err)
	}
	c := hi()
	if got, err := tmpl.Render(c); err != nil || got != "<b>False" {
		t.Errorf("%q, %v", got, err)
	}
	c.Tools = []json.RawMessage{}
	if got, err := tmpl.Render(c); err != nil || got != "tools<e>" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := FromGGUF(written(t, pairs[2:]...)); !errors.Is(err, ErrNoTemplate) {
		t.Error(err)
	}
	pairs[4].Data = gguf.Of(uint32(2))
	if _, err := FromGGUF(written(t, pairs...)); err == nil {
		t.Error("a token that is not there is taken")
	}
}
