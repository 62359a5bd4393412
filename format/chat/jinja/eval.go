package jinja

import (
	"github.com/tally-network/tally/format/chat/jinja/syntax"

	"errors"
	"fmt"
	"math/big"
	"strings"
	"unicode/utf8"
)

// evalExpr computes an expression, of whatever kind.
func evalExpr(x syntax.Expr, r *run, s *scope) (Value, error) {
	switch x := x.(type) {
	case syntax.Literal:
		return evalLiteral(x, r, s)
	case syntax.Name:
		return evalName(x, r, s)
	case syntax.Sequence:
		return evalSequence(x, r, s)
	case syntax.Mapping:
		return evalMapping(x, r, s)
	case syntax.Unary:
		return evalUnary(x, r, s)
	case syntax.Binary:
		return evalBinary(x, r, s)
	case syntax.Logic:
		return evalLogic(x, r, s)
	case syntax.Comparison:
		return evalComparison(x, r, s)
	case syntax.Concat:
		return evalConcat(x, r, s)
	case syntax.Conditional:
		return evalConditional(x, r, s)
	case syntax.Attribute:
		return evalAttribute(x, r, s)
	case syntax.Subscript:
		return evalSubscript(x, r, s)
	case syntax.Slice:
		return evalSlice(x, r, s)
	case syntax.Call:
		return evalCall(x, r, s)
	case syntax.Filter:
		return evalFilter(x, r, s)
	case syntax.Test:
		return evalTest(x, r, s)
	case syntax.Field:
		return evalField(x, r, s)
	}
	return nil, errUnknown(x)
}

func errUnknown(node any) error { return fmt.Errorf("nothing is known of a %T", node) }

func evalLiteral(l syntax.Literal, _ *run, _ *scope) (Value, error) { return l.V, nil }

func evalName(n syntax.Name, _ *run, s *scope) (Value, error) { return s.get(n.ID), nil }

func evalField(f syntax.Field, r *run, s *scope) (Value, error) {
	return evalAttribute(syntax.Attribute{X: syntax.Name{ID: f.Space}, ID: f.ID}, r, s)
}

func evalSequence(l syntax.Sequence, r *run, s *scope) (Value, error) {
	all, err := r.all(l.Items, s)
	if l.IsTuple {
		return &tuple{items: all}, err
	}
	return &List{all}, err
}

