package syntax

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// Parse reads a template.
func Parse(source string) (*Block, error) {
	switch {
	case len(source) > MaxSource:
		return nil, fmt.Errorf("the template has %d bytes, of at most %d", len(source), MaxSource)
	case !utf8.ValidString(source):
		return nil, errors.New("the template is no UTF-8: convert it")
	}
	tokens, err := lex(source)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens}
	body, err := p.block()
	if err == nil && p.peek().kind != end {
		err = fmt.Errorf("the tag %.40q closes nothing", p.peekAt(1).text)
	}
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", p.peek().line, err)
	}
	if !body.hideAll() {
		return nil, errors.New("the template has too many names in too many branches")
	}
	return &body, nil
}

// parser makes nodes of tokens.
type parser struct {
	tokens []token
	at     int
	nodes  int
	depth  int
	loops  int // bodies of loops that are open in this macro
	// uses is of the macro that is open.
	uses map[string]bool
}

func (p *parser) peek() token { return p.tokens[p.at] }

func (p *parser) peekAt(n int) token { return p.tokens[min(p.at+n, len(p.tokens)-1)] }

// take returns the next token, and passes it unless it is the last.
func (p *parser) take() token {
	t := p.peek()
	p.at = min(p.at+1, len(p.tokens)-1)
	return t
}

func (p *parser) is(k kind, s string) bool { return p.peek().kind == k && p.peek().text == s }

func (p *parser) isOp(s string) bool { return p.is(operator, s) }

// skip passes a token if it comes next.
func (p *parser) skip(k kind, s string) bool {
	if !p.is(k, s) {
		return false
	}
	p.take()
	return true
}

func (p *parser) want(k kind, s string) error {
	if !p.skip(k, s) {
		if s == "" {
			s = token{kind: k}.String()
		}
		return fmt.Errorf("%v where %s is wanted", p.peek(), s)
	}
	return nil
}

func (p *parser) word() (string, error) {
	if p.peek().kind != word {
		return "", fmt.Errorf("%v where a name is wanted", p.peek())
	}
	return p.take().text, nil
}

