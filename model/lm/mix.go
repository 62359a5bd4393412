package lm

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tally-network/tally/core/tensor"
)

// maxAdapters is how many adapters a step has room for. Each is computed for all tokens of the step: of rank 16 that is a sixty-fourth of what a product of width
// 2048 takes, a sixteenth at width 512. There a step of eight tokens takes 9 ms of the base, as much of one adapter, and 22 ms of eight (BenchmarkAdapters).
const maxAdapters = 8

// maxAdapterForms is how many forms of adapters stages keep plans of; one more drops those of all.
const maxAdapterForms = 8

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

// needs returns the room that a mix needs. Forms are those that stages know, by their keys.
func (x *Mix) needs(forms map[string]*adapterForm) (a stageAdapters) {
	if len(x.adapters) == 0 {
		return a
	}
	form := x.adapters[0].adapter.form
	if forms[form.key] == nil {
		forms[form.key] = form
	}
	if a.form = forms[form.key]; len(x.adapters) > 1 || x.plain {
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

// bindAdapters says which adapters a step has, and which tokens are theirs.
func (s *Stages) bindAdapters(b *bound, mix *Mix) {
	if known := len(mix.adapters) == 0 || s.forms[mix.adapters[0].adapter.form.key] != nil; !known && len(s.forms) >= maxAdapterForms {
		s.forms = map[string]*adapterForm{}
		for _, c := range s.planCaches() {
			maps.DeleteFunc(c.plans, func(k planKind, _ *prepared) bool { return k.adapters.form != nil })
			maps.DeleteFunc(c.bySize, func(k stageSize, _ *prepared) bool { return k.adapters.form != nil })
		}
	}
	b.adapters = mix.needs(s.forms)
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
