package jinja

import (
	"github.com/tally-network/tally/format/chat/jinja/syntax"

	"errors"
	"fmt"
)

// loop is the variable of that name, in a loop's body. It reads an item ahead where the body asks
// for what comes next.
type loop struct {
	items   *iterator
	over    Value
	index   int
	size    int // -1 until somebody asks
	current Value
	before  Value
	after   Value
	isAhead bool // after is the next item
	isOver  bool // there is none
	seen    Value
	again   func(v Value, depth int) (Value, error) // nil unless recursive
	depth   int
}

// peek reads the next item, if it has not been.
func (l *loop) peek() error {
	if l.isAhead || l.isOver {
		return nil
	}
	v, ok, err := l.items.next()
	l.after, l.isAhead, l.isOver = v, ok, !ok
	return err
}

// next goes on to the next item, if there is one.
func (l *loop) next() (bool, error) {
	if err := l.peek(); err != nil || l.isOver {
		return false, err
	}
	l.index++
	l.before, l.current, l.isAhead = l.current, l.after, false
	return true, nil
}

// length returns the number of items, for which all are read if it is not known.
func (l *loop) length(r *run) (int, error) {
	if l.size >= 0 {
		return l.size, nil
	}
	if n, ok := length(l.over); ok {
		l.size = n
		return n, nil
	}
	rest, err := r.collect(l.items)
	if err != nil {
		return 0, err
	}
	l.size = l.index + len(rest)
	if l.isAhead {
		l.size++
	}
	l.items = count(len(rest), func(i int) Value { return rest[i] })
	return l.size, nil
}

func (l *loop) field(r *run, id string) (Value, error) {
	switch id {
	case "index":
		return int64(l.index), nil
	case "index0":
		return int64(l.index - 1), nil
	case "first":
		return l.index == 1, nil
	case "depth":
		return int64(l.depth + 1), nil
	case "depth0":
		return int64(l.depth), nil
	case "previtem":
		if l.index == 1 {
			return &undefined{"there is no previous item"}, nil
		}
		return l.before, nil
	case "last", "nextitem":
		if err := l.peek(); err != nil {
			return nil, err
		}
		if id == "last" {
			return !l.isAhead, nil
		}
		if !l.isAhead {
			return &undefined{"there is no next item"}, nil
		}
		return l.after, nil
	case "length", "revindex", "revindex0":
		n, err := l.length(r)
		switch id {
		case "revindex":
			n -= l.index - 1
		case "revindex0":
			n -= l.index
		}
		return int64(n), err
	case "cycle":
		return &function{"cycle", func(_ *run, a arguments) (Value, error) {
			if len(a.list) == 0 || len(a.names) > 0 {
				return nil, errors.New("cycle wants values to go through")
			}
			return a.list[(l.index-1)%len(a.list)], nil
		}}, nil
	case "changed":
		return &function{"changed", l.changed}, nil
	}
	return &undefined{fmt.Sprintf("a loop has no %.100q", id)}, nil
}

// changed reports whether its arguments are others than they were the last time.
func (l *loop) changed(r *run, a arguments) (Value, error) {
	now := &tuple{items: a.list}
	if l.seen != nil {
		same, err := r.equal(l.seen, now)
		if err != nil || same {
			return false, err
		}
	}
	l.seen = now
	return true, nil
}

func execRepeat(x *syntax.Repeat, r *run, s *scope) (syntax.Signal, error) {
	v, err := r.eval(x.Over, s)
	if err != nil {
		return syntax.Onward, err
	}
	return eachRepeat(x, r, v, s, 0)
}

// eachRepeat goes through the items of v.
func eachRepeat(x *syntax.Repeat, r *run, v Value, s *scope, depth int) (syntax.Signal, error) {
	it, err := iterate(v)
	if err != nil {
		return syntax.Onward, err
	}
	if x.Where != nil {
		it = onlyRepeat(x, r, it, s)
		v = it
	}
	l := &loop{items: it, over: v, size: -1, depth: depth}
	if x.IsRecursive {
		l.again = func(v Value, depth int) (Value, error) {
			t, _, err := r.captured(func() (syntax.Signal, error) { return eachRepeat(x, r, v, s, depth) })
			return t, err
		}
	}
	for {
		ok, err := l.next()
		if err != nil {
			return syntax.Onward, err
		}
		if !ok {
			break
		}
		inner := &scope{outer: s, vars: map[string]Value{"loop": l}}
		if err := r.make(128); err != nil {
			return syntax.Onward, err
		}
		if err := r.assign(x.Target, l.current, inner); err != nil {
			return syntax.Onward, err
		}
		how, err := enterBlock(&x.Body, r, inner)
		if err != nil {
			return syntax.Onward, err
		}
		if how == syntax.Breaks {
			break
		}
	}
	if l.index == 0 {
		return enterBlock(&x.Other, r, &scope{outer: s})
	}
	return syntax.Onward, nil
}

// onlyRepeat leaves those items of which the loop's condition holds when they are reached.
func onlyRepeat(x *syntax.Repeat, r *run, all *iterator, s *scope) *iterator {
	return &iterator{func() (Value, bool, error) {
		for {
			v, ok, err := r.next(all)
			if err != nil || !ok {
				return nil, false, err
			}
			inner := &scope{outer: s}
			if err := r.assign(x.Target, v, inner); err != nil {
				return nil, false, err
			}
			is, err := r.eval(x.Where, inner)
			if err != nil {
				return nil, false, err
			}
			if truth(is) {
				return v, true, nil
			}
		}
	}}
}
