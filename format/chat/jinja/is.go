package jinja

import (
	"fmt"
	"strings"
)

func (t test) eval(r *run, s *scope) (Value, error) {
	v, err := r.eval(t.x, s)
	if err != nil {
		return nil, err
	}
	a, err := r.arguments(t.args, s)
	if err != nil {
		return nil, err
	}
	return r.test(t.id, v, a)
}

func (r *run) test(id string, v Value, a arguments) (Value, error) {
	b, ok := tests[id]
	if !ok {
		return nil, fmt.Errorf("no test is called %.100q", id)
	}
	is, err := b.call(r, []Value{v}, a)
	if err != nil {
		return nil, fmt.Errorf("is %s: %w", id, err)
	}
	return is, nil
}

// tests are the words that may follow is.
var tests map[string]builtin

func init() { // some call others
	plain := func(f func(v Value) bool) builtin {
		return builtin{"value", 1, func(_ *run, a []Value) (Value, error) { return f(a[0]), nil }}
	}
	compared := func(op string) builtin {
		return builtin{"_a _b", 2, func(r *run, a []Value) (Value, error) { return r.compare(op, a[0], a[1]) }}
	}
	divided := func(rest int64) builtin {
		return builtin{"value", 1, func(r *run, a []Value) (Value, error) { return r.leaves(a[0], int64(2), rest) }}
	}
	tests = map[string]builtin{
		"defined":     plain(func(v Value) bool { return !isUndefined(v) }),
		"undefined":   plain(isUndefined),
		"none":        plain(func(v Value) bool { return v == nil }),
		"boolean":     plain(func(v Value) bool { _, ok := v.(bool); return ok }),
		"true":        plain(func(v Value) bool { return v == Value(true) }),
		"false":       plain(func(v Value) bool { return v == Value(false) }),
		"string":      plain(func(v Value) bool { _, ok := v.(string); return ok }),
		"mapping":     plain(func(v Value) bool { _, ok := v.(*Dict); return ok }),
		"number":      plain(isNumber),
		"integer":     plain(func(v Value) bool { return typeName(v) == "int" }),
		"float":       plain(func(v Value) bool { _, ok := v.(float64); return ok }),
		"iterable":    plain(func(v Value) bool { _, err := iterate(v); return err == nil }),
		"callable":    plain(isCallable),
		"escaped":     plain(func(Value) bool { return false }),
		"sequence":    plain(isSequence),
		"odd":         divided(1),
		"even":        divided(0),
		"divisibleby": {"value num", 2, func(r *run, a []Value) (Value, error) { return r.leaves(a[0], a[1], 0) }},
		"lower":       cased(func(lower, upper bool) bool { return lower && !upper }),
		"upper":       cased(func(lower, upper bool) bool { return upper && !lower }),
		"sameas":      {"value other", 2, sameAs},
		"in":          {"value seq", 2, func(r *run, a []Value) (Value, error) { return r.contains(a[1], a[0]) }},
		"filter":      named(func(id string) bool { return filters[id].known() || known[id] }),
		"test":        named(func(id string) bool { _, ok := tests[id]; return ok }),
	}
	for op, ids := range map[string]string{"==": "== eq equalto", "!=": "!= ne", ">": "> gt greaterthan", ">=": ">= ge", "<": "< lt lessthan", "<=": "<= le"} {
		for _, id := range strings.Fields(ids) {
			tests[id] = compared(op)
		}
	}
}

func isUndefined(v Value) bool {
	_, ok := v.(*undefined)
	return ok
}

func isCallable(v Value) bool {
	switch v.(type) {
	case *function, *macro, *loop, *undefined:
		return true
	}
	return false
}

// isSequence reports whether a value has a length and items.
func isSequence(v Value) bool {
	switch v := v.(type) {
	case *view:
		return false
	case *loop:
		return false
	default:
		_, ok := length(v)
		return ok
	}
}

// leaves reports whether a division leaves a rest.
func (r *run) leaves(v, by Value, rest int64) (Value, error) {
	left, err := r.operate("%", v, by)
	if err != nil {
		return nil, err
	}
	return r.equal(left, rest)
}

func cased(is func(lower, upper bool) bool) builtin {
	return builtin{"value", 1, func(r *run, a []Value) (Value, error) {
		s, err := r.str(a[0])
		if err != nil {
			return nil, err
		}
		return is(cases(s)), r.search(len(s))
	}}
}

// sameAs compares what has an identity in Python.
func sameAs(_ *run, a []Value) (Value, error) {
	x, y := a[0], a[1]
	if typeName(x) != typeName(y) {
		return false, nil
	}
	switch x.(type) {
	case string, int64, float64, *undefined:
		return nil, fmt.Errorf("whether two values of type %s are the same is not defined: compare them by ==", typeName(x))
	}
	return x == y, nil
}

func named(is func(id string) bool) builtin {
	return builtin{"value", 1, func(_ *run, a []Value) (Value, error) {
		id, ok := a[0].(string)
		return ok && is(id), nil
	}}
}

func (b builtin) known() bool { return b.run != nil }
