// Package model turns words into tokens: by byte-pair encoding, WordPiece, unigrams, or the
// scores of sentencepiece's byte-pair encoding.
//
// Call [NewBPE], [NewWordPiece], [NewUnigram] or [NewScored], then [Model.Append] with a
// [Scratch] for each goroutine.
//
// Invariants: a model never changes, so that several goroutines may use one. The tokens of
// a word depend on the word alone. What a scratch keeps between words is bounded.
//
// Source: github.com/huggingface/tokenizers, and for [Scored] github.com/ggml-org/llama.cpp.
package model

import (
	"errors"
	"fmt"
)

// Bounds of a vocabulary.
const (
	MaxTokens = 1 << 20 // tokens, and ids
	MaxMerges = 1 << 21 // merges
	MaxToken  = 1 << 12 // bytes of a token
)

// Model turns words into tokens.
type Model interface {
	// Append adds the tokens of a word, which is UTF-8 unless the model works on bytes.
	Append(ids []int32, word string, s *Scratch) ([]int32, error)
}

// none stands for no token.
const none = -1

var errUnknown = errors.New("the text has characters that no token covers, and the tokenizer names no token for them")

// Vocabulary numbers tokens.
type Vocabulary struct {
	tokens []string // by id; a place without a token is empty
	ids    map[string]int32
}

// NewVocabulary returns the vocabulary of tokens by their ids. A token "" is none, and leaves
// its id unused. Where a token comes twice the last one counts, if repeats are allowed.
func NewVocabulary(tokens []string, repeats bool) (*Vocabulary, error) {
	if len(tokens) > MaxTokens {
		return nil, fmt.Errorf("%d tokens, limit %d", len(tokens), MaxTokens)
	}
	v := &Vocabulary{tokens: tokens, ids: make(map[string]int32, len(tokens))}
	for id, t := range tokens {
		if t == "" {
			continue
		}
		if len(t) > MaxToken {
			return nil, fmt.Errorf("token %d has %d bytes, limit %d", id, len(t), MaxToken)
		}
		if old, twice := v.ids[t]; twice && !repeats {
			return nil, fmt.Errorf("token %.60q has ids %d and %d", t, old, id)
		}
		v.ids[t] = int32(id)
	}
	return v, nil
}

// ID returns the id of a token.
func (v *Vocabulary) ID(token string) (int32, bool) {
	id, ok := v.ids[token]
	return id, ok
}

// Token returns the token of an id.
func (v *Vocabulary) Token(id int32) (string, bool) {
	if id < 0 || int(id) >= len(v.tokens) || v.tokens[id] == "" {
		return "", false
	}
	return v.tokens[id], true
}

// Len returns the number of different tokens.
func (v *Vocabulary) Len() int { return len(v.ids) }

// Size returns one more than the highest id.
func (v *Vocabulary) Size() int { return len(v.tokens) }

// id returns the id of a token, or none.
func (v *Vocabulary) id(token string) int32 {
	if id, ok := v.ids[token]; ok {
		return id
	}
	return none
}

// byteTokens returns the tokens <0x00> to <0xFF>, where there are such.
func (v *Vocabulary) byteTokens() (out [256]int32) {
	for b := range out {
		out[b] = v.id(fmt.Sprintf("<0x%02X>", b))
	}
	return out
}
