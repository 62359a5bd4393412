package fuse

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// Elementwise chains: maps of float32 of which each takes what the one before has made.
// One stage takes a value through all of them in registers. Their other operands are
// contiguous, or scalars that are broadcast over a period of elements and need no copies.

// chainFns are the ops of chains that take an operand, and those with both swapped.
var chainFns = map[tensor.Fn][2]int{
	tensor.Add: {asm.OpAdd, asm.OpAdd},
	tensor.Sub: {asm.OpSub, asm.OpReverseSub},
	tensor.Mul: {asm.OpMul, asm.OpMul},
	tensor.Div: {asm.OpDiv, asm.OpReverseDiv},
	tensor.Max: {asm.OpMax, asm.OpMax},
	tensor.Min: {asm.OpMin, asm.OpMin},
}

// chainAlone are the ops of chains that take none.
var chainAlone = map[tensor.Fn]int{tensor.Neg: asm.OpNeg, tensor.ExpF: asm.OpExp, tensor.TanhF: asm.OpTanh, tensor.ErfF: asm.OpErf}

// chainOp is a function of an asm.EltwiseOp, and the value that is its operand.
type chainOp struct{ fn, operand int }

// noOperand stands for the operand that an op does not take.
const noOperand = -1

// nothing is what such an op reads.
var nothing float32

// broadcastScalar is an operand of count scalars from element base on: each is shared by
// period elements, and after the last the first comes again.
type broadcastScalar struct{ base, period, count int }

// scalarOf returns the broadcast scalar that an operand is, if it is one.
func scalarOf(v *affine.View) (x broadcastScalar, ok bool) {
	loops := v.Loops
	for len(loops) > 1 && loops[0].Stride == 0 {
		loops = loops[1:]
	}
	inner := loops[len(loops)-1]
	switch {
	case len(v.Bounds) > 0 || inner.Stride != 0 && inner.Extent > 1:
		return x, false
	case len(loops) == 1:
		return broadcastScalar{v.Base, 1, 1}, true
	case len(loops) == 2 && loops[0].Stride == 1 && inner.Extent >= tuning.MinPeriod:
		return broadcastScalar{v.Base, inner.Extent, loops[0].Extent}, true
	}
	return x, false
}

// findPeriod sets the period of a fusion: its rows, or, where rows have one element, the
// least number of elements that share a scalar of some operand.
func (l *Builder) findPeriod(m *Group) {
	c := l.Fusion
	if c.width = m.Elements / max(c.rows, 1); c.width > 1 {
		c.period = c.width
		return
	}
	for _, i := range m.Nodes {
		p := l.graph.Primitive(i)
		if _, ok := chainFns[p.Fn]; !ok || p.Type != tensor.Float32 {
			continue
		}
		for j := range p.Args {
			if x, ok := scalarOf(affine.NewView(p, j, affine.Axes(0, len(p.Shape)))); ok && x.count > 1 && (c.period == 0 || x.period < c.period) {
				c.period = x.period
			}
		}
	}
}

// chainStage returns node i as a chain, perhaps the one that makes its operand with one
// more op, without a destination. ok is false if it cannot be an op.
func (l *Builder) chainStage(i int) (k stage, ok bool) {
	p := l.graph.Primitive(i)
	if p.Type != tensor.Float32 || l.set.EltwiseChain == nil {
		return k, false
	}
	if fn, ok := chainAlone[p.Fn]; ok {
		return l.continueChain(i, 0, chainOp{fn, noOperand}), true
	}
	fns, ok := chainFns[p.Fn]
	if !ok {
		return k, false
	}
	width := affine.Span(p) / max(l.Fusion.rows, 1)
	scalars := [2]int{l.scalarValue(i, 0, width), l.scalarValue(i, 1, width)}
	if scalars[0] >= 0 && scalars[1] >= 0 {
		return k, false
	}
	main := 0 // the operand that the op takes from the chain
	if scalars[0] >= 0 || l.repeats(i, 0) > 0 || scalars[1] < 0 && l.chainOf(i, 0) < 0 && l.chainOf(i, 1) >= 0 {
		main = 1
	}
	other := scalars[1-main]
	if other < 0 {
		if n := l.repeats(i, 1-main); n > 0 {
			other = l.repeatedValue(i, 1-main, n)
		} else {
			other = l.operand(i, 1-main, 0)
		}
		fns[0], fns[1] = fns[0]+1, fns[1]+1
	}
	return l.continueChain(i, main, chainOp{fns[main], other}), true
}

