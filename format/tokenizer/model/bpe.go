package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tally-network/tally/format/tokenizer/split"
)

// BPEOptions are what models of byte-pair encoding differ in.
type BPEOptions struct {
	Unknown      string // the token of what no token covers; without one that is left out, or
	Strict       bool   // an error
	FuseUnknown  bool   // one such token for several characters
	ByteFallback bool   // tokens <0x00> to <0xFF> for what no token covers
	IgnoreMerges bool   // a word that is a token is that token
	Prefix       string // before what does not begin a word
	Suffix       string // behind what ends a word
	Bytes        bool   // words are bytes, and tokens are written as package split writes bytes
}

// BPE merges the characters of a word, pair by pair, in the order of a list.
type BPE struct {
	BPEOptions
	vocabulary *Vocabulary
	merges     *table // of ids, to the rank of the merge and the id that it gives
	unknown    int32
	bytes      [256]int32       // tokens of bytes, for the fallback
	ascii      [128]int32       // tokens of ASCII characters
	raw        map[string]int32 // tokens by their bytes, where words are bytes and merges are ignored
}

// NewBPE returns the model of a vocabulary and its merges.
func NewBPE(v *Vocabulary, merges [][2]string, o BPEOptions) (*BPE, error) {
	if len(merges) > MaxMerges {
		return nil, fmt.Errorf("%d merges, limit %d", len(merges), MaxMerges)
	}
	if o.Bytes && (o.Prefix != "" || o.Suffix != "") {
		return nil, errors.New("a byte-level model has a prefix or a suffix of subwords, which is not supported")
	}
	m := &BPE{BPEOptions: o, vocabulary: v, merges: newTable(len(merges)), unknown: none, bytes: v.byteTokens()}
	if o.Unknown != "" {
		m.unknown = v.id(o.Unknown)
	}
	for rank, pair := range merges {
		bare, ok := strings.CutPrefix(pair[1], o.Prefix)
		if !ok {
			return nil, fmt.Errorf("merge %d: %.60q lacks the prefix %.30q", rank, pair[1], o.Prefix)
		}
		left, right, whole := v.id(pair[0]), v.id(pair[1]), v.id(pair[0]+bare)
		if left == none || right == none || whole == none {
			return nil, fmt.Errorf("merge %d: %.60q and %.60q, or both together, are no tokens", rank, pair[0], pair[1])
		}
		m.merges.put(key(left, right), uint64(rank)<<32|uint64(whole))
	}
	for c := range m.ascii {
		m.ascii[c] = v.id(string(rune(c)))
	}
	if o.Bytes && o.IgnoreMerges {
		m.raw = make(map[string]int32, v.Len())
		for token, id := range v.ids {
			if b, ok := split.FromBytes(token); ok {
				m.raw[b] = id
			}
		}
	}
	return m, nil
}

// symbol is a part of a word while it is merged.
type symbol struct {
	id         int32
	prev, next int32
	rank       uint32 // of the merge with the next one, where there is no heap
	gone       bool
}

const noMerge = 1<<32 - 1

// candidate is a merge that may be next.
type candidate struct {
	order uint64 // the rank, then the place
	id    int32  // what it gives
}

// Append adds the tokens of a word.
func (m *BPE) Append(ids []int32, word string, s *Scratch) ([]int32, error) {
	if m.IgnoreMerges {
		whole := m.vocabulary.ids
		if m.raw != nil {
			whole = m.raw
		}
		if id, ok := whole[word]; ok {
			return append(ids, id), nil
		}
	}
	if out, ok := s.recall(ids, word); ok {
		return out, nil
	}
	from := len(ids)
	s.symbols = slices.Grow(s.symbols[:0], min(len(word), maxGrow))
	var err error
	if m.Bytes {
		err = m.byteSymbols(word, s)
	} else {
		err = m.symbols(word, s)
	}
	if err != nil {
		return nil, err
	}
	if len(s.symbols) <= longestShort {
		ids = m.mergeShort(ids, s)
	} else {
		ids = m.mergeLong(ids, s)
		s.release()
	}
	s.remember(word, ids[from:])
	return ids, nil
}

// builder adds the first symbols of a word.
type builder struct {
	m       *BPE
	s       *Scratch
	pending bool // an unknown character waits
}

func (b *builder) add(id int32) { b.s.symbols = append(b.s.symbols, symbol{id: id}) }

// character adds a character, or tokens of its bytes, or notes that it is unknown. An unknown
// one comes behind the tokens of bytes that follow it, as it does in the reference.
func (b *builder) character(id int32, text string) error {
	if id != none {
		if b.pending {
			b.add(b.m.unknown)
			b.pending = false
		}
		b.add(id)
		return nil
	}
	if b.m.ByteFallback {
		all := true
		for i := range len(text) {
			all = all && b.m.bytes[text[i]] != none
		}
		for i := 0; all && i < len(text); i++ {
			b.add(b.m.bytes[text[i]])
		}
		if all {
			return nil
		}
	}
	if b.m.Strict {
		return errUnknown
	}
	if b.m.Unknown == "" {
		return nil
	}
	if b.m.unknown == none {
		return fmt.Errorf("the unknown token %.60q is not in the vocabulary of the model", b.m.Unknown)
	}
	if b.pending && !b.m.FuseUnknown {
		b.add(b.m.unknown)
	}
	b.pending = true
	return nil
}