// all computes several expressions.
func (r *run) all(list []syntax.Expr, s *scope) ([]Value, error) {
	if err := r.make(16 * len(list)); err != nil {
		return nil, err
	}
	out := make([]Value, len(list))
	for i, x := range list {
		v, err := r.eval(x, s)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func evalMapping(m syntax.Mapping, r *run, s *scope) (Value, error) {
	d := &Dict{}
	for i, k := range m.Keys {
		key, err := r.eval(k, s)
		if err != nil {
			return nil, err
		}
		v, err := r.eval(m.Values[i], s)
		if err != nil {
			return nil, err
		}
		if err := r.put(d, key, v); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// put sets an item of a dict that is being made.
func (r *run) put(d *Dict, key, v Value) error {
	h, err := hashable(key)
	if err == nil {
		err = r.make(128)
	}
	if err == nil {
		d.set(h, key, v)
	}
	return err
}

func evalLogic(l syntax.Logic, r *run, s *scope) (Value, error) {
	v, err := r.eval(l.L, s)
	if err != nil || truth(v) != l.IsAnd {
		return v, err
	}
	return r.eval(l.R, s)
}

func evalConditional(c syntax.Conditional, r *run, s *scope) (Value, error) {
	v, err := r.eval(c.Test, s)
	switch {
	case err != nil:
		return nil, err
	case truth(v):
		return r.eval(c.Then, s)
	case c.Other == nil:
		return &undefined{"the condition does not hold, and there is no else"}, nil
	}
	return r.eval(c.Other, s)
}

func evalConcat(c syntax.Concat, r *run, s *scope) (Value, error) {
	var b strings.Builder
	for _, x := range c.Items {
		v, err := r.eval(x, s)
		if err != nil {
			return nil, err
		}
		t, err := r.str(v)
		if err != nil {
			return nil, err
		}
		if err := r.make(len(t)); err != nil {
			return nil, err
		}
		b.WriteString(t)
	}
	return b.String(), nil
}

func evalUnary(u syntax.Unary, r *run, s *scope) (Value, error) {
	v, err := r.eval(u.X, s)
	if err != nil {
		return nil, err
	}
	if u.Op == "not" {
		return !truth(v), nil
	}
	if f, ok := v.(float64); ok {
		if u.Op == "-" {
			return -f, nil
		}
		return f, nil
	}
	n, ok := index(v)
	switch {
	case !ok:
		return nil, fmt.Errorf("%s%w", u.Op, unfit(v))
	case u.Op == "-" && n == -n && n != 0:
		return nil, errWide
	case u.Op == "-":
		return -n, nil
	}
	return n, nil
}

// unfit says that an operation does not take a value.
func unfit(v Value) error {
	if u, ok := v.(*undefined); ok {
		return fmt.Errorf(": %s", u.why)
	}
	return fmt.Errorf(": not for a %s", typeName(v))
}

func evalComparison(c syntax.Comparison, r *run, s *scope) (Value, error) {
	l, err := r.eval(c.First, s)
	if err != nil {
		return nil, err
	}
	for i, x := range c.Rest {
		v, err := r.eval(x, s)
		if err != nil {
			return nil, err
		}
		is, err := r.compare(c.Ops[i], l, v)
		if err != nil || !is {
			return false, err
		}
		l = v
	}
	return true, nil
}

func evalBinary(b syntax.Binary, r *run, s *scope) (Value, error) {
	x, err := r.eval(b.L, s)
	if err != nil {
		return nil, err
	}
	y, err := r.eval(b.R, s)
	if err != nil {
		return nil, err
	}
	return r.operate(b.Op, x, y)
}

func evalAttribute(a syntax.Attribute, r *run, s *scope) (Value, error) {
	x, err := r.eval(a.X, s)
	if err != nil {
		return nil, err
	}
	v, ok, err := r.member(x, a.ID)
	if err != nil || ok {
		return v, err
	}
	if d, ok := x.(*Dict); ok {
		if v, ok := d.Get(a.ID); ok {
			return v, nil
		}
	}
	return missing(x, a.ID), nil
}

func missing(x Value, id string) Value {
	return &undefined{fmt.Sprintf("a %s has no %.100q", typeName(x), id)}
}

// member returns what Python knows as an attribute of x.
func (r *run) member(x Value, id string) (Value, bool, error) {
	switch x := x.(type) {
	case *undefined:
		return nil, false, fmt.Errorf("%s, so it has no %.100q", x.why, id)
	case markup:
		return markupMethod(x, id)
	case *namespace:
		v, ok := x.fields.Get(id)
		return v, ok, nil
	case object:
		v, err := x.field(r, id)
		return v, true, err
	case *tuple:
		for i, n := range x.names {
			if n == id {
				return x.items[i], true, nil
			}
		}
	}
	return method(x, id)
}

func evalSubscript(x syntax.Subscript, r *run, s *scope) (Value, error) {
	v, err := r.eval(x.X, s)
	if err != nil {
		return nil, err
	}
	at, err := r.eval(x.At, s)
	if err != nil {
		return nil, err
	}
	return r.item(v, at)
}

// item returns x[at] or, if there is no such item, the attribute of that name.
func (r *run) item(x, at Value) (Value, error) {
	if u, ok := x.(*undefined); ok {
		return nil, fmt.Errorf("%s, so it has no items", u.why)
	}
	if v, ok, err := r.element(x, at); ok || err != nil {
		return v, err
	}
	id, isText := at.(string)
	if !isText {
		return &undefined{fmt.Sprintf("a %s has no such item", typeName(x))}, nil
	}
	if v, ok, err := r.member(x, id); ok || err != nil {
		return v, err
	}
	return missing(x, id), nil
}

// element returns an item by its index or key.
func (r *run) element(x, at Value) (Value, bool, error) {
	if d, ok := x.(*Dict); ok {
		h, err := hashable(at)
		if err != nil {
			return nil, false, nil
		}
		v, ok := d.get(h)
		return v, ok, nil
	}
	i, ok := index(at)
	if !ok {
		return nil, false, nil
	}
	n, ok := length(x)
	if i < 0 {
		i += int64(n)
	}
	if !ok || i < 0 || i >= int64(n) {
		return nil, false, nil
	}
	switch x := x.(type) {
	case markup:
		v, ok, err := r.element(string(x), at)
		return remarked(v), ok, err
	case string:
		if err := r.search(len(x)); err != nil {
			return nil, false, err
		}
		from := runeAt(x, int(i))
		_, size := utf8.DecodeRuneInString(x[from:])
		return x[from : from+size], true, nil
	case *span:
		return x.start + i*x.step, true, nil
	}
	list, ok := items(x)
	if !ok {
		return nil, false, nil
	}
	return list[i], true, nil
}

// runeAt returns the place of a text's character of an index, at most its length.
func runeAt(s string, n int) int {
	if n <= 0 {
		return 0
	}
	for at := range s {
		if n == 0 {
			return at
		}
		n--
	}
	return len(s)
}

func evalSlice(x syntax.Slice, r *run, s *scope) (Value, error) {
	v, err := r.eval(x.X, s)
	if err != nil {
		return nil, err
	}
	var bounds [3]*int64
	for i, b := range []syntax.Expr{x.From, x.To, x.Step} {
		if b == nil {
			continue
		}
		at, err := r.eval(b, s)
		if err != nil {
			return nil, err
		}
		n, ok := index(at)
		if !ok && at != nil {
			return nil, fmt.Errorf("a slice's bound%w", unfit(at))
		}
		if ok {
			bounds[i] = &n
		}
	}
	if u, ok := v.(*undefined); ok {
		return nil, fmt.Errorf("%s, so it has no slices", u.why)
	}
	return r.cut(v, bounds)
}

// cut returns a slice of text, list, tuple or range.
func (r *run) cut(v Value, bounds [3]*int64) (Value, error) {
	n, ok := length(v)
	if !ok {
		return nil, fmt.Errorf("slices%w", unfit(v))
	}
	w, err := sliced(bounds, int64(n))
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case markup:
		out, err := r.cutText(string(v), w)
		return remarked(out), err
	case string:
		return r.cutText(v, w)
	case *span:
		return newSpan(v.start+w.from*v.step, v.start+w.to*v.step, v.step*w.step)
	}
	list, ok := items(v)
	if !ok {
		return nil, fmt.Errorf("slices%w", unfit(v))
	}
	if err := r.make(16 * int(w.count)); err != nil {
		return nil, err
	}
	out := make([]Value, w.count)
	for i := range out {
		out[i] = list[w.from+int64(i)*w.step]
	}
	if _, ok := v.(*tuple); ok {
		return &tuple{items: out}, nil
	}
	return &List{out}, nil
}

func (r *run) cutText(s string, w window) (Value, error) {
	if err := r.make(len(s)); err != nil {
		return nil, err
	}
	if w.step == 1 {
		at := runeAt(s, int(w.from))
		return s[at : at+runeAt(s[at:], int(w.count))], nil
	}
	if err := r.make(4 * len(s)); err != nil {
		return nil, err
	}
	all := []rune(s)
	out := make([]rune, w.count)
	for i := range out {
		out[i] = all[w.from+int64(i)*w.step]
	}
	return string(out), nil
}

// window is what a slice leaves: so many items from one on, in steps.
type window struct{ from, to, step, count int64 }

// sliced returns what a slice of n items leaves.
func sliced(bounds [3]*int64, n int64) (w window, err error) {
	w.step = 1
	if bounds[2] != nil {
		w.step = *bounds[2]
	}
	if w.step == 0 {
		return w, errors.New("a slice's step is 0")
	}
	w.step = max(min(w.step, n+1), -n-1) // further is the same
	low, high := int64(0), n
	if w.step < 0 {
		low, high = -1, n-1
	}
	at := func(b *int64, otherwise int64) int64 {
		if b == nil {
			return otherwise
		}
		i := *b
		if i < 0 {
			i = max(i, -n-1) + n
		}
		return max(low, min(i, high))
	}
	w.from, w.to = at(bounds[0], low), at(bounds[1], high)
	if w.step < 0 {
		w.from, w.to = at(bounds[0], high), at(bounds[1], low)
	}
	switch {
	case w.step > 0 && w.to > w.from:
		w.count = (w.to-w.from-1)/w.step + 1
	case w.step < 0 && w.from > w.to:
		w.count = (w.from-w.to-1)/-w.step + 1
	}
	return w, nil
}

func isNumber(v Value) bool {
	switch v.(type) {
	case bool, int64, float64, *big.Int:
		return true
	}
	return false
}
