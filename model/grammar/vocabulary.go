package grammar

import (
	"bytes"
	"cmp"
	"slices"
)

// MaxText is how many bytes a token adds to a text at most, if it takes part.
const MaxText = 256

// Vocabulary is what the tokens of a model add to a text, as a tree of their beginnings. It never changes.
type Vocabulary struct {
	texts   [][]byte
	nodes   []beginning // each before those that go on from it
	tokens  []int32     // sorted by their texts
	alone   [256]bool   // bytes that a token is
	longest int
}

// beginning is a text that tokens begin with.
type beginning struct {
	last   byte
	common bool   // the last byte is, and all that go on from here
	depth  uint16 // bytes before the last
	height uint16 // of the longest that goes on from here, with the last byte
	skip   int32  // the node after all that go on from this one
	from   int32  // tokens of this text, among the sorted
	to     int32
	end    int32 // … and of all that go on from it
}

// isCommon tells the bytes that most forms take alike, within strings: printable ASCII that needs no escape. It decides how soon a mask
// is made, and not what it is.
func isCommon(b byte) bool { return b >= ' ' && b < 0x7F && b != '"' && b != '\\' }

// NewVocabulary returns the vocabulary of so many tokens. What a token adds is given by its id; one that adds nothing, or too much, never comes.
func NewVocabulary(tokens int, of func(id int32) []byte) *Vocabulary {
	v := &Vocabulary{texts: make([][]byte, tokens)}
	for id := range v.texts {
		if text := of(int32(id)); len(text) > 0 && len(text) <= MaxText {
			v.texts[id] = text
			v.tokens = append(v.tokens, int32(id))
			v.longest = max(v.longest, len(text))
			v.alone[text[0]] = v.alone[text[0]] || len(text) == 1
		}
	}
	slices.SortFunc(v.tokens, func(a, b int32) int { return cmp.Or(bytes.Compare(v.texts[a], v.texts[b]), cmp.Compare(a, b)) })
	var path []int32 // nodes of the text before
	var before []byte
	for i, id := range v.tokens {
		text := v.texts[id]
		shared := 0
		for shared < min(len(text), len(before)) && text[shared] == before[shared] {
			shared++
		}
		path = v.leave(path, shared, i)
		for d := shared; d < len(text); d++ {
			path = append(path, int32(len(v.nodes)))
			v.nodes = append(v.nodes, beginning{last: text[d], common: isCommon(text[d]), depth: uint16(d), height: 1, from: int32(i), to: int32(i)})
		}
		v.nodes[path[len(text)-1]].to = int32(i + 1)
		before = text
	}
	v.leave(path, 0, len(v.tokens))
	return v
}

// leave ends the nodes of a path from a depth on, after so many tokens.
func (v *Vocabulary) leave(path []int32, depth, tokens int) []int32 {
	for d := len(path) - 1; d >= depth; d-- {
		n := &v.nodes[path[d]]
		n.skip, n.end = int32(len(v.nodes)), int32(tokens)
		if d > 0 {
			before := &v.nodes[path[d-1]]
			before.common, before.height = before.common && n.common, max(before.height, n.height+1)
		}
	}
	return path[:depth]
}

// Len returns how many tokens there are.
func (v *Vocabulary) Len() int { return len(v.texts) }

// Text returns what a token adds to a text: nothing, if it never comes.
func (v *Vocabulary) Text(id int32) []byte {
	if id < 0 || int(id) >= len(v.texts) {
		return nil
	}
	return v.texts[id]
}
