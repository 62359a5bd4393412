package cpu

import (
	"unsafe"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// A maker is a kernel that makes pieces of its output that are runs of elements.
type maker interface {
	kernel

	// next computes piece i and, perhaps, some of the n − 1 next as one with it. It
	// calls do, if it is given, for every run, in some order, as soon as that is made.
	next(w *worker, out *tensor.Tensor, args []*tensor.Tensor, i, n int, do then) (done int, err error)

	// inRanges reports whether runs are long.
	inRanges() bool
}

// then is what is to be done with rows of n elements of an output, which begin so
// many apart. They are there, unless from says where they are instead.
type then func(at, n, rows, pitch int, from source) error

// source is where rows of an output lie that have not been copied to it: each is
// some lines of the same length, which lie side by side in the output and so far
// apart here.
type source struct {
	at                 []float32 // nil: they have been copied
	pitch, lines, line int
}

// copy copies rows of n elements to the output.
func (s source) copy(out []float32, at, n, rows, pitch int) {
	if s.at == nil {
		return
	}
	width := n / s.lines
	for i := range rows * s.lines {
		row, line := i/s.lines, i%s.lines
		copy(out[at+row*pitch+line*width:][:width], s.at[row*s.pitch+line*s.line:])
	}
}

// place returns where a line of a row begins, if not in the output.
func (s source) place(row, line int) unsafe.Pointer {
	if s.at == nil {
		return nil
	}
	return unsafe.Pointer(&s.at[row*s.pitch+line*s.line])
}

// produce computes pieces of a maker, and calls do, if it is given, for what is made.
func produce(k maker, w *worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int, do then) error {
	for lo < hi {
		done, err := k.next(w, out, args, lo, hi-lo, do)
		if err != nil {
			return err
		}
		lo += done
	}
	return nil
}

// headed is a maker and a fusion that alone reads its output, element by element:
// bias, normalisation, activation, what is added. Each piece goes through the
// fusion while it is in the cache.
type headed struct {
	maker
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
				if k, ok := compile(n, p.set).(maker); ok && r.plainly(x) && k.inRanges() {
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

// run computes pieces. The output of the maker is the last.
func (k *headed) run(w *worker, outs, args []*tensor.Tensor, lo, hi int) error {
	n := len(outs) - 1
	through := func(at, size, rows, pitch int, from source) error {
		if k.tail.head == none {
			from.copy(mem.Words(outs[n]), at, size, rows, pitch)
			from = source{}
		}
		return k.tail.runRows(w, outs[:n], args[k.operands:], at, size, rows, pitch, from)
	}
	return produce(k.maker, w, outs[n], args[:k.operands], lo, hi, through)
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
