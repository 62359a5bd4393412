package model

import (
	"fmt"
	"math"
	"unicode/utf8"
)

// unknownPenalty is by how much an unknown character is worse than the worst token.
const unknownPenalty = 10

// Unigram takes the tokens of a word whose scores have the highest sum.
type Unigram struct {
	vocabulary *Vocabulary
	tokens     *Trie
	scores     []float64
	unknown    int32
	penalty    float64
	fallback   bool
	bytes      [256]int32
}

// NewUnigram returns the model of a vocabulary and its scores. Unknown is -1, or the token of
// what no token covers; with byteFallback tokens <0x00> to <0xFF> come before it.
func NewUnigram(v *Vocabulary, scores []float64, unknown int, byteFallback bool) (*Unigram, error) {
	if len(scores) != v.Size() || unknown < none || unknown >= v.Size() {
		return nil, fmt.Errorf("%d tokens with %d scores, unknown token %d", v.Size(), len(scores), unknown)
	}
	m := &Unigram{vocabulary: v, tokens: NewTrie(), scores: scores, unknown: int32(unknown), fallback: byteFallback, bytes: v.byteTokens()}
	worst := math.Inf(1)
	for id, s := range scores {
		if math.IsNaN(s) || math.IsInf(s, 0) {
			return nil, fmt.Errorf("the score of token %d is %v", id, s)
		}
		worst = min(worst, s)
	}
	for token, id := range v.ids {
		if err := m.tokens.Add(token, id); err != nil {
			return nil, err
		}
	}
	m.penalty = worst - unknownPenalty
	return m, nil
}

// arrival is the best way to a place in a word.
type arrival struct {
	score float64
	from  int32
	id    int32
}

// Append adds the tokens of a word.
func (m *Unigram) Append(ids []int32, word string, s *Scratch) ([]int32, error) {
	if out, ok := s.recall(ids, word); ok {
		return out, nil
	}
	if err := m.paths(word, s); err != nil {
		return nil, err
	}
	from := len(ids)
	best := s.best
	s.spans = s.spans[:0]
	for end := int32(len(word)); end > 0; {
		a := best[end]
		start := a.from
		for a.id == m.unknown && start > 0 && best[start].id == m.unknown {
			start = best[start].from // unknown characters beside each other are one
		}
		s.spans = append(s.spans, span{start, end, a.id})
		end = start
	}
	for i := len(s.spans) - 1; i >= 0; i-- {
		p := s.spans[i]
		if p.id != m.unknown {
			ids = append(ids, p.id)
			continue
		}
		ids = m.unknownSpan(ids, word[p.from:p.to])
	}
	s.remember(word, ids[from:])
	s.release()
	return ids, nil
}

// span is a part of a word and its token.
type span struct{ from, to, id int32 }

// unknownSpan adds the token that is spelled as unknown characters are together, the tokens of
// their bytes, or the unknown token.
func (m *Unigram) unknownSpan(ids []int32, text string) []int32 {
	if id := m.vocabulary.id(text); id != none {
		return append(ids, id)
	}
	from := len(ids)
	for i := 0; m.fallback && i < len(text); i++ {
		if m.bytes[text[i]] == none {
			ids = ids[:from]
			break
		}
		ids = append(ids, m.bytes[text[i]])
	}
	if len(ids) == from {
		ids = append(ids, m.unknown)
	}
	return ids
}

// paths finds the best way to each place.
func (m *Unigram) paths(word string, s *Scratch) error {
	if cap(s.best) <= len(word) {
		s.best = make([]arrival, max(2*len(word), 64))
	}
	best := s.best[:len(word)+1]
	for i := range best {
		best[i] = arrival{from: none}
	}
	arrive := func(at, from int, score float64, id int32) {
		if best[at].from == none || score > best[at].score {
			best[at] = arrival{score, int32(from), id}
		}
	}
	for at := 0; at < len(word); {
		_, n := utf8.DecodeRuneInString(word[at:])
		single := false
		node := int32(0)
		for end := at; end < len(word); {
			next, ok := m.tokens.step(node, word[end])
			if !ok {
				break
			}
			node = next
			end++
			if id := m.tokens.ids[node]; id != none {
				arrive(end, at, m.scores[id]+best[at].score, id)
				single = single || end-at == n
			}
		}
		if !single {
			arriving := m.penalty + best[at].score
			if (best[at+n].from == none || arriving > best[at+n].score) && m.unknown == none {
				return errUnknown
			}
			arrive(at+n, at, arriving, m.unknown)
		}
		at += n
	}
	s.best = best[:cap(best)]
	return nil
}
