package jinja

import (
	"github.com/tally-network/tally/format/chat/jinja/syntax"

	"fmt"
)

// execStmt executes a statement, of whatever kind.
func execStmt(x syntax.Stmt, r *run, s *scope) (syntax.Signal, error) {
	switch x := x.(type) {
	case syntax.Output:
		return execOutput(x, r, s)
	case syntax.Print:
		return execPrint(x, r, s)
	case syntax.Choice:
		return execChoice(x, r, s)
	case syntax.Assign:
		return execAssign(x, r, s)
	case syntax.Define:
		return execDefine(x, r, s)
	case syntax.Invoke:
		return execInvoke(x, r, s)
	case syntax.Leave:
		return execLeave(x, r, s)
	case *syntax.Block:
		return execBlock(x, r, s)
	case *syntax.Repeat:
		return execRepeat(x, r, s)
	case *syntax.Capture:
		return execCapture(x, r, s)
	case *syntax.With:
		return execWith(x, r, s)
	case *syntax.Filtered:
		return execFiltered(x, r, s)
	case *syntax.Scoped:
		return execScoped(x, r, s)
	}
	return syntax.Onward, errUnknown(x)
}

// enterBlock executes a body that has variables of its own.
func enterBlock(b *syntax.Block, r *run, s *scope) (syntax.Signal, error) {
	for _, id := range b.Hidden {
		if err := r.make(64); err != nil {
			return syntax.Onward, err
		}
		s.set(id, &undefined{fmt.Sprintf("%.100q is set later", id)})
	}
	return execBlock(b, r, s)
}

func execBlock(b *syntax.Block, r *run, s *scope) (syntax.Signal, error) {
	for _, x := range b.Body {
		if err := r.enter(); err != nil {
			return syntax.Onward, err
		}
		how, err := execStmt(x, r, s)
		r.depth--
		if err != nil || how != syntax.Onward {
			return how, err
		}
	}
	return syntax.Onward, nil
}

func execOutput(o syntax.Output, r *run, _ *scope) (syntax.Signal, error) {
	return syntax.Onward, r.write(o.Text)
}

func execPrint(p syntax.Print, r *run, s *scope) (syntax.Signal, error) {
	v, err := r.eval(p.X, s)
	if err != nil {
		return syntax.Onward, err
	}
	t, err := r.str(v)
	if err != nil {
		return syntax.Onward, err
	}
	return syntax.Onward, r.write(t)
}

func execChoice(c syntax.Choice, r *run, s *scope) (syntax.Signal, error) {
	for i := range c.Tests {
		v, err := r.eval(c.Tests[i], s)
		if err != nil {
			return syntax.Onward, err
		}
		if truth(v) {
			return execBlock(&c.Bodies[i], r, s)
		}
	}
	return execBlock(&c.Other, r, s)
}

func execAssign(a syntax.Assign, r *run, s *scope) (syntax.Signal, error) {
	v, err := r.eval(a.Value, s)
	if err != nil {
		return syntax.Onward, err
	}
	return syntax.Onward, r.assign(a.Target, v, s)
}

// assign sets what a target names.
func (r *run) assign(target syntax.Expr, v Value, s *scope) error {
	switch t := target.(type) {
	case syntax.Name:
		if err := r.make(64); err != nil {
			return err
		}
		s.set(t.ID, v)
	case syntax.Field:
		n, ok := s.get(t.Space).(*namespace)
		if !ok {
			return fmt.Errorf("%.100q is no namespace, so nothing can be assigned to %.100q in it", t.Space, t.ID)
		}
		return n.set(r, t.ID, v)
	case syntax.Sequence:
		values, err := r.collect(v)
		if err != nil {
			return err
		}
		if len(values) != len(t.Items) {
			return fmt.Errorf("%d values for %d names", len(values), len(t.Items))
		}
		for i, x := range t.Items {
			if err := r.assign(x, values[i], s); err != nil {
				return err
			}
		}
	}
	return nil
}

func execCapture(c *syntax.Capture, r *run, s *scope) (syntax.Signal, error) {
	t, how, err := r.captured(func() (syntax.Signal, error) { return enterBlock(&c.Body, r, &scope{outer: s}) })
	if err != nil || how != syntax.Onward {
		return how, err
	}
	v, err := r.filtered(c.Filter, t, s)
	if err != nil {
		return syntax.Onward, err
	}
	return syntax.Onward, r.assign(c.Target, v, s)
}

// filtered returns what a filter, or filters of filters, make of a block's text.
func (r *run) filtered(f *syntax.Filter, t string, s *scope) (Value, error) {
	if f == nil {
		return t, nil
	}
	var v Value = t
	if f.X != nil {
		inner, _ := f.X.(syntax.Filter)
		var err error
		if v, err = r.filtered(&inner, t, s); err != nil {
			return nil, err
		}
	}
	return applyFilter(*f, r, v, s)
}

func execFiltered(f *syntax.Filtered, r *run, s *scope) (syntax.Signal, error) {
	t, how, err := r.captured(func() (syntax.Signal, error) { return enterBlock(&f.Body, r, &scope{outer: s}) })
	if err != nil || how != syntax.Onward {
		return how, err
	}
	v, err := r.filtered(f.Filter, t, s)
	if err != nil {
		return syntax.Onward, err
	}
	if t, err = r.str(v); err != nil {
		return syntax.Onward, err
	}
	return syntax.Onward, r.write(t)
}

func execWith(w *syntax.With, r *run, s *scope) (syntax.Signal, error) {
	inner := &scope{outer: s}
	for i, x := range w.Values {
		v, err := r.eval(x, s)
		if err != nil {
			return syntax.Onward, err
		}
		if err := r.assign(w.Targets[i], v, inner); err != nil {
			return syntax.Onward, err
		}
	}
	return enterBlock(&w.Body, r, inner)
}

func execScoped(x *syntax.Scoped, r *run, s *scope) (syntax.Signal, error) {
	return enterBlock(&x.Body, r, &scope{outer: s})
}

func execLeave(l syntax.Leave, _ *run, _ *scope) (syntax.Signal, error) { return l.How, nil }

func execDefine(d syntax.Define, r *run, s *scope) (syntax.Signal, error) {
	s.set(d.M.ID, &macro{d.M, s})
	return syntax.Onward, r.make(64)
}

func execInvoke(i syntax.Invoke, r *run, s *scope) (syntax.Signal, error) {
	f, a, err := r.callee(i.Call, s)
	if err != nil {
		return syntax.Onward, err
	}
	a.names, a.named = append(a.names, "caller"), append(a.named, Value(&macro{i.Caller, s}))
	v, err := r.call(f, a)
	if err != nil {
		return syntax.Onward, err
	}
	t, err := r.str(v)
	if err != nil {
		return syntax.Onward, err
	}
	return syntax.Onward, r.write(t)
}
