package grammar

import (
	"encoding/binary"
	"slices"
)

// minimal returns the automaton of the same texts with the fewest states.
//
// States are parted by whether they accept, and then by the parts that their moves lead to, until nothing is parted any more. When a part
// is split its greatest piece keeps the number, so only states before the others are looked at again. Thus a state gets another number
// at most as often as its part can be halved.
func (a *Automaton) minimal() (*Automaton, error) {
	live := a.live()
	if len(a.states) == 0 || !live[0] {
		return nil, ErrEmpty
	}
	p := &parting{of: a, live: live, part: make([]int, len(a.states)), place: make([]int, len(a.states)), dirty: make([]bool, len(a.states)), before: a.before()}
	p.members = make([][]int, 2)
	for i, s := range a.states {
		if !live[i] {
			continue
		}
		if s.accepts {
			p.part[i] = 1
		}
		p.place[i] = len(p.members[p.part[i]])
		p.members[p.part[i]] = append(p.members[p.part[i]], i)
		p.mark(i)
	}
	for len(p.worklist) > 0 {
		p.round()
	}
	merged := &Automaton{states: make([]state, len(p.members))}
	keep := make([]bool, len(p.members))
	for k, members := range p.members {
		if len(members) > 0 {
			keep[k] = true
			merged.states[k] = p.merged(members[0])
		}
	}
	first := p.part[0] // the start comes first
	for i := range merged.states {
		for j := range merged.states[i].moves {
			m := &merged.states[i].moves[j]
			m.to = swapped(m.to, first)
		}
	}
	merged.states[0], merged.states[first] = merged.states[first], merged.states[0]
	keep[0], keep[first] = keep[first], keep[0]
	return merged.numbered(keep, MaxStates)
}

func swapped(i, first int) int {
	switch i {
	case 0:
		return first
	case first:
		return 0
	}
	return i
}

// parting is a partition of states that becomes finer.
type parting struct {
	of       *Automaton
	live     []bool
	before   *inverse
	part     []int
	place    []int // among the members of the part
	members  [][]int
	dirty    []bool // the parts that its moves lead to have changed
	worklist []int  // those that are dirty
}

func (p *parting) mark(i int) {
	if !p.dirty[i] && p.live[i] {
		p.dirty[i] = true
		p.worklist = append(p.worklist, i)
	}
}

// merged returns a state whose moves lead to parts.
func (p *parting) merged(i int) state {
	s := state{accepts: p.of.states[i].accepts}
	for _, m := range p.of.states[i].moves {
		if p.live[m.to] {
			s.add(m.low, m.high, p.part[m.to])
		}
	}
	return s
}

func (p *parting) key(i int) string {
	var key []byte
	for _, m := range p.merged(i).moves {
		key = append(key, m.low, m.high)
		key = binary.LittleEndian.AppendUint32(key, uint32(m.to))
	}
	return string(key)
}

// piece is some states of a part that go on alike.
type piece struct {
	states []int
	rest   bool // and those of the part that were not looked at
}

// round looks again at the states that are dirty, part by part.
func (p *parting) round() {
	worklist := p.worklist
	p.worklist = nil
	looked := map[int][]int{}
	for _, i := range worklist {
		looked[p.part[i]] = append(looked[p.part[i]], i)
	}
	var split []func()
	for part, states := range looked { // numbers of parts decide nothing: what is built has its own
		split = append(split, p.split(part, states))
	}
	for _, i := range worklist {
		p.dirty[i] = false
	}
	for _, apply := range split { // once all have been looked at by the old numbers
		apply()
	}
}

// split returns what splits a part, of which some states are dirty. The others are all alike.
func (p *parting) split(part int, states []int) (apply func()) {
	pieces := map[string]*piece{}
	of := func(i int) *piece {
		k := p.key(i)
		if pieces[k] == nil {
			pieces[k] = &piece{}
		}
		return pieces[k]
	}
	for _, i := range states {
		x := of(i)
		x.states = append(x.states, i)
	}
	others, clean := len(p.members[part])-len(states), 0
	if others > 0 {
		clean = slices.IndexFunc(p.members[part], func(i int) bool { return !p.dirty[i] })
		of(p.members[part][clean]).rest = true
	}
	var greatest *piece
	most := 0
	for _, x := range pieces { // any of the greatest
		n := len(x.states)
		if x.rest {
			n += others
		}
		if n > most {
			greatest, most = x, n
		}
	}
	if others > 0 && !greatest.rest {
		x := of(p.members[part][clean])
		for _, i := range p.members[part] {
			if !p.dirty[i] {
				x.states = append(x.states, i)
			}
		}
	}
	return func() {
		for _, x := range pieces { // in any order
			if x != greatest {
				p.move(x.states, part)
			}
		}
	}
}

// move makes a new part of states of an old one.
func (p *parting) move(states []int, old int) {
	part := len(p.members)
	p.members = append(p.members, nil)
	for _, i := range states {
		from := p.members[old]
		last := len(from) - 1
		from[p.place[i]] = from[last]
		p.place[from[last]] = p.place[i]
		p.members[old] = from[:last]
		p.part[i], p.place[i] = part, len(p.members[part])
		p.members[part] = append(p.members[part], i)
		for _, b := range p.before.of(i) {
			p.mark(int(b))
		}
	}
}
