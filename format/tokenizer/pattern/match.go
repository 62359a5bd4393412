package pattern

import (
	"errors"
	"unicode/utf8"
)

// ErrSteps says that a text takes too many steps to match.
var ErrSteps = errors.New("the regular expression goes back too often in this text: cut the text into shorter parts")

// Steps that the matches of one text may take: so many for each byte of a short text, and for a
// long one fewer. The worst expression in use, \s+$, takes the square of the longest run of
// white space.
const (
	stepsOfAByte  = 1 << 12
	someSteps     = 1 << 22
	stepsOfLonger = 1 << 8
)

// op is what an instruction does.
type op uint8

const (
	opMatch     op = iota
	opSet          // takes one character
	opRun          // takes as many characters as there are, and gives them back one by one
	opSplit        // tries x, then y
	opJump         // goes to x
	opLook         // runs what follows up to its opMatch, and goes on at x if it matches
	opLookNot      // … if it does not
	opAtomic       // … where it ended
	opLineStart    //
	opLineEnd      //
	opAdvanced     // goes back if nothing was taken since the place in register x
	opRemember     // puts the place in register x
)

type instruction struct {
	op       op
	x, y     int
	set      *set
	min, max int
}

// Pattern is a compiled expression.
type Pattern struct {
	code  []instruction
	empty bool
}

// CanBeEmpty reports whether the expression may match no characters.
func (p *Pattern) CanBeEmpty() bool { return p.empty }

type compiler struct {
	code    []instruction
	nodes   int // so many were written: repetitions of nothing give no code
	tooLong bool
}

func (c *compiler) add(i instruction) int {
	if len(c.code) >= maxCode {
		c.tooLong = true
		return 0
	}
	c.code = append(c.code, i)
	return len(c.code) - 1
}

func (c *compiler) emit(n *node) {
	if c.nodes++; c.nodes > 4*maxCode {
		c.tooLong = true
	}
	if c.tooLong {
		return
	}
	switch n.kind {
	case nodeSet:
		c.add(instruction{op: opSet, set: n.set})
	case nodeSequence:
		for _, part := range n.parts {
			c.emit(part)
		}
	case nodeAlternatives:
		c.alternatives(n.parts)
	case nodeRepeat:
		c.repeat(n)
	case nodeLineStart:
		c.add(instruction{op: opLineStart})
	case nodeLineEnd:
		c.add(instruction{op: opLineEnd})
	case nodeLook, nodeAtomic:
		o := opAtomic
		if n.kind == nodeLook {
			o = opLook
			if n.negative {
				o = opLookNot
			}
		}
		at := c.add(instruction{op: o})
		c.emit(n.parts[0])
		c.add(instruction{op: opMatch})
		c.code[at].x = len(c.code)
	}
}

func (c *compiler) alternatives(parts []*node) {
	var jumps []int
	for _, part := range parts[:len(parts)-1] {
		split := c.add(instruction{op: opSplit})
		c.code[split].x = len(c.code)
		c.emit(part)
		jumps = append(jumps, c.add(instruction{op: opJump}))
		c.code[split].y = len(c.code)
	}
	c.emit(parts[len(parts)-1])
	for _, j := range jumps {
		c.code[j].x = len(c.code)
	}
}

func (c *compiler) repeat(n *node) {
	part := n.parts[0]
	if part.kind == nodeSet && !n.lazy {
		c.add(instruction{op: opRun, set: part.set, min: n.min, max: n.max})
		return
	}
	for range n.min {
		c.emit(part)
	}
	// option writes a choice between what comes next, and what fix will say.
	option := func() (fix func()) {
		split := c.add(instruction{op: opSplit})
		next := len(c.code)
		return func() {
			c.code[split].x, c.code[split].y = next, len(c.code)
			if n.lazy {
				c.code[split].x, c.code[split].y = len(c.code), next
			}
		}
	}
	if n.max == anyNumber {
		loop := len(c.code)
		leave := option()
		if canBeEmpty(part) {
			c.add(instruction{op: opRemember, x: loop})
			c.emit(part)
			c.add(instruction{op: opAdvanced, x: loop})
		} else {
			c.emit(part)
		}
		c.add(instruction{op: opJump, x: loop})
		leave()
		return
	}
	var leave []func()
	for range n.max - n.min {
		leave = append(leave, option())
		c.emit(part)
	}
	for _, fix := range leave {
		fix()
	}
}

