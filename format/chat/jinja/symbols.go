package jinja

import (
	"maps"
	"slices"
)

// frame is a part of a template that has variables of its own, while it is read for them.
//
// Jinja decides before it renders which part of a template a name belongs to. A name that is set
// in a part, and not read there before, is undefined in all of the part until then, even if the
// template is given a value of that name. Such names are hidden.
type frame struct {
	outer  *frame
	known  map[string]bool // names that belong to it, or were looked up in it
	hidden map[string]bool
	stored map[string]bool
	left   *int // how many names may still be copied for branches
}

func newFrame(outer *frame, params ...string) *frame {
	f := &frame{outer, map[string]bool{}, map[string]bool{}, map[string]bool{}, new(int)}
	if outer != nil {
		f.left = outer.left
	}
	for _, id := range params {
		f.known[id] = true
	}
	return f
}

func (f *frame) knows(id string) bool { return f != nil && (f.known[id] || f.outer.knows(id)) }

func (f *frame) load(id string) {
	if !f.knows(id) {
		f.known[id] = true
	}
}

func (f *frame) store(id string) {
	f.stored[id] = true
	if !f.known[id] {
		f.known[id] = true
		f.hidden[id] = !f.outer.knows(id)
	}
}

// target counts what an assignment sets.
func (f *frame) target(x expr) {
	switch x := x.(type) {
	case name:
		f.store(x.id)
	case field:
		f.load(x.space)
	case sequence:
		for _, y := range x.items {
			f.target(y)
		}
	}
}

// branches reads the branches of a choice. A name that only some of them set is not hidden. One
// that all set is what the last of them says.
func (f *frame) branches(bodies ...func(f *frame)) {
	if *f.left -= 8 * len(f.known); *f.left < 0 {
		return // and the template is refused
	}
	set := map[string]int{}
	var all []*frame
	for _, body := range bodies {
		b := &frame{f.outer, maps.Clone(f.known), maps.Clone(f.hidden), maps.Clone(f.stored), f.left}
		body(b)
		for id := range b.stored {
			if !f.stored[id] {
				set[id]++
			}
		}
		all = append(all, b)
	}
	for _, b := range all {
		maps.Copy(f.known, b.known)
		maps.Copy(f.stored, b.stored)
		for id := range b.known {
			f.hidden[id] = b.hidden[id]
		}
	}
	for id, n := range set {
		if n < len(bodies) {
			f.hidden[id] = false
		}
	}
}

// read reads a list of statements, and not the parts of them that are frames.
func (f *frame) read(body []stmt) {
	for _, x := range body {
		f.statement(x)
	}
}

func (f *frame) statement(x stmt) {
	switch x := x.(type) {
	case print_:
		f.uses(x.x)
	case *block:
		f.read(x.body)
	case choice:
		f.choose(x)
	case *repeat:
		f.uses(x.over)
	case assign:
		f.uses(x.value)
		f.target(x.target)
	case *capture:
		f.target(x.target)
	case *with:
		f.uses(x.values...)
	case define:
		f.store(x.m.id)
	case invoke:
		f.uses(x.call)
	case *filtered:
		f.uses(*x.filter)
	}
}

// choose reads a choice: as in Jinja, all that stands after elif is one branch.
func (f *frame) choose(c choice) {
	f.uses(c.tests[0])
	f.branches(
		func(f *frame) { f.read(c.bodies[0].body) },
		func(f *frame) {
			for i, x := range c.tests[1:] {
				f.uses(x)
				f.branches(func(f *frame) { f.read(c.bodies[i+1].body) }, func(*frame) {}, func(*frame) {})
			}
		},
		func(f *frame) { f.read(c.other.body) },
	)
}

// uses counts the names that expressions read.
func (f *frame) uses(list ...expr) {
	for _, x := range list {
		switch x := x.(type) {
		case nil:
		case name:
			f.load(x.id)
		default:
			f.uses(parts(x)...)
		}
	}
}

// parts returns the expressions that an expression is made of.
func parts(x expr) []expr {
	switch x := x.(type) {
	case sequence:
		return x.items
	case mapping:
		return slices.Concat(x.keys, x.values)
	case unary:
		return []expr{x.x}
	case binary:
		return []expr{x.l, x.r}
	case logic:
		return []expr{x.l, x.r}
	case comparison:
		return append([]expr{x.first}, x.rest...)
	case concat:
		return x.items
	case conditional:
		return []expr{x.test, x.then, x.other}
	case attribute:
		return []expr{x.x}
	case subscript:
		return []expr{x.x, x.at}
	case slice:
		return []expr{x.x, x.from, x.to, x.step}
	case call:
		return append([]expr{x.f}, x.args.parts()...)
	case filter:
		return append([]expr{x.x}, x.args.parts()...)
	case test:
		return append([]expr{x.x}, x.args.parts()...)
	}
	return nil
}

func (a args) parts() []expr { return slices.Concat(a.list, a.named, []expr{a.spread, a.rest}) }

// maxCopies bounds the names that are copied for branches.
const maxCopies = 1 << 22

// hideAll finds the hidden names of a template, and reports whether it could.
func (b *block) hideAll() bool {
	f := newFrame(nil)
	*f.left = maxCopies
	f.read(b.body)
	b.settle(f)
	return *f.left >= 0
}

// hide finds the hidden names of a body, and of all parts inside that are frames.
func (b *block) hide(outer *frame, params ...string) {
	f := newFrame(outer, params...)
	f.read(b.body)
	b.settle(f)
}

// settle keeps the hidden names of a frame that has been read.
func (b *block) settle(f *frame) {
	for id, is := range f.hidden {
		if is {
			b.hidden = append(b.hidden, id)
		}
	}
	hideInside(b.body, f)
}

func hideInside(body []stmt, f *frame) {
	for _, x := range body {
		switch x := x.(type) {
		case *block:
			hideInside(x.body, f)
		case choice:
			for _, b := range append(x.bodies, x.other) {
				hideInside(b.body, f)
			}
		case *repeat:
			x.body.hide(f, append(targets(x.target), "loop")...)
			x.other.hide(f)
		case *capture:
			x.body.hide(f)
		case *with:
			var ids []string
			for _, t := range x.targets {
				ids = append(ids, targets(t)...)
			}
			x.body.hide(f, ids...)
		case define:
			x.m.hide(f)
		case invoke:
			x.caller.hide(f)
		case *filtered:
			x.body.hide(f)
		case *scoped:
			x.body.hide(f)
		}
	}
}

func (m *macroNode) hide(outer *frame) {
	f := newFrame(outer, m.params...)
	for id := range m.uses {
		f.known[id] = true
	}
	f.uses(m.defaults...)
	f.read(m.body.body)
	m.body.settle(f)
}

// targets returns the names that a target sets.
func targets(x expr) []string {
	f := newFrame(nil)
	f.target(x)
	return slices.Collect(maps.Keys(f.stored))
}
