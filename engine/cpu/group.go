package cpu

import (
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/eltwise"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/reduce"
)

// program is a program on its way to being run.
type program struct {
	*graph.Program
	nodes []graph.Opcode
	set   *asm.Set
	fuse  bool
	alias []graph.Ref // of nodes that are another tensor in another shape
	kept  []bool      // nodes that become part of the new state

	joined []bool // joins in place
	part   []region
}

func newProgram(p *graph.Program, set *asm.Set, fused bool) *program {
	out := &program{Program: p, nodes: p.Nodes, set: set, fuse: fused, alias: make([]graph.Ref, len(p.Nodes)), kept: make([]bool, len(p.Nodes)), joined: make([]bool, len(p.Nodes)), part: make([]region, len(p.Nodes))}
	for i := range out.part {
		out.part[i].whole = none
	}
	for _, r := range p.Outputs {
		if r.Kind == graph.RefNode {
			out.kept[r.Index] = true
		}
	}
	return out
}

// source returns the tensor that ref is in the end.
func (p *program) source(ref graph.Ref) graph.Ref {
	for ref.Kind == graph.RefNode && p.alias[ref.Index].Kind != 0 {
		ref = p.alias[ref.Index]
	}
	return ref
}

// members are nodes that are run together: a fusion, or one node by a kernel.
type members struct {
	nodes []int
	fused bool
	at    int             // place in the order of execution; early ones have −1
	n     int             // elements of the widest member
	again map[int]bool    // nodes that others compute, too
	rows  int             // 0: each element stands alone, until a fold or a broadcast makes rows
	maker kernel.Producer // of the node head, whose pieces go through a fusion; nil if there is none
	head  int
}

// Limits of a fusion: a block of all its values should fit into the first two
// levels of cache, and there must be rows to share.
const (
	maxMembers = 64
	maxRow     = 4096
)

// grouping puts nodes together that can be run as a fusion. Members run where
// their first node stood, so a node joins its producers only if the last of them
// is a member.
type grouping struct {
	*program
	of      []*members // by node
	early   []*members // of nodes that follow from inputs alone, and are small
	scalars *members
	rest    []*members
	lazy    []bool // nodes that follow from inputs alone wait for their first reader
}

// group returns the members in the order of execution.
func (p *program) group() []*members {
	g := &grouping{program: p, of: make([]*members, len(p.nodes)), lazy: make([]bool, len(p.nodes))}
	live := p.live()
	for i := range p.nodes {
		n := p.nodes[i].Primitive
		switch {
		case !p.fuse:
			g.begin(i)
		case !live[i]:
		case n.Fn == tensor.Copy && !p.kept[i] && p.same(i):
			p.alias[i] = p.source(p.nodes[i].From[0])
		case g.joins(i):
		case g.waits(i):
			if n.Shape.Elements() == 1 && g.ready(i) {
				g.scalar(i)
			} else {
				g.lazy[i] = true
			}
		default:
			g.place(i)
		}
	}
	for i := range p.nodes {
		if g.lazy[i] && p.kept[i] {
			g.place(i)
		}
	}
	groups := p.repeat(append(g.early, g.rest...))
	if p.fuse {
		groups = p.attach(groups)
	}
	return groups
}

// live marks the nodes on which the new state depends.
func (p *program) live() []bool {
	live := slices.Clone(p.kept)
	for i := len(p.nodes) - 1; i >= 0; i-- {
		for _, r := range p.nodes[i].From {
			if live[i] && r.Kind == graph.RefNode {
				live[r.Index] = true
			}
		}
	}
	return live
}

// same reports whether a copy has the elements of its operand in their order.
func (p *program) same(i int) bool {
	n := p.nodes[i].Primitive
	times, ok := affine.Repetition(n, 0)
	return ok && times == 1 && n.Args[0].Shape.Elements() == n.Shape.Elements()
}

// waits reports whether node i is a map of inputs, scalars and other such maps.
func (g *grouping) waits(i int) bool {
	ok := g.nodes[i].Fn.Kind() == tensor.KindMap && fusible(g.set, g.nodes[i].Primitive)
	g.producers(i, func(x int) { ok = ok && (g.lazy[x] || g.of[x] != nil && g.of[x] == g.scalars) })
	return ok
}

// ready reports whether nothing that node i reads waits.
func (g *grouping) ready(i int) bool {
	ok := true
	g.producers(i, func(x int) { ok = ok && !g.lazy[x] })
	return ok
}

func (g *grouping) scalar(i int) {
	if g.scalars == nil || len(g.scalars.nodes) == maxMembers {
		g.scalars = &members{fused: true, at: -1, n: 1}
		g.early = append(g.early, g.scalars)
	}
	g.join(g.scalars, i)
}

func (g *grouping) join(m *members, i int) {
	m.nodes = append(m.nodes, i)
	g.of[i] = m
	g.lazy[i] = false
}