// continueChain returns the chain that makes operand j of node i, or a new one of that
// operand, with one more op.
func (l *Builder) continueChain(i, j int, op chainOp) (k stage) {
	if at := l.chainOf(i, j); at >= 0 {
		k = l.Fusion.stages[at]
		k.ops = slices.Clone(k.ops)
		l.Fusion.stages[at] = stage{} // continued by k
	} else {
		k.src, k.width = []int{l.operand(i, j, 0)}, affine.Span(l.graph.Primitive(i))/max(l.Fusion.rows, 1)
	}
	k.ops = append(k.ops, op)
	return k
}

// chainOf returns the stage of the chain that makes operand j of node i and that nothing
// else reads; −1 if there is none.
func (l *Builder) chainOf(i, j int) int {
	ref := l.graph.Source(i, j)
	if ref.Kind != graph.RefNode || l.uses[ref.Index] != 1 {
		return -1
	}
	v, inside := l.values[ref.Index]
	if !inside || l.Fusion.values[v].where != inScratch {
		return -1
	}
	return slices.IndexFunc(l.Fusion.stages, func(k stage) bool { return k.dst == v && len(k.ops) > 0 })
}

// chainHead returns the operand that is the output of a node, if chains only begin with it;
// NoHead if they also take it later.
func (l *Builder) chainHead(node int) int {
	arg := slices.Index(l.Args, graph.Ref{Kind: graph.RefNode, Index: node})
	for _, k := range l.Fusion.stages {
		for _, v := range k.reads()[1:] {
			if x := &l.Fusion.values[v]; x.where == inOperand && x.index == arg {
				return NoHead
			}
		}
	}
	return arg
}

// dropMerged drops chains that others continue, and finds the stages that write outputs.
func (l *Builder) dropMerged() {
	l.Fusion.stages = slices.DeleteFunc(l.Fusion.stages, func(k stage) bool { return k.do == nil && k.ops == nil && k.views == nil })
	l.outStage = make([]int, len(l.Outs))
	for k := range l.Fusion.stages {
		if v := &l.Fusion.values[l.Fusion.stages[k].dst]; v.where == inOutput {
			l.outStage[v.index] = k
		}
	}
}

// scalarValue returns the value of operand j of node i if it is one scalar for each period,
// −1 if it is not.
func (l *Builder) scalarValue(i, j, width int) int {
	p := l.graph.Primitive(i)
	ref := l.graph.Source(i, j)
	if ref.Kind == graph.RefNode {
		if v, inside := l.values[ref.Index]; inside {
			if l.Fusion.values[v].width == 1 && width > 1 {
				return v
			}
			return -1
		}
	}
	x, ok := scalarOf(affine.NewView(p, j, affine.Axes(0, len(p.Shape))))
	if !ok || x.count > 1 && (x.period != l.Fusion.period || width != l.Fusion.width) {
		return -1
	}
	arg := l.argument(ref)
	return l.remember(fmt.Sprint("number", arg, x), func() int {
		return l.addValue(value{typ: tensor.Float32, width: 1, where: inOperand, index: arg, base: x.base, scalar: x})
	})
}

// repeats returns the elements after which operand j of node i begins again, if rows have one
// element, so that a chain can read it in place; 0 if it does not.
func (l *Builder) repeats(i, j int) int {
	ref := l.graph.Source(i, j)
	if _, inside := l.values[ref.Index]; l.Fusion.width != 1 || ref.Kind == graph.RefNode && inside {
		return 0
	}
	p := l.graph.Primitive(i)
	v := affine.NewView(p, j, affine.Axes(0, len(p.Shape)))
	if len(v.Bounds) > 0 || len(v.Loops) != 2 || v.Loops[0].Stride != 0 || v.Loops[1].Stride != 1 || v.Loops[1].Extent < tuning.MinPeriod {
		return 0
	}
	return v.Loops[1].Extent
}

// repeatedValue returns the value of operand j of node i, which begins again after n
// elements.
func (l *Builder) repeatedValue(i, j, n int) int {
	p := l.graph.Primitive(i)
	arg, base := l.argument(l.graph.Source(i, j)), affine.NewView(p, j, affine.Axes(0, len(p.Shape))).Base
	l.Fusion.repeats = true
	return l.remember(fmt.Sprint("repeated", arg, base, n), func() int {
		return l.addValue(value{typ: tensor.Float32, width: 1, where: inOperand, index: arg, base: base, repeats: n})
	})
}

// runChain takes rows through a chain, from a row on.
func (c *Fusion) runChain(l *stage, s *scratch, from, rows int) {
	n := rows * l.width
	width := n
	if l.width == c.width && c.period > 0 {
		width = min(c.period-from*c.width%c.period, n)
	}
	c.runField(l, s, chainField{rows: n / width, lines: 1, width: width, number: -1})
}

