package plan

import (
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// rematerializer finds the nodes that a fusion computes again.
type rematerializer struct {
	*program
	group  *fusionGroup
	inside map[int]bool // what the fusion computes
	read   map[int]bool // what its own nodes read
	added  []int        // what it computes again
}

// offer adds node i, and the nodes that it takes, if all of them are cheap and follow from
// what the fusion reads. depth counts the nodes on the way to i.
func (r *rematerializer) offer(i, depth int) bool {
	n := r.nodes[i].Primitive
	if r.inside[i] {
		return true
	}
	if depth == tuning.MaxRecomputed || !isCheap(n.Fn) || n.Shape.Elements() != r.group.Elements || len(r.added) >= tuning.MaxMembers {
		return false
	}
	before := len(r.added)
	for j, ref := range r.nodes[i].From {
		ref = r.source(ref)
		if ref.Kind != graph.RefNode {
			continue
		}
		ok := r.read[ref.Index]
		if r.nodes[ref.Index].Shape.Elements() == r.group.Elements {
			times, inOrder := affine.Repetition(n, j)
			ok = inOrder && times == 1 && (ok || r.offer(ref.Index, depth+1))
		}
		if !ok {
			for _, x := range r.added[before:] {
				delete(r.inside, x)
			}
			r.added = r.added[:before]
			return false
		}
	}
	r.inside[i] = true
	r.added = append(r.added, i)
	return true
}

// readsInOrder reports whether the nodes of the group that read node x read its elements in
// their order, and x is no part of an elided join.
func (r *rematerializer) readsInOrder(x int) bool {
	if r.parts[x].concat != None {
		return false
	}
	for _, i := range r.group.Nodes {
		n := r.nodes[i].Primitive
		for j, ref := range r.nodes[i].From {
			if r.source(ref) != (graph.Ref{Kind: graph.RefNode, Index: x}) {
				continue
			}
			times, ok := affine.Repetition(n, j)
			if n.Fn.Kind() == tensor.KindIndex || !ok || times != 1 || affine.Span(n) != r.group.Elements {
				return false
			}
		}
	}
	return true
}

// isCheap reports whether a map takes about as long as reading its result.
func isCheap(fn tensor.Fn) bool {
	switch fn {
	case tensor.Add, tensor.Sub, tensor.Mul, tensor.Neg, tensor.Abs, tensor.Max, tensor.Min, tensor.Eq, tensor.Lt, tensor.Le, tensor.Where:
		return true
	}
	return false
}

// rematerialize lets fusions compute again what costs less to compute than to store and to
// load: cheap maps of what they read anyway. What nobody reads any more is computed no
// more. It returns the groups that are left.
func (p *program) rematerialize(groups []*fusionGroup) []*fusionGroup {
	for _, m := range groups {
		if m.isFusion && p.fused {
			p.rematerializeIn(m)
		}
	}
	needed := slices.Clone(p.isOutput)
	for _, m := range slices.Backward(groups) {
		own := map[int]bool{}
		for _, i := range m.Nodes {
			own[i] = needed[i] && !m.recomputed[i] || !p.fused
		}
		for _, i := range slices.Backward(m.Nodes) {
			if !own[i] {
				continue
			}
			p.Producers(i, func(x int) {
				if _, member := own[x]; member {
					own[x] = true
				} else {
					needed[x] = true
				}
			})
		}
		m.Nodes = slices.DeleteFunc(m.Nodes, func(i int) bool { return !own[i] })
	}
	return slices.DeleteFunc(groups, func(m *fusionGroup) bool { return len(m.Nodes) == 0 })
}

// rematerializeIn adds to a fusion the nodes that it can compute again.
func (p *program) rematerializeIn(m *fusionGroup) {
	r := rematerializer{program: p, group: m, inside: map[int]bool{}, read: map[int]bool{}}
	for _, i := range m.Nodes {
		r.inside[i] = true
		p.Producers(i, func(x int) { r.read[x] = true })
	}
	for _, i := range m.Nodes {
		p.Producers(i, func(x int) {
			if !r.inside[x] && r.readsInOrder(x) {
				r.offer(x, 0)
			}
		})
	}
	slices.Sort(r.added)
	m.recomputed = map[int]bool{}
	for _, i := range r.added {
		m.recomputed[i] = true
	}
	m.Nodes = append(r.added, m.Nodes...)
}
