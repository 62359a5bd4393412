package cpu

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
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
func numberOf(v *view) (x number, ok bool) {
	loops := v.loops
	for len(loops) > 1 && loops[0].stride == 0 {
		loops = loops[1:]
	}
	inner := loops[len(loops)-1]
	switch {
	case len(v.bounds) > 0 || inner.stride != 0 && inner.extent > 1:
		return x, false
	case len(loops) == 1:
		return number{v.base, 1, 1}, true
	case len(loops) == 2 && loops[0].stride == 1 && inner.extent >= minStretch:
		return number{v.base, inner.extent, loops[0].extent}, true
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
			if x, ok := numberOf(newView(p, j, axes(0, len(p.Shape)))); ok && x.count > 1 && (c.stretch == 0 || x.each < c.stretch) {
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
	x, ok := numberOf(newView(p, j, axes(0, len(p.Shape))))
	if !ok || x.count > 1 && (x.each != l.c.stretch || width != l.c.width) {
		return -1
	}
	arg := l.arg(ref)
	return l.remember(fmt.Sprint("number", arg, x), func() int {
		return l.value(value{typ: tensor.Float32, width: 1, place: inOperand, index: arg, base: x.base, number: x})
	})
}

// flow takes rows of a block, which begins at a row, through a flow.
func (c *fusion) flow(l *link, w *worker, from, rows int) {
	n := rows * l.width
	width := n
	if l.width == c.width && c.stretch > 0 {
		width = min(c.stretch-from*c.width%c.stretch, n)
	}
	c.through(l, w, n/width, width, 0)
}

// through takes rows, with a gap of so many elements between them, through a flow.
func (c *fusion) through(l *link, w *worker, rows, width, gap int) {
	w.steps = grow(w.steps, len(l.flow))
	for i, fn := range l.flow {
		v := l.src[i+1]
		w.steps[i] = asm.Step{Fn: fn, At: w.at[v], Row: -1}
		if c.values[v].number.count == 1 {
			w.steps[i].Row = 0
		}
	}
	c.flows(rows, width, gap*word, (*float32)(w.at[l.dst]), (*float32)(w.at[l.src[0]]), (*byte)(first(w.steps)), len(w.steps))
}

// runRows computes rows of n elements that begin so many apart: at once, if there
// are only flows, with a number for each of those rows or for all.
func (c *fusion) runRows(w *worker, outs, args []*tensor.Tensor, at, n, rows, pitch int) error {
	switch {
	case rows == 1 || pitch == n:
		return c.run(w, outs, args, at, at+n*rows)
	case !c.even(at, n, rows, pitch):
		for r := range rows {
			if err := c.run(w, outs, args, at+r*pitch, at+r*pitch+n); err != nil {
				return err
			}
		}
		return nil
	}
	c.begin(w, outs, args, at)
	for i := range c.links {
		c.through(&c.links[i], w, rows, n, pitch-n)
	}
	c.end(w)
	return nil
}

// even reports whether runRows can compute rows at once.
func (c *fusion) even(at, n, rows, pitch int) bool {
	ok := c.width == 1 && len(c.once) == 0 && c.scratch == 0 &&
		(c.stretch == 0 || pitch == c.stretch && at%c.stretch+n <= c.stretch)
	for i := range c.links {
		ok = ok && len(c.links[i].flow) > 0
	}
	for i := range c.values {
		if x := &c.values[i].number; ok && x.count > 1 {
			ok = c.place(at)%x.count+rows <= x.count
		}
	}
	return ok
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
