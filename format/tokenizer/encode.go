package tokenizer

import (
	"fmt"
	"runtime"
	"unicode/utf8"

	"github.com/tally-network/tally/format/tokenizer/model"
	"github.com/tally-network/tally/format/tokenizer/split"
)

// session is what one goroutine encodes with.
type session struct {
	t       *Tokenizer
	scratch model.Scratch
	ids     []int32
	chain   []split.Yield // what each splitter yields to; the first one takes whole pieces
}

func newSession(t *Tokenizer) *session {
	s := &session{t: t}
	s.chain = make([]split.Yield, len(t.spec.Splitters)+1)
	for i, sp := range t.spec.Splitters {
		s.chain[i] = func(p split.Piece) error { return sp.Split(p, s.chain[i+1]) }
	}
	s.chain[len(t.spec.Splitters)] = s.word
	return s
}

func (s *session) word(p split.Piece) error {
	ids, err := s.t.spec.Model.Append(s.ids, p.Text, &s.scratch)
	if err == nil {
		s.ids = ids
	}
	return err
}

// take returns a session that nobody uses.
func (t *Tokenizer) take() *session {
	t.lock.Lock()
	defer t.lock.Unlock()
	if n := len(t.sessions); n > 0 {
		s := t.sessions[n-1]
		t.sessions = t.sessions[:n-1]
		return s
	}
	return newSession(t)
}

// give gives a session back; there are hardly ever more than processors.
func (t *Tokenizer) give(s *session) {
	s.ids = nil
	t.lock.Lock()
	defer t.lock.Unlock()
	if len(t.sessions) < runtime.GOMAXPROCS(0) {
		t.sessions = append(t.sessions, s)
	}
}

// Encode returns the tokens of a text. With special they have special tokens before and behind
// them, as the tokenizer says. Added tokens are found in the text in either case.
func (t *Tokenizer) Encode(text string, special bool) ([]int32, error) {
	if err := checkText(text); err != nil {
		return nil, fmt.Errorf("encode text: %w", err)
	}
	s := t.take()
	defer t.give(s)
	s.ids = make([]int32, 0, len(text)/3+16)
	if special {
		s.ids = append(s.ids, t.spec.Before...)
	}
	if err := s.text(text); err != nil {
		return nil, fmt.Errorf("encode text: %w", err)
	}
	if special {
		s.ids = append(s.ids, t.spec.After...)
	}
	return s.ids, nil
}

func (s *session) found(a *Added) { s.ids = append(s.ids, a.ID) }

func (s *session) text(text string) error {
	return s.t.literal.split(text, func(from, to int) error {
		part := text[from:to]
		if s.t.spec.Normalizer != nil {
			var err error
			if part, err = s.t.spec.Normalizer.Normalize(part); err != nil {
				return err
			}
		}
		return s.t.changed.split(part, func(a, b int) error {
			return s.chain[0](split.Piece{Text: part[a:b], First: from == 0 && a == 0})
		}, s.found)
	}, s.found)
}

// checkText returns an error unless the text is UTF-8.
func checkText(text string) error {
	if utf8.ValidString(text) {
		return nil
	}
	for i, r := range text {
		if _, n := utf8.DecodeRuneInString(text[i:]); r == utf8.RuneError && n == 1 {
			return fmt.Errorf("byte %d is not UTF-8: convert the text to UTF-8", i)
		}
	}
	return nil
}
