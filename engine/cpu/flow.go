package cpu

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// Flows: maps of float32 of which each takes what the one before has made. One
// link of a fusion takes a value through all of them in registers. Their other
// operands lie side by side, or are one number for a stretch of elements, which
// then need not be repeated in memory.

// flowFns are the functions of flows, and those with operands the other way
// round; −1 if there is none.
var flowFns = map[tensor.Fn][2]int{
	tensor.Add: {asm.FlowAdd, asm.FlowAdd},
	tensor.Sub: {asm.FlowSub, asm.FlowLess},
	tensor.Mul: {asm.FlowMul, asm.FlowMul},
	tensor.Div: {asm.FlowDiv, -1},
	tensor.Max: {asm.FlowMax, asm.FlowMax},
	tensor.Min: {asm.FlowMin, asm.FlowMin},
}

// minStretch is the number of elements for which one number is worth a row of a
// flow of its own.
const minStretch = 16

// number says where the number lies that all elements of a stretch share: each
// so many of the next, and after so many the first again.
type number struct{ base, each, count int }

// numberOf returns the number of which an operand is made, if it is.
func numberOf(v *affine.View) (x number, ok bool) {
	loops := v.Loops
	for len(loops) > 1 && loops[0].Stride == 0 {
		loops = loops[1:]
	}
	inner := loops[len(loops)-1]
	switch {
	case len(v.Bounds) > 0 || inner.Stride != 0 && inner.Extent > 1:
		return x, false
	case len(loops) == 1:
		return number{v.Base, 1, 1}, true
	case len(loops) == 2 && loops[0].Stride == 1 && inner.Extent >= minStretch:
		return number{v.Base, inner.Extent, loops[0].Extent}, true
	}
	return x, false
}

// findStretch sets the stretch of a fusion: its rows, or, where each element
// stands alone, the elements that share a number of some operand.
func (l *linker) findStretch(m *members) {
	c := l.c
	if c.width = m.n / max(c.rows, 1); c.width > 1 {
		c.stretch = c.width
		return
	}
	for _, i := range m.nodes {
		p := l.nodes[i].Primitive
		if _, ok := flowFns[p.Fn]; !ok || p.Type != tensor.Float32 {
			continue
		}
		for j := range p.Args {
			if x, ok := numberOf(affine.NewView(p, j, affine.Axes(0, len(p.Shape)))); ok && x.count > 1 && (c.stretch == 0 || x.each < c.stretch) {
				c.stretch = x.each
			}
		}
	}
}

// flow appends what computes node i as a step of a flow, perhaps of the one that
// made its operand, and returns its link without a destination.
func (l *linker) flow(i int) (k link, ok bool) {
	p := l.nodes[i].Primitive
	fns, ok := flowFns[p.Fn]
	if !ok || p.Type != tensor.Float32 || l.set.Flow == nil {
		return k, false
	}
	width := span(p) / max(l.c.rows, 1)
	numbers := [2]int{l.number(i, 0, width), l.number(i, 1, width)}
	if numbers[0] >= 0 && (numbers[1] >= 0 || fns[1] < 0) {
		return k, false
	}
	main := 0 // the operand that flows
	if numbers[0] >= 0 || numbers[1] < 0 && fns[1] >= 0 && l.maker(i, 0) < 0 && l.maker(i, 1) >= 0 {
		main = 1
	}
	other := numbers[1-main]
	if other < 0 {
		other = l.operand(i, 1-main, 0)
		fns[0], fns[1] = fns[0]+1, fns[1]+1
	}
	if at := l.maker(i, main); at >= 0 {
		k = l.c.links[at]
		k.src, k.flow = slices.Clone(k.src), slices.Clone(k.flow)
		l.c.links[at] = link{} // continued below
	} else {
		k.src, k.width = []int{l.operand(i, main, 0)}, width
	}
	k.src, k.flow = append(k.src, other), append(k.flow, fns[main])
	return k, true
}

// maker returns the flow that makes operand j of node i, and nothing else of
// this fusion or outside it reads; −1 if there is none.
func (l *linker) maker(i, j int) int {
	ref := l.source(l.nodes[i].From[j])
	if ref.Kind != graph.RefNode || l.uses[ref.Index] != 1 {
		return -1
	}
	v, inside := l.made[ref.Index]
	if !inside || l.c.values[v].place != inScratch {
		return -1
	}
	return slices.IndexFunc(l.c.links, func(k link) bool { return k.dst == v && len(k.flow) > 0 })
}

// flowing returns the operand that is the output of a node, if it does nothing but
// flow; −1 if it is read beside what flows.
func (l *linker) flowing(node int) int {
	arg := slices.Index(l.args, graph.Ref{Kind: graph.RefNode, Index: node})
	for _, k := range l.c.links {
		for _, v := range k.src[1:] {
			if x := &l.c.values[v]; x.place == inOperand && x.index == arg {
				return none
			}
		}
	}
	return arg
}

// settle drops links that others have taken over, and finds those that write
// outputs.
func (l *linker) settle() {
	l.c.links = slices.DeleteFunc(l.c.links, func(k link) bool { return k.do == nil && k.flow == nil && k.views == nil })
	l.outLink = make([]int, len(l.outs))
	for k := range l.c.links {
		if v := &l.c.values[l.c.links[k].dst]; v.place == inOutput {
			l.outLink[v.index] = k
		}
	}
}

