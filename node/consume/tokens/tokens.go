// Package tokens makes tokens of a text that is trained on. Call [Read] or [Characters].
//
// Invariants: equal files make equal tokens, on every machine.
package tokens

import (
	"bytes"
	"fmt"

	"github.com/tally-network/tally/format/text"
	"github.com/tally-network/tally/format/tokenizer"
)

// Tokenizer makes tokens of a text: of each character one, or as a tokenizer.json says.
type Tokenizer struct {
	Characters *text.Tokenizer // or nil
	File       []byte

	pieces *tokenizer.Tokenizer // if Characters is nil
}

// Read reads the file of a tokenizer, of either kind.
func Read(b []byte) (*Tokenizer, error) {
	if c, err := text.ReadTokenizer(bytes.NewReader(b)); err == nil {
		return &Tokenizer{Characters: c, File: b}, nil
	}
	p, err := tokenizer.Parse(b)
	return &Tokenizer{File: b, pieces: p}, err
}

// Characters returns the tokenizer of at most so many of a text's characters.
func Characters(body string, most int) (*Tokenizer, error) {
	c, err := text.Train(body, min(most, text.MaxVocabulary))
	if err != nil {
		return nil, err
	}
	return &Tokenizer{Characters: c, File: c.Encoded()}, nil
}

// Encode returns the tokens of a text, without any around it.
func (t *Tokenizer) Encode(s string) ([]int32, error) {
	if t.Characters != nil {
		return t.Characters.Encode(s)
	}
	return t.pieces.Encode(s, false)
}

// Fits returns an error unless a model that tells so many tokens apart has one for each.
func (t *Tokenizer) Fits(vocabulary int) error {
	if t.Characters == nil && t.pieces.Size() > vocabulary {
		return fmt.Errorf("the tokenizer has %d tokens, the model tells %d apart: take a model for as many, as tally model new gpt --set vocabulary=%d writes one", t.pieces.Size(), vocabulary, t.pieces.Size())
	}
	return nil
}
