package plan

import (
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/asm"
)

// program is a program that is being planned, and what is known of its nodes.
type program struct {
	*graph.Program
	nodes    []graph.Opcode
	set      *asm.KernelSet
	fused    bool
	alias    []graph.Ref          // the tensor that a node is, in another shape; zero for most
	outputs  []graph.Ref          // of the program, but what copies look through
	isOutput []bool               // becomes part of the new state
	elided   []bool               // joins that are elided
	parts    []concatPart         // of such joins
	blocks   map[int]blockProduct // contractions that read blocks of weights, by node
}

// newProgram returns p with nothing decided yet.
func newProgram(p *graph.Program, set *asm.KernelSet, fused bool) *program {
	out := &program{Program: p, nodes: p.Nodes, set: set, fused: fused, alias: make([]graph.Ref, len(p.Nodes)), isOutput: make([]bool, len(p.Nodes)), elided: make([]bool, len(p.Nodes)), parts: make([]concatPart, len(p.Nodes))}
	for i := range out.parts {
		out.parts[i].concat = None
	}
	out.outputs = p.Outputs
	if fused {
		out.outputs = out.withoutCopies(p.Outputs)
	}
	for _, r := range out.outputs {
		if r.Kind == graph.RefNode {
			out.isOutput[r.Index] = true
		}
	}
	if fused {
		out.readBlocks()
	}
	return out
}

// withoutCopies returns for each output the node of which it is a copy in another shape, unless that is an output as well: then it is
// computed where it stays.
func (p *program) withoutCopies(outputs []graph.Ref) []graph.Ref {
	taken := map[graph.Ref]bool{}
	for _, r := range outputs {
		taken[r] = true
	}
	outputs = slices.Clone(outputs)
	for s, r := range outputs {
		for r.Kind == graph.RefNode && p.nodes[r.Index].Fn == tensor.Copy && p.same(r.Index) {
			r = p.nodes[r.Index].From[0]
		}
		if r.Kind == graph.RefNode && !taken[r] {
			outputs[s], taken[r] = r, true
		}
	}
	return outputs
}

// Primitive implements fuse.Graph.
func (p *program) Primitive(i int) *tensor.Primitive { return p.nodes[i].Primitive }

// Source implements fuse.Graph.
func (p *program) Source(i, j int) graph.Ref { return p.source(p.nodes[i].From[j]) }

// source returns the tensor that ref is, through aliases.
func (p *program) source(ref graph.Ref) graph.Ref {
	for ref.Kind == graph.RefNode && p.alias[ref.Index].Kind != 0 {
		ref = p.alias[ref.Index]
	}
	return ref
}

// live marks the nodes on which the new state depends.
func (p *program) live() []bool {
	live := slices.Clone(p.isOutput)
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

// Producers implements fuse.Graph: it calls do with every node that node i reads, and with
// the parts of an elided join instead of that.
func (p *program) Producers(i int, do func(node int)) {
	for _, r := range p.sources(i) {
		switch {
		case r.Kind != graph.RefNode:
		case p.elided[r.Index]:
			p.Producers(r.Index, do)
		default:
			do(r.Index)
		}
	}
}

// sources returns the tensors that node i reads.
func (p *program) sources(i int) (out []graph.Ref) {
	for _, r := range p.nodes[i].From {
		out = append(out, p.source(r))
	}
	return out
}
