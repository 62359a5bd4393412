package cpu

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/eltwise"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// linker writes a fusion.
type linker struct {
	*program
	c       *fusion
	made    map[int]int    // values by the node that they are the output of
	known   map[string]int // values by what makes them
	uses    map[int]int    // how often nodes read the output of another
	args    []graph.Ref
	outs    []int // nodes whose output others read
	outLink []int // the link that writes each
}

// link makes one fusion of some nodes that fit together. escapes tells whose
// output is read outside.
func (p *program) link(m *members, escapes func(node int) bool) *linker {
	l := &linker{program: p, c: &fusion{flows: p.set.Flow, head: none}, made: map[int]int{}, known: map[string]int{}, uses: map[int]int{}}
	l.c.rows = m.rows
	if m.maker != nil {
		l.c.rows = m.n
	}
	if l.c.rows == 0 {
		l.c.rows = m.n / max(l.period(m), 1)
	}
	l.findStretch(m)
	for _, i := range m.nodes {
		p.producers(i, func(x int) { l.uses[x]++ })
	}
	for _, i := range m.nodes {
		l.made[i] = l.node(i, escapes(i))
	}
	l.settle()
	widest := 1
	for _, v := range l.c.values {
		widest = max(widest, v.width)
	}
	l.c.block = max(kernel.Chunk/widest, 1)
	l.arrange()
	l.c.even = widest == 1 && len(l.c.once) == 0 && l.c.scratch == 0 && !slices.ContainsFunc(l.c.links, func(k link) bool { return len(k.flow) == 0 })
	if m.maker != nil && l.c.even {
		l.c.head = l.flowing(m.head)
	}
	return l
}

// period returns the longest row after which what is broadcast repeats, so that
// it need be loaded only once.
func (l *linker) period(m *members) int {
	longest := 1
	if m.n == 0 {
		return longest
	}
	for _, i := range m.nodes {
		n := l.nodes[i].Primitive
		for j := range n.Args {
			if v := affine.NewView(n, j, affine.Axes(0, len(n.Shape))); len(v.Loops) > 1 && len(v.Bounds) == 0 && v.Loops[0].Stride == 0 {
				if q := m.n / v.Loops[0].Extent; q <= kernel.Chunk {
					longest = max(longest, q)
				}
			}
		}
	}
	return longest
}

func (l *linker) value(v value) int {
	l.c.values = append(l.c.values, v)
	return len(l.c.values) - 1
}

func (l *linker) emit(k link) int {
	l.c.links = append(l.c.links, k)
	return k.dst
}

// node appends what computes node i and returns its value.
func (l *linker) node(i int, escapes bool) int {
	p := l.nodes[i].Primitive
	out := value{typ: p.Type, width: p.Shape.Elements() / max(l.c.rows, 1)}
	if escapes {
		out.place, out.index = inOutput, len(l.outs)
		l.outs = append(l.outs, i)
	}
	k, ok := l.flow(i)
	if !ok {
		k = l.computation(i, p)
	}
	if t := eltwise.ComputeType(p); t != p.Type && k.do != nil {
		k.dst = l.value(value{typ: t, width: out.width})
		k = made(eltwise.Cast(l.set, t, p.Type), l.emit(k), out.width)
	}
	k.dst = l.value(out)
	return l.emit(k)
}

// computation returns the link of a node, without its destination.
func (l *linker) computation(i int, p *tensor.Primitive) (k link) {
	if p.Fn.Kind() == tensor.KindIndex {
		return l.load(i, p, tensor.Word(p.Imm[0]), dataArgs(p)...)
	}
	absent := tensor.Word(0)
	if p.Fn.Kind() == tensor.KindFold {
		absent = eltwise.FoldIdentity(p)
	}
	var typ tensor.DType
	for j := range p.Args {
		v := l.operand(i, j, absent)
		typ = p.Args[j].Type
		if eltwise.Widens(p, typ) {
			v, typ = l.derived("widen", v, tensor.Float32, eltwise.Cast(l.set, typ, tensor.Float32)), tensor.Float32
		}
		k.src = append(k.src, v)
	}
	k.width = l.c.values[k.src[0]].width
	if p.Fn.Kind() == tensor.KindFold {
		k.do = eltwise.FoldRows(l.set, p.Fn, typ)
	} else {
		k.do = eltwise.Map(l.set, p.Fn, typ, eltwise.ComputeType(p))
	}
	return k
}

// derived returns a value made of another, once.
func (l *linker) derived(how string, from int, typ tensor.DType, do eltwise.Func) int {
	return l.remember(fmt.Sprint(how, from), func() int {
		w := l.c.values[from].width
		k := made(do, from, w)
		k.dst = l.value(value{typ: typ, width: w})
		return l.emit(k)
	})
}

// made is a link that makes one value of another.
func made(do eltwise.Func, from, width int) link {
	return link{do: do, src: []int{from}, width: width}
}

