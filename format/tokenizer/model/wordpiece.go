package model

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// WordPiece takes the longest token that a word starts with, then the longest that goes on.
type WordPiece struct {
	begin, middle *Trie
	unknown       int32
	name          string // of the unknown token
	maxChars      int
}

// NewWordPiece returns the model of a vocabulary. Tokens that do not begin a word have a prefix;
// a word of more than maxChars characters is unknown.
func NewWordPiece(v *Vocabulary, unknown, prefix string, maxChars int) (*WordPiece, error) {
	if maxChars < 0 {
		return nil, fmt.Errorf("a word of at most %d characters", maxChars)
	}
	m := &WordPiece{begin: NewTrie(), middle: NewTrie(), unknown: v.id(unknown), name: unknown, maxChars: maxChars}
	for id, token := range v.tokens {
		if token == "" {
			continue
		}
		err := m.begin.Add(token, int32(id))
		if bare, ok := strings.CutPrefix(token, prefix); ok && bare != "" && err == nil {
			err = m.middle.Add(bare, int32(id))
		}
		if err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Append adds the tokens of a word.
func (m *WordPiece) Append(ids []int32, word string, s *Scratch) ([]int32, error) {
	if out, ok := s.recall(ids, word); ok {
		return out, nil
	}
	from := len(ids)
	known := utf8.RuneCountInString(word) <= m.maxChars
	tokens := m.begin
	for at := 0; known && at < len(word); tokens = m.middle {
		id, n := tokens.Longest(word[at:])
		known = n > 0
		ids = append(ids, id)
		at += n
	}
	if !known {
		if m.unknown == none {
			return nil, fmt.Errorf("the unknown token %.60q is not in the vocabulary", m.name)
		}
		ids = append(ids[:from], m.unknown)
	}
	s.remember(word, ids[from:])
	return ids, nil
}
