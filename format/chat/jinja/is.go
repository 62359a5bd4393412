package jinja

import (
	"github.com/tally-network/tally/format/chat/jinja/syntax"

	"fmt"
	"strings"
)

func evalTest(t syntax.Test, r *run, s *scope) (Value, error) {
	v, err := r.eval(t.X, s)
	if err != nil {
		return nil, err
	}
	a, err := r.arguments(t.Args, s)
	if err != nil {
		return nil, err
	}
	return r.test(t.ID, v, a)
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
	ofValue := func(f func(v Value) bool) builtin {
		return builtin{params: "value", need: 1, run: func(_ *run, a []Value) (Value, error) { return f(a[0]), nil }}
	}
	compared := func(op string) builtin {
		return builtin{params: "_a _b", need: 2, run: func(r *run, a []Value) (Value, error) { return r.compare(op, a[0], a[1]) }}
	}
	divided := func(rest int64) builtin {
		return builtin{params: "value", need: 1, run: func(r *run, a []Value) (Value, error) { return r.leaves(a[0], int64(2), rest) }}
	}
	tests = map[string]builtin{
		"defined":     ofValue(func(v Value) bool { return !isUndefined(v) }),
		"undefined":   ofValue(isUndefined),
		"none":        ofValue(func(v Value) bool { return v == nil }),
		"boolean":     ofValue(func(v Value) bool { _, ok := v.(bool); return ok }),
		"true":        ofValue(func(v Value) bool { return v == Value(true) }),
		"false":       ofValue(func(v Value) bool { return v == Value(false) }),
		"string":      ofValue(func(v Value) bool { _, ok := v.(string); return ok }),
		"mapping":     ofValue(func(v Value) bool { _, ok := v.(*Dict); return ok }),
		"number":      ofValue(isNumber),
		"integer":     ofValue(func(v Value) bool { return typeName(v) == "int" }),
		"float":       ofValue(func(v Value) bool { _, ok := v.(float64); return ok }),
		"iterable":    ofValue(func(v Value) bool { _, err := iterate(v); return err == nil }),
		"callable":    ofValue(isCallable),
		"escaped":     {params: "value", need: 1, run: func(_ *run, a []Value) (Value, error) { return a[0] != plain(a[0]), nil }, isMarked: true},
		"sequence":    ofValue(isSequence),
		"odd":         divided(1),
		"even":        divided(0),
		"divisibleby": {params: "value num", need: 2, run: func(r *run, a []Value) (Value, error) { return r.leaves(a[0], a[1], 0) }},
		"lower":       cased(func(lower, upper bool) bool { return lower && !upper }),
		"upper":       cased(func(lower, upper bool) bool { return upper && !lower }),
		"sameas":      {params: "value other", need: 2, run: sameAs},
		"in":          {params: "value seq", need: 2, run: func(r *run, a []Value) (Value, error) { return r.contains(a[1], a[0]) }},
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
	return builtin{params: "value", need: 1, run: func(r *run, a []Value) (Value, error) {
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
	return builtin{params: "value", need: 1, run: func(_ *run, a []Value) (Value, error) {
		id, ok := a[0].(string)
		return ok && is(id), nil
	}}
}

func (b builtin) known() bool { return b.run != nil }
