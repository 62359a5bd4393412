package plan

import (
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// Concat elision: where the operands of a join are its parts, one after the other, each is
// computed in its place, and nothing is left to do for the join. A join can be a part of
// another.

// concatPart is the place of a part.
type concatPart struct {
	concat int // the join that it is a part of; None if there is none
	offset int // of the part in it, in bytes
	leaves int // of the part, if it is an elided join: nodes that compute its elements
}

// elideConcat reports whether node i is a join that can be elided, and elides it.
func (g *fuser) elideConcat(i int) bool {
	n := g.nodes[i].Primitive
	if n.Fn != tensor.Join || g.isOutput[i] {
		return false
	}
	next, leaves, parts := 0, 0, map[int]bool{}
	for j, ref := range g.sources(i) {
		x := ref.Index
		if ref.Kind != graph.RefNode || parts[x] || g.isOutput[x] || g.parts[x].concat != None || g.lazy[x] || !g.elided[x] && (g.groupOf[x] == nil || g.groupOf[x].order < 0) {
			return false
		}
		size := g.nodes[x].Shape.Elements()
		if at, ok := startInConcat(n, j); !ok || at != next || next*n.Type.Size()%shiftBytes != 0 || size == 0 || size != n.Args[j].Shape.Elements() || !isBox(n, j, at, size) {
			return false
		}
		next += size
		leaves += max(g.parts[x].leaves, 1)
		parts[x] = true
	}
	if next != n.Shape.Elements() || leaves > tuning.MaxConcatLeaves {
		return false
	}
	next = 0
	for _, ref := range g.sources(i) {
		g.parts[ref.Index].concat, g.parts[ref.Index].offset = i, next
		next += g.nodes[ref.Index].Shape.Elements() * n.Type.Size()
	}
	g.elided[i], g.parts[i].leaves = true, leaves
	return true
}

// startInConcat returns where the first element of an operand is in the output of a join
// that has its elements contiguous, in their order.
func startInConcat(p *tensor.Primitive, arg int) (at int, ok bool) {
	if p.Args[arg].Flat {
		return 0, false
	}
	base, strides, _ := affine.Linear(p, arg)
	for a, step := range p.Shape.Strides() {
		if p.Shape[a] > 1 && strides[a] != step {
			return 0, false
		}
	}
	return -base, true
}

// isBox reports whether n elements of the output, from one on, are a box all of which an
// operand has.
func isBox(p *tensor.Primitive, arg, at, n int) bool {
	if at+n > p.Shape.Elements() {
		return false
	}
	lo, hi, box := make([]int, len(p.Shape)), make([]int, len(p.Shape)), 1
	p.Shape.Coords(at, lo)
	p.Shape.Coords(at+n-1, hi)
	for a := range lo {
		box *= max(hi[a]-lo[a]+1, 0)
	}
	for d := range p.Args[arg].Dims {
		b, _ := affine.NewBound(p, arg, d)
		least, most := b.Offset, b.Offset
		for a := range lo {
			x, y := b.Steps[a]*lo[a], b.Steps[a]*hi[a]
			least, most = least+min(x, y), most+max(x, y)
		}
		if b.Index != nil || least < 0 || most >= b.Extent {
			return false
		}
	}
	return box == n
}

// concats are the outermost elided joins, with all their parts and the parts of those.
type concats struct {
	parts map[int][]int // by join
	at    []int         // by part, bytes from the beginning of its join
	of    []int         // by part, its join
	ends  map[int][]int // by task, the joins that nothing reads later
}

// newConcats finds the elided joins; last is the task that reads each node last.
func newConcats(p *program, last []int) *concats {
	w := &concats{parts: map[int][]int{}, at: make([]int, len(p.nodes)), of: make([]int, len(p.nodes)), ends: map[int][]int{}}
	end := map[int]int{}
	for i := range p.nodes {
		w.of[i], w.at[i] = p.concatOf(i)
		if join := w.of[i]; join != i {
			w.parts[join] = append(w.parts[join], i)
			end[join] = max(end[join], last[i])
		}
	}
	for i := range p.nodes {
		if len(w.parts[i]) > 0 {
			w.ends[end[i]] = append(w.ends[end[i]], i)
		}
	}
	return w
}

// place gives the join of node i, if i is its first part that is computed, a range of the
// arena, and with it all parts.
func (w *concats) place(pl *Plan, arena *mem.Planner, i int) {
	join := w.of[i]
	if join == i || pl.offset[join] != None {
		return
	}
	pl.offset[join], pl.aliased[join] = arena.Allocate(pl.size(join)), true
	for _, x := range w.parts[join] {
		pl.offset[x], pl.aliased[x] = pl.offset[join]+w.at[x], true
	}
}

// free frees the ranges of joins that nobody reads after a task.
func (w *concats) free(pl *Plan, arena *mem.Planner, task int) {
	for _, join := range w.ends[task] {
		arena.Free(pl.offset[join])
	}
}

// concatOf returns the outermost join that node i is part of, or i itself, and the bytes
// from its beginning to node i.
func (p *program) concatOf(i int) (join, offset int) {
	for p.parts[i].concat != None {
		offset += p.parts[i].offset
		i = p.parts[i].concat
	}
	return i, offset
}
