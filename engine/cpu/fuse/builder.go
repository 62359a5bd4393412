package fuse

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/eltwise"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// Graph is what a Builder reads of the program whose nodes it fuses.
type Graph interface {
	// Primitive returns what node i computes.
	Primitive(i int) *tensor.Primitive
	// Source returns the tensor that node i reads as operand j.
	Source(i, j int) graph.Ref
	// Producers calls do with every node that node i reads.
	Producers(i int, do func(node int))
}

// Group is the nodes of a fusion, in order.
type Group struct {
	Nodes    []int
	Elements int // of the widest node
	Rows     int // 0: each element stands alone, until a fold or a broadcast makes rows
	Head     int // the producer whose epilogue they are; NoHead if there is none
}

// NoHead stands for a node, or an operand, that there is not.
const NoHead = -1

// Builder builds a Fusion.
type Builder struct {
	graph    Graph
	set      *asm.KernelSet
	Fusion   *Fusion
	Args     []graph.Ref    // operands of the fusion
	Outs     []int          // nodes whose output others read: its outputs
	outStage []int          // the stage that writes each
	alone    bool           // it follows no producer
	values   map[int]int    // by node
	known    map[string]int // values by what makes them
	uses     map[int]int    // how often nodes read the output of another
}

// Build fuses a group of nodes that fit together. escapes tells whose output is read
// outside of it.
func Build(set *asm.KernelSet, p Graph, m *Group, escapes func(node int) bool) *Builder {
	l := &Builder{graph: p, set: set, Fusion: &Fusion{chain: set.EltwiseChain, head: NoHead}, values: map[int]int{}, known: map[string]int{}, uses: map[int]int{}}
	l.Fusion.rows = m.Rows
	if m.Head != NoHead {
		l.Fusion.rows = m.Elements
	}
	if l.Fusion.rows == 0 {
		l.Fusion.rows = m.Elements / max(l.broadcastRows(m), 1)
	}
	l.alone = m.Head == NoHead
	l.findPeriod(m)
	for _, i := range m.Nodes {
		p.Producers(i, func(x int) { l.uses[x]++ })
	}
	for _, i := range m.Nodes {
		l.values[i] = l.addNode(i, escapes(i))
	}
	l.mergeChains(m.Head)
	l.dropMerged()
	widest := 1
	for _, v := range l.Fusion.values {
		widest = max(widest, v.width)
	}
	l.Fusion.blockRows = max(kernel.Chunk/widest, 1)
	if tile := l.Fusion.tileRows; tile > 0 { // in blocks of one size
		l.Fusion.blockRows = mem.CeilDiv(tile, mem.CeilDiv(tile, l.Fusion.blockRows))
	}
	l.planScratch()
	l.Fusion.isChain = widest == 1 && len(l.Fusion.prologue) == 0 && l.Fusion.scratchBytes == 0 && !slices.ContainsFunc(l.Fusion.stages, func(k stage) bool { return len(k.ops) == 0 })
	if m.Head != NoHead && l.Fusion.isChain {
		l.Fusion.head = l.chainHead(m.Head)
	}
	return l
}

// broadcastRows returns the longest row after which what is broadcast repeats, so that a
// prologue loads it.
func (l *Builder) broadcastRows(m *Group) int {
	longest := 1
	if m.Elements == 0 {
		return longest
	}
	for _, i := range m.Nodes {
		n := l.graph.Primitive(i)
		for j := range n.Args {
			if v := affine.NewView(n, j, affine.Axes(0, len(n.Shape))); len(v.Loops) > 1 && len(v.Bounds) == 0 && v.Loops[0].Stride == 0 {
				if q := m.Elements / v.Loops[0].Extent; q <= kernel.Chunk {
					longest = max(longest, q)
				}
			}
		}
	}
	return longest
}

// addValue appends a value and returns its number.
func (l *Builder) addValue(v value) int {
	l.Fusion.values = append(l.Fusion.values, v)
	return len(l.Fusion.values) - 1
}

// addStage appends a stage and returns its value.
func (l *Builder) addStage(k stage) int {
	l.Fusion.stages = append(l.Fusion.stages, k)
	return k.dst
}

// addNode appends the stages that compute node i and returns its value.
func (l *Builder) addNode(i int, escapes bool) int {
	p := l.graph.Primitive(i)
	out := value{typ: p.Type, width: p.Shape.Elements() / max(l.Fusion.rows, 1)}
	if escapes {
		out.where, out.index = inOutput, len(l.Outs)
		l.Outs = append(l.Outs, i)
	}
	k, ok := l.chainStage(i)
	if !ok {
		k = l.stageOf(i, p)
	}
	if t := eltwise.ComputeType(p); t != p.Type && k.do != nil {
		k.dst = l.addValue(value{typ: t, width: out.width})
		k = unaryStage(eltwise.Cast(l.set, t, p.Type), l.addStage(k), out.width)
	}
	k.dst = l.addValue(out)
	return l.addStage(k)
}

