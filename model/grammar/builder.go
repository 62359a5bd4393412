package grammar

import (
	"encoding/binary"
	"slices"
)

// Node is a place of a form that is written from its end to its start: what may come from there on.
type Node int32

// None is where nothing may come.
const None Node = -1

// Bounds of what a builder does. They are above what automata of MaxStates need.
const (
	maxNodes  = 1 << 17
	maxSubset = 1 << 22 // nodes of all subsets
	maxWork   = 1 << 24 // steps, of all parts: about half a second
	slack     = 2       // states before minimisation, in MaxStates
)

// Builder writes a form. [NewBuilder] returns one that has nothing. Once it has grown beyond bounds all is [None], and Build says so.
type Builder struct {
	nodes []node
	large bool
	work  *int // of all parts
}

// NewBuilder returns a builder.
func NewBuilder() *Builder { return &Builder{work: new(int)} }

// Part returns a builder of a form that is a part of another, or another try. What both do is bounded together.
func (b *Builder) Part() *Builder { return &Builder{work: b.work} }

// Spend counts steps that a form takes beside those of builders. It reports whether there is use in going on.
func (b *Builder) Spend(steps int) bool {
	*b.work += steps
	b.large = b.large || *b.work > maxWork
	return !b.large
}

type node struct {
	kind      kind
	low, high byte
	next      Node
	either    []Node
}

type kind uint8

const (
	isEnd kind = iota
	isBytes
	isEither
)

func (b *Builder) add(n node) Node {
	if len(b.nodes) >= maxNodes || !b.Spend(1) {
		b.large = true
		return None
	}
	b.nodes = append(b.nodes, n)
	return Node(len(b.nodes) - 1)
}

// End is where a text is over.
func (b *Builder) End() Node { return b.add(node{kind: isEnd}) }

// Bytes is one byte from low to high, and then next.
func (b *Builder) Bytes(low, high byte, next Node) Node {
	if next == None || low > high {
		return None
	}
	return b.add(node{kind: isBytes, low: low, high: high, next: next})
}

// Text is a text, and then next.
func (b *Builder) Text(text string, next Node) Node {
	for i := len(text) - 1; i >= 0; i-- {
		next = b.Bytes(text[i], text[i], next)
	}
	return next
}

// Either is any of the nodes.
func (b *Builder) Either(nodes ...Node) Node {
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(n Node) bool { return n == None })
	switch len(nodes) {
	case 0:
		return None
	case 1:
		return nodes[0]
	}
	return b.add(node{kind: isEither, either: nodes})
}

// Loop is what body writes before it any number of times, and then next.
func (b *Builder) Loop(next Node, body func(next Node) Node) Node {
	start := b.add(node{kind: isEither})
	if start == None {
		return None
	}
	again := body(start)
	b.nodes[start].either = slices.DeleteFunc([]Node{again, next}, func(n Node) bool { return n == None })
	if again == None {
		return next
	}
	return start
}

// Repeat is what body writes min to max times, without an end if max is negative, and then next.
func (b *Builder) Repeat(lowest, most int, next Node, body func(next Node) Node) Node {
	at := next
	if most < 0 {
		at = b.Loop(next, body)
	}
	for range most - lowest {
		if b.large {
			return None
		}
		more := body(at)
		if more == None { // none can be more
			break
		}
		at = b.Either(more, next)
	}
	for range lowest {
		if at = body(at); at == None {
			return None
		}
	}
	return at
}

// Embed is what an automaton accepts, and then next.
func (b *Builder) Embed(a *Automaton, next Node) Node {
	if next == None || len(a.states) > maxNodes-len(b.nodes) {
		b.large = b.large || next != None
		return None
	}
	first := Node(len(b.nodes))
	for range a.states {
		b.add(node{kind: isEither})
	}
	for i, s := range a.states {
		var either []Node
		if s.accepts {
			either = append(either, next)
		}
		for _, m := range s.moves {
			if n := b.Bytes(m.low, m.high, first+Node(m.to)); n != None {
				either = append(either, n)
			}
		}
		b.nodes[int(first)+i].either = either
	}
	if b.large {
		return None
	}
	return first
}

// Build returns the automaton of the texts that may come from a node on.
func (b *Builder) Build(start Node) (*Automaton, error) {
	if b.large {
		return nil, ErrLarge
	}
	if start == None {
		return nil, ErrEmpty
	}
	d := &determiner{nodes: b.nodes, work: b.work, seen: make([]int32, len(b.nodes)), states: map[string]int{}}
	d.state([]Node{start})
	for i := 0; i < len(d.subsets); i++ {
		d.expand(i)
		if d.large() {
			return nil, ErrLarge
		}
	}
	return d.out.minimal()
}

