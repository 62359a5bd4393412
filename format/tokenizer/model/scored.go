package model

import (
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// Scored merges the pair of neighbours that is the token of the highest score, as long as there
// is one. Characters that no token covers become tokens of bytes.
type Scored struct {
	vocabulary *Vocabulary
	order      []uint32 // of tokens by id: the higher the score, the lower
	bytes      [256]int32
}

// NewScored returns the model of a vocabulary and its scores.
func NewScored(v *Vocabulary, scores []float32) (*Scored, error) {
	if len(scores) != v.Size() {
		return nil, fmt.Errorf("%d tokens with %d scores", v.Size(), len(scores))
	}
	m := &Scored{vocabulary: v, order: make([]uint32, len(scores)), bytes: v.byteTokens()}
	for id, s := range scores {
		if s != s {
			return nil, fmt.Errorf("the score of token %d is no number", id)
		}
		b := math.Float32bits(s + 0) // -0 becomes 0
		if b>>31 == 0 {
			b = 1<<31 - 1 - b // the higher, the lower
		}
		m.order[id] = b
	}
	return m, nil
}

// Append adds the tokens of a word.
func (m *Scored) Append(ids []int32, word string, s *Scratch) ([]int32, error) {
	if out, ok := s.recall(ids, word); ok {
		return out, nil
	}
	if len(word) > math.MaxInt32 {
		return nil, errors.New("a text of 2 GiB: cut it into shorter parts")
	}
	// In this model the id of a symbol is where it starts, and its rank where it ends.
	y, q := s.symbols[:0], heap(s.queue[:0])
	for at := 0; at < len(word); {
		_, n := utf8.DecodeRuneInString(word[at:])
		y = append(y, symbol{id: int32(at), rank: uint32(at + n), prev: int32(len(y)) - 1, next: int32(len(y)) + 1})
		at += n
	}
	if len(y) == 0 {
		return ids, nil
	}
	y[len(y)-1].next = -1
	propose := func(i int32) {
		if i < 0 || y[i].next < 0 {
			return
		}
		end := y[y[i].next].rank
		if id, ok := m.vocabulary.ids[word[y[i].id:end]]; ok {
			q.push(candidate{uint64(m.order[id])<<32 | uint64(i), int32(end)})
		}
	}
	for i := range y {
		propose(int32(i))
	}
	for len(q) > 0 {
		c := q.pop()
		i := int32(uint32(c.order))
		if y[i].gone || y[i].next < 0 || y[y[i].next].rank != uint32(c.id) {
			continue // an older proposal
		}
		right := &y[y[i].next]
		right.gone = true
		y[i].rank, y[i].next = right.rank, right.next
		if right.next >= 0 {
			y[right.next].prev = i
		}
		propose(y[i].prev)
		propose(i)
	}
	s.symbols, s.queue = y, q
	from := len(ids)
	for i := int32(0); i >= 0; i = y[i].next {
		text := word[y[i].id:y[i].rank]
		if id, ok := m.vocabulary.ids[text]; ok {
			ids = append(ids, id)
			continue
		}
		for k := range len(text) {
			if m.bytes[text[k]] == none {
				return nil, fmt.Errorf("no token covers %q, nor byte %#02x of it", text, text[k])
			}
			ids = append(ids, m.bytes[text[k]])
		}
	}
	s.remember(word, ids[from:])
	s.release()
	return ids, nil
}
