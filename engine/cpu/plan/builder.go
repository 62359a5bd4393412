package plan

import (
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/engine/cpu/fuse"
	"github.com/tally-network/tally/engine/cpu/kernel"
)

// builder makes tasks of groups, one for each, in the order of execution.
type builder struct {
	*program
	escapes     []bool // by node: others read it
	like        *Plan  // whose kernels serve where they can, or nil
	recurrences []recurrence
	replicas    map[*fusionGroup]replica
	models      map[*fusionGroup]built
	stepWeights map[graph.Ref]bool // constants that steps of recurrences read
}

// built is a task, and the operands that its outputs may overwrite.
type built struct {
	Task
	over func(k *Task, o int) []int // nil if there are none
}

func newBuilder(p *program, groups []*fusionGroup, escapes []bool, like *Plan) *builder {
	b := &builder{program: p, escapes: escapes, like: like, models: map[*fusionGroup]built{}}
	if p.fused {
		b.recurrences, b.replicas = p.findRecurrences(groups, escapes)
		b.stepWeights = p.stepConstants(b.replicas)
	}
	return b
}

// task returns the task of a group, and what its outputs may overwrite. Replicas share
// the work of their model.
func (b *builder) task(m *fusionGroup) (k Task, over func(o int) []int) {
	c, repeats := b.replicas[m]
	model := m
	if repeats {
		model = c.of
	}
	x, known := b.models[model]
	if !known {
		x = b.build(model)
		if repeats {
			b.models[model] = x
		}
	}
	k = x.Task
	if repeats {
		k = c.bind(m, x.Task)
	}
	if x.over == nil {
		return k, nil
	}
	return k, func(o int) []int { return x.over(&k, o) }
}

// serving returns the kernel of a node: that of the plan which this one is like, with the
// extents of this program, or the one that was chosen. Kernels that pack nothing keep
// nothing, and are chosen anew.
func (b *builder) serving(node int, chosen kernel.Kernel) kernel.Kernel {
	if b.like == nil || b.like.blocks[node] != b.blocks[node].of {
		return chosen
	}
	if x, ok := b.like.kernels[node].(kernel.Resizer); ok {
		if k := x.Resize(b.nodes[node].Primitive); k != nil {
			return k
		}
	}
	return chosen
}

// build makes the task of a group.
func (b *builder) build(m *fusionGroup) (x built) {
	k := &x.Task
	k.Nodes = m.all()
	if m.producer != nil {
		k.kernel = b.serving(m.Head, m.producer)
	}
	escapes := func(i int) bool { return b.escapes[i] && !m.recomputed[i] }
	switch {
	case m.producer != nil:
		producer := k.kernel.(kernel.Producer)
		if step := b.stepProduct(m.Head); step != nil {
			producer, k.kernel = step, step
		}
		l := fuse.Build(b.set, b.program, &m.Group, escapes)
		k.Args, k.Outs = append(b.sources(m.Head), l.Args...), append(l.Outs, m.Head)
		k.Work = fuse.WithEpilogue(producer, l.Fusion, len(k.Args)-len(l.Args))
		x.over = func(k *Task, o int) []int { return l.OverwritesHead(o, k.Nodes[0], k.Args) }
	case m.isFusion:
		l := fuse.Build(b.set, b.program, &m.Group, escapes)
		k.Work, k.Args, k.Outs = l.Fusion, l.Args, l.Outs
		x.over = func(_ *Task, o int) []int { return l.Overwrites(o) }
	default:
		if step := b.stepProduct(m.Nodes[0]); step != nil {
			k.kernel = step
		} else {
			k.kernel = b.serving(m.Nodes[0], b.kernelOf(m.Nodes[0]))
		}
		k.Work, k.Outs, k.Args = single{k.kernel}, m.Nodes, b.sources(m.Nodes[0])
	}
	return x
}