// enter counts a node, and a level of nesting until leave.
func (p *parser) enter() error {
	p.nodes++
	p.depth++
	switch {
	case p.nodes > maxNodes:
		return fmt.Errorf("the template has more than %d expressions and statements", maxNodes)
	case p.depth > maxNesting:
		return fmt.Errorf("more than %d expressions or blocks in each other", maxNesting)
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

// block parses text and statements up to a tag that none of them begins with: one of ends.
func (p *parser) block(ends ...string) (Block, error) {
	var b Block
	if err := p.enter(); err != nil {
		return b, err
	}
	defer p.leave()
	for {
		p.nodes++
		switch t := p.peek(); t.kind {
		case end:
			if len(ends) > 0 {
				return b, fmt.Errorf("the template ends where %s is wanted", ends[len(ends)-1])
			}
			return b, nil
		case data:
			p.take()
			b.Body = append(b.Body, Output{t.text})
		case printBegin:
			p.take()
			x, err := p.printed()
			if err != nil {
				return b, err
			}
			b.Body = append(b.Body, Print{x})
		case blockBegin:
			tag := p.peekAt(1)
			if tag.kind == word && slices.Contains(ends, tag.text) {
				p.take()
				return b, nil
			}
			if len(ends) == 0 && closing[tag.text] {
				return b, nil
			}
			p.take()
			x, err := p.statement()
			if err != nil {
				return b, err
			}
			b.Body = append(b.Body, x)
			if err := p.want(blockEnd, ""); err != nil {
				return b, err
			}
		default:
			return b, fmt.Errorf("%v where text is wanted", t)
		}
	}
}

// closing are the tags that only close others.
var closing = map[string]bool{
	"endif": true, "endfor": true, "else": true, "elif": true, "endmacro": true, "endset": true, "endcall": true, "endfilter": true,
	"endwith": true, "endgeneration": true,
}

// printed parses the expression of a tag that prints it.
func (p *parser) printed() (Expr, error) {
	x, err := p.tuple(true)
	if err != nil {
		return nil, err
	}
	return x, p.want(printEnd, "")
}

// body parses the rest of a tag, and what follows it up to one of ends.
func (p *parser) body(ends ...string) (Block, error) {
	p.skip(operator, ":")
	if err := p.want(blockEnd, ""); err != nil {
		return Block{}, err
	}
	return p.block(ends...)
}

// closed is body up to one end, which it passes.
func (p *parser) closed(end string) (Block, error) {
	b, err := p.body(end)
	p.take()
	return b, err
}

// refused are tags that Jinja has and chats do not.
var refused = map[string]string{
	"include": "templates cannot read files", "import": "templates cannot read files", "from": "templates cannot read files",
	"extends": "templates cannot read files", "block": "put its body in its place", "autoescape": "a chat is no HTML",
}

// statement parses a tag, and what belongs to it.
func (p *parser) statement() (Stmt, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	tag, err := p.word()
	if err != nil {
		return nil, err
	}
	switch tag {
	case "if":
		return p.choice()
	case "for":
		return p.loop()
	case "set":
		return p.set()
	case "macro":
		return p.macro()
	case "call":
		return p.callBlock()
	case "filter":
		return p.filterBlock()
	case "with":
		return p.with()
	case "print":
		return p.print()
	case "generation":
		loops := p.loops
		p.loops = 0
		b, err := p.closed("endgeneration")
		p.loops = loops
		return &Scoped{b}, err
	case "break", "continue":
		if p.loops == 0 {
			return nil, fmt.Errorf("%s outside a loop", tag)
		}
		return Leave{map[string]Signal{"break": Breaks, "continue": Continues}[tag]}, nil
	}
	if why, ok := refused[tag]; ok {
		return nil, fmt.Errorf("the tag %s is not supported: %s", tag, why)
	}
	return nil, fmt.Errorf("no tag is called %.40q", tag)
}

func (p *parser) choice() (Stmt, error) {
	var c Choice
	for tag := "elif"; tag != "endif"; {
		var b Block
		var err error
		if tag == "elif" {
			x, err := p.tuple(false)
			if err != nil {
				return nil, err
			}
			if b, err = p.body("elif", "else", "endif"); err != nil {
				return nil, err
			}
			c.Tests, c.Bodies = append(c.Tests, x), append(c.Bodies, b)
		} else if c.Other, err = p.body("endif"); err != nil {
			return nil, err
		}
		tag = p.take().text
	}
	return c, nil
}

func (p *parser) loop() (Stmt, error) {
	var l Repeat
	var err error
	if l.Target, err = p.target(false); err != nil {
		return nil, err
	}
	if err := p.want(word, "in"); err != nil {
		return nil, err
	}
	if l.Over, err = p.tuple(false); err != nil {
		return nil, err
	}
	if p.skip(word, "if") {
		if l.Where, err = p.expression(); err != nil {
			return nil, err
		}
	}
	l.IsRecursive = p.skip(word, "recursive")
	p.loops++
	l.Body, err = p.body("endfor", "else")
	p.loops--
	if err != nil {
		return nil, err
	}
	if p.take().text == "else" {
		l.Other, err = p.closed("endfor")
	}
	return &l, err
}

func (p *parser) set() (Stmt, error) {
	target, err := p.target(true)
	if err != nil {
		return nil, err
	}
	if p.skip(operator, "=") {
		x, err := p.tuple(true)
		return Assign{target, x}, err
	}
	c := Capture{Target: target}
	if p.isOp("|") {
		x, err := p.filters(nil)
		if err != nil {
			return nil, err
		}
		f := x.(Filter)
		c.Filter = &f
	}
	c.Body, err = p.closed("endset")
	return &c, err
}

func (p *parser) with() (Stmt, error) {
	var w With
	for p.peek().kind != blockEnd {
		if len(w.Targets) > 0 {
			if err := p.want(operator, ","); err != nil {
				return nil, err
			}
		}
		target, err := p.target(false)
		if err != nil {
			return nil, err
		}
		if err := p.want(operator, "="); err != nil {
			return nil, err
		}
		x, err := p.expression()
		if err != nil {
			return nil, err
		}
		w.Targets, w.Values = append(w.Targets, target), append(w.Values, x)
	}
	var err error
	w.Body, err = p.closed("endwith")
	return &w, err
}

func (p *parser) print() (Stmt, error) {
	var b Block
	for p.peek().kind != blockEnd {
		if len(b.Body) > 0 {
			if err := p.want(operator, ","); err != nil {
				return nil, err
			}
		}
		x, err := p.expression()
		if err != nil {
			return nil, err
		}
		b.Body = append(b.Body, Print{x})
	}
	return &b, nil
}

func (p *parser) filterBlock() (Stmt, error) {
	x, err := p.filter(nil)
	if err != nil {
		return nil, err
	}
	if x, err = p.filters(x); err != nil {
		return nil, err
	}
	f := x.(Filter)
	b, err := p.closed("endfilter")
	return &Filtered{&f, b}, err
}

func (p *parser) macro() (Stmt, error) {
	id, err := p.word()
	if err != nil {
		return nil, err
	}
	m, err := p.macroOf(id, true, "endmacro")
	return Define{m}, err
}

// macroOf parses parameters and body of a macro.
func (p *parser) macroOf(id string, hasParams bool, end string) (*Macro, error) {
	m := &Macro{ID: id, Uses: map[string]bool{}}
	if hasParams {
		if err := p.params(m); err != nil {
			return nil, err
		}
	}
	if end == "endmacro" {
		return m, p.macroBody(m, end)
	}
	return m, nil
}

func (p *parser) params(m *Macro) error {
	if err := p.want(operator, "("); err != nil {
		return err
	}
	for !p.isOp(")") {
		if len(m.Params) > 0 {
			if err := p.want(operator, ","); err != nil {
				return err
			}
		}
		id, err := p.word()
		if err != nil {
			return err
		}
		if slices.Contains(m.Params, id) {
			return fmt.Errorf("two parameters are called %.40q", id)
		}
		m.Params = append(m.Params, id)
		if p.skip(operator, "=") {
			x, err := p.expression()
			if err != nil {
				return err
			}
			m.Defaults = append(m.Defaults, x)
		} else if len(m.Defaults) > 0 {
			return fmt.Errorf("the parameter %.40q wants a default, as the one before it has", id)
		}
	}
	return p.want(operator, ")")
}

// macroBody parses the body of a macro, of which loops around it are no part.
func (p *parser) macroBody(m *Macro, end string) (err error) {
	loops, uses := p.loops, p.uses
	p.loops, p.uses = 0, m.Uses
	m.Body, err = p.closed(end)
	for id := range m.Uses {
		if uses != nil {
			uses[id] = true // as Jinja looks for them
		}
	}
	p.loops, p.uses = loops, uses
	return err
}

func (p *parser) callBlock() (Stmt, error) {
	m, err := p.macroOf("caller", p.isOp("("), "endcall")
	if err != nil {
		return nil, err
	}
	x, err := p.expression()
	if err != nil {
		return nil, err
	}
	c, ok := x.(Call)
	if !ok {
		return nil, errors.New("call wants the call of a macro")
	}
	return Invoke{c, m}, p.macroBody(m, "endcall")
}
