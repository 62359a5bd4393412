package grammar

import (
	"fmt"
	"sync"
)

// Index is an automaton over the tokens of a vocabulary. Several goroutines may use it.
type Index struct {
	of      *Automaton // without the bytes that no token is alone
	words   *Vocabulary
	classes int
	class   [256]uint8
	next    []int32 // of state and class; −1: none
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
				x.next[i*x.classes+int(c)] = int32(m.to)
				if c == x.class[m.high] {
					break
				}
			}
		}
	}
}

// Next returns the state after a token. It is false if the token may not come.
func (x *Index) Next(state int, token int32) (int, bool) {
	text := x.words.Text(token)
	for _, b := range text {
		if state = int(x.next[state*x.classes+int(x.class[b])]); state < 0 {
			return 0, false
		}
	}
	return state, len(text) > 0
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

// mask walks the beginnings of tokens, and leaves out those that go on from one that may not come.
func (x *Index) mask(state int) []byte {
	v := x.words
	mask := make([]byte, len(v.texts))
	states := make([]int32, v.longest+1) // after so many bytes
	states[0] = int32(state)
	for i := int32(0); int(i) < len(v.nodes); {
		n := &v.nodes[i]
		s := x.next[int(states[n.depth])*x.classes+int(x.class[n.last])]
		if s < 0 {
			i = n.skip
			continue
		}
		states[n.depth+1] = s
		for _, id := range v.tokens[n.from:n.to] {
			mask[id] = 1
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
