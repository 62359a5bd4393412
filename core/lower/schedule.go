package lower

import (
	"slices"

	"github.com/tally-network/tally/core/graph"
)

// schedule puts the nodes of a program in order: that of the lowered graph, but
// what lets memory go runs early. A node does if its operands are there and its
// output is no larger than its part of them: the sum of their sizes, each shared
// among those that have yet to read it. So a backward pass uses up what the
// forward pass left as it goes by, not after it.
type schedule struct {
	sizes    []int // of outputs, in bytes
	operands [][]int
	readers  [][]int // ascending
	waiting  []int   // operands that have not run
	left     []int   // readers that have not run; the new state is one too
	ran      []bool
	order    []int
}

// ordered returns the nodes that the roots need in the order of a program.
func (e *Emitter) ordered(roots []graph.Ref) []int {
	n := len(e.nodes)
	s := &schedule{
		sizes: make([]int, n), operands: make([][]int, n), readers: make([][]int, n),
		waiting: make([]int, n), left: make([]int, n), ran: make([]bool, n),
	}
	for _, r := range roots {
		if r.Kind == graph.RefNode {
			s.left[r.Index]++
		}
	}
	live := e.live(roots)
	for i, node := range e.nodes {
		if !live[i] {
			continue
		}
		s.sizes[i] = node.Type.Size() * node.Shape.Elements()
		for _, r := range node.From {
			if r.Kind == graph.RefNode && !ends(s.readers[r.Index], i) {
				s.operands[i] = append(s.operands[i], r.Index)
				s.readers[r.Index] = append(s.readers[r.Index], i)
				s.left[r.Index]++
			}
		}
		s.waiting[i] = len(s.operands[i])
	}
	for i := range e.nodes {
		if live[i] && !s.ran[i] {
			s.run(i)
		}
	}
	return s.order
}

// ends reports whether x is the last of list.
func ends(list []int, x int) bool { return len(list) > 0 && list[len(list)-1] == x }

// run runs a node; then, depth first and in ascending order, what may now run
// early: its readers, and the last reader of each operand.
func (s *schedule) run(node int) {
	next := []int{node}
	for len(next) > 0 {
		i := next[len(next)-1]
		next = next[:len(next)-1]
		if s.ran[i] || i != node && !s.early(i) {
			continue
		}
		s.ran[i] = true
		s.order = append(s.order, i)
		var now []int
		for _, r := range s.readers[i] {
			s.waiting[r]--
			now = append(now, r)
		}
		for _, o := range s.operands[i] {
			if s.left[o]--; s.left[o] == 1 {
				now = append(now, s.readers[o]...)
			}
		}
		slices.Sort(now)
		slices.Reverse(now)
		next = append(next, now...)
	}
}

// early reports whether a node can run now and is no larger than its part of its
// operands.
func (s *schedule) early(i int) bool {
	if s.waiting[i] > 0 {
		return false
	}
	part := 0
	for _, o := range s.operands[i] {
		part += s.sizes[o] / s.left[o]
	}
	return s.sizes[i] <= part
}
