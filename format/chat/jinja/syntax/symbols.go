package syntax

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
func (f *frame) target(x Expr) {
	switch x := x.(type) {
	case Name:
		f.store(x.ID)
	case Field:
		f.load(x.Space)
	case Sequence:
		for _, y := range x.Items {
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
func (f *frame) read(body []Stmt) {
	for _, x := range body {
		f.statement(x)
	}
}

func (f *frame) statement(x Stmt) {
	switch x := x.(type) {
	case Print:
		f.uses(x.X)
	case *Block:
		f.read(x.Body)
	case Choice:
		f.choose(x)
	case *Repeat:
		f.uses(x.Over)
	case Assign:
		f.uses(x.Value)
		f.target(x.Target)
	case *Capture:
		f.target(x.Target)
	case *With:
		f.uses(x.Values...)
	case Define:
		f.store(x.M.ID)
	case Invoke:
		f.uses(x.Call)
	case *Filtered:
		f.uses(*x.Filter)
	}
}

// choose reads a choice: as in Jinja, all that stands after elif is one branch.
func (f *frame) choose(c Choice) {
	f.uses(c.Tests[0])
	f.branches(
		func(f *frame) { f.read(c.Bodies[0].Body) },
		func(f *frame) {
			for i, x := range c.Tests[1:] {
				f.uses(x)
				f.branches(func(f *frame) { f.read(c.Bodies[i+1].Body) }, func(*frame) {}, func(*frame) {})
			}
		},
		func(f *frame) { f.read(c.Other.Body) },
	)
}

// uses counts the names that expressions read.
func (f *frame) uses(list ...Expr) {
	for _, x := range list {
		switch x := x.(type) {
		case nil:
		case Name:
			f.load(x.ID)
		default:
			f.uses(parts(x)...)
		}
	}
}

// parts returns the expressions that an expression is made of.
func parts(x Expr) []Expr {
	switch x := x.(type) {
	case Sequence:
		return x.Items
	case Mapping:
		return slices.Concat(x.Keys, x.Values)
	case Unary:
		return []Expr{x.X}
	case Binary:
		return []Expr{x.L, x.R}
	case Logic:
		return []Expr{x.L, x.R}
	case Comparison:
		return append([]Expr{x.First}, x.Rest...)
	case Concat:
		return x.Items
	case Conditional:
		return []Expr{x.Test, x.Then, x.Other}
	case Attribute:
		return []Expr{x.X}
	case Subscript:
		return []Expr{x.X, x.At}
	case Slice:
		return []Expr{x.X, x.From, x.To, x.Step}
	case Call:
		return append([]Expr{x.F}, x.Args.parts()...)
	case Filter:
		return append([]Expr{x.X}, x.Args.parts()...)
	case Test:
		return append([]Expr{x.X}, x.Args.parts()...)
	}
	return nil
}

func (a Args) parts() []Expr { return slices.Concat(a.List, a.Named, []Expr{a.Spread, a.Rest}) }

// maxCopies bounds the names that are copied for branches.
const maxCopies = 1 << 22

// hideAll finds the hidden names of a template, and reports whether it could.
func (b *Block) hideAll() bool {
	f := newFrame(nil)
	*f.left = maxCopies
	f.read(b.Body)
	b.settle(f)
	return *f.left >= 0
}

// hide finds the hidden names of a body, and of all parts inside that are frames.
func (b *Block) hide(outer *frame, params ...string) {
	f := newFrame(outer, params...)
	f.read(b.Body)
	b.settle(f)
}

// settle keeps the hidden names of a frame that has been read.
func (b *Block) settle(f *frame) {
	for id, is := range f.hidden {
		if is {
			b.Hidden = append(b.Hidden, id)
		}
	}
	hideInside(b.Body, f)
}

func hideInside(body []Stmt, f *frame) {
	for _, x := range body {
		switch x := x.(type) {
		case *Block:
			hideInside(x.Body, f)
		case Choice:
			for _, b := range append(x.Bodies, x.Other) {
				hideInside(b.Body, f)
			}
		case *Repeat:
			x.Body.hide(f, append(targets(x.Target), "loop")...)
			x.Other.hide(f)
		case *Capture:
			x.Body.hide(f)
		case *With:
			var ids []string
			for _, t := range x.Targets {
				ids = append(ids, targets(t)...)
			}
			x.Body.hide(f, ids...)
		case Define:
			x.M.hide(f)
		case Invoke:
			x.Caller.hide(f)
		case *Filtered:
			x.Body.hide(f)
		case *Scoped:
			x.Body.hide(f)
		}
	}
}

func (m *Macro) hide(outer *frame) {
	f := newFrame(outer, m.Params...)
	for id := range m.Uses {
		f.known[id] = true
	}
	f.uses(m.Defaults...)
	f.read(m.Body.Body)
	m.Body.settle(f)
}

// targets returns the names that a target sets.
func targets(x Expr) []string {
	f := newFrame(nil)
	f.target(x)
	return slices.Collect(maps.Keys(f.stored))
}
