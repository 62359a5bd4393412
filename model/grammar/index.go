package grammar

import (
	"fmt"
	"slices"
	"sync"
)

// Index is an automaton over the tokens of a vocabulary. Several goroutines may use it.
type Index struct {
	of      *Automaton // without the bytes that no token is alone
	words   *Vocabulary
	classes int
	class   [256]uint8
	next    []int32  // of state and class: the first place of the next state's row; −1: none
	steady  []uint16 // of each state: for how many bytes it does not matter which come, if they are common
	mu      sync.Mutex
	masks   map[int][]byte
}

// maxMasks bounds the masks that an index keeps, in bytes. Each has one for each token. A reply comes back to few states, and a mask is
// made anew in less than a millisecond.
const maxMasks = 8 << 20

// NewIndex binds an automaton to a vocabulary. Bytes that no token is alone are taken out of the automaton, so that from each state some token
// goes on. It is an error if nothing is left.
func NewIndex(a *Automaton, v *Vocabulary) (*Index, error) {
	cut, err := a.restricted(&v.alone)
	if err != nil {
		return nil, fmt.Errorf("the model's tokens cannot write this form: %w", err)
	}
	x := &Index{of: cut, words: v, masks: map[int][]byte{}}
	x.tabulate()
	x.settle()
	return x, nil
}

// tabulate makes a table of moves, by classes of bytes that lead to the same states everywhere.
func (x *Index) tabulate() {
	var cuts [257]bool
	for _, s := range x.of.states {
		for _, m := range s.moves {
			cuts[m.low], cuts[int(m.high)+1] = true, true
		}
	}
	for b := range 256 {
		if b > 0 && cuts[b] {
			x.classes++
		}
		x.class[b] = uint8(x.classes)
	}
	x.classes++
	x.next = make([]int32, len(x.of.states)*x.classes)
	for i := range x.next {
		x.next[i] = -1
	}
	for i, s := range x.of.states {
		for _, m := range s.moves {
			for c := x.class[m.low]; ; c++ {
				x.next[i*x.classes+int(c)] = int32(m.to * x.classes)
				if c == x.class[m.high] {
					break
				}
			}
		}
	}
}

// settle finds for how many bytes it does not matter which come.
func (x *Index) settle() {
	var classes []int
	for b := range 256 {
		if c := int(x.class[b]); isCommon(byte(b)) && !slices.Contains(classes, c) {
			classes = append(classes, c)
		}
	}
	x.steady = make([]uint16, len(x.of.states))
	const unknown, looked = MaxText + 1, MaxText + 2
	for i := range x.steady {
		x.steady[i] = unknown
	}
	var path []int
	for i := range x.steady {
		at := i
		for path = path[:0]; x.steady[at] == unknown; {
			x.steady[at] = looked
			path = append(path, at)
			to := x.next[at*x.classes+classes[0]]
			if to < 0 || slices.ContainsFunc(classes, func(c int) bool { return x.next[at*x.classes+c] != to }) {
				at = -1
				break
			}
			at = int(to) / x.classes
		}
		n := uint16(0)
		if at >= 0 {
			if n = x.steady[at] + 1; x.steady[at] == looked { // it comes back to a state of the path
				n = MaxText
			}
		}
		for k := len(path) - 1; k >= 0; k-- {
			x.steady[path[k]] = min(n, MaxText)
			n = min(n, MaxText) + 1
		}
	}
}

// Next returns the state after a token. It is false if the token may not come.
func (x *Index) Next(state int, token int32) (int, bool) {
	text := x.words.Text(token)
	row := int32(state * x.classes)
	for _, b := range text {
		if row = x.next[int(row)+int(x.class[b])]; row < 0 {
			return 0, false
		}
	}
	return int(row) / x.classes, len(text) > 0
}

// Accepts reports whether a text may be over in a state.
func (x *Index) Accepts(state int) bool { return x.of.states[state].accepts }

// Final reports whether nothing may come any more.
func (x *Index) Final(state int) bool { return len(x.of.states[state].moves) == 0 }

// Mask returns a byte for each token: 1 if it may come in a state, else 0. It is not to be changed.
func (x *Index) Mask(state int) []byte {
	x.mu.Lock()
	mask := x.masks[state]
	x.mu.Unlock()
	if mask != nil {
		return mask
	}
	mask = x.mask(state)
	x.mu.Lock()
	defer x.mu.Unlock()
	if (len(x.masks)+1)*len(mask) > maxMasks {
		clear(x.masks)
	}
	x.masks[state] = mask
	return mask
}

// mask walks the beginnings of tokens, and leaves out those that go on from one that may not come. It does not walk on where all may.
func (x *Index) mask(state int) []byte {
	v := x.words
	mask := make([]byte, len(v.texts))
	var rows [MaxText + 1]int32 // after so many bytes
	rows[0] = int32(state * x.classes)
	for i := 0; i < len(v.nodes); {
		n := &v.nodes[i]
		if n.common && n.height <= x.steady[int(rows[n.depth])/x.classes] {
			for _, id := range v.tokens[n.from:n.end] {
				mask[id] = 1
			}
			i = int(n.skip)
			continue
		}
		row := x.next[int(rows[n.depth])+int(x.class[n.last])]
		if row < 0 {
			i = int(n.skip)
			continue
		}
		rows[n.depth+1] = row
		for k := n.from; k < n.to; k++ {
			mask[v.tokens[k]] = 1
		}
		i++
	}
	return mask
}

// Symbols of a token's text in tables, beside bytes.
const (
	Over    = 256 // the text is over
	Never   = 257 // the token never comes
	Symbols = 258
)

// Tables are an index as numbers, for programs.
type Tables struct {
	States  int     // the last stands for what may not come
	Longest int     // symbols of a text
	Moves   []int32 // [States][Symbols]: the state that follows
	Texts   []int32 // [tokens][Longest]: bytes, and then Over; or Never
	Accepts []byte  // [States]
}

// Tables returns the index as numbers.
func (x *Index) Tables() *Tables {
	n := len(x.of.states)
	t := &Tables{States: n + 1, Longest: max(1, x.words.longest), Accepts: make([]byte, n+1)}
	t.Moves = make([]int32, t.States*Symbols)
	for i := range t.States {
		row := t.Moves[i*Symbols : (i+1)*Symbols]
		for b := range row {
			row[b] = int32(n)
		}
		if row[Over] = int32(i); i == n {
			break
		}
		for _, m := range x.of.states[i].moves {
			for b := int(m.low); b <= int(m.high); b++ {
				row[b] = int32(m.to)
			}
		}
		if x.Accepts(i) {
			t.Accepts[i] = 1
		}
	}
	t.Texts = make([]int32, x.words.Len()*t.Longest)
	for id, text := range x.words.texts {
		row := t.Texts[id*t.Longest : (id+1)*t.Longest]
		for i := range row {
			switch {
			case len(text) == 0:
				row[i] = Never
			case i < len(text):
				row[i] = int32(text[i])
			default:
				row[i] = Over
			}
		}
	}
	return t
}
