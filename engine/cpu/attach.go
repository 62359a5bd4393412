package cpu

import (
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// headed is a contraction and a fusion that alone reads its output, element by
// element: bias, normalisation, activation, what is added. Each piece of the
// contraction goes through the fusion while it is in the cache.
type headed struct {
	*dot
	tail     *fusion
	operands int // of the contraction, before those of the fusion
}

// attach makes contractions the heads of fusions where it can, and returns the
// groups that are left.
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
				if n.Fn != tensor.Dot || n.Shape.Elements() != m.n || readers[x] > 1 || p.kept[x] || x < m.head {
					return
				}
				r := repetitions{program: p, m: m}
				if k, ok := newDot(n, p.set).(*dot); ok && r.plainly(x) && k.inRanges() {
					m.head, m.dot = x, k
				}
			})
		}
		if m.dot != nil {
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
	if m.dot == nil {
		return m.nodes
	}
	return append([]int{m.head}, m.nodes...)
}

// inRanges reports whether pieces are long runs of elements in the output.
func (k *dot) inRanges() bool {
	return last(k.out.cols) == 1 || slices.Equal(k.out.rows, tensor.Shape(k.rows.extents).Strides())
}

// run computes pieces of the contraction. Its own output is the last.
func (k *headed) run(w *worker, outs, args []*tensor.Tensor, lo, hi int) error {
	n := len(outs) - 1
	out, words := outs[n], words(outs[n])
	through := func(at, size int) error { return k.tail.run(w, outs[:n], args[k.operands:], at, at+size) }
	for lo < hi {
		done, err := k.runPiece(&w.piece, out, words, args[:k.operands], lo, hi-lo)
		if err != nil {
			return err
		}
		if err := w.piece.ranges(through); err != nil {
			return err
		}
		lo += done
	}
	return nil
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

// sources returns what node i reads.
func (p *program) sources(i int) (out []graph.Ref) {
	for _, r := range p.nodes[i].From {
		out = append(out, p.source(r))
	}
	return out
}
