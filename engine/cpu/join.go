package cpu

import (
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// Joins in place: where the operands of a join are its parts, one after the other,
// each is computed in its place, and nothing is left to do for the join. A join
// can be a part of another.

// region is where a part lies.
type region struct {
	whole  int // the join that it is a part of; none if there is none
	offset int // in bytes
}

// joins reports whether node i is a join in place, of parts that are all placed,
// and makes it one.
func (g *grouping) joins(i int) bool {
	n := g.nodes[i].Primitive
	if n.Fn != tensor.Join || g.kept[i] {
		return false
	}
	next, parts := 0, map[int]bool{}
	for j, ref := range g.sources(i) {
		x := ref.Index
		if ref.Kind != graph.RefNode || parts[x] || g.kept[x] || g.part[x].whole != none || g.lazy[x] || !g.joined[x] && (g.of[x] == nil || g.of[x].at < 0) {
			return false
		}
		size := g.nodes[x].Shape.Elements()
		if at, ok := beginning(n, j); !ok || at != next || size == 0 || size != n.Args[j].Shape.Elements() || !present(n, j, at, size) {
			return false
		}
		next += size
		parts[x] = true
	}
	if next != n.Shape.Elements() {
		return false
	}
	next = 0
	for _, ref := range g.sources(i) {
		g.part[ref.Index] = region{i, next}
		next += g.nodes[ref.Index].Shape.Elements() * n.Type.Size()
	}
	g.joined[i] = true
	return true
}

// beginning returns where the first element of an operand lies in the output of a copy
// that has its elements side by side, in their order.
func beginning(p *tensor.Primitive, arg int) (at int, ok bool) {
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

// present reports whether n elements of the output, from one on, are a box in which
// every element of an operand is where its coordinates say.
func present(p *tensor.Primitive, arg, at, n int) bool {
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

// place returns the join that is no part of another, and the bytes from where it
// begins to node i.
func (p *program) place(i int) (whole, offset int) {
	for p.part[i].whole != none {
		offset += p.part[i].offset
		i = p.part[i].whole
	}
	return i, offset
}

// wholes are the joins in place that are no parts of others: their parts, their own
// parts, and so on, by node, and the last task that reads one.
type wholes struct {
	parts map[int][]int
	at    []int         // of parts, from where the whole begins
	of    []int         // whole of a part
	ends  map[int][]int // by task
}

func newWholes(p *program, last []int) *wholes {
	w := &wholes{parts: map[int][]int{}, at: make([]int, len(p.nodes)), of: make([]int, len(p.nodes)), ends: map[int][]int{}}
	end := map[int]int{}
	for i := range p.nodes {
		w.of[i], w.at[i] = p.place(i)
		if whole := w.of[i]; whole != i {
			w.parts[whole] = append(w.parts[whole], i)
			end[whole] = max(end[whole], last[i])
		}
	}
	for i := range p.nodes {
		if len(w.parts[i]) > 0 {
			w.ends[end[i]] = append(w.ends[end[i]], i)
		}
	}
	return w
}

// lay gives a whole, of which node i is the first part that is computed, a place,
// and with it all parts.
func (w *wholes) lay(pl *plan, arena *mem.Planner, i int) {
	whole := w.of[i]
	if whole == i || pl.place[whole] != none {
		return
	}
	pl.place[whole], pl.lent[whole] = arena.Allocate(pl.size(whole)), true
	for _, x := range w.parts[whole] {
		pl.place[x], pl.lent[x] = pl.place[whole]+w.at[x], true
	}
}

// remove frees the places of wholes that nobody reads after a task.
func (w *wholes) remove(pl *plan, arena *mem.Planner, task int) {
	for _, whole := range w.ends[task] {
		arena.Free(pl.place[whole])
	}
}

// layHead gives the head of a fusion a place: that of a part, if it may lie there.
func (pl *plan) layHead(arena *mem.Planner, k *task, over func(o int) []int) {
	head := k.outs[len(k.outs)-1]
	for o, i := range k.outs[:len(k.outs)-1] {
		if pl.lent[i] && pl.size(i) == pl.size(head) && len(over(o)) > 0 {
			pl.place[head], pl.lent[head] = pl.place[i], true
			return
		}
	}
	pl.place[head] = arena.Allocate(pl.size(head))
}
