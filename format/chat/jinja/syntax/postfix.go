package syntax

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// maxChain bounds filters, calls and subscripts in a row, each of which holds the one before.
const maxChain = 100

// postfix parses attributes, subscripts and calls of x.
func (p *parser) postfix(x Expr) (Expr, error) {
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
func (p *parser) suffix(x Expr) (Expr, error) {
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

func (p *parser) attribute(x Expr) (Expr, error) {
	p.take()
	if t := p.peek(); t.kind == integer {
		p.take()
		n, err := strconv.ParseInt(t.text, 10, 64)
		return Subscript{x, Literal{n}}, err
	}
	id, err := p.word()
	return Attribute{x, id}, err
}

func (p *parser) subscript(x Expr) (Expr, error) {
	p.take()
	from, err := p.bound()
	if err != nil {
		return nil, err
	}
	if !p.skip(operator, ":") {
		if from == nil || p.isOp(",") {
			return nil, errors.New("a subscript is one expression, or a slice")
		}
		return Subscript{x, from}, p.want(operator, "]")
	}
	s := Slice{X: x, From: from}
	if s.To, err = p.bound(); err != nil {
		return nil, err
	}
	if p.skip(operator, ":") {
		if s.Step, err = p.bound(); err != nil {
			return nil, err
		}
	}
	return s, p.want(operator, "]")
}

// bound parses a part of a slice, which may be missing.
func (p *parser) bound() (Expr, error) {
	if p.isOp(":") || p.isOp("]") {
		return nil, nil
	}
	return p.expression()
}

func (p *parser) call(f Expr) (Expr, error) {
	a, err := p.args()
	return Call{f, a}, err
}

func (p *parser) args() (a Args, err error) {
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

func (p *parser) arg(a *Args) (err error) {
	misplaced := errors.New("arguments are out of order: values, then names, then * and **")
	switch {
	case p.skip(operator, "*"):
		if a.Spread != nil || a.Rest != nil {
			return misplaced
		}
		a.Spread, err = p.expression()
	case p.skip(operator, "**"):
		if a.Rest != nil {
			return misplaced
		}
		a.Rest, err = p.expression()
	case p.peek().kind == word && p.peekAt(1).kind == operator && p.peekAt(1).text == "=":
		if a.Rest != nil {
			return misplaced
		}
		id := p.take().text
		p.take()
		if slices.Contains(a.Names, id) {
			return fmt.Errorf("two arguments are called %.40q", id)
		}
		var x Expr
		x, err = p.expression()
		a.Names, a.Named = append(a.Names, id), append(a.Named, x)
	default:
		if a.Spread != nil || a.Rest != nil || len(a.Names) > 0 {
			return misplaced
		}
		var x Expr
		x, err = p.expression()
		a.List = append(a.List, x)
	}
	return err
}

// filters parses filters of x, each after a bar.
func (p *parser) filters(x Expr) (_ Expr, err error) {
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

func (p *parser) filter(x Expr) (Expr, error) {
	id, err := p.dotted()
	if err != nil {
		return nil, err
	}
	f := Filter{X: x, ID: id}
	p.nodes++
	if p.isOp("(") {
		f.Args, err = p.args()
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

func (p *parser) test(x Expr) (Expr, error) {
	p.take()
	isNot := p.skip(word, "not")
	id, err := p.dotted()
	if err != nil {
		return nil, err
	}
	t := Test{X: x, ID: id}
	switch next := p.peek(); {
	case p.isOp("("):
		t.Args, err = p.args()
	case p.is(word, "is"):
		return nil, errors.New("tests cannot follow each other: join them by and")
	case p.is(word, "else") || p.is(word, "or") || p.is(word, "and"):
	case next.kind == word || next.kind == text || next.kind == integer || next.kind == decimal || p.isOp("[") || p.isOp("{"):
		var x Expr
		if x, err = p.primary(); err == nil {
			x, err = p.postfix(x)
		}
		t.Args.List = []Expr{x}
	}
	if isNot {
		return Unary{"not", t}, err
	}
	return t, err
}
