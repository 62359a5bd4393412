package syntax

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// target parses what is assigned to: a name, a tuple of them or, if fields may be, a namespace's.
func (p *parser) target(fields bool) (Expr, error) {
	var items []Expr
	isTuple := false
	for !p.is(word, "in") && !p.isOp("=") && p.peek().kind != blockEnd && !p.isOp(")") {
		x, err := p.oneTarget(fields)
		if err != nil {
			return nil, err
		}
		items = append(items, x)
		if !p.skip(operator, ",") {
			break
		}
		isTuple = true
	}
	switch {
	case len(items) == 0:
		return nil, fmt.Errorf("%v where a name is wanted", p.peek())
	case isTuple:
		return Sequence{items, true}, nil
	}
	return items[0], nil
}

func (p *parser) oneTarget(fields bool) (Expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	if p.skip(operator, "(") {
		x, err := p.target(fields)
		if err != nil {
			return nil, err
		}
		return x, p.want(operator, ")")
	}
	id, err := p.word()
	if err != nil {
		return nil, err
	}
	if _, ok := constants[id]; ok {
		return nil, fmt.Errorf("nothing can be assigned to %s", id)
	}
	if fields && p.skip(operator, ".") {
		of, err := p.word()
		return Field{id, of}, err
	}
	return Name{id}, nil
}

// tuple parses an expression, or several with commas.
func (p *parser) tuple(conditions bool) (Expr, error) {
	items, isTuple, err := p.items(conditions)
	switch {
	case err != nil:
		return nil, err
	case isTuple:
		return Sequence{items, true}, nil
	case len(items) == 0:
		return nil, fmt.Errorf("%v where an expression is wanted", p.peek())
	}
	return items[0], nil
}

func (p *parser) items(conditions bool) (items []Expr, isTuple bool, err error) {
	for p.peek().kind != printEnd && p.peek().kind != blockEnd && !p.isOp(")") && (len(items) == 0 || !p.is(word, "recursive")) {
		parse := p.or
		if conditions {
			parse = p.expression
		}
		item, err := parse()
		if err != nil {
			return nil, false, err
		}
		items = append(items, item)
		if !p.skip(operator, ",") {
			break
		}
		isTuple = true
	}
	return items, isTuple, nil
}

func (p *parser) expression() (Expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	x, err := p.or()
	for err == nil && p.skip(word, "if") {
		c := Conditional{Then: x}
		if c.Test, err = p.or(); err != nil {
			return nil, err
		}
		if p.skip(word, "else") {
			if c.Other, err = p.expression(); err != nil {
				return nil, err
			}
		}
		x = c
	}
	return x, err
}

// chain parses what next does, joined by words.
func (p *parser) chain(next func() (Expr, error), id string) (Expr, error) {
	x, err := next()
	for err == nil && p.skip(word, id) {
		var r Expr
		if r, err = next(); err != nil {
			return nil, err
		}
		p.nodes++
		x = Logic{id == "and", x, r}
	}
	return x, err
}

func (p *parser) or() (Expr, error) { return p.chain(p.and, "or") }

func (p *parser) and() (Expr, error) { return p.chain(p.not, "and") }

