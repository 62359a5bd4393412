package cpu

import (
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
)

// repeat lets fusions compute again what costs less to compute than to write to
// memory and to read: cheap maps of what they read anyway. What nobody reads any
// more is computed no more. It returns the groups that are left.
func (p *program) repeat(groups []*members) []*members {
	for _, m := range groups {
		if m.fused && p.fuse {
			p.repeatIn(m)
		}
	}
	needed := slices.Clone(p.kept)
	for _, m := range slices.Backward(groups) {
		own := map[int]bool{}
		for _, i := range m.nodes {
			own[i] = needed[i] && !m.again[i] || !p.fuse
		}
		for _, i := range slices.Backward(m.nodes) {
			if !own[i] {
				continue
			}
			p.producers(i, func(x int) {
				if _, member := own[x]; member {
					own[x] = true
				} else {
					needed[x] = true
				}
			})
		}
		m.nodes = slices.DeleteFunc(m.nodes, func(i int) bool { return !own[i] })
	}
	return slices.DeleteFunc(groups, func(m *members) bool { return len(m.nodes) == 0 })
}

// producers calls do with every node that node i reads: of a join in place, with
// its parts.
func (p *program) producers(i int, do func(node int)) {
	for _, r := range p.sources(i) {
		switch {
		case r.Kind != graph.RefNode:
		case p.joined[r.Index]:
			p.producers(r.Index, do)
		default:
			do(r.Index)
		}
	}
}

// sources returns what node i reads.
func (p *program) sources(i int) (out []graph.Ref) {
	for _, r := range p.nodes[i].From {
		out = append(out, p.source(r))
	}
	return out
}

// repeatIn adds to a fusion what it can compute again.
func (p *program) repeatIn(m *members) {
	r := repetitions{program: p, m: m, inside: map[int]bool{}, read: map[int]bool{}}
	for _, i := range m.nodes {
		r.inside[i] = true
		p.producers(i, func(x int) { r.read[x] = true })
	}
	for _, i := range m.nodes {
		p.producers(i, func(x int) {
			if !r.inside[x] && r.plainly(x) {
				r.offer(x, 0)
			}
		})
	}
	slices.Sort(r.again)
	m.again = map[int]bool{}
	for _, i := range r.again {
		m.again[i] = true
	}
	m.nodes = append(r.again, m.nodes...)
}

// repetitions are the nodes that a fusion computes again.
type repetitions struct {
	*program
	m      *members
	inside map[int]bool // what it computes
	read   map[int]bool // what its first members read
	again  []int
}

// far is how many nodes in a row are computed again for one that is read.
const far = 4

// offer adds node i, and what else it takes, if all of that is cheap and follows
// from what the fusion reads.
func (r *repetitions) offer(i, depth int) bool {
	n := r.nodes[i].Primitive
	if r.inside[i] {
		return true
	}
	if depth == far || !cheap(n.Fn) || n.Shape.Elements() != r.m.n || len(r.again) >= maxMembers {
		return false
	}
	before := len(r.again)
	for j, ref := range r.nodes[i].From {
		ref = r.source(ref)
		if ref.Kind != graph.RefNode {
			continue
		}
		ok := r.read[ref.Index]
		if r.nodes[ref.Index].Shape.Elements() == r.m.n {
			times, inOrder := affine.Repetition(n, j)
			ok = inOrder && times == 1 && (ok || r.offer(ref.Index, depth+1))
		}
		if !ok {
			for _, x := range r.again[before:] {
				delete(r.inside, x)
			}
			r.again = r.again[:before]
			return false
		}
	}
	r.inside[i] = true
	r.again = append(r.again, i)
	return true
}

// plainly reports whether the members that read node x read its elements in
// their order, and not as a part of others.
func (r *repetitions) plainly(x int) bool {
	if r.part[x].whole != none {
		return false
	}
	for _, i := range r.m.nodes {
		n := r.nodes[i].Primitive
		for j, ref := range r.nodes[i].From {
			if r.source(ref) != (graph.Ref{Kind: graph.RefNode, Index: x}) {
				continue
			}
			times, ok := affine.Repetition(n, j)
			if n.Fn.Kind() == tensor.KindIndex || !ok || times != 1 || span(n) != r.m.n {
				return false
			}
		}
	}
	return true
}

// cheap reports whether a map takes about as long as reading its result.
func cheap(fn tensor.Fn) bool {
	switch fn {
	case tensor.Add, tensor.Sub, tensor.Mul, tensor.Neg, tensor.Abs, tensor.Max, tensor.Min, tensor.Eq, tensor.Lt, tensor.Le, tensor.Where:
		return true
	}
	return false
}
