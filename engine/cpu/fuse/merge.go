package fuse

import (
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/engine/cpu/asm"
)

// A chain has one value in a register. Where a formula reads a value twice, as x·sigmoid(x)
// does, the kernel keeps it beside. So the formula is one chain without scratch memory, and
// can take what a producer has in its accumulators.

// keptOperand stands for what a chain has kept.
const keptOperand = -2

// mergeChains makes one chain of chains that only each other read, as long as there are such.
func (l *Builder) mergeChains(head int) {
	for k := 0; k < len(l.Fusion.stages); k++ {
		if l.mergeInto(k, head) {
			k = -1
		}
	}
}

// mergeInto merges stage k with those that it follows, and reports whether it could.
func (l *Builder) mergeInto(k, head int) bool {
	s := l.Fusion.stages[k]
	if len(s.ops) == 0 || slices.ContainsFunc(s.ops, chainOp.keeps) {
		return false
	}
	v := s.src[0]
	from, readers, maker := &l.Fusion.values[v], l.readersOf(v), l.makerOf(v, s.width)
	var ops []chainOp
	if slices.Contains(s.reads()[1:], v) {
		alone := maker >= 0 && len(readers) == 1
		if !readsBeside(s.ops, v) || !alone && !l.isFrom(from, head) {
			return false
		}
		ops = keeping(nil, s.ops, v)
	} else {
		side := slices.IndexFunc(readers, func(x int) bool { return l.isSide(x, k) })
		if side < 0 || len(readers) != 2 || maker < 0 && from.where != inOperand {
			return false
		}
		x := &l.Fusion.stages[readers[side]]
		ops = keeping(x.ops, s.ops, x.dst)
		*x = stage{}
	}
	if maker >= 0 {
		x := &l.Fusion.stages[maker]
		s.src, ops = x.src, slices.Concat(x.ops, ops)
		*x = stage{}
	}
	s.ops = ops
	l.Fusion.stages[k] = s
	return true
}

// isSide reports whether stage x is a chain that begins as stage k does, and makes an operand
// for k alone.
func (l *Builder) isSide(x, k int) bool {
	s, side := l.Fusion.stages[k], l.Fusion.stages[x]
	if x >= k || len(side.ops) == 0 || side.width != s.width || side.src[0] != s.src[0] || l.Fusion.values[side.dst].where != inScratch {
		return false
	}
	if slices.Contains(side.reads()[1:], s.src[0]) || slices.ContainsFunc(side.ops, chainOp.keeps) {
		return false
	}
	return slices.Equal(l.readersOf(side.dst), []int{k}) && readsBeside(s.ops, side.dst)
}

// keeping returns the ops of a chain that keeps its value, or what side makes of it, for those
// of ops whose operand is v.
func keeping(side, ops []chainOp, v int) []chainOp {
	out := []chainOp{{asm.OpKeep, noOperand}}
	if side != nil {
		out = append(append(out, side...), chainOp{asm.OpSwap, noOperand})
	}
	for _, op := range ops {
		if op.operand == v {
			op.operand = keptOperand
		}
		out = append(out, op)
	}
	return out
}

// keeps reports whether an op is of the value that a chain keeps.
func (op chainOp) keeps() bool {
	return op.fn == asm.OpKeep || op.fn == asm.OpSwap || op.operand == keptOperand
}

// readsBeside reports whether v is an operand of ops that lies element beside element.
func readsBeside(ops []chainOp, v int) bool {
	return !slices.ContainsFunc(ops, func(op chainOp) bool { return op.operand == v && op.fn%2 == 0 })
}

// readersOf returns the stages that read a value.
func (l *Builder) readersOf(v int) (out []int) {
	for k := range l.Fusion.stages {
		if slices.Contains(l.Fusion.stages[k].reads(), v) {
			out = append(out, k)
		}
	}
	return out
}

// makerOf returns the chain that makes a value in scratch memory, −1 if there is none.
func (l *Builder) makerOf(v, width int) int {
	if l.Fusion.values[v].where != inScratch {
		return -1
	}
	return slices.IndexFunc(l.Fusion.stages, func(k stage) bool { return k.dst == v && len(k.ops) > 0 && k.width == width })
}

// isFrom reports whether a value is the output of a node outside.
func (l *Builder) isFrom(v *value, node int) bool {
	return node != NoHead && v.where == inOperand && l.Args[v.index] == (graph.Ref{Kind: graph.RefNode, Index: node})
}
