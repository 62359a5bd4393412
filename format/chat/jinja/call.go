package jinja

import (
	"github.com/tally-network/tally/format/chat/jinja/syntax"

	"errors"
	"fmt"
	"slices"
	"strings"
)

// macro is a macro, with the variables that it sees where it is defined.
type macro struct {
	node *syntax.Macro
	s    *scope
}

func (m *macro) field(_ *run, id string) (Value, error) {
	switch id {
	case "name":
		return m.node.ID, nil
	case "arguments":
		t := &tuple{}
		for _, p := range m.node.Params {
			t.items = append(t.items, p)
		}
		return t, nil
	}
	return &undefined{fmt.Sprintf("a macro has no %.100q", id)}, nil
}

func evalCall(c syntax.Call, r *run, s *scope) (Value, error) {
	f, a, err := r.callee(c, s)
	if err != nil {
		return nil, err
	}
	return r.call(f, a)
}

// callee computes what is called, and the arguments.
func (r *run) callee(c syntax.Call, s *scope) (Value, arguments, error) {
	f, err := r.eval(c.F, s)
	if err != nil {
		return nil, arguments{}, err
	}
	a, err := r.arguments(c.Args, s)
	return f, a, err
}

func (r *run) arguments(x syntax.Args, s *scope) (a arguments, err error) {
	if a.list, err = r.all(x.List, s); err != nil {
		return a, err
	}
	if a.named, err = r.all(x.Named, s); err != nil {
		return a, err
	}
	a.names = slices.Clone(x.Names)
	if x.Spread != nil {
		v, err := r.eval(x.Spread, s)
		if err != nil {
			return a, err
		}
		more, err := r.collect(v)
		if err != nil {
			return a, err
		}
		a.list = append(a.list, more...)
	}
	if x.Rest == nil {
		return a, nil
	}
	v, err := r.eval(x.Rest, s)
	if err != nil {
		return a, err
	}
	d, ok := v.(*Dict)
	if !ok {
		return a, fmt.Errorf("** wants a dict, and not a %s", typeName(v))
	}
	if err := r.make(32 * len(d.keys)); err != nil {
		return a, err
	}
	for i, k := range d.keys {
		id, ok := k.(string)
		if !ok || slices.Contains(x.Names, id) {
			return a, errors.New("** wants a dict of names that are not given otherwise")
		}
		a.names, a.named = append(a.names, id), append(a.named, d.values[i])
	}
	return a, nil
}

// call calls a value.
func (r *run) call(f Value, a arguments) (Value, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	defer func() { r.depth-- }()
	switch f := f.(type) {
	case *function:
		v, err := f.call(r, a)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		return v, nil
	case *macro:
		return f.call(r, a)
	case *loop:
		if f.again == nil || len(a.list) != 1 || len(a.names) > 0 {
			return nil, errors.New("loop() wants a loop that is recursive, and one value")
		}
		return f.again(a.list[0], f.depth+1)
	case *undefined:
		return nil, fmt.Errorf("%s, so it cannot be called", f.why)
	}
	return nil, fmt.Errorf("a %s cannot be called", typeName(f))
}

// call renders a macro's body for arguments.
func (m *macro) call(r *run, a arguments) (Value, error) {
	s := &scope{outer: m.s, vars: map[string]Value{}}
	if err := r.make(64 * (len(m.node.Params) + len(a.names) + len(a.list))); err != nil {
		return nil, err
	}
	rest, err := m.given(s, a)
	if err != nil {
		return nil, err
	}
	if err := m.special(s, a, rest); err != nil {
		return nil, err
	}
	if err := m.missing(r, s); err != nil {
		return nil, err
	}
	t, _, err := r.captured(func() (syntax.Signal, error) { return enterBlock(&m.node.Body, r, s) })
	return t, err
}

// given sets the parameters that have arguments, and returns the named arguments that are left.
func (m *macro) given(s *scope, a arguments) (*Dict, error) {
	params := m.node.Params
	for i := range min(len(params), len(a.list)) {
		s.vars[params[i]] = a.list[i]
	}
	rest := &Dict{}
	for i, id := range a.names {
		at := slices.Index(params, id)
		switch {
		case at < 0:
			rest.Set(id, a.named[i])
		case at < len(a.list):
			return nil, fmt.Errorf("macro %.100q is given %.100q twice", m.node.ID, id)
		default:
			s.vars[id] = a.named[i]
		}
	}
	return rest, nil
}

// special sets caller, kwargs and varargs, if the body reads them; if not, they must not be given.
func (m *macro) special(s *scope, a arguments, rest *Dict) error {
	n := m.node
	if n.Uses["caller"] && !slices.Contains(n.Params, "caller") {
		caller, ok := rest.Get("caller")
		if !ok || caller == nil {
			caller = &undefined{"the macro is not called by a call block"}
		}
		s.vars["caller"] = caller
		left := &Dict{}
		for i, k := range rest.keys {
			if k != Value("caller") {
				left.Set(k.(string), rest.values[i])
			}
		}
		rest = left
	}
	switch {
	case n.Uses["kwargs"]:
		s.vars["kwargs"] = rest
	case len(rest.keys) > 0:
		return fmt.Errorf("macro %.100q takes no argument %.100q", n.ID, rest.keys[0])
	}
	var more []Value
	if len(a.list) > len(n.Params) {
		more = a.list[len(n.Params):]
	}
	switch {
	case n.Uses["varargs"]:
		s.vars["varargs"] = &tuple{items: more}
	case len(more) > 0:
		return fmt.Errorf("macro %.100q takes at most %d arguments", n.ID, len(n.Params))
	}
	return nil
}

// missing sets the parameters that have no arguments.
func (m *macro) missing(r *run, s *scope) error {
	n := m.node
	for i, id := range n.Params {
		if _, ok := s.vars[id]; ok {
			continue
		}
		at := i - (len(n.Params) - len(n.Defaults))
		if at < 0 {
			s.vars[id] = &undefined{fmt.Sprintf("parameter %.100q was not provided", id)}
			continue
		}
		v, err := r.eval(n.Defaults[at], s)
		if err != nil {
			return err
		}
		s.vars[id] = v
	}
	return nil
}

// builtin is a function of the language. Params are the names of its parameters, of which the
// first need must be given. One that begins with an underscore is given by place only.
type builtin struct {
	params string
	need   int
	run    func(r *run, a []Value) (Value, error)
	// isMarked says that texts come with their marks.
	isMarked bool
}

// absent is the value of a parameter that is not given.
type absent struct{}

// call brings arguments into the order of the parameters; first come those that are given apart.
func (b builtin) call(r *run, first []Value, a arguments) (Value, error) {
	params := strings.Fields(b.params)
	values := make([]Value, len(params))
	given := append(slices.Clip(first), a.list...)
	if len(given) > len(params) {
		return nil, fmt.Errorf("%d arguments are more than %d", len(given), len(params))
	}
	for i := range values {
		values[i] = absent{}
	}
	copy(values, given)
	for i, id := range a.names {
		at := slices.Index(params, id)
		if at < len(given) || id[0] == '_' {
			return nil, fmt.Errorf("it takes no argument %.100q, or has it already", id)
		}
		values[at] = a.named[i]
	}
	for i := range b.need {
		if values[i] == Value(absent{}) {
			return nil, fmt.Errorf("the argument %s is missing", strings.TrimPrefix(params[i], "_"))
		}
	}
	for i := range values {
		if !b.isMarked {
			values[i] = plain(values[i])
		}
	}
	return b.run(r, values)
}
