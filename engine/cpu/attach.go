package cpu

import (
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// headed is a maker and a fusion that alone reads its output, element by element:
// bias, normalisation, activation, what is added. Each piece goes through the
// fusion while it is in the cache.
type headed struct {
	kernel.Producer
	tail     *fusion
	operands int // of the maker, before those of the fusion
}

// attach makes makers the heads of fusions where it can, and returns the groups
// that are left.
func (p *program) attach(groups []*members) []*members {
	of := make([]*members, len(p.nodes))
	readers := make([]int, len(p.nodes)) // groups
	for _, m := range groups {
		seen := map[int]bool{}
		for _, i := range m.nodes {
			of[i] = m
			p.producers(i, func(x int) {
				if !seen[x] {
					seen[x] = true
					readers[x]++
				}
			})
		}
	}
	taken := map[*members]bool{}
	for _, m := range groups {
		if !m.fused || m.rows > 0 {
			continue
		}
		for _, i := range m.nodes {
			p.producers(i, func(x int) {
				n := p.nodes[x].Primitive
				if fusible(p.set, n) || n.Shape.Elements() != m.n || readers[x] > 1 || p.kept[x] || x < m.head {
					return
				}
				r := repetitions{program: p, m: m}
				if k, ok := compile(n, p.set).(kernel.Producer); ok && r.plainly(x) && k.LongRuns() {
					m.head, m.maker = x, k
				}
			})
		}
		if m.maker != nil {
			taken[of[m.head]] = true
		}
	}
	var out []*members
	for _, m := range groups {
		if !taken[m] {
			out = append(out, m)
		}
	}
	return out
}

// all returns the nodes of m, its head first.
func (m *members) all() []int {
	if m.maker == nil {
		return m.nodes
	}
	return append([]int{m.head}, m.nodes...)
}

// Run computes pieces. The output of the maker is the last.
func (k *headed) Run(w *kernel.Worker, outs, args []*tensor.Tensor, lo, hi int) error {
	n, s := len(outs)-1, kernel.Scratch[scratch](w)
	through := func(at, size, rows, pitch int, from kernel.Source) error {
		if k.tail.head == none {
			from.CopyTo(mem.Words(outs[n]), at, size, rows, pitch)
			from = kernel.Source{}
		}
		return k.tail.runRows(s, outs[:n], args[k.operands:], at, size, rows, pitch, from)
	}
	return kernel.Produce(k.Producer, w, outs[n], args[:k.operands], lo, hi, through)
}

// overHead returns the operands in whose memory output o may lie: that of the
// head alone, for others may still be read for the next pieces.
func (l *linker) overHead(o, head int, args []graph.Ref) (out []int) {
	if o == len(l.outs) {
		return nil
	}
	for _, a := range l.overwrites(o) {
		if a += len(args) - len(l.args); args[a] == (graph.Ref{Kind: graph.RefNode, Index: head}) {
			out = append(out, a)
		}
	}
	return out
}
