package plan

import (
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/fuse"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// fusionGroup is nodes that are one task: a fusion, perhaps behind a producer, or one node
// with a kernel.
type fusionGroup struct {
	fuse.Group
	isFusion   bool
	order      int             // place in the order of execution; −1 if it is among the early ones
	recomputed map[int]bool    // nodes that other groups compute, too
	producer   kernel.Producer // of node Head; nil if there is none
}

// fuser puts nodes into groups. A group runs where its first node stood, so a node joins
// the group of its producers only if the last of them is in it.
type fuser struct {
	*program
	groupOf []*fusionGroup // by node
	early   []*fusionGroup // of scalars that follow from inputs alone
	scalars *fusionGroup   // the last of them
	groups  []*fusionGroup // all others, in the order of execution
	lazy    []bool         // by node: follows from inputs alone, and waits for its first reader
}

// canWait reports whether node i is a map of inputs, scalars and other such maps.
func (g *fuser) canWait(i int) bool {
	ok := g.nodes[i].Fn.Kind() == tensor.KindMap && fusible(g.set, g.nodes[i].Primitive)
	g.Producers(i, func(x int) { ok = ok && (g.lazy[x] || g.groupOf[x] != nil && g.groupOf[x] == g.scalars) })
	return ok
}

// isReady reports whether nothing that node i reads waits.
func (g *fuser) isReady(i int) bool {
	ok := true
	g.Producers(i, func(x int) { ok = ok && !g.lazy[x] })
	return ok
}

// scalar adds node i to a group of early scalars.
func (g *fuser) scalar(i int) {
	if g.scalars == nil || len(g.scalars.Nodes) == tuning.MaxMembers {
		g.scalars = &fusionGroup{Group: fuse.Group{Elements: 1, Head: None}, isFusion: true, order: -1}
		g.early = append(g.early, g.scalars)
	}
	g.add(g.scalars, i)
}

// add adds node i to a group.
func (g *fuser) add(m *fusionGroup, i int) {
	m.Nodes = append(m.Nodes, i)
	g.groupOf[i] = m
	g.lazy[i] = false
}

// start starts a group with node i.
func (g *fuser) start(i int) *fusionGroup {
	m := &fusionGroup{Group: fuse.Group{Head: None}, order: len(g.groups)}
	if p := g.nodes[i].Primitive; fusible(g.set, p) {
		m.isFusion, m.Elements = true, affine.Span(p)
		if p.Fn.Kind() == tensor.KindFold {
			m.Rows = p.Shape.Elements()
		}
	}
	g.groups = append(g.groups, m)
	g.add(m, i)
	return m
}

// place gives node i, and the lazy nodes that it reads, a group.
func (g *fuser) place(i int) {
	var last *fusionGroup
	var waiting []int
	var collect func(x int)
	collect = func(x int) {
		switch {
		case g.lazy[x]:
			if !slices.Contains(waiting, x) {
				g.Producers(x, collect)
				waiting = append(waiting, x)
			}
		case last == nil || g.groupOf[x].order > last.order:
			last = g.groupOf[x]
		}
	}
	g.Producers(i, collect)
	waiting = append(waiting, i)
	for _, m := range g.candidates(last, i) {
		if g.addAll(m, waiting) {
			return
		}
	}
	var m *fusionGroup
	for _, x := range waiting {
		if m != nil && g.addAll(m, []int{x}) {
			continue
		}
		m = g.start(x)
	}
}

// candidates returns the groups that node i may join: that of its last producer, then later
// ones that read the same.
func (g *fuser) candidates(last *fusionGroup, i int) (out []*fusionGroup) {
	from := 0
	if last != nil {
		out = append(out, last)
		from = last.order + 1
	}
	for _, m := range g.groups[max(from, len(g.groups)-tuning.FusionWindow):] {
		if m.isFusion && m.Rows == 0 && m.Elements == g.nodes[i].Shape.Elements() && g.share(m, i) {
			out = append(out, m)
		}
	}
	return out
}

// share reports whether some member reads a tensor that node i reads.
func (g *fuser) share(m *fusionGroup, i int) bool {
	for _, x := range m.Nodes {
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

// addAll adds nodes to a group, all or none.
func (g *fuser) addAll(m *fusionGroup, nodes []int) bool {
	if !m.isFusion || len(m.Nodes)+len(nodes) > tuning.MaxMembers {
		return false
	}
	before := *m
	for k, x := range nodes {
		if !fusible(g.set, g.nodes[x].Primitive) || !g.fits(m, x) {
			for _, y := range nodes[:k] {
				g.groupOf[y], g.lazy[y] = nil, true
			}
			*m = before
			return false
		}
		g.add(m, x)
	}
	return true
}

// fits reports whether node i can join a group, and gives that the rows which it takes.
func (g *fuser) fits(m *fusionGroup, i int) bool {
	p := g.nodes[i].Primitive
	n, total := p.Shape.Elements(), affine.Span(p)
	fold := p.Fn.Kind() == tensor.KindFold
	rows := m.Rows
	need := func(r int) bool {
		if rows == 0 && m.Elements%max(r, 1) == 0 {
			rows = r
		}
		return rows == r
	}
	if n == 0 || total == 0 || m.Elements == 0 {
		return false
	}
	for j, r := range g.nodes[i].From {
		r = g.source(r)
		if r.Kind == graph.RefNode && g.elided[r.Index] && g.reads(i, m) {
			return false
		}
		if r.Kind != graph.RefNode || g.groupOf[r.Index] != m {
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
	case rows == 0 && n != m.Elements:
		return false
	case rows > 0 && (total%rows != 0 || n%rows != 0 || total/rows > tuning.MaxRowElements || m.Elements/rows > tuning.MaxRowElements):
		return false
	}
	m.Rows, m.Elements = rows, max(m.Elements, total)
	return true
}

// reads reports whether node i reads the output of a member.
func (g *fuser) reads(i int, m *fusionGroup) (ok bool) {
	g.Producers(i, func(x int) { ok = ok || g.groupOf[x] == m })
	return ok
}

// fuseNodes returns the groups in the order of execution.
func (p *program) fuseNodes() []*fusionGroup {
	g := &fuser{program: p, groupOf: make([]*fusionGroup, len(p.nodes)), lazy: make([]bool, len(p.nodes))}
	live := p.live()
	for i := range p.nodes {
		n := p.nodes[i].Primitive
		switch {
		case !p.fused:
			g.start(i)
		case !live[i]:
		case n.Fn == tensor.Copy && !p.isOutput[i] && p.same(i):
			p.alias[i] = p.source(p.nodes[i].From[0])
		case g.elideConcat(i):
		case g.canWait(i):
			if n.Shape.Elements() == 1 && g.isReady(i) {
				g.scalar(i)
			} else {
				g.lazy[i] = true
			}
		default:
			g.place(i)
		}
	}
	for i := range p.nodes {
		if g.lazy[i] && p.isOutput[i] {
			g.place(i)
		}
	}
	groups := p.rematerialize(append(g.early, g.groups...))
	if p.fused {
		groups = p.fuseEpilogues(groups)
	}
	return groups
}