// determiner is the subset construction.
type determiner struct {
	nodes   []node
	seen    []int32 // the last closure that a node was in
	closure int32
	states  map[string]int
	subsets [][]Node // nodes of bytes, sorted
	out     Automaton
	work    *int
	size    int // nodes of all subsets
	moves   int
}

func (d *determiner) large() bool {
	return len(d.subsets) > slack*MaxStates || d.size > maxSubset || *d.work > maxWork || d.moves > slack*MaxMoves
}

// state returns the state of nodes.
func (d *determiner) state(from []Node) int {
	d.closure++
	var subset []Node
	accepts := false
	worklist := slices.Clone(from)
	for len(worklist) > 0 && *d.work <= maxWork {
		last := len(worklist) - 1
		at := worklist[last]
		worklist = worklist[:last]
		if *d.work++; d.seen[at] == d.closure {
			continue
		}
		d.seen[at] = d.closure
		switch n := &d.nodes[at]; n.kind {
		case isEnd:
			accepts = true
		case isBytes:
			subset = append(subset, at)
		case isEither:
			worklist = append(worklist, n.either...)
			*d.work += len(n.either)
		}
	}
	slices.Sort(subset)
	key := make([]byte, 0, 4*len(subset)+1)
	for _, n := range subset {
		key = binary.LittleEndian.AppendUint32(key, uint32(n))
	}
	if accepts {
		key = append(key, 1)
	}
	if id, ok := d.states[string(key)]; ok {
		return id
	}
	id := len(d.subsets)
	d.states[string(key)] = id
	d.subsets = append(d.subsets, subset)
	d.out.states = append(d.out.states, state{accepts: accepts})
	d.size += len(subset)
	return id
}

// expand finds the moves of a state.
func (d *determiner) expand(id int) {
	subset := d.subsets[id]
	var cuts [257]bool // where an interval of bytes begins
	for _, n := range subset {
		cuts[d.nodes[n].low], cuts[int(d.nodes[n].high)+1] = true, true
	}
	var s state
	var to []Node
	for low := 0; low < 256 && !d.large(); {
		high := low
		for !cuts[high+1] && high < 255 {
			high++
		}
		to = to[:0]
		for _, n := range subset {
			if x := &d.nodes[n]; int(x.low) <= low && low <= int(x.high) {
				to = append(to, x.next)
			}
		}
		*d.work += len(subset)
		if len(to) > 0 {
			s.add(byte(low), byte(high), d.state(to))
		}
		low = high + 1
	}
	d.moves += len(s.moves)
	d.out.states[id].moves = s.moves
}

// Intersect returns the automaton of the texts that both accept.
func (b *Builder) Intersect(x, y *Automaton) (*Automaton, error) { return b.product(x, y, false) }

// Except returns the automaton of the texts that x accepts, and y does not.
func (b *Builder) Except(x, y *Automaton) (*Automaton, error) { return b.product(x, y, true) }

// pair is a state of each of two automata; the second may have none any more.
type pair struct{ x, y int }

func (b *Builder) product(x, y *Automaton, except bool) (*Automaton, error) {
	ids := map[pair]int{{}: 0}
	order := []pair{{}}
	var out Automaton
	moves := 0
	for i := 0; i < len(order); i++ {
		p := order[i]
		s := state{accepts: x.states[p.x].accepts && except != (p.y >= 0 && y.states[p.y].accepts)}
		for _, m := range x.states[p.x].moves {
			for low := int(m.low); low <= int(m.high); {
				q, high := pair{m.to, -1}, int(m.high)
				if p.y >= 0 {
					q.y, high = y.states[p.y].interval(byte(low), m.high)
				}
				if q.y >= 0 || except {
					if _, ok := ids[q]; !ok {
						ids[q] = len(order)
						order = append(order, q)
					}
					s.add(byte(low), byte(high), ids[q])
				}
				low = high + 1
				*b.work += 4
			}
		}
		out.states = append(out.states, s)
		if moves += len(s.moves); len(order) > slack*MaxStates || moves > slack*MaxMoves || !b.Spend(4) {
			return nil, ErrLarge
		}
	}
	return out.minimal()
}

// interval returns where a byte leads, −1 for nowhere, and the last byte up to most that leads there by the same move.
func (s *state) interval(b, most byte) (to, last int) {
	for _, m := range s.moves {
		switch {
		case b < m.low:
			return -1, min(int(most), int(m.low)-1)
		case b <= m.high:
			return m.to, int(min(most, m.high))
		}
	}
	return -1, int(most)
}