func (p *parser) not() (Expr, error) {
	if !p.skip(word, "not") {
		return p.compare()
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	x, err := p.not()
	return Unary{"not", x}, err
}

var comparisons = []string{"==", "!=", "<", "<=", ">", ">="}

func (p *parser) compare() (Expr, error) {
	first, err := p.sum()
	if err != nil {
		return nil, err
	}
	c := Comparison{First: first}
	for {
		op := p.peek().text
		switch {
		case p.peek().kind == operator && slices.Contains(comparisons, op):
			p.take()
		case p.skip(word, "in"):
		case p.is(word, "not") && p.peekAt(1).kind == word && p.peekAt(1).text == "in":
			op = "not in"
			p.take()
			p.take()
		case len(c.Ops) == 0:
			return first, nil
		default:
			return c, nil
		}
		x, err := p.sum()
		if err != nil {
			return nil, err
		}
		p.nodes++
		c.Ops, c.Rest = append(c.Ops, op), append(c.Rest, x)
	}
}

// joined parses what next does, joined by operators, from the left.
func (p *parser) joined(next func() (Expr, error), ops ...string) (Expr, error) {
	x, err := next()
	for err == nil && p.peek().kind == operator && slices.Contains(ops, p.peek().text) {
		op := p.take().text
		var r Expr
		if r, err = next(); err != nil {
			return nil, err
		}
		p.nodes++
		x = Binary{op, x, r}
	}
	return x, err
}

func (p *parser) sum() (Expr, error) { return p.joined(p.concat, "+", "-") }

func (p *parser) concat() (Expr, error) {
	x, err := p.product()
	if err != nil || !p.isOp("~") {
		return x, err
	}
	c := Concat{[]Expr{x}}
	for p.skip(operator, "~") {
		if x, err = p.product(); err != nil {
			return nil, err
		}
		c.Items = append(c.Items, x)
	}
	return c, nil
}

func (p *parser) product() (Expr, error) { return p.joined(p.power, "*", "/", "//", "%") }

func (p *parser) power() (Expr, error) {
	return p.joined(func() (Expr, error) { return p.unary(true) }, "**")
}

func (p *parser) unary(filters bool) (Expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	var x Expr
	var err error
	if op := p.peek().text; p.isOp("-") || p.isOp("+") {
		p.take()
		if x, err = p.unary(false); err == nil {
			x = Unary{op, x}
		}
	} else {
		x, err = p.primary()
	}
	if err != nil {
		return nil, err
	}
	if x, err = p.postfix(x); err != nil || !filters {
		return x, err
	}
	return p.suffix(x)
}

var constants = map[string]any{"true": true, "True": true, "false": false, "False": false, "none": nil, "None": nil}

func (p *parser) primary() (Expr, error) {
	t := p.peek()
	switch t.kind {
	case word:
		p.take()
		if v, ok := constants[t.text]; ok {
			return Literal{v}, nil
		}
		if p.uses != nil && (t.text == "caller" || t.text == "varargs" || t.text == "kwargs") {
			p.uses[t.text] = true
		}
		return Name{t.text}, nil
	case text:
		var b strings.Builder
		for p.peek().kind == text {
			b.WriteString(p.take().text)
		}
		return Literal{b.String()}, nil
	case integer:
		p.take()
		n, err := strconv.ParseInt(strings.ReplaceAll(t.text, "_", ""), base(t.text), 64)
		if err != nil {
			return nil, fmt.Errorf("the number %.40q has more than 64 bits", t.text)
		}
		return Literal{n}, nil
	case decimal:
		p.take()
		f, err := strconv.ParseFloat(strings.ReplaceAll(t.text, "_", ""), 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return nil, err
		}
		return Literal{f}, nil
	}
	switch {
	case p.skip(operator, "("):
		items, isTuple, err := p.items(true)
		if err == nil {
			err = p.want(operator, ")")
		}
		if err == nil && len(items) == 1 && !isTuple {
			return items[0], nil
		}
		return Sequence{items, true}, err
	case p.skip(operator, "["):
		var items []Expr
		return Sequence{items, false}.with(p)
	case p.skip(operator, "{"):
		return p.dict()
	}
	return nil, fmt.Errorf("%v where an expression is wanted", t)
}

// base is 0, in which prefixes count, but for decimals: many zeros are no octal number.
func base(s string) int {
	if len(s) > 1 && strings.ContainsAny(s[1:2], "bBoOxX") {
		return 0
	}
	return 10
}

// with parses the items of a list.
func (l Sequence) with(p *parser) (Expr, error) {
	for !p.isOp("]") {
		if len(l.Items) > 0 {
			if err := p.want(operator, ","); err != nil {
				return nil, err
			}
			if p.isOp("]") {
				break
			}
		}
		x, err := p.expression()
		if err != nil {
			return nil, err
		}
		l.Items = append(l.Items, x)
	}
	p.take()
	return l, nil
}

func (p *parser) dict() (Expr, error) {
	var d Mapping
	for !p.isOp("}") {
		if len(d.Keys) > 0 {
			if err := p.want(operator, ","); err != nil {
				return nil, err
			}
			if p.isOp("}") {
				break
			}
		}
		k, err := p.expression()
		if err != nil {
			return nil, err
		}
		if err := p.want(operator, ":"); err != nil {
			return nil, err
		}
		v, err := p.expression()
		if err != nil {
			return nil, err
		}
		d.Keys, d.Values = append(d.Keys, k), append(d.Values, v)
	}
	p.take()
	return d, nil
}
