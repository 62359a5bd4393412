package tokenizer

import (
	"errors"
	"fmt"
	"sync"

	"github.com/tally-network/tally/format/tokenizer/decode"
	"github.com/tally-network/tally/format/tokenizer/model"
	"github.com/tally-network/tally/format/tokenizer/normalize"
	"github.com/tally-network/tally/format/tokenizer/split"
)

// MaxAdded bounds the added tokens of a tokenizer.
const MaxAdded = 1 << 16

// Added is a token that is found in the text before anything else is done.
type Added struct {
	ID         int32
	Content    string
	SingleWord bool // only where no word goes on
	StripLeft  bool // takes the white space before it
	StripRight bool // takes the white space behind it
	Normalized bool // is found in normalized text, in its normalized form
	Special    bool // is left out of decoded text on demand
}

// Spec is what a tokenizer is made of.
type Spec struct {
	Vocabulary *model.Vocabulary
	Model      model.Model
	Added      []Added
	Normalizer normalize.Normalizer // or nil
	Splitters  []split.Splitter     // one after the other
	Before     []int32              // special tokens in front of a text
	After      []int32              // … and behind it
	Decoders   []decode.Decoder     // one after the other
}

// Tokenizer turns text into tokens and back.
type Tokenizer struct {
	spec     Spec
	added    map[string]int32 // ids of added tokens
	names    map[int32]*Added
	decoded  map[int32]string // of added tokens: what decoders get
	special  map[string]bool
	literal  *finder // in text as it comes
	changed  *finder // in normalized text
	size     int
	lock     sync.Mutex
	sessions []*session // that nobody uses now
}

// New returns the tokenizer of a specification.
func New(s Spec) (*Tokenizer, error) {
	if s.Vocabulary == nil || s.Model == nil {
		return nil, errors.New("a tokenizer wants a vocabulary and a model")
	}
	if err := checkSplitters(s); err != nil {
		return nil, err
	}
	t := &Tokenizer{spec: s, size: s.Vocabulary.Size()}
	if err := t.enter(); err != nil {
		return nil, err
	}
	for _, ids := range [][]int32{s.Before, s.After} {
		for _, id := range ids {
			if _, ok := t.Token(id); !ok {
				return nil, fmt.Errorf("special token %d, which is put around texts, is not in the vocabulary", id)
			}
		}
	}
	return t, nil
}

// checkSplitters refuses combinations whose results would not be those of the reference.
func checkSplitters(s Spec) error {
	bpe, _ := s.Model.(*model.BPE)
	raw := bpe != nil && bpe.Bytes
	for i, sp := range s.Splitters {
		switch sp := sp.(type) {
		case split.ByteLevel:
			if sp.Raw && (!raw || i != len(s.Splitters)-1) {
				return errors.New("raw bytes are for a model of bytes, from the last splitter")
			}
			raw = raw && !sp.Raw
		case split.Metaspace:
			if sp.Scheme == split.First && (i > 0 || !keepsStart(s.Normalizer)) {
				return errors.New("pre-tokenizer Metaspace with prepend_scheme first is supported as the first pre-tokenizer, behind Unicode's normalization forms alone")
			}
		}
	}
	if raw {
		return errors.New("a model of bytes wants ByteLevel with raw bytes as its last splitter")
	}
	return nil
}

// keepsStart reports whether the normalized text starts with what the text starts with.
func keepsStart(n normalize.Normalizer) bool {
	switch n := n.(type) {
	case nil, normalize.Form, normalize.Lowercase:
		return true
	case normalize.Sequence:
		for _, part := range n {
			if !keepsStart(part) {
				return false
			}
		}
		return true
	}
	return false
}

// enter enters the added tokens.
func (t *Tokenizer) enter() error {
	if len(t.spec.Added) > MaxAdded {
		return fmt.Errorf("%d added tokens, limit %d", len(t.spec.Added), MaxAdded)
	}
	t.added, t.names, t.decoded, t.special = map[string]int32{}, map[int32]*Added{}, map[int32]string{}, map[string]bool{}
	t.literal, t.changed = newFinder(), newFinder()
	for i := range t.spec.Added {
		if err := t.enterOne(&t.spec.Added[i]); err != nil {
			return fmt.Errorf("added token %.60q: %w", t.spec.Added[i].Content, err)
		}
	}
	return nil
}

func (t *Tokenizer) enterOne(a *Added) error {
	if len(a.Content) > model.MaxToken || a.Content == "" {
		return fmt.Errorf("it has %d bytes, want 1 to %d", len(a.Content), model.MaxToken)
	}
	if a.ID < 0 || a.ID >= model.MaxTokens {
		return fmt.Errorf("its id is %d, limit %d", a.ID, model.MaxTokens)
	}
	if id, ok := t.spec.Vocabulary.ID(a.Content); ok && id != a.ID {
		return fmt.Errorf("its id is %d, and %d in the vocabulary", a.ID, id)
	}
	if other, ok := t.spec.Vocabulary.Token(a.ID); ok && other != a.Content {
		return fmt.Errorf("its id %d is that of token %.60q", a.ID, other)
	}
	if _, twice := t.added[a.Content]; twice || t.names[a.ID] != nil {
		return errors.New("it, or its id, is given twice")
	}
	t.added[a.Content], t.names[a.ID] = a.ID, a
	t.size = max(t.size, int(a.ID)+1)
	if a.Special {
		t.special[a.Content] = true
	}
	t.decoded[a.ID] = a.Content
	if !a.Normalized {
		return t.literal.add(a.Content, a)
	}
	form := a.Content
	if t.spec.Normalizer != nil {
		var err error
		if form, err = t.spec.Normalizer.Normalize(form); err != nil {
			return err
		}
	}
	if form == "" {
		return errors.New("nothing of it is left when it is normalized")
	}
	t.decoded[a.ID] = form
	return t.changed.add(form, a)
}

// Size returns one more than the highest id.
func (t *Tokenizer) Size() int { return t.size }

// Token returns the token of an id.
func (t *Tokenizer) Token(id int32) (string, bool) {
	if a := t.names[id]; a != nil {
		return a.Content, true
	}
	return t.spec.Vocabulary.Token(id)
}

// ID returns the id of a token.
func (t *Tokenizer) ID(token string) (int32, bool) {
	if id, ok := t.added[token]; ok {
		return id, true
	}
	return t.spec.Vocabulary.ID(token)
}
