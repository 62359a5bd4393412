package learn

import (
	"container/heap"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tally-network/tally/format/tokenizer/split"
)

// Bounds of a vocabulary. Every byte has a token.
const (
	Bytes         = 256
	MaxVocabulary = 1 << 20
	maxSpecial    = 1 << 8
)

// Options say what a vocabulary is to be.
type Options struct {
	Vocabulary int                  // tokens at most
	Special    []string             // tokens of no word, which come first
	Frequency  int64                // how often a pair must occur to become a token
	Progress   func(tokens, of int) // told now and then; or nil
}

// Trained is what was learnt.
type Trained struct {
	Special []string
	Tokens  []string    // by id, special ones first; in characters that stand for bytes
	Merges  [][2]string // in order
}

// check returns an error unless there can be such a vocabulary.
func (o *Options) check() error {
	if least := Bytes + len(o.Special); o.Vocabulary < least || o.Vocabulary > MaxVocabulary {
		return fmt.Errorf("a vocabulary of %d tokens: take %d, for every byte and special token, to %d", o.Vocabulary, least, MaxVocabulary)
	}
	if len(o.Special) > maxSpecial {
		return fmt.Errorf("%d special tokens, at most %d", len(o.Special), maxSpecial)
	}
	for i, s := range o.Special {
		switch {
		case s == "" || len(s) > MaxWord:
			return fmt.Errorf("special token %.40q has %d bytes: take 1 to %d", s, len(s), MaxWord)
		case slices.Contains(o.Special[:i], s):
			return fmt.Errorf("special token %.40q is named twice", s)
		case len([]rune(s)) == 1:
			return fmt.Errorf("special token %q is one character: take a longer one, which no text has", s)
		}
	}
	return nil
}

// Train learns a vocabulary. Where no pair occurs often enough any more, it has fewer tokens than were asked for.
func (w *Words) Train(ctx context.Context, o Options) (*Trained, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if len(w.counts) == 0 {
		return nil, errors.New("the texts have no words")
	}
	t := newTrainer(w, &o)
	for len(t.tokens) < o.Vocabulary {
		if len(t.merges)%256 == 0 {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if o.Progress != nil {
				o.Progress(len(t.tokens), o.Vocabulary)
			}
		}
		p, found := t.next(max(o.Frequency, 1))
		if !found {
			break
		}
		t.merge(p)
	}
	return &Trained{Special: o.Special, Tokens: t.tokens, Merges: t.merges}, nil
}

// pair is two tokens beside each other.
type pair struct{ left, right int32 }

// place is how often a pair occurs, and in which words it has occurred.
type place struct {
	count int64
	words []int32 // ascending, while a pair is counted
}

// trainer holds each distinct word as tokens.
type trainer struct {
	words  [][]int32
	counts []int64
	pairs  map[pair]*place
	queue  queue
	tokens []string
	ids    map[string]int32
	merges [][2]string
}

func newTrainer(w *Words, o *Options) *trainer {
	t := &trainer{pairs: map[pair]*place{}, ids: map[string]int32{}}
	for _, s := range o.Special {
		t.token(s)
	}
	var letters []rune
	for b := range Bytes {
		letters = append(letters, split.ByteRune(byte(b)))
	}
	slices.Sort(letters)
	for _, r := range letters {
		t.token(string(r))
	}
	var of [Bytes]int32
	for b := range Bytes {
		of[b] = t.ids[string(split.ByteRune(byte(b)))]
	}
	arena := make([]int32, 0, w.bytes)
	for word, n := range w.counts { // order: counts are sums, and what is merged does not depend on it
		from := len(arena)
		for i := range len(word) {
			arena = append(arena, of[word[i]])
		}
		symbols := arena[from:len(arena):len(arena)]
		at := int32(len(t.words))
		t.words, t.counts = append(t.words, symbols), append(t.counts, n)
		for i := 1; i < len(symbols); i++ {
			t.add(pair{symbols[i-1], symbols[i]}, at, n)
		}
	}
	for p, x := range t.pairs { // order: the queue is ordered in full
		t.queue = append(t.queue, queued{p, x.count})
	}
	heap.Init(&t.queue)
	return t
}

// token returns the id of a token, which is new or not.
func (t *trainer) token(text string) int32 {
	id, known := t.ids[text]
	if !known {
		id = int32(len(t.tokens))
		t.ids[text], t.tokens = id, append(t.tokens, text)
	}
	return id
}

// add counts a pair in a word, n times.
func (t *trainer) add(p pair, word int32, n int64) {
	x := t.pairs[p]
	if x == nil {
		x = &place{}
		t.pairs[p] = x
	}
	x.count += n
	if last := len(x.words) - 1; last < 0 || x.words[last] != word {
		x.words = append(x.words, word)
	}
}

