package grammar

import (
	"errors"
	"fmt"

	"github.com/tally-network/tally/core/canon"
)

// Bounds of an automaton.
const (
	MaxStates = 1 << 14
	MaxMoves  = 1 << 17
)

// Errors of what is no automaton.
var (
	ErrLarge = fmt.Errorf("the form needs more than %d states or %d moves: make it simpler, or its bounds smaller", MaxStates, MaxMoves)
	ErrEmpty = errors.New("no text has this form")
)

// Automaton accepts texts, byte by byte. It begins in state 0, and never changes.
type Automaton struct{ states []state }

type state struct {
	accepts bool
	moves   []move // by bytes, in their order
}

// move leads to a state by the bytes from low to high.
type move struct {
	low, high byte
	to        int
}

// Len returns how many states there are.
func (a *Automaton) Len() int { return len(a.states) }

// next returns the state after a byte, −1 if there is none.
func (s *state) next(b byte) int {
	for _, m := range s.moves {
		if b <= m.high {
			if b >= m.low {
				return m.to
			}
			break
		}
	}
	return -1
}

// Accepts reports whether a text has the form.
func (a *Automaton) Accepts(text []byte) bool {
	at := 0
	for _, b := range text {
		if at = a.states[at].next(b); at < 0 {
			return false
		}
	}
	return a.states[at].accepts
}

// ID returns the identity of the automaton.
func (a *Automaton) ID() canon.Hash { return canon.Sum(canon.DomainGrammar, canon.Marshal(a)) }

// Code walks the states. What is read is checked.
func (a *Automaton) Code(w *canon.Codec) {
	canon.Seq(w, &a.states, MaxStates, 2, func(w *canon.Codec, s *state) {
		w.Bool(&s.accepts)
		canon.Seq(w, &s.moves, 256, 3, func(w *canon.Codec, m *move) {
			w.U8(&m.low)
			w.U8(&m.high)
			w.Int(&m.to, MaxStates-1)
		})
	})
	if w.Reading() {
		if err := a.check(); err != nil {
			w.Fail("%v", err)
		}
	}
}

// check refuses what no builder makes.
func (a *Automaton) check() error {
	total, found := 0, 1 // states that a move has led to
	if len(a.states) == 0 {
		return errors.New("the automaton has no states")
	}
	for i, s := range a.states {
		if total += len(s.moves); total > MaxMoves || i >= found {
			return fmt.Errorf("state %d is out of order, or there are more than %d moves", i, MaxMoves)
		}
		for j, m := range s.moves {
			switch {
			case m.low > m.high || j > 0 && m.low <= s.moves[j-1].high:
				return fmt.Errorf("state %d: move %d is out of order", i, j)
			case j > 0 && int(m.low) == int(s.moves[j-1].high)+1 && m.to == s.moves[j-1].to:
				return fmt.Errorf("state %d: moves %d and %d are one", i, j-1, j)
			case m.to >= len(a.states) || m.to > found:
				return fmt.Errorf("state %d: move %d leads to state %d, which is out of order", i, j, m.to)
			case m.to == found:
				found++
			}
		}
	}
	if found < len(a.states) {
		return fmt.Errorf("state %d is not reached", found)
	}
	for i, live := range a.live() {
		if !live {
			return fmt.Errorf("from state %d no end is reached", i)
		}
	}
	return nil
}

// live tells the states from which an end can be reached.
func (a *Automaton) live() []bool {
	before := a.before()
	live := make([]bool, len(a.states))
	var worklist []int
	for i, s := range a.states {
		if s.accepts {
			live[i] = true
			worklist = append(worklist, i)
		}
	}
	for len(worklist) > 0 {
		last := len(worklist) - 1
		at := worklist[last]
		worklist = worklist[:last]
		for _, i := range before.of(at) {
			if !live[i] {
				live[i] = true
				worklist = append(worklist, int(i))
			}
		}
	}
	return live
}

// inverse has, of each state, those that lead to it.
type inverse struct {
	from  []int32
	first []int // of each state, and the end
}

func (v *inverse) of(state int) []int32 { return v.from[v.first[state]:v.first[state+1]] }

func (a *Automaton) before() *inverse {
	v := &inverse{first: make([]int, len(a.states)+1)}
	for _, s := range a.states {
		for _, m := range s.moves {
			v.first[m.to+1]++
		}
	}
	for i := range a.states {
		v.first[i+1] += v.first[i]
	}
	v.from = make([]int32, v.first[len(a.states)])
	at := append([]int(nil), v.first...)
	for i, s := range a.states {
		for _, m := range s.moves {
			v.from[at[m.to]] = int32(i)
			at[m.to]++
		}
	}
	return v
}

// restricted returns the automaton without the bytes that may not come. It is a in its own numbers, or one of fewer states.
func (a *Automaton) restricted(may *[256]bool) (*Automaton, error) {
	cut := &Automaton{states: make([]state, len(a.states))}
	for i, s := range a.states {
		cut.states[i].accepts = s.accepts
		for _, m := range s.moves {
			for b := int(m.low); b <= int(m.high); b++ {
				if may[b] {
					cut.states[i].add(byte(b), byte(b), m.to)
				}
			}
		}
	}
	return cut.numbered(cut.live(), MaxStates)
}

// add appends a move, or makes the last one longer.
func (s *state) add(low, high byte, to int) {
	if last := len(s.moves) - 1; last >= 0 && s.moves[last].to == to && int(s.moves[last].high)+1 == int(low) {
		s.moves[last].high = high
		return
	}
	s.moves = append(s.moves, move{low, high, to})
}

// numbered returns the states that are kept and reached, in the order in which they are found.
func (a *Automaton) numbered(keep []bool, most int) (*Automaton, error) {
	if len(a.states) == 0 || !keep[0] {
		return nil, ErrEmpty
	}
	number := make([]int, len(a.states))
	order := []int{0}
	number[0] = 1
	out := &Automaton{}
	moves := 0
	for i := 0; i < len(order); i++ {
		old := &a.states[order[i]]
		s := state{accepts: old.accepts}
		for _, m := range old.moves {
			if !keep[m.to] {
				continue
			}
			if number[m.to] == 0 {
				order = append(order, m.to)
				number[m.to] = len(order)
			}
			s.add(m.low, m.high, number[m.to]-1)
		}
		if moves += len(s.moves); len(order) > most || moves > MaxMoves {
			return nil, ErrLarge
		}
		out.states = append(out.states, s)
	}
	return out, nil
}