// canBeEmpty reports whether a node may take no characters.
func canBeEmpty(n *node) bool {
	switch n.kind {
	case nodeSet:
		return false
	case nodeAlternatives:
		for _, part := range n.parts {
			if canBeEmpty(part) {
				return true
			}
		}
		return false
	case nodeRepeat:
		return n.min == 0 || canBeEmpty(n.parts[0])
	case nodeSequence, nodeAtomic:
		for _, part := range n.parts {
			if !canBeEmpty(part) {
				return false
			}
		}
	}
	return true
}

// state is where a match may go on: at an instruction, with so much of the text taken. A run
// may give back characters down to low.
type state struct {
	pc, at, low int
}

type machine struct {
	code  []instruction
	text  string
	steps int
	stack []state
	since map[int]int // registers of opRemember
}

// Matcher finds matches in one text. It is for one goroutine.
type Matcher struct{ m machine }

// Match returns what finds the matches in a text.
func (p *Pattern) Match(text string) *Matcher {
	steps := min(stepsOfAByte*(len(text)+1), someSteps+stepsOfLonger*len(text))
	return &Matcher{machine{code: p.code, text: text, steps: steps}}
}

// Next returns the first match, not before a place, that takes characters.
func (m *Matcher) Next(from int) (start, end int, found bool, err error) {
	for start = from; start < len(m.m.text); {
		end, ok := m.m.run(0, start)
		if m.m.steps < 0 {
			return 0, 0, false, ErrSteps
		}
		if ok && end > start {
			return start, end, true, nil
		}
		_, n := utf8.DecodeRuneInString(m.m.text[start:])
		start += n
	}
	return 0, 0, false, nil
}

// Find returns the first match in a text that takes characters.
func (p *Pattern) Find(text string) (start, end int, found bool, err error) {
	return p.Match(text).Next(0)
}

// run matches from an instruction and a place on, and returns where the match ends.
func (m *machine) run(pc, at int) (int, bool) {
	base := len(m.stack)
	defer func() { m.stack = m.stack[:base] }()
	for {
		if m.steps--; m.steps < 0 {
			return 0, false
		}
		next, to, ok := m.step(m.code[pc], pc, at)
		if ok && next < 0 {
			return at, true
		}
		if !ok {
			if next, to, ok = m.back(base); !ok {
				return 0, false
			}
		}
		pc, at = next, to
	}
}

// back returns to the last choice.
func (m *machine) back(base int) (pc, at int, ok bool) {
	if len(m.stack) == base {
		return 0, 0, false
	}
	top := &m.stack[len(m.stack)-1]
	pc, at = top.pc, top.at
	if at > top.low {
		_, n := utf8.DecodeLastRuneInString(m.text[:at])
		top.at -= n
	} else {
		m.stack = m.stack[:len(m.stack)-1]
	}
	return pc, at, true
}

// step does one instruction; next is negative at the end.
func (m *machine) step(i instruction, pc, at int) (next, to int, ok bool) {
	switch i.op {
	case opMatch:
		return -1, at, true
	case opSet:
		n := i.set.next(m.text, at)
		return pc + 1, at + n, n > 0
	case opRun:
		return m.characters(i, pc, at)
	case opSplit:
		m.stack = append(m.stack, state{pc: i.y, at: at, low: at})
		return i.x, at, true
	case opJump:
		return i.x, at, true
	case opLook, opLookNot:
		_, found := m.run(pc+1, at)
		return i.x, at, found == (i.op == opLook)
	case opAtomic:
		end, found := m.run(pc+1, at)
		return i.x, end, found
	case opLineStart:
		return pc + 1, at, at == 0 || at < len(m.text) && m.text[at-1] == '\n'
	case opLineEnd:
		return pc + 1, at, at == len(m.text) || m.text[at] == '\n'
	case opRemember:
		if m.since == nil {
			m.since = map[int]int{}
		}
		m.since[i.x] = at
		return pc + 1, at, true
	default: // opAdvanced
		return pc + 1, at, m.since[i.x] < at
	}
}

// characters takes as many characters of a set as may be.
func (m *machine) characters(i instruction, pc, at int) (next, to int, ok bool) {
	low := at
	count := 0
	for i.max == anyNumber || count < i.max {
		n := i.set.next(m.text, at)
		if n == 0 {
			break
		}
		at += n
		if count++; count == i.min {
			low = at
		}
	}
	m.steps -= count
	if count < i.min {
		return 0, 0, false
	}
	if at > low {
		_, n := utf8.DecodeLastRuneInString(m.text[:at])
		m.stack = append(m.stack, state{pc: pc + 1, at: at - n, low: low})
	}
	return pc + 1, at, true
}
