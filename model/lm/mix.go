package lm

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/tensor"
)

// maxAdapters is how many adapters a step has room for. Each is computed for all tokens of the step: of rank 16 that is a sixty-fourth of what a product of width
// 2048 takes, a sixteenth at width 512. There a step of eight tokens takes 9 ms of the base, as much of one adapter, and 22 ms of eight (BenchmarkAdapters).
const maxAdapters = 8

// maxAdapterSizes is how many sizes of stages with adapters are kept prepared: forms of adapters, by numbers of tokens and of slots. One more drops the one
// that was used longest ago. Of SmolLM2-135M a size of few tokens takes 35 MB, one of 128 takes 120 MB, and to prepare one takes 0.3 to 1.4 s.
const maxAdapterSizes = 64

// Mix is whose tokens one step reads: of models that share a base, whose adapters have one form. Its zero value takes the first model that comes.
type Mix struct {
	base     *Model
	adapters []*Model
	plain    bool // the base is among them
}

// Take takes a model into the mix, and reports whether that could be.
func (x *Mix) Take(m *Model) bool {
	switch {
	case x.base != nil && x.base != m.base():
		return false
	case m.adapter == nil:
		x.plain = true
	case slices.Contains(x.adapters, m):
	case len(x.adapters) == maxAdapters || len(x.adapters) > 0 && x.adapters[0].adapter.form.key != m.adapter.form.key:
		return false
	default:
		x.adapters = append(x.adapters, m)
	}
	x.base = m.base()
	return true
}

// stageAdapters is what adapters the graph of a stage has room for.
type stageAdapters struct {
	form  *adapterForm // nil: none
	slots int          // 0: one, which all tokens have
}

// needs returns the room that a mix needs. Its adapters' form is the one that stages know.
func (x *Mix) needs(form *adapterForm) (a stageAdapters) {
	if len(x.adapters) == 0 {
		return a
	}
	if a.form = form; len(x.adapters) > 1 || x.plain {
		for a.slots = 1; a.slots < len(x.adapters); a.slots *= 2 {
		}
	}
	return a
}

// slot is a weight of the adapter in a slot, or its scale, as float32.
func (w *writer) slot(n int, name string) string {
	x := w.beside.form.inputs[name]
	input := fmt.Sprintf("%d/%s", n, name)
	if w.opened[input] == "" {
		w.opened[input] = w.b.Input(input, x.Type, x.Shape)
		if x.Type != tensor.Float32 {
			w.opened[input] = w.b.Cast(w.opened[input], tensor.Float32)
		}
	}
	return w.opened[input]
}

// has says of each token whether it is of a slot, bool [rows, 1].
func (w *writer) has(n int) string {
	const input = "slots"
	if w.opened[input] == "" {
		w.opened[input] = w.b.Input(input, tensor.Int64, tensor.Shape{w.rows})
	}
	mask := fmt.Sprintf("%d/has", n)
	if w.opened[mask] == "" {
		w.opened[mask] = w.reshape(w.b.Op("Equal", w.opened[input], w.b.Const(vector(int64(n)))), w.rows, 1)
	}
	return w.opened[mask]
}

// formOf returns the form of a mix's adapters as stages have plans for it; nil: it has none.
func (s *Stages) formOf(mix *Mix) *adapterForm {
	if len(mix.adapters) == 0 {
		return nil
	}
	form := mix.adapters[0].adapter.form
	for _, size := range s.sizes {
		if size.adapters.form.key == form.key {
			return size.adapters.form
		}
	}
	return form
}

// use says that a size is used, and makes room for it.
func (s *Stages) use(size stageSize) {
	if size.adapters.form == nil {
		return
	}
	s.sizes = append(slices.DeleteFunc(s.sizes, func(x stageSize) bool { return x == size }), size)
	if len(s.sizes) <= maxAdapterSizes {
		return
	}
	oldest := s.sizes[0]
	s.sizes = slices.Delete(s.sizes, 0, 1)
	needed := slices.ContainsFunc(s.sizes, func(x stageSize) bool { return x.kind() == oldest.kind() })
	for _, c := range s.planCaches() {
		if delete(c.bySize, oldest); !needed {
			delete(c.plans, oldest.kind())
		}
	}
}

// bindAdapters says which adapters a step has, and which tokens are theirs.
func (s *Stages) bindAdapters(b *bound, mix *Mix) {
	b.adapters = mix.needs(s.formOf(mix))
	s.use(stageSize{rows: b.room, adapters: b.adapters})
	b.adapted = mix.adapters
	for len(b.adapted) < b.adapters.slots {
		b.adapted = append(b.adapted, b.adapted[0]) // no token is of this slot
	}
	slots := make([]int64, 0, b.room)
	for _, p := range b.parts {
		slot := slices.Index(mix.adapters, s.modelOf(p))
		for range p.Tokens {
			slots = append(slots, int64(slot))
		}
	}
	for len(slots) < b.room {
		slots = append(slots, -1)
	}
	b.slots = tensor.Must(tensor.From(tensor.Shape{b.room}, slots))
}