func (l *linker) remember(key string, build func() int) int {
	v, ok := l.known[key]
	if !ok {
		v = build()
		l.known[key] = v
	}
	return v
}

// operand returns the value that node i reads as operand j.
func (l *linker) operand(i, j int, absent tensor.Word) int {
	p := l.nodes[i].Primitive
	ref := l.source(l.nodes[i].From[j])
	width := span(p) / max(l.c.rows, 1)
	if ref.Kind == graph.RefNode {
		if v, inside := l.made[ref.Index]; inside {
			if l.c.values[v].width == width {
				return v
			}
			return l.remember(fmt.Sprint("spread", v, width), func() int {
				typ := l.c.values[v].typ
				k := made(eltwise.Broadcast(l.set, typ), v, width)
				k.dst = l.value(value{typ: typ, width: width})
				return l.emit(k)
			})
		}
	}
	arg := l.arg(ref)
	w := affine.NewView(p, j, affine.Axes(0, len(p.Shape)+len(p.Fold)))
	one := w.Loops[0]
	if len(w.Loops) == 1 && len(w.Bounds) == 0 && (one.Stride == 1 || one.Extent == 1) {
		return l.remember(fmt.Sprint("direct", arg, w.Base, width), func() int {
			return l.value(value{typ: p.Args[j].Type, width: width, place: inOperand, index: arg, base: w.Base})
		})
	}
	key := fmt.Sprint("load", arg, w.Base, w.Loops, width, absent)
	if len(w.Bounds) > 0 {
		key = fmt.Sprint("load", i, j)
	}
	return l.remember(key, func() int {
		w.Arg = arg
		k := link{views: []*affine.View{w}, absent: absent, dst: l.value(value{typ: p.Args[j].Type, width: width})}
		if repeats(w, width) {
			l.c.once = append(l.c.once, k)
			return k.dst
		}
		return l.emit(k)
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

// load returns the link of an index primitive: views laid over each other, so
// that the first wins.
func (l *linker) load(i int, p *tensor.Primitive, absent tensor.Word, args ...int) link {
	k := link{absent: absent}
	for _, j := range slices.Backward(args) {
		v := affine.NewView(p, j, affine.Axes(0, len(p.Shape)))
		v.Arg = l.arg(l.source(l.nodes[i].From[j]))
		for b := range v.Bounds {
			if x := v.Bounds[b].Index; x != nil {
				x.Arg = l.arg(l.source(l.nodes[i].From[x.Arg]))
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

// arg returns the number of an operand of the fusion.
func (l *linker) arg(ref graph.Ref) int {
	if i := slices.Index(l.args, ref); i >= 0 {
		return i
	}
	l.args = append(l.args, ref)
	return len(l.args) - 1
}

// arrange gives the values in scratch memory their places. One is free for
// another as soon as its last reader is done; a map may write over what it
// reads.
func (l *linker) arrange() {
	c := l.c
	last := make([]int, len(c.values))
	for k := range c.links {
		for _, v := range c.links[k].reads() {
			last[v] = k
		}
	}
	var s mem.Planner
	put := func(v int) {
		x := &c.values[v]
		if x.place == inScratch {
			x.base = s.Allocate(c.block * x.width * x.typ.Size())
		}
	}
	remove := func(v int) { s.Free(c.values[v].base) }
	for k := range c.once {
		put(c.once[k].dst)
		last[c.once[k].dst] = len(c.links)
	}
	for k := range c.links {
		n := &c.links[k]
		dst := &c.values[n.dst]
		var dying []int
		for _, v := range n.reads() {
			if c.values[v].place == inScratch && last[v] == k && !slices.Contains(dying, v) {
				dying = append(dying, v)
			}
		}
		taken := -1
		if dst.place == inScratch {
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
		if dst.place == inScratch && last[n.dst] < k { // nobody reads it
			remove(n.dst)
		}
	}
	c.scratch = s.Bytes
}

// reads returns the values that a link reads.
func (k *link) reads() []int {
	return k.src
}

// overwrites returns the operands in whose memory output o may lie: nothing
// reads them, or only from the same place, once it is written.
func (l *linker) overwrites(o int) (out []int) {
	c := l.c
	to := c.values[c.links[l.outLink[o]].dst]
	for a := range l.args {
		ok := true
		for v := range c.values {
			x := &c.values[v]
			if x.place != inOperand || x.index != a {
				continue
			}
			ok = ok && x.base == 0 && x.number.count == 0 && x.width == to.width && x.typ.Size() == to.typ.Size()
			for k := l.outLink[o] + 1; k < len(c.links); k++ {
				ok = ok && !slices.Contains(c.links[k].reads(), v)
			}
		}
		for _, links := range [][]link{c.once, c.links} {
			for k := range links {
				ok = ok && !links[k].loads(a)
			}
		}
		if ok {
			out = append(out, a)
		}
	}
	return out
}

// loads reports whether a link loads from an operand.
func (k *link) loads(arg int) bool {
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
