package tokenizer

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tally-network/tally/format/gguf"
)

// ggml begins the keys of a GGUF file that are about its tokenizer.
const ggml = "tokenizer.ggml."

// architecture is the key of what the model is.
const architecture = "general.architecture"

// maxID bounds ids; 2³²−1 stands for none.
const maxID = 1<<31 - 1

// metadata reads keys of a tokenizer, up to the first error. What is not there is empty.
type metadata struct {
	f   *gguf.File
	err error
}

func read[T any](m *metadata, key string, get func(key string) (T, error)) (x T) {
	if m.err == nil && m.f.Has(ggml+key) {
		x, m.err = get(ggml + key)
	}
	return x
}

func (m *metadata) id(key string) int32 {
	if m.err != nil || !m.f.Has(ggml+key) {
		return None
	}
	id, err := m.f.Uint(ggml + key)
	if m.err = err; id > maxID {
		return None
	}
	return int32(id)
}

func (m *metadata) flag(key string) *bool {
	if m.err != nil || !m.f.Has(ggml+key) {
		return nil
	}
	yes, err := m.f.Bool(ggml + key)
	m.err = err
	return &yes
}

// FromGGUF returns what a GGUF file says of its tokenizer.
func FromGGUF(f *gguf.File) (GGUF, error) {
	m := &metadata{f: f}
	g := GGUF{
		Model: read(m, "model", f.Text), Pre: read(m, "pre", f.Text), Tokens: read(m, "tokens", f.Texts), Merges: read(m, "merges", f.Texts),
		BOS: m.id("bos_token_id"), EOS: m.id("eos_token_id"), Unknown: m.id("unknown_token_id"), CLS: m.id("cls_token_id"), SEP: m.id("seperator_token_id"),
		EOT: m.id("eot_token_id"), EOM: m.id("eom_token_id"),
		AddBOS: m.flag("add_bos_token"), AddEOS: m.flag("add_eos_token"), AddSEP: m.flag("add_sep_token"), AddSpace: m.flag("add_space_prefix"),
	}
	if m.err == nil && f.Has(architecture) {
		g.Architecture, m.err = f.Text(architecture)
	}
	for _, s := range read(m, "scores", f.Floats) {
		g.Scores = append(g.Scores, float32(s))
	}
	for _, t := range read(m, "token_type", f.Ints) {
		if t != int64(int32(t)) {
			m.err = errors.Join(m.err, fmt.Errorf("a token has type %d", t))
			break
		}
		g.Types = append(g.Types, int32(t))
	}
	return g, m.err
}

// Ends are the tokens that end a reply.
func (g *GGUF) Ends() (ids []int32) {
	for _, id := range []int32{g.EOS, g.EOT, g.EOM} {
		if id != None {
			ids = append(ids, id)
		}
	}
	return ids
}

// specialKeys name special tokens by their ids, under the names that chat templates know them by.
var specialKeys = map[string]string{
	"bos_token": "bos_token_id", "eos_token": "eos_token_id", "unk_token": "unknown_token_id", "sep_token": "seperator_token_id",
	"pad_token": "padding_token_id", "cls_token": "cls_token_id", "mask_token": "mask_token_id",
}

// SpecialOfGGUF returns the texts of a GGUF file's special tokens, by the names that chat templates know them by.
func SpecialOfGGUF(f *gguf.File) (map[string]string, error) {
	m := &metadata{f: f}
	tokens, all := map[string]string{}, read(m, "tokens", f.Texts)
	for name, key := range specialKeys {
		switch id := m.id(key); {
		case m.err != nil:
			return nil, m.err
		case id == None || all == nil:
		case int(id) >= len(all):
			return nil, fmt.Errorf("%s is %d, and there are %d tokens", key, id, len(all))
		default:
			tokens[name] = strings.ToValidUTF8(all[id], "\ufffd")
		}
	}
	return tokens, nil
}
