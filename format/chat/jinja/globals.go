package jinja

import (
	"errors"
	"fmt"
	"strings"
)

// globals are the functions that every template has.
var globals = map[string]Value{
	"range":           &function{"range", newRange},
	"dict":            &function{"dict", func(r *run, a arguments) (Value, error) { return r.newDict(a) }},
	"namespace":       &function{"namespace", newNamespace},
	"cycler":          &function{"cycler", newCycler},
	"joiner":          &function{"joiner", newJoiner},
	"raise_exception": &function{"raise_exception", raise},
	"strftime_now":    &function{"strftime_now", now},
	"lipsum":          &function{"lipsum", func(*run, arguments) (Value, error) { return nil, errors.New("it is random, and refused") }},
}

// Refusal is what a template says by raise_exception: that it cannot render such a conversation.
type Refusal struct{ Reason string }

func (e *Refusal) Error() string { return "the template refuses: " + e.Reason }

func raise(r *run, a arguments) (Value, error) {
	return builtin{params: "message", need: 1, run: func(r *run, a []Value) (Value, error) {
		s, err := r.str(a[0])
		if err != nil {
			return nil, err
		}
		if len(s) > 1000 {
			s = s[:1000]
		}
		return nil, &Refusal{strings.ToValidUTF8(s, "")}
	}}.call(r, nil, a)
}

func now(r *run, a arguments) (Value, error) {
	return builtin{params: "format", need: 1, run: func(r *run, a []Value) (Value, error) {
		s, ok := a[0].(string)
		if !ok {
			return nil, fmt.Errorf("the format%w", unfit(a[0]))
		}
		return r.strftime(s)
	}}.call(r, nil, a)
}

func newRange(_ *run, a arguments) (Value, error) {
	var n [3]int64
	if len(a.list) < 1 || len(a.list) > 3 || len(a.names) > 0 {
		return nil, errors.New("it takes one to three integers")
	}
	for i, v := range a.list {
		var ok bool
		if n[i], ok = index(v); !ok {
			return nil, fmt.Errorf("an integer is wanted%w", unfit(v))
		}
	}
	switch len(a.list) {
	case 1:
		return newSpan(0, n[0], 1)
	case 2:
		return newSpan(n[0], n[1], 1)
	}
	return newSpan(n[0], n[1], n[2])
}

// newSpan makes a range, whose numbers are far from too wide.
func newSpan(start, stop, step int64) (Value, error) {
	const wide = 1 << 60
	switch {
	case step == 0:
		return nil, errors.New("its step is 0")
	case max(start, stop, step) > wide || min(start, stop, step) < -wide:
		return nil, errWide
	}
	s := &span{start: start, step: step, text: fmt.Sprintf("range(%d, %d)", start, stop)}
	if step != 1 {
		s.text = fmt.Sprintf("range(%d, %d, %d)", start, stop, step)
	}
	switch {
	case step > 0 && stop > start:
		s.n = (stop-start-1)/step + 1
	case step < 0 && stop < start:
		s.n = (start-stop-1)/-step + 1
	}
	if s.n > MaxRange {
		return nil, fmt.Errorf("it has more than %d items", MaxRange)
	}
	return s, nil
}

// newDict makes a dict of another, or of pairs, and of named arguments.
func (r *run) newDict(a arguments) (*Dict, error) {
	d := &Dict{}
	if len(a.list) > 1 {
		return nil, errors.New("it takes one value, and names")
	}
	for _, v := range a.list {
		if err := r.fill(d, v); err != nil {
			return nil, err
		}
	}
	for i, id := range a.names {
		if err := r.put(d, id, a.named[i]); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// fill puts the items of a dict, or pairs, into another.
func (r *run) fill(d *Dict, v Value) error {
	if from, ok := v.(*Dict); ok {
		v = &view{from, "items"}
	}
	all, err := r.collect(v)
	if err != nil {
		return err
	}
	for _, x := range all {
		pair, err := r.collect(x)
		if err != nil {
			return err
		}
		if len(pair) != 2 {
			return errors.New("it wants a dict, or pairs")
		}
		if err := r.put(d, pair[0], pair[1]); err != nil {
			return err
		}
	}
	return nil
}

func newNamespace(r *run, a arguments) (Value, error) {
	d, err := r.newDict(a)
	if err != nil {
		return nil, err
	}
	n := &namespace{&Dict{}}
	for i, k := range d.keys {
		id, ok := k.(string)
		if !ok {
			return nil, errors.New("its fields have names that are texts")
		}
		if err := n.set(r, id, d.values[i]); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func (n *namespace) set(r *run, id string, v Value) error {
	if strings.HasPrefix(id, "_") {
		return fmt.Errorf("the field %.100q of a namespace begins with an underscore: call it otherwise", id)
	}
	return r.put(n.fields, id, v)
}

// cycler gives its values in turn.
type cycler struct {
	values []Value
	at     int
}

func newCycler(_ *run, a arguments) (Value, error) {
	if len(a.list) == 0 || len(a.names) > 0 {
		return nil, errors.New("it takes values")
	}
	return &cycler{values: a.list}, nil
}

func (c *cycler) field(_ *run, id string) (Value, error) {
	switch id {
	case "current":
		return c.values[c.at], nil
	case "next":
		return &function{id, func(*run, arguments) (Value, error) {
			v := c.values[c.at]
			c.at = (c.at + 1) % len(c.values)
			return v, nil
		}}, nil
	case "reset":
		return &function{id, func(*run, arguments) (Value, error) {
			c.at = 0
			return nil, nil
		}}, nil
	}
	return &undefined{fmt.Sprintf("a cycler has no %.100q", id)}, nil
}

// newJoiner makes a function that gives nothing when it is first called, and then a separator.
func newJoiner(r *run, a arguments) (Value, error) {
	return builtin{params: "sep", need: 0, run: func(_ *run, a []Value) (Value, error) {
		if !given(a[0]) {
			a[0] = ", "
		}
		isUsed := false
		return &function{"joiner", func(*run, arguments) (Value, error) {
			if isUsed {
				return a[0], nil
			}
			isUsed = true
			return "", nil
		}}, nil
	}}.call(r, nil, a)
}