// stageOf returns the stage of a node, without its destination.
func (l *Builder) stageOf(i int, p *tensor.Primitive) (k stage) {
	if p.Fn.Kind() == tensor.KindIndex {
		return l.loadStage(i, p, tensor.Word(p.Imm[0]), dataArgs(p)...)
	}
	padding := tensor.Word(0)
	if p.Fn.Kind() == tensor.KindFold {
		padding = eltwise.FoldIdentity(p)
	}
	var typ tensor.DType
	for j := range p.Args {
		v := l.operand(i, j, padding)
		typ = p.Args[j].Type
		if eltwise.Widens(p, typ) {
			v, typ = l.derived("widen", v, tensor.Float32, eltwise.Cast(l.set, typ, tensor.Float32)), tensor.Float32
		}
		k.src = append(k.src, v)
	}
	k.width = l.Fusion.values[k.src[0]].width
	if p.Fn.Kind() == tensor.KindFold {
		k.do = eltwise.FoldRows(l.set, p.Fn, typ)
	} else {
		k.do = eltwise.Map(l.set, p.Fn, typ, eltwise.ComputeType(p))
	}
	return k
}

// derived returns a value made of another, once.
func (l *Builder) derived(how string, from int, typ tensor.DType, do eltwise.Func) int {
	return l.remember(fmt.Sprint(how, from), func() int {
		w := l.Fusion.values[from].width
		k := unaryStage(do, from, w)
		k.dst = l.addValue(value{typ: typ, width: w})
		return l.addStage(k)
	})
}

// unaryStage is a stage that makes one value of another.
func unaryStage(do eltwise.Func, from, width int) stage {
	return stage{do: do, src: []int{from}, width: width}
}

// remember returns the value of a key, built once.
func (l *Builder) remember(key string, build func() int) int {
	v, ok := l.known[key]
	if !ok {
		v = build()
		l.known[key] = v
	}
	return v
}

// operand returns the value that node i reads as operand j.
func (l *Builder) operand(i, j int, padding tensor.Word) int {
	p := l.graph.Primitive(i)
	ref := l.graph.Source(i, j)
	width := affine.Span(p) / max(l.Fusion.rows, 1)
	if ref.Kind == graph.RefNode {
		if v, inside := l.values[ref.Index]; inside {
			if l.Fusion.values[v].width == width {
				return v
			}
			return l.remember(fmt.Sprint("spread", v, width), func() int {
				typ := l.Fusion.values[v].typ
				k := unaryStage(eltwise.Broadcast(l.set, typ), v, width)
				k.dst = l.addValue(value{typ: typ, width: width})
				return l.addStage(k)
			})
		}
	}
	arg := l.argument(ref)
	w := affine.NewView(p, j, affine.Axes(0, len(p.Shape)+len(p.Fold)))
	one := w.Loops[0]
	if len(w.Loops) == 1 && len(w.Bounds) == 0 && (one.Stride == 1 || one.Extent == 1) {
		return l.remember(fmt.Sprint("direct", arg, w.Base, width), func() int {
			return l.addValue(value{typ: p.Args[j].Type, width: width, where: inOperand, index: arg, base: w.Base})
		})
	}
	key := fmt.Sprint("load", arg, w.Base, w.Loops, width, padding)
	if len(w.Bounds) > 0 {
		key = fmt.Sprint("load", i, j)
	}
	return l.remember(key, func() int {
		w.Arg, w.Transpose = arg, l.set.Transpose8
		k := stage{views: []*affine.View{w}, padding: padding, dst: l.addValue(value{typ: p.Args[j].Type, width: width})}
		switch tile := w.TransposedTile(); {
		case repeats(w, width):
			l.Fusion.prologue = append(l.Fusion.prologue, k)
		case l.alone && tile > kernel.Chunk && tile*(len(l.Fusion.transposed)+1) <= tuning.MaxTransposed:
			l.Fusion.transposed = append(l.Fusion.transposed, k)
			l.Fusion.tileRows = max(l.Fusion.tileRows, mem.CeilDiv(tile, width))
			l.Fusion.values[k.dst].tiled = true
		default:
			l.addStage(k)
		}
		return k.dst
	})
}

