package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/tally-network/tally/format/gguf"
	"github.com/tally-network/tally/format/tokenizer/model"
	"github.com/tally-network/tally/format/tokenizer/normalize"
	"github.com/tally-network/tally/format/tokenizer/split"
)

// ToGGUF returns what a GGUF file says of the tokenizer of a tokenizer.json, without the tokens that end replies. It fails unless the file's tokenizer
// is the same: one of pairs of bytes, whose cuts have a name there.
func ToGGUF(text []byte) (g GGUF, err error) {
	t, err := Parse(text)
	if err != nil {
		return g, err
	}
	var file struct {
		Model struct {
			Type   string
			Merges []json.RawMessage
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return g, err
	}
	if bpe, ok := t.spec.Model.(*model.BPE); !ok || !bpe.Bytes {
		return g, fmt.Errorf("a tokenizer of %s without bytes as its letters is not written as GGUF: convert the model with llama.cpp's convert_hf_to_gguf.py", file.Model.Type)
	}
	g = GGUF{Model: "gpt2", BOS: None, EOS: None, Unknown: None, CLS: None, SEP: None, EOT: None, EOM: None}
	for id := range int32(t.Size()) {
		token, ok := t.Token(id)
		kind := int32(normalToken)
		switch a := t.names[id]; {
		case !ok:
			token, kind = fmt.Sprintf("[PAD%d]", id), unusedToken
		case a != nil && a.Special:
			kind = controlToken
		case a != nil:
			kind = userToken
		}
		g.Tokens, g.Types = append(g.Tokens, token), append(g.Types, kind)
	}
	for _, m := range file.Model.Merges {
		var pair [2]string
		var merge string
		if json.Unmarshal(m, &merge) != nil {
			if err := json.Unmarshal(m, &pair); err != nil {
				return g, err
			}
			merge = pair[0] + " " + pair[1]
		}
		g.Merges = append(g.Merges, merge)
	}
	yes, no := true, false
	g.AddBOS, g.AddEOS = &no, &no
	switch {
	case len(t.spec.Before) > 1 || len(t.spec.After) > 0:
		return g, fmt.Errorf("%d tokens before texts and %d behind them have no place in a GGUF file", len(t.spec.Before), len(t.spec.After))
	case len(t.spec.Before) == 1:
		g.BOS, g.AddBOS = t.spec.Before[0], &yes
	}
	for _, a := range t.spec.Added {
		if a.SingleWord || a.StripLeft || a.StripRight || a.Normalized && (t.spec.Normalizer != nil || !t.spec.Added[0].Normalized) || !a.Normalized && t.spec.Added[0].Normalized {
			return g, fmt.Errorf("how added token %.60q is found in a text has no place in a GGUF file", a.Content)
		}
	}
	g.Pre, err = t.spec.cuts()
	return g, err
}

// common are the names that are tried first.
var common = []string{"gpt-2", "llama-bpe", "qwen2", "smollm", "gpt-4o", "tekken"}

// cuts returns the name that files have for how the tokenizer cuts words. Expressions that have a name leave nothing between what they match.
func (s *Spec) cuts() (string, error) {
	no := errors.New("GGUF files have no name for how the tokenizer cuts words: convert the model with llama.cpp's convert_hf_to_gguf.py")
	var expressions []string
	for _, x := range s.Splitters {
		switch x := x.(type) {
		case split.ByteLevel:
			if x.PrefixSpace {
				return "", no
			}
			if x.Regex {
				expressions = append(expressions, split.GPT2)
			}
		case split.Digits:
			if !x.Individual {
				return "", no
			}
			expressions = append(expressions, `\p{N}`)
		case *split.Regex:
			e, ok := x.Isolates()
			if !ok {
				return "", no
			}
			expressions = append(expressions, e)
		default:
			return "", no
		}
	}
	normalizer := s.Normalizer
	if all, ok := normalizer.(normalize.Sequence); ok && len(all) == 1 {
		normalizer = all[0]
	}
	bpe, _ := s.Model.(*model.BPE)
	for _, name := range append(slices.Clone(common), slices.Sorted(maps.Keys(preSplits))...) {
		pre := preSplits[name]
		if slices.Equal(pre.expressions, expressions) && pre.ignoreMerges == bpe.IgnoreMerges && reflect.DeepEqual(pre.normalizer, normalizer) {
			return name, nil
		}
	}
	return "", no
}

// Pairs returns the metadata that says so.
func (g *GGUF) Pairs() []gguf.Pair {
	pairs := []gguf.Pair{{Key: ggml + "model", Data: gguf.Of(g.Model)}, {Key: ggml + "pre", Data: gguf.Of(g.Pre)}, {Key: ggml + "tokens", Data: gguf.ArrayOf(g.Tokens...)}}
	add := func(key string, v gguf.Value) { pairs = append(pairs, gguf.Pair{Key: ggml + key, Data: v}) }
	if g.Scores != nil {
		add("scores", gguf.ArrayOf(g.Scores...))
	}
	if g.Types != nil {
		add("token_type", gguf.ArrayOf(g.Types...))
	}
	if g.Merges != nil {
		add("merges", gguf.ArrayOf(g.Merges...))
	}
	for _, x := range []struct {
		key string
		id  int32
	}{
		{"bos_token_id", g.BOS}, {"eos_token_id", g.EOS}, {"unknown_token_id", g.Unknown}, {"cls_token_id", g.CLS}, {"seperator_token_id", g.SEP}, {"eot_token_id", g.EOT}, {"eom_token_id", g.EOM},
	} {
		if x.id != None {
			add(x.key, gguf.Of(uint32(x.id)))
		}
	}
	for _, x := range []struct {
		key string
		is  *bool
	}{{"add_bos_token", g.AddBOS}, {"add_eos_token", g.AddEOS}, {"add_sep_token", g.AddSEP}, {"add_space_prefix", g.AddSpace}} {
		if x.is != nil {
			add(x.key, gguf.Of(*x.is))
		}
	}
	return pairs
}