// next takes the most frequent pair, of equal ones that with the smallest ids, unless none is frequent enough.
func (t *trainer) next(least int64) (pair, bool) {
	for len(t.queue) > 0 {
		top := &t.queue[0]
		x := t.pairs[top.pair]
		switch {
		case x == nil: // was merged
			heap.Pop(&t.queue)
		case x.count != top.count:
			top.count = x.count
			heap.Fix(&t.queue, 0)
		case top.count < least:
			return pair{}, false
		default:
			return heap.Pop(&t.queue).(queued).pair, true
		}
	}
	return pair{}, false
}

// merge makes one token of a pair, wherever it occurs.
func (t *trainer) merge(p pair) {
	left, right := t.tokens[p.left], t.tokens[p.right]
	id := t.token(left + right)
	t.merges = append(t.merges, [2]string{left, right})
	x := t.pairs[p]
	delete(t.pairs, p)
	made := map[pair]bool{}
	for _, word := range x.words {
		t.mergeIn(word, p, id, made)
	}
	for q := range made { // order: the queue is ordered in full
		if x := t.pairs[q]; x != nil && x.count > 0 {
			heap.Push(&t.queue, queued{q, x.count})
		}
	}
}

// mergeIn merges a pair in one word, from left to right, and counts the pairs that come and go.
func (t *trainer) mergeIn(word int32, p pair, id int32, made map[pair]bool) {
	s, n := t.words[word], t.counts[word]
	out := s[:0]
	for i := 0; i < len(s); i++ {
		if i+1 == len(s) || s[i] != p.left || s[i+1] != p.right {
			out = append(out, s[i])
			continue
		}
		if len(out) > 0 {
			before := out[len(out)-1]
			t.drop(pair{before, p.left}, n)
			t.add(pair{before, id}, word, n)
			made[pair{before, id}] = true
		}
		if i+2 < len(s) {
			after := s[i+2]
			t.drop(pair{p.right, after}, n)
			t.add(pair{id, after}, word, n)
			made[pair{id, after}] = true
		}
		out = append(out, id)
		i++
	}
	t.words[word] = out
}

// drop counts a pair n times less.
func (t *trainer) drop(p pair, n int64) {
	if x := t.pairs[p]; x != nil {
		x.count -= n
	}
}

// queued is a pair in the queue, with how often it occurred when it was queued.
type queued struct {
	pair  pair
	count int64
}

// queue is a heap of pairs, the most frequent on top.
type queue []queued

func (q queue) Len() int { return len(q) }

// Less implements heap.Interface.
func (q queue) Less(i, j int) bool {
	a, b := &q[i], &q[j]
	switch {
	case a.count != b.count:
		return a.count > b.count
	case a.pair.left != b.pair.left:
		return a.pair.left < b.pair.left
	}
	return a.pair.right < b.pair.right
}

func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push implements heap.Interface.
func (q *queue) Push(x any) { *q = append(*q, x.(queued)) }

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// Encoded returns the tokenizer.json, as Hugging Face's library and package tokenizer read it.
func (t *Trained) Encoded() []byte {
	var b strings.Builder
	quoted := func(s string) string {
		var q strings.Builder
		e := json.NewEncoder(&q)
		e.SetEscapeHTML(false)
		if err := e.Encode(s); err != nil {
			panic(err) // texts always encode
		}
		return strings.TrimSuffix(q.String(), "\n")
	}
	list := func(n int, item func(i int)) {
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString("\n      ")
			item(i)
		}
	}
	b.WriteString("{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n  \"added_tokens\": [")
	list(len(t.Special), func(i int) {
		fmt.Fprintf(&b, `{"id": %d, "content": %s, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}`, i, quoted(t.Special[i]))
	})
	const bytes = `{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}`
	fmt.Fprintf(&b, "],\n  \"normalizer\": null,\n  \"pre_tokenizer\": %s,\n  \"post_processor\": null,\n  \"decoder\": %s,\n", bytes, bytes)
	b.WriteString("  \"model\": {\n    \"type\": \"BPE\", \"dropout\": null, \"unk_token\": null, \"continuing_subword_prefix\": null, \"end_of_word_suffix\": null,\n" +
		"    \"fuse_unk\": false, \"byte_fallback\": false, \"ignore_merges\": false,\n    \"vocab\": {")
	list(len(t.Tokens), func(i int) { fmt.Fprintf(&b, "%s: %d", quoted(t.Tokens[i]), i) })
	b.WriteString("},\n    \"merges\": [")
	list(len(t.Merges), func(i int) { fmt.Fprintf(&b, "[%s, %s]", quoted(t.Merges[i][0]), quoted(t.Merges[i][1])) })
	b.WriteString("]\n  }\n}\n")
	return []byte(b.String())
}
