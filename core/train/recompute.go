package train

import (
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
)

// recomputation gives the backward pass the values of the forward pass that it
// reads. The forward pass is cut into parts. What crosses a cut is kept; when
// the backward pass comes to a part, the rest of the part is computed again from
// that. The last part is computed once, and so is what follows from initializers
// alone. Source: Chen, Xu, Zhang and Guestrin, arXiv 1604.06174.
type recomputation struct {
	b     *graph.Builder
	calls []*lower.Call
	uses  map[string]*use
	cuts  []int             // the first call of each part but the first, ascending
	names map[string]string // of the values of the part at hand, computed again
	from  int               // its first call
}

// maxParts bounds the parts. Memory is least with about as many as the root of
// the number of layers.
const maxParts = 1 << 10

// use says where a value of the forward pass is: computed by one call, and read
// for the last time by another. Inputs of the graph are there before call 0.
type use struct {
	made, last int
	size       int // bytes; 0 for an input
}

// recompute cuts a forward graph into parts, at most as many as given.
func recompute(b *graph.Builder, calls []*lower.Call, parts int) *recomputation {
	r := &recomputation{b: b, calls: calls, uses: map[string]*use{}, from: len(calls)}
	for _, in := range b.Graph().Inputs {
		r.uses[in.Name] = &use{made: -1}
	}
	for i, c := range calls {
		varies := false
		for _, in := range c.Inputs {
			if u := r.uses[in]; u != nil {
				u.last, varies = i, true
			}
		}
		for j, out := range c.Outputs {
			if t, s := c.Type(j); varies && out != "" {
				r.uses[out] = &use{made: i, last: i, size: t.Size() * s.Elements()}
			}
		}
	}
	r.cut(parts)
	return r
}

// cut chooses the number of parts, up to the given one, and the cuts. What is
// kept and the largest part, which is there beside it, shall be least together.
func (r *recomputation) cut(parts int) {
	n := len(r.calls)
	made, crossing := make([]int, n+1), make([]int, n+1) // bytes, before each call
	for _, u := range r.uses {                           // order: sums of integers
		made[u.made+1] += u.size
		crossing[u.made+1] += u.size
		crossing[u.last+1] -= u.size
	}
	for i := range n {
		made[i+1] += made[i]
		crossing[i+1] += crossing[i]
	}
	least := made[n]
	for k := 2; k <= parts; k++ {
		kept, largest, from := 0, 0, 0
		cuts := narrow(made, crossing, k)
		for _, c := range cuts {
			kept += crossing[c]
			largest = max(largest, made[c]-made[from])
			from = c
		}
		if total := kept + max(largest, made[n]-made[from]); total < least {
			least, r.cuts = total, cuts
		}
	}
}

// narrow returns cuts into a number of parts: each where least crosses, of those
// that are less than half a part from where parts would be equal.
func narrow(made, crossing []int, parts int) (cuts []int) {
	part := made[len(made)-1] / parts
	for k, i := 1, 0; k < parts; k++ {
		best, off := 0, 0
		for ; i < len(made) && made[i] < part*k+part/2; i++ {
			d := max(made[i]-part*k, part*k-made[i])
			if 2*d <= part && (best == 0 || crossing[i] < crossing[best] || crossing[i] == crossing[best] && d < off) {
				best, off = i, d
			}
		}
		if best > 0 {
			cuts = append(cuts, best)
		}
	}
	return cuts
}

// call returns call i with the names of the values as the backward pass reads
// them. It goes through the calls backwards; grads are the gradients so far.
func (r *recomputation) call(i int, grads map[string]string) *lower.Call {
	if i < r.from {
		r.enter(i, grads)
	}
	return r.calls[i].Renamed(r.names)
}

// enter computes the part that call i is in again.
func (r *recomputation) enter(i int, grads map[string]string) {
	lo, hi := 0, len(r.calls)
	for _, c := range r.cuts {
		if c > i {
			hi = c
			break
		}
		lo = c
	}
	r.from, r.names = lo, nil
	gate := r.gate(hi, grads)
	if gate == "" {
		return
	}
	part, names := &graph.Graph{}, map[string]string{}
	for _, c := range r.calls[lo:hi] {
		if slices.ContainsFunc(c.Outputs, func(out string) bool { return r.uses[out] != nil && !r.kept(out) }) {
			part.Nodes = append(part.Nodes, *c.Node)
		}
		for _, name := range slices.Concat(c.Inputs, c.Outputs) {
			switch {
			case names[name] != "":
			case r.uses[name] == nil:
				names[name] = name
			case r.kept(name):
				names[name] = r.b.Op("Where", gate, name, name)
			}
		}
	}
	r.names = r.b.Import("again/", part, names)
}

// kept reports whether a value of the forward pass outlives its part.
func (r *recomputation) kept(name string) bool {
	u := r.uses[name]
	return u.made < 0 || slices.ContainsFunc(r.cuts, func(c int) bool { return u.made < c && c <= u.last })
}

// gate writes a truth value that does not matter, but is known only once the
// backward pass has come to the cut hi. What is chosen by it, among two that are
// the same, cannot be computed earlier, and is not taken for what is there
// already. It is empty at the end of the forward pass.
func (r *recomputation) gate(hi int, grads map[string]string) string {
	b := r.b
	for _, c := range slices.Backward(r.calls[:hi]) {
		for j, out := range c.Outputs {
			_, s := c.Type(j)
			if u := r.uses[out]; u == nil || u.last < hi || grads[out] == "" || s.Elements() == 0 {
				continue
			}
			first := grads[out]
			if n := len(s); n > 0 {
				first = b.Op("Slice", first, b.Ints(make([]int, n)...), b.Ints(slices.Repeat([]int{1}, n)...))
			}
			return b.Op("Less", b.Op("Reshape", first, b.Ints()), b.Scalar(0))
		}
	}
	return ""
}