// begin starts members of their own for node i.
func (g *grouping) begin(i int) *members {
	m := &members{at: len(g.rest)}
	if p := g.nodes[i].Primitive; fusible(g.set, p) {
		m.fused, m.n = true, span(p)
		if p.Fn.Kind() == tensor.KindFold {
			m.rows = p.Shape.Elements()
		}
	}
	g.rest = append(g.rest, m)
	g.join(m, i)
	return m
}

// place gives node i, and what it waits for, members.
func (g *grouping) place(i int) {
	var last *members
	var waiting []int
	var collect func(x int)
	collect = func(x int) {
		switch {
		case g.lazy[x]:
			if !slices.Contains(waiting, x) {
				g.producers(x, collect)
				waiting = append(waiting, x)
			}
		case last == nil || g.of[x].at > last.at:
			last = g.of[x]
		}
	}
	g.producers(i, collect)
	waiting = append(waiting, i)
	for _, m := range g.candidates(last, i) {
		if g.joinAll(m, waiting) {
			return
		}
	}
	var m *members
	for _, x := range waiting {
		if m != nil && g.joinAll(m, []int{x}) {
			continue
		}
		m = g.begin(x)
	}
}

// candidates returns the members that node i may join: those of its last
// producer, then later ones that read the same.
func (g *grouping) candidates(last *members, i int) (out []*members) {
	from := 0
	if last != nil {
		out = append(out, last)
		from = last.at + 1
	}
	const window = 16
	for _, m := range g.rest[max(from, len(g.rest)-window):] {
		if m.fused && m.rows == 0 && m.n == g.nodes[i].Shape.Elements() && g.share(m, i) {
			out = append(out, m)
		}
	}
	return out
}

// share reports whether some member reads a tensor that node i reads.
func (g *grouping) share(m *members, i int) bool {
	for _, x := range m.nodes {
		for _, r := range g.nodes[x].From {
			for _, s := range g.nodes[i].From {
				if g.source(r) == g.source(s) {
					return true
				}
			}
		}
	}
	return false
}

// joinAll lets nodes join, all or none.
func (g *grouping) joinAll(m *members, nodes []int) bool {
	if !m.fused || len(m.nodes)+len(nodes) > maxMembers {
		return false
	}
	before := *m
	for k, x := range nodes {
		if !fusible(g.set, g.nodes[x].Primitive) || !g.fits(m, x) {
			for _, y := range nodes[:k] {
				g.of[y], g.lazy[y] = nil, true
			}
			*m = before
			return false
		}
		g.join(m, x)
	}
	return true
}

// fits reports whether node i can become a member, and makes the rows that this
// takes.
func (g *grouping) fits(m *members, i int) bool {
	p := g.nodes[i].Primitive
	n, total := p.Shape.Elements(), span(p)
	fold := p.Fn.Kind() == tensor.KindFold
	rows := m.rows
	need := func(r int) bool {
		if rows == 0 && m.n%max(r, 1) == 0 {
			rows = r
		}
		return rows == r
	}
	if n == 0 || total == 0 || m.n == 0 {
		return false
	}
	for j, r := range g.nodes[i].From {
		r = g.source(r)
		if r.Kind == graph.RefNode && g.joined[r.Index] && g.reads(i, m) {
			return false
		}
		if r.Kind != graph.RefNode || g.of[r.Index] != m {
			continue
		}
		if p.Fn.Kind() == tensor.KindIndex {
			return false
		}
		has := g.nodes[r.Index].Shape.Elements()
		times, ok := affine.Repetition(p, j)
		if !ok || has*times != total || times > 1 && !need(has) {
			return false
		}
	}
	if fold && !need(n) {
		return false
	}
	switch {
	case rows == 0 && n != m.n:
		return false
	case rows > 0 && (total%rows != 0 || n%rows != 0 || total/rows > maxRow || m.n/rows > maxRow):
		return false
	}
	m.rows, m.n = rows, max(m.n, total)
	return true
}

// reads reports whether node i reads the output of a member.
func (g *grouping) reads(i int, m *members) (ok bool) {
	g.producers(i, func(x int) { ok = ok || g.of[x] == m })
	return ok
}

// span is the number of elements that a map or a fold reads of an operand.
func span(p *tensor.Primitive) int {
	if p.Fn.Kind() == tensor.KindFold {
		return p.Shape.Elements() * p.Terms()
	}
	return p.Shape.Elements()
}

// fusible reports whether a node can be a link of a fusion.
func fusible(set *asm.Set, p *tensor.Primitive) bool {
	switch p.Fn.Kind() {
	case tensor.KindMap:
		t := p.Args[len(p.Args)-1].Type
		if eltwise.Widens(p, t) {
			t = tensor.Float32
		}
		return eltwise.Map(set, p.Fn, t, eltwise.ComputeType(p)) != nil
	case tensor.KindIndex:
		return true
	case tensor.KindFold:
		t := p.Args[0].Type
		if t.Half() {
			t = tensor.Float32
		}
		if p.Fn.Scatters() || eltwise.FoldRows(set, p.Fn, t) == nil || p.Terms() > maxRow {
			return false
		}
		times, ok := affine.Repetition(p, 0)
		return ok && times == 1 || !reduce.ByColumns(p)
	}
	return false
}
