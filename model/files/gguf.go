package files

import (
	"fmt"

	"github.com/tally-network/tally/format/gguf"
	"github.com/tally-network/tally/format/tokenizer"
)

// reader reads metadata of a tokenizer, up to the first error. What is not there is empty.
type reader struct {
	f   *gguf.File
	err error
}

const ggml = "tokenizer.ggml."

func read[T any](r *reader, key string, get func(key string) (T, error)) (x T) {
	if r.err == nil && r.f.Has(ggml+key) {
		x, r.err = get(ggml + key)
	}
	return x
}

func (r *reader) id(key string) int32 {
	if r.err != nil || !r.f.Has(ggml+key) {
		return tokenizer.None
	}
	id, err := r.f.Uint(ggml + key)
	if r.err = err; id > maxID {
		return tokenizer.None // as 2³²−1 stands for none
	}
	return int32(id)
}

const maxID = 1<<31 - 1

func (r *reader) flag(key string) *bool {
	if r.err != nil || !r.f.Has(ggml+key) {
		return nil
	}
	yes, err := r.f.Bool(ggml + key)
	r.err = err
	return &yes
}

func (r *reader) tokenizer() tokenizer.GGUF {
	g := tokenizer.GGUF{
		Model: read(r, "model", r.f.Text), Pre: read(r, "pre", r.f.Text), Tokens: read(r, "tokens", r.f.Texts), Merges: read(r, "merges", r.f.Texts),
		BOS: r.id("bos_token_id"), EOS: r.id("eos_token_id"), Unknown: r.id("unknown_token_id"), CLS: r.id("cls_token_id"), SEP: r.id("seperator_token_id"),
		AddBOS: r.flag("add_bos_token"), AddEOS: r.flag("add_eos_token"), AddSEP: r.flag("add_sep_token"), AddSpace: r.flag("add_space_prefix"),
	}
	for _, s := range read(r, "scores", r.f.Floats) {
		g.Scores = append(g.Scores, float32(s))
	}
	for _, t := range read(r, "token_type", r.f.Ints) {
		if t != int64(int32(t)) {
			r.err = fmt.Errorf("a token has type %d", t)
			break
		}
		g.Types = append(g.Types, int32(t))
	}
	return g
}