// chainField is the rows of lines that one call of asm.ChainKernel takes, all in elements: what it
// adds behind each line and row of the head (the leads), and between rows of everything
// (the gap). number is EltwiseOp.Row of scalars, back that of what repeats itself.
type chainField struct{ rows, lines, width, gap, lineLead, rowLead, number, back int }

// runField takes a field through a chain.
func (c *Fusion) runField(l *stage, s *scratch, f chainField) {
	s.steps = mem.Grow(s.steps, len(l.ops))
	for i, op := range l.ops {
		s.steps[i] = asm.EltwiseOp{Fn: op.fn, At: unsafe.Pointer(&nothing)}
		switch op.operand {
		case noOperand:
			continue
		case keptOperand:
			s.steps[i].At = nil
			continue
		}
		s.steps[i].At = s.at[op.operand]
		switch v := &c.values[op.operand]; {
		case v.repeats > 0:
			s.steps[i].Row = f.back
		case op.fn%2 == 0 && v.scalar.count != 1:
			s.steps[i].Row = f.number
		}
	}
	if !c.isHead(l.src[0]) {
		f.lineLead, f.rowLead = 0, 0
	}
	c.chain(f.rows, f.lines, f.width, f.gap*mem.Word, f.lineLead*mem.Word, f.rowLead*mem.Word,
		(*float32)(s.at[l.dst]), (*float32)(s.at[l.src[0]]), (*byte)(mem.First(s.steps)), len(s.steps))
}

// runRows computes rows of n elements, the first at an element and each next one pitch
// later, which may still be in a source: at once, if it can.
func (c *Fusion) runRows(s *scratch, outs, args []*tensor.Tensor, at, n, rows, pitch int, from kernel.Source) error {
	if from.Data == nil {
		from = kernel.Source{RowPitch: pitch, Lines: 1, LinePitch: n}
	}
	width := n / from.Lines
	number, together := c.scalarStep(at, n, rows, pitch)
	together = together && (!c.repeats || c.repeatTogether(at, n, rows, pitch))
	switch {
	case from.Lines == 1 && number == 0 && (rows == 1 || !c.repeats || !together) && (rows == 1 || pitch == n && from.RowPitch == n):
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
	f := chainField{rows: rows, lines: from.Lines, width: width, gap: pitch - n, lineLead: from.LinePitch - width, number: number, back: -pitch}
	f.rowLead = from.RowPitch - pitch - f.lines*f.lineLead
	c.locate(s, outs, args, at, from.Address(0, 0))
	for i := range c.stages {
		c.runField(&c.stages[i], s, f)
	}
	c.forget(s)
	return nil
}

// scalarStep reports whether one call can take rows together, and what EltwiseOp.Row is:
// they share a scalar, or each has the next.
func (c *Fusion) scalarStep(at, n, rows, pitch int) (number int, ok bool) {
	switch in := at % max(c.period, 1); {
	case !c.isChain:
		return 0, false
	case c.period == 0 || in+(rows-1)*pitch+n <= c.period:
		return 0, true
	case pitch != c.period || in+n > c.period:
		return 0, false
	}
	for i := range c.values {
		if x := &c.values[i].scalar; x.count > 1 && c.periodAt(at)%x.count+rows > x.count {
			return 0, false
		}
	}
	return -1, true
}

// repeatTogether reports whether one call can take rows together, of which no row may reach
// where something repeats itself.
func (c *Fusion) repeatTogether(at, n, rows, pitch int) bool {
	for i := range c.values {
		if p := c.values[i].repeats; p > 0 && (at%p+n > p || rows > 1 && pitch%p != 0) {
			return false
		}
	}
	return true
}

// rowsTogether returns how many of the next rows a block can have: whole periods or a part
// of one, and no scalar after which the first comes again.
func (c *Fusion) rowsTogether(from, rows int) int {
	rows = min(rows, c.blockRows)
	for i := range c.values {
		if p := c.values[i].repeats; p > 0 {
			rows = min(rows, p-from%p)
		}
	}
	if c.period == 0 {
		return rows
	}
	if c.width == 1 {
		if in := from % c.period; in > 0 || rows < c.period {
			return min(rows, c.period-in)
		}
		rows -= rows % c.period
	}
	for i := range c.values {
		if x := &c.values[i].scalar; x.count > 1 {
			rows = min(rows, (x.count-c.periodAt(from)%x.count)*c.period/c.width)
		}
	}
	return rows
}

// periodAt returns the period in which a row begins.
func (c *Fusion) periodAt(row int) int { return row * c.width / max(c.period, 1) }