// number returns the value of operand j of node i if it is one number for each
// stretch, −1 if it is not.
func (l *linker) number(i, j, width int) int {
	p := l.nodes[i].Primitive
	ref := l.source(l.nodes[i].From[j])
	if ref.Kind == graph.RefNode {
		if v, inside := l.made[ref.Index]; inside {
			if l.c.values[v].width == 1 && width > 1 {
				return v
			}
			return -1
		}
	}
	x, ok := numberOf(affine.NewView(p, j, affine.Axes(0, len(p.Shape))))
	if !ok || x.count > 1 && (x.each != l.c.stretch || width != l.c.width) {
		return -1
	}
	arg := l.arg(ref)
	return l.remember(fmt.Sprint("number", arg, x), func() int {
		return l.value(value{typ: tensor.Float32, width: 1, place: inOperand, index: arg, base: x.base, number: x})
	})
}

// flow takes rows of a block, which begins at a row, through a flow.
func (c *fusion) flow(l *link, s *scratch, from, rows int) {
	n := rows * l.width
	width := n
	if l.width == c.width && c.stretch > 0 {
		width = min(c.stretch-from*c.width%c.stretch, n)
	}
	c.through(l, s, field{rows: n / width, lines: 1, width: width, number: -1})
}

// field is rows that flow together, as asm.Flow has them: the leads are those of the
// head. What number says is Step.Row.
type field struct{ rows, lines, width, gap, lineLead, rowLead, number int }

// through takes rows through a flow.
func (c *fusion) through(l *link, s *scratch, f field) {
	s.steps = mem.Grow(s.steps, len(l.flow))
	for i, fn := range l.flow {
		v := l.src[i+1]
		s.steps[i] = asm.Step{Fn: fn, At: s.at[v], Row: f.number}
		if c.values[v].number.count == 1 {
			s.steps[i].Row = 0
		}
	}
	if !c.isHead(l.src[0]) {
		f.lineLead, f.rowLead = 0, 0
	}
	c.flows(f.rows, f.lines, f.width, f.gap*mem.Word, f.lineLead*mem.Word, f.rowLead*mem.Word,
		(*float32)(s.at[l.dst]), (*float32)(s.at[l.src[0]]), (*byte)(mem.First(s.steps)), len(s.steps))
}

// runRows computes rows of n elements that begin so many apart, and may still lie in
// a source: at once, if it can.
func (c *fusion) runRows(s *scratch, outs, args []*tensor.Tensor, at, n, rows, pitch int, from kernel.Source) error {
	if from.Data == nil {
		from = kernel.Source{RowPitch: pitch, Lines: 1, LinePitch: n}
	}
	width := n / from.Lines
	number, together := c.numbers(at, n, rows, pitch)
	switch {
	case from.Lines == 1 && number == 0 && (rows == 1 || pitch == n && from.RowPitch == n):
		return c.runFrom(s, outs, args, at, at+n*rows, from.Address(0, 0))
	case !together:
		for i := range rows * from.Lines {
			row, line := i/from.Lines, i%from.Lines
			lo := at + row*pitch + line*width
			if err := c.runFrom(s, outs, args, lo, lo+width, from.Address(row, line)); err != nil {
				return err
			}
		}
		return nil
	}
	f := field{rows: rows, lines: from.Lines, width: width, gap: pitch - n, lineLead: from.LinePitch - width, number: number}
	f.rowLead = from.RowPitch - pitch - f.lines*f.lineLead
	c.begin(s, outs, args, at, from.Address(0, 0))
	for i := range c.links {
		c.through(&c.links[i], s, f)
	}
	c.end(s)
	return nil
}

// numbers reports whether rows can flow together, and what Step.Row is then: they
// share a number, or each has the next.
func (c *fusion) numbers(at, n, rows, pitch int) (number int, ok bool) {
	switch in := at % max(c.stretch, 1); {
	case !c.even:
		return 0, false
	case c.stretch == 0 || in+(rows-1)*pitch+n <= c.stretch:
		return 0, true
	case pitch != c.stretch || in+n > c.stretch:
		return 0, false
	}
	for i := range c.values {
		if x := &c.values[i].number; x.count > 1 && c.place(at)%x.count+rows > x.count {
			return 0, false
		}
	}
	return -1, true
}

// together returns how many of the next rows, of so many, a block can have: whole
// stretches or a part of one, and no number after which the first comes again.
func (c *fusion) together(from, rows int) int {
	rows = min(rows, c.block)
	if c.stretch == 0 {
		return rows
	}
	if c.width == 1 {
		if in := from % c.stretch; in > 0 || rows < c.stretch {
			return min(rows, c.stretch-in)
		}
		rows -= rows % c.stretch
	}
	for i := range c.values {
		if x := &c.values[i].number; x.count > 1 {
			rows = min(rows, (x.count-c.place(from)%x.count)*c.stretch/c.width)
		}
	}
	return rows
}

// place returns the stretch in which a row begins.
func (c *fusion) place(row int) int { return row * c.width / max(c.stretch, 1) }