func (b *builder) end() {
	if b.pending {
		b.add(b.m.unknown)
	}
}

func (m *BPE) byteSymbols(word string, s *Scratch) error {
	b := builder{m: m, s: s}
	var text [utf8.UTFMax]byte
	for i := range len(word) {
		r := split.ByteRune(word[i])
		if r < utf8.RuneSelf && m.ascii[r] != none && !b.pending {
			b.add(m.ascii[r])
			continue
		}
		n := utf8.EncodeRune(text[:], r)
		id, ok := m.vocabulary.ids[string(text[:n])]
		if !ok {
			id = none
		}
		if err := b.character(id, string(text[:n])); err != nil {
			return err
		}
	}
	b.end()
	return nil
}

func (m *BPE) symbols(word string, s *Scratch) error {
	b := builder{m: m, s: s}
	for i := 0; i < len(word); {
		_, n := utf8.DecodeRuneInString(word[i:])
		text := word[i : i+n]
		first, last := i == 0, i+n == len(word)
		i += n
		var id int32
		switch {
		case m.Prefix != "" && !first || m.Suffix != "" && last:
			if !first {
				text = m.Prefix + text
			}
			if last {
				text += m.Suffix
			}
			id = m.vocabulary.id(text)
		case n == 1:
			id = m.ascii[text[0]]
		default:
			id = m.vocabulary.id(text)
		}
		if err := b.character(id, text); err != nil {
			return err
		}
	}
	b.end()
	return nil
}

// pair returns the rank of the merge of two tokens, and what it gives.
func (m *BPE) pair(a, b int32) (rank uint32, id int32, ok bool) {
	v, ok := m.merges.get(key(a, b))
	return uint32(v >> 32), int32(uint32(v)), ok
}

// mergeShort merges by looking through all pairs each time.
func (m *BPE) mergeShort(ids []int32, s *Scratch) []int32 {
	y := s.symbols
	rank := func(i int) uint32 {
		if i+1 < len(y) {
			if r, _, ok := m.pair(y[i].id, y[i+1].id); ok {
				return r
			}
		}
		return noMerge
	}
	for i := range y {
		y[i].rank = rank(i)
	}
	for len(y) > 1 {
		best := 0
		for i := 1; i < len(y); i++ {
			if y[i].rank < y[best].rank {
				best = i
			}
		}
		if y[best].rank == noMerge {
			break
		}
		_, y[best].id, _ = m.pair(y[best].id, y[best+1].id)
		copy(y[best+1:], y[best+2:])
		y = y[:len(y)-1]
		y[best].rank = rank(best)
		if best > 0 {
			y[best-1].rank = rank(best - 1)
		}
	}
	for i := range y {
		ids = append(ids, y[i].id)
	}
	return ids
}

// mergeLong merges by a heap of the pairs that can be merged.
func (m *BPE) mergeLong(ids []int32, s *Scratch) []int32 {
	y, q := s.symbols, heap(slices.Grow(s.queue[:0], len(s.symbols)))
	propose := func(i int32) {
		if i < 0 || y[i].next < 0 {
			return
		}
		if rank, id, ok := m.pair(y[i].id, y[y[i].next].id); ok {
			q.push(candidate{uint64(rank)<<32 | uint64(i), id})
		}
	}
	for i := range y {
		y[i].prev, y[i].next = int32(i)-1, int32(i)+1
	}
	y[len(y)-1].next = -1
	for i := range y {
		propose(int32(i))
	}
	for len(q) > 0 {
		c := q.pop()
		i := int32(uint32(c.order))
		if y[i].gone || y[i].next < 0 {
			continue
		}
		right := &y[y[i].next]
		if _, id, ok := m.pair(y[i].id, right.id); !ok || id != c.id {
			continue // an older proposal
		}
		right.gone = true
		y[i].id, y[i].next = c.id, right.next
		if right.next >= 0 {
			y[right.next].prev = i
		}
		propose(y[i].prev)
		propose(i)
	}
	s.queue = q
	for i := int32(0); i >= 0; i = y[i].next {
		ids = append(ids, y[i].id)
	}
	return ids
}

// heap is a heap of candidates, the lowest order first.
type heap []candidate

func (h *heap) push(c candidate) {
	q := append(*h, c)
	i := len(q) - 1
	for i > 0 {
		up := (i - 1) / 2
		if q[up].order <= c.order {
			break
		}
		q[i] = q[up]
		i = up
	}
	q[i] = c
	*h = q
}

func (h *heap) pop() candidate {
	q := *h
	top, last := q[0], q[len(q)-1]
	q = q[:len(q)-1]
	*h = q
	for i := 0; len(q) > 0; {
		down := 2*i + 1
		if down+1 < len(q) && q[down+1].order < q[down].order {
			down++
		}
		if down >= len(q) || last.order <= q[down].order {
			q[i] = last
			break
		}
		q[i] = q[down]
		i = down
	}
	return top
}