// repeats reports whether every row of a view is the same.
func repeats(v *affine.View, width int) bool {
	period := 1
	loops := v.Loops
	for len(loops) > 0 && loops[0].Stride == 0 {
		loops = loops[1:]
	}
	for _, l := range loops {
		period *= l.Extent
	}
	return len(v.Bounds) == 0 && period > 0 && width%period == 0
}

// loadStage returns the stage of an index primitive: its views, such that the first operand
// wins.
func (l *Builder) loadStage(i int, p *tensor.Primitive, padding tensor.Word, args ...int) stage {
	k := stage{padding: padding}
	for _, j := range slices.Backward(args) {
		v := affine.NewView(p, j, affine.Axes(0, len(p.Shape)))
		v.Arg = l.argument(l.graph.Source(i, j))
		for b := range v.Bounds {
			if x := v.Bounds[b].Index; x != nil {
				x.Arg = l.argument(l.graph.Source(i, x.Arg))
			}
		}
		k.views = append(k.views, v)
	}
	return k
}

// dataArgs are the operands of an index primitive that are not indexes.
func dataArgs(p *tensor.Primitive) []int {
	if p.Fn == tensor.Join {
		return affine.Axes(0, len(p.Args))
	}
	return []int{0}
}

// argument returns the number of an operand of the fusion.
func (l *Builder) argument(ref graph.Ref) int {
	if i := slices.Index(l.Args, ref); i >= 0 {
		return i
	}
	l.Args = append(l.Args, ref)
	return len(l.Args) - 1
}

// planScratch lays the values in scratch memory out. A range is free for another value
// after its last reader; a map may write over what it reads.
func (l *Builder) planScratch() {
	c := l.Fusion
	last := make([]int, len(c.values))
	for k := range c.stages {
		for _, v := range c.stages[k].reads() {
			last[v] = k
		}
	}
	var s mem.Planner
	put := func(v int) {
		x := &c.values[v]
		if x.where == inScratch {
			x.base = s.Allocate(c.blockRows * x.width * x.typ.Size())
		}
	}
	remove := func(v int) { s.Free(c.values[v].base) }
	for k := range c.prologue {
		put(c.prologue[k].dst)
		last[c.prologue[k].dst] = len(c.stages)
	}
	for k := range c.transposed {
		x := &c.values[c.transposed[k].dst]
		x.base = s.Allocate(c.tileRows * x.width * x.typ.Size())
		last[c.transposed[k].dst] = len(c.stages)
	}
	for k := range c.stages {
		n := &c.stages[k]
		dst := &c.values[n.dst]
		var dying []int
		for _, v := range n.reads() {
			if c.values[v].where == inScratch && last[v] == k && !slices.Contains(dying, v) {
				dying = append(dying, v)
			}
		}
		taken := -1
		if dst.where == inScratch {
			taken = slices.IndexFunc(dying, func(v int) bool {
				x := &c.values[v]
				return x.width == dst.width && x.typ.Size() == dst.typ.Size()
			})
			if taken >= 0 {
				dst.base = c.values[dying[taken]].base
			} else {
				put(n.dst)
			}
		}
		for i, v := range dying {
			if i != taken {
				remove(v)
			}
		}
		if dst.where == inScratch && last[n.dst] < k { // nobody reads it
			remove(n.dst)
		}
	}
	c.scratchBytes = s.Bytes
}

// reads returns the values that a stage reads.
func (k *stage) reads() []int {
	out := slices.Clone(k.src)
	for _, op := range k.ops {
		if op.operand >= 0 {
			out = append(out, op.operand)
		}
	}
	return out
}

// Overwrites returns the operands in whose memory output o may be: once it is written,
// nothing reads them.
func (l *Builder) Overwrites(o int) (out []int) {
	c := l.Fusion
	to := c.values[c.stages[l.outStage[o]].dst]
	for a := range l.Args {
		ok := true
		for v := range c.values {
			x := &c.values[v]
			if x.where != inOperand || x.index != a {
				continue
			}
			ok = ok && x.base == 0 && !x.isBroadcast() && x.width == to.width && x.typ.Size() == to.typ.Size()
			for k := l.outStage[o] + 1; k < len(c.stages); k++ {
				ok = ok && !slices.Contains(c.stages[k].reads(), v)
			}
		}
		for _, stages := range [][]stage{c.prologue, c.transposed, c.stages} {
			for k := range stages {
				ok = ok && !stages[k].loads(a)
			}
		}
		if ok {
			out = append(out, a)
		}
	}
	return out
}

// loads reports whether a stage loads from an operand.
func (k *stage) loads(arg int) bool {
	for _, v := range k.views {
		if v.Arg == arg {
			return true
		}
		for _, b := range v.Bounds {
			if b.Index != nil && b.Index.Arg == arg {
				return true
			}
		}
	}
	return false
}
