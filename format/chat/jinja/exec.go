package jinja

import (
	"fmt"
)

// enter executes a body that has variables of its own.
func (b *block) enter(r *run, s *scope) (signal, error) {
	for _, id := range b.hidden {
		if err := r.make(64); err != nil {
			return onward, err
		}
		s.set(id, &undefined{fmt.Sprintf("%.100q is set later", id)})
	}
	return b.exec(r, s)
}

func (b *block) exec(r *run, s *scope) (signal, error) {
	for _, x := range b.body {
		if err := r.enter(); err != nil {
			return onward, err
		}
		how, err := x.exec(r, s)
		r.depth--
		if err != nil || how != onward {
			return how, err
		}
	}
	return onward, nil
}

func (o output) exec(r *run, _ *scope) (signal, error) { return onward, r.write(o.text) }

func (p print_) exec(r *run, s *scope) (signal, error) {
	v, err := r.eval(p.x, s)
	if err != nil {
		return onward, err
	}
	t, err := r.str(v)
	if err != nil {
		return onward, err
	}
	return onward, r.write(t)
}

func (c choice) exec(r *run, s *scope) (signal, error) {
	for i := range c.tests {
		v, err := r.eval(c.tests[i], s)
		if err != nil {
			return onward, err
		}
		if truth(v) {
			return c.bodies[i].exec(r, s)
		}
	}
	return c.other.exec(r, s)
}

func (a assign) exec(r *run, s *scope) (signal, error) {
	v, err := r.eval(a.value, s)
	if err != nil {
		return onward, err
	}
	return onward, r.assign(a.target, v, s)
}

// assign sets what a target names.
func (r *run) assign(target expr, v Value, s *scope) error {
	switch t := target.(type) {
	case name:
		if err := r.make(64); err != nil {
			return err
		}
		s.set(t.id, v)
	case field:
		n, ok := s.get(t.space).(*namespace)
		if !ok {
			return fmt.Errorf("%.100q is no namespace, so nothing can be assigned to %.100q in it", t.space, t.id)
		}
		return n.set(r, t.id, v)
	case sequence:
		values, err := r.collect(v)
		if err != nil {
			return err
		}
		if len(values) != len(t.items) {
			return fmt.Errorf("%d values for %d names", len(values), len(t.items))
		}
		for i, x := range t.items {
			if err := r.assign(x, values[i], s); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *capture) exec(r *run, s *scope) (signal, error) {
	t, how, err := r.captured(func() (signal, error) { return c.body.enter(r, &scope{outer: s}) })
	if err != nil || how != onward {
		return how, err
	}
	v, err := r.filtered(c.filter, t, s)
	if err != nil {
		return onward, err
	}
	return onward, r.assign(c.target, v, s)
}

// filtered returns what a filter, or filters of filters, make of a block's text.
func (r *run) filtered(f *filter, t string, s *scope) (Value, error) {
	if f == nil {
		return t, nil
	}
	var v Value = t
	if f.x != nil {
		inner, _ := f.x.(filter)
		var err error
		if v, err = r.filtered(&inner, t, s); err != nil {
			return nil, err
		}
	}
	return f.apply(r, v, s)
}

func (f *filtered) exec(r *run, s *scope) (signal, error) {
	t, how, err := r.captured(func() (signal, error) { return f.body.enter(r, &scope{outer: s}) })
	if err != nil || how != onward {
		return how, err
	}
	v, err := r.filtered(f.filter, t, s)
	if err != nil {
		return onward, err
	}
	if t, err = r.str(v); err != nil {
		return onward, err
	}
	return onward, r.write(t)
}

func (w *with) exec(r *run, s *scope) (signal, error) {
	inner := &scope{outer: s}
	for i, x := range w.values {
		v, err := r.eval(x, s)
		if err != nil {
			return onward, err
		}
		if err := r.assign(w.targets[i], v, inner); err != nil {
			return onward, err
		}
	}
	return w.body.enter(r, inner)
}

func (x *scoped) exec(r *run, s *scope) (signal, error) { return x.body.enter(r, &scope{outer: s}) }

func (l leave) exec(*run, *scope) (signal, error) { return l.how, nil }

func (d define) exec(r *run, s *scope) (signal, error) {
	s.set(d.m.id, &macro{d.m, s})
	return onward, r.make(64)
}

func (i invoke) exec(r *run, s *scope) (signal, error) {
	f, a, err := r.callee(i.call, s)
	if err != nil {
		return onward, err
	}
	a.names, a.named = append(a.names, "caller"), append(a.named, Value(&macro{i.caller, s}))
	v, err := r.call(f, a)
	if err != nil {
		return onward, err
	}
	t, err := r.str(v)
	if err != nil {
		return onward, err
	}
	return onward, r.write(t)
}
