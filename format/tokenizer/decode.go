package tokenizer

import (
	"fmt"
	"strings"

	"github.com/tally-network/tally/format/tokenizer/decode"
)

// Decode returns the text of tokens. With skipSpecial special tokens give none.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) (string, error) {
	s := t.stream(skipSpecial, true)
	var b strings.Builder
	b.Grow(4 * len(ids))
	for i, id := range ids {
		text, err := s.Push(id)
		if err != nil {
			return "", fmt.Errorf("decode tokens: place %d: %w", i, err)
		}
		b.WriteString(text)
	}
	text, err := s.Flush()
	if err != nil {
		return "", fmt.Errorf("decode tokens: %w", err)
	}
	b.WriteString(text)
	return b.String(), nil
}

// Bytes returns what a token adds to a text that has begun, where that does not depend on the tokens beside it: see [decode.Bytes].
// Special tokens add nothing.
func (t *Tokenizer) Bytes(id int32) ([]byte, bool) {
	token, ok := t.decoded[id]
	if !ok {
		token, ok = t.spec.Vocabulary.Token(id)
	}
	if !ok || t.special[token] {
		return nil, false
	}
	return decode.Bytes(t.spec.Decoders, token)
}

// Stream decodes tokens one by one.
type Stream struct {
	t           *Tokenizer
	skipSpecial bool
	run         *decode.Run
}

// Stream returns what decodes the tokens of one text as they come. All that it gives is, together,
// what Decode gives. There is one exception: bytes that make no character, among
// tokens of single bytes, see [decode.ByteFallback].
func (t *Tokenizer) Stream(skipSpecial bool) *Stream { return t.stream(skipSpecial, false) }

func (t *Tokenizer) stream(skipSpecial, whole bool) *Stream {
	decoders := t.spec.Decoders
	if whole {
		decoders = make([]decode.Decoder, len(t.spec.Decoders))
		for i, d := range t.spec.Decoders {
			if _, ok := d.(decode.ByteFallback); ok {
				d = decode.ByteFallback{Exact: true}
			}
			decoders[i] = d
		}
	}
	return &Stream{t: t, skipSpecial: skipSpecial, run: decode.Start(decoders)}
}

// Push takes the next token and returns the text that is certain now: whole characters, often
// none.
func (s *Stream) Push(id int32) (string, error) {
	token, ok := s.t.decoded[id]
	if !ok {
		token, ok = s.t.spec.Vocabulary.Token(id)
	}
	if !ok {
		return "", fmt.Errorf("token %d is not in the vocabulary of %d", id, s.t.size)
	}
	if s.skipSpecial && s.t.special[token] {
		return "", nil
	}
	return s.run.Push(token)
}

// Flush returns the text that is left at the end.
func (s *Stream) Flush() (string, error) { return s.run.Flush() }
