package plan

import (
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Constant folding: what follows from constants alone is computed once, before the plan is
// made, and is a constant of it. So exporters may leave weights cut, joined and transposed.

// ConstantPart returns a program that computes what p makes of constants alone, as far as
// others read it, and the nodes of p whose outputs it gives. It leaves out what contractions
// read from blocks, what is greater than its operands, for that is soon computed again, and what would take more memory than
// the constants do. It returns nil if nothing is left.
func ConstantPart(p *graph.Program) (part *graph.Program, nodes []int) {
	constant, room := make([]bool, len(p.Nodes)), 0
	varies := func(r graph.Ref) bool {
		return r.Kind != graph.RefConst && (r.Kind != graph.RefNode || !constant[r.Index])
	}
	for i := range p.Nodes {
		constant[i] = !slices.ContainsFunc(p.Nodes[i].From, varies)
	}
	for _, x := range p.Consts {
		room += len(x.Bytes())
	}
	out := &graph.Program{Groups: 1, Results: []graph.Slot{}, Consts: slices.Clone(p.Consts), Nodes: p.Nodes}
	considered := make([]bool, len(p.Nodes))
	live, of := newProgram(p, nil, false).live(), newDequantizer(p)
	for i := range p.Nodes {
		if constant[i] || !live[i] {
			continue
		}
		for _, r := range p.Nodes[i].From {
			if varies(r) || r.Kind != graph.RefNode || considered[r.Index] {
				continue
			}
			considered[r.Index] = true
			if p.Nodes[i].Fn == tensor.Dot {
				if _, _, ok := of.blocks(r); ok {
					continue // it is read from its blocks
				}
			}
			n := &p.Nodes[r.Index]
			if size := n.Shape.Elements() * n.Type.Size(); size <= operandBytes(p, r.Index) && size <= room {
				room -= size
				nodes = append(nodes, r.Index)
				out.Results = append(out.Results, graph.Slot{Type: n.Type, Shape: n.Shape})
				out.Outputs = append(out.Outputs, r)
			}
		}
	}
	if nodes == nil {
		return nil, nil
	}
	return out, nodes
}

// operandBytes returns the bytes of the tensors that a node reads, each counted once.
func operandBytes(p *graph.Program, node int) (total int) {
	for j, r := range p.Nodes[node].From {
		if !slices.Contains(p.Nodes[node].From[:j], r) {
			a := &p.Nodes[node].Args[j]
			total += a.Shape.Elements() * a.Type.Size()
		}
	}
	return total
}

// Substitute returns p with values, which become constants behind its own, in place of what
// nodes compute. All nodes keep their numbers.
func Substitute(p graph.Program, nodes []int, values []*tensor.Tensor) graph.Program {
	at := map[graph.Ref]graph.Ref{}
	for i, x := range nodes {
		at[graph.Ref{Kind: graph.RefNode, Index: x}] = graph.Ref{Kind: graph.RefConst, Index: len(p.Consts) + i}
	}
	p.Consts = append(p.Consts, values...)
	p.Nodes = slices.Clone(p.Nodes)
	for i := range p.Nodes {
		from := slices.Clone(p.Nodes[i].From)
		for j, r := range from {
			if c, ok := at[r]; ok {
				from[j] = c
			}
		}
		p.Nodes[i].From = from
	}
	return p
}
