package jinja

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// maxChain bounds filters, calls and subscripts in a row, each of which holds the one before.
const maxChain = 100

// postfix parses attributes, subscripts and calls of x.
func (p *parser) postfix(x expr) (expr, error) {
	for range maxChain {
		p.nodes++
		var err error
		switch {
		case p.isOp("."):
			x, err = p.attribute(x)
		case p.isOp("["):
			x, err = p.subscript(x)
		case p.isOp("("):
			x, err = p.call(x)
		default:
			return x, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("more than %d calls or subscripts in a row", maxChain)
}

// suffix parses filters, tests and calls of x.
func (p *parser) suffix(x expr) (expr, error) {
	for range maxChain {
		p.nodes++
		var err error
		switch {
		case p.isOp("|"):
			x, err = p.filters(x)
		case p.is(word, "is"):
			x, err = p.test(x)
		case p.isOp("("):
			x, err = p.call(x)
		default:
			return x, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("more than %d filters or tests in a row", maxChain)
}

func (p *parser) attribute(x expr) (expr, error) {
	p.take()
	if t := p.peek(); t.kind == integer {
		p.take()
		n, err := strconv.ParseInt(t.text, 10, 64)
		return subscript{x, literal{n}}, err
	}
	id, err := p.word()
	return attribute{x, id}, err
}

func (p *parser) subscript(x expr) (expr, error) {
	p.take()
	from, err := p.bound()
	if err != nil {
		return nil, err
	}
	if !p.skip(operator, ":") {
		if from == nil || p.isOp(",") {
			return nil, errors.New("a subscript is one expression, or a slice")
		}
		return subscript{x, from}, p.want(operator, "]")
	}
	s := slice{x: x, from: from}
	if s.to, err = p.bound(); err != nil {
		return nil, err
	}
	if p.skip(operator, ":") {
		if s.step, err = p.bound(); err != nil {
			return nil, err
		}
	}
	return s, p.want(operator, "]")
}

// bound parses a part of a slice, which may be missing.
func (p *parser) bound() (expr, error) {
	if p.isOp(":") || p.isOp("]") {
		return nil, nil
	}
	return p.expression()
}

func (p *parser) call(f expr) (expr, error) {
	a, err := p.args()
	return call{f, a}, err
}

func (p *parser) args() (a args, err error) {
	if err := p.want(operator, "("); err != nil {
		return a, err
	}
	for first := true; !p.isOp(")"); first = false {
		if !first {
			if err := p.want(operator, ","); err != nil {
				return a, err
			}
			if p.isOp(")") {
				break
			}
		}
		if err := p.arg(&a); err != nil {
			return a, err
		}
	}
	return a, p.want(operator, ")")
}

func (p *parser) arg(a *args) (err error) {
	misplaced := errors.New("arguments are out of order: values, then names, then * and **")
	switch {
	case p.skip(operator, "*"):
		if a.spread != nil || a.rest != nil {
			return misplaced
		}
		a.spread, err = p.expression()
	case p.skip(operator, "**"):
		if a.rest != nil {
			return misplaced
		}
		a.rest, err = p.expression()
	case p.peek().kind == word && p.peekAt(1).kind == operator && p.peekAt(1).text == "=":
		if a.rest != nil {
			return misplaced
		}
		id := p.take().text
		p.take()
		if slices.Contains(a.names, id) {
			return fmt.Errorf("two arguments are called %.40q", id)
		}
		var x expr
		x, err = p.expression()
		a.names, a.named = append(a.names, id), append(a.named, x)
	default:
		if a.spread != nil || a.rest != nil || len(a.names) > 0 {
			return misplaced
		}
		var x expr
		x, err = p.expression()
		a.list = append(a.list, x)
	}
	return err
}

// filters parses filters of x, each after a bar.
func (p *parser) filters(x expr) (_ expr, err error) {
	for n := 0; p.skip(operator, "|"); n++ {
		if n == maxChain {
			return nil, fmt.Errorf("more than %d filters in a row", maxChain)
		}
		if x, err = p.filter(x); err != nil {
			return nil, err
		}
	}
	return x, nil
}

func (p *parser) filter(x expr) (expr, error) {
	id, err := p.dotted()
	if err != nil {
		return nil, err
	}
	f := filter{x: x, id: id}
	p.nodes++
	if p.isOp("(") {
		f.args, err = p.args()
	}
	return f, err
}

func (p *parser) dotted() (string, error) {
	id, err := p.word()
	for err == nil && p.skip(operator, ".") {
		var more string
		more, err = p.word()
		id += "." + more
	}
	return id, err
}

func (p *parser) test(x expr) (expr, error) {
	p.take()
	isNot := p.skip(word, "not")
	id, err := p.dotted()
	if err != nil {
		return nil, err
	}
	t := test{x: x, id: id}
	switch next := p.peek(); {
	case p.isOp("("):
		t.args, err = p.args()
	case p.is(word, "is"):
		return nil, errors.New("tests cannot follow each other: join them by and")
	case p.is(word, "else") || p.is(word, "or") || p.is(word, "and"):
	case next.kind == word || next.kind == text || next.kind == integer || next.kind == decimal || p.isOp("[") || p.isOp("{"):
		var x expr
		if x, err = p.primary(); err == nil {
			x, err = p.postfix(x)
		}
		t.args.list = []expr{x}
	}
	if isNot {
		return unary{"not", t}, err
	}
	return t, err
}
