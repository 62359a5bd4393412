package adversary

import (
	"maps"
	"slices"
	"strings"
)

// Shrink returns the least of a finding's script that still shows the same: blocks,
// messages, bends, repetitions, habits and hostile people are left out for as long as
// that goes.
func (w *World) Shrink(f *Finding) Script {
	s, sent := f.Script.clone(), 0
	holds := func(t Script) bool {
		if sent > maxShrink {
			return false
		}
		g, n := w.Play(t)
		sent += n
		return g != nil && same(g, f)
	}
	for at := 0; at < len(cuts(s)); { // a cut that held makes way for the next at its place
		t := s.clone()
		if cuts(s)[at](&t) && holds(t) {
			s = t
		} else {
			at++
		}
	}
	s.Found = f.String()
	if g, _ := w.Play(s); g != nil {
		s.Found = g.String()
	}
	return s
}

// maxShrink bounds one shrinking, in messages: so the same finding shrinks to the same
// script on every machine.
const maxShrink = 20_000

// same reports whether two findings are of one kind and about one thing: what stands
// in brackets are numbers.
func same(f, g *Finding) bool { return f.Kind == g.Kind && Class(f) == Class(g) }

// cuts are the ways to make a script smaller, those that take most first.
func cuts(s Script) (out []func(*Script) bool) {
	n := len(s.Blocks)
	for size := n; size >= 1; size /= 2 {
		for at := 0; at < n; at += size {
			out = append(out, func(t *Script) bool {
				t.Blocks = slices.Delete(t.Blocks, at, min(at+size, n))
				return true
			})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Hostile)) {
		out = append(out, func(t *Script) bool { delete(t.Hostile, name); return !uses(t, name) })
	}
	for i := range s.Orders {
		out = append(out, func(t *Script) bool { t.Orders = slices.Delete(t.Orders, i, i+1); return true })
	}
	if s.Pick > 0 {
		out = append(out, func(t *Script) bool { t.Pick = 0; return true })
	}
	for i, b := range s.Blocks {
		if b.Times > 1 {
			out = append(out, func(t *Script) bool { t.Blocks[i].Times = 0; return true },
				func(t *Script) bool { t.Blocks[i].Times /= 2; return true })
		}
		if b.Wait > 1000 {
			out = append(out, func(t *Script) bool { t.Blocks[i].Wait = 1000; return true })
		}
		for j, o := range b.Ops {
			out = append(out, func(t *Script) bool {
				t.Blocks[i].Ops = slices.Delete(t.Blocks[i].Ops, j, j+1)
				return true
			})
			if o.Times > 1 {
				out = append(out, func(t *Script) bool { t.Blocks[i].Ops[j].Times /= 2; return true })
			}
			for k := range o.Bend {
				out = append(out, func(t *Script) bool {
					t.Blocks[i].Ops[j].Bend = slices.Delete(t.Blocks[i].Ops[j].Bend, k, k+1)
					return true
				})
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Hostile)) {
		h := s.Hostile[name]
		edit := func(f func(h *Habit)) {
			out = append(out, func(t *Script) bool { h := t.Hostile[name]; f(&h); t.Hostile[name] = h; return true })
		}
		for k := range h.Skip {
			edit(func(h *Habit) { h.Skip = slices.Delete(slices.Clone(h.Skip), k, k+1) })
		}
		if h.Lie {
			edit(func(h *Habit) { h.Lie = false })
		}
		if h.Withhold {
			edit(func(h *Habit) { h.Withhold = false })
		}
		if h.Forge > 0 {
			edit(func(h *Habit) { h.Forge = 0 })
		}
	}
	return out
}

// uses reports whether an account sends something.
func uses(s *Script, name string) bool {
	return slices.ContainsFunc(s.Blocks, func(b Block) bool {
		return slices.ContainsFunc(b.Ops, func(o Op) bool { return o.By == name })
	})
}

// Class names what a finding is about, without its numbers.
func Class(f *Finding) string {
	s := f.Kind + ": " + f.Detail
	var out []rune
	depth := 0
	for _, r := range s {
		switch {
		case r == '(':
			depth++
		case r == ')' && depth > 0:
			depth--
		case depth > 0 || r >= '0' && r <= '9':
		default:
			out = append(out, r)
		}
	}
	return words(string(out))
}

// words drops from a text the words that are names of things: addresses, hashes.
func words(s string) string {
	out := ""
	for _, w := range strings.Fields(s) {
		if len(w) < 24 {
			out += w + " "
		}
	}
	return out
}
