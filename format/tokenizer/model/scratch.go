package model

import "strings"

// Bounds of what a scratch keeps of words that it has seen.
const (
	cacheWords   = 1 << 14 // words
	cacheWord    = 48      // bytes of a word
	cacheIDs     = 1 << 17 // tokens of all words
	keepSymbols  = 1 << 16 // places in buffers that stay allocated
	maxGrow      = 1 << 20 // symbols for which there is room at once
	longestShort = 20      // symbols of a word that is merged without a heap
)

// Scratch is the memory of one goroutine that encodes. The zero value is ready.
type Scratch struct {
	symbols []symbol
	queue   []candidate
	spans   []span
	best    []arrival
	words   map[string]place
	known   []int32
}

// place is where the tokens of a word are.
type place struct{ at, n int32 }

// recall adds the tokens of a word that was seen before.
func (s *Scratch) recall(ids []int32, word string) ([]int32, bool) {
	p, ok := s.words[word]
	if !ok {
		return ids, false
	}
	return append(ids, s.known[p.at:p.at+p.n]...), true
}

// remember keeps the tokens of a word.
func (s *Scratch) remember(word string, ids []int32) {
	if len(word) > cacheWord {
		return
	}
	if s.words == nil || len(s.words) >= cacheWords || len(s.known)+len(ids) > cacheIDs {
		s.words = make(map[string]place, 256)
		s.known = s.known[:0]
	}
	s.words[strings.Clone(word)] = place{int32(len(s.known)), int32(len(ids))}
	s.known = append(s.known, ids...)
}

// release lets go of buffers that a long word has made large.
func (s *Scratch) release() {
	if cap(s.symbols) > keepSymbols {
		s.symbols = nil
	}
	if cap(s.queue) > keepSymbols {
		s.queue = nil
	}
	if cap(s.spans) > keepSymbols {
		s.spans = nil
	}
	if cap(s.best) > keepSymbols {
		s.best = nil
	}
}
