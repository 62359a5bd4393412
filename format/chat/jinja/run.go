package jinja

import (
	"github.com/tally-network/tally/format/chat/jinja/syntax"

	"errors"
	"fmt"
	"strings"
	"time"
)

var (
	errSteps  = fmt.Errorf("the template takes more than %d steps", MaxSteps)
	errBytes  = fmt.Errorf("the template makes more than %d MiB of values", MaxBytes>>20)
	errOutput = fmt.Errorf("the template writes more than %d MiB", MaxOutput>>20)
	errDeep   = errors.New("values, calls or expressions are in each other too often")
)

// Template is a template that can be rendered.
type Template struct {
	source string
	body   *syntax.Block
}

// Source returns what the template was made of.
func (t *Template) Source() string { return t.source }

// Parse reads a template.
func Parse(source string) (*Template, error) {
	body, err := syntax.Parse(source)
	if err != nil {
		return nil, err
	}
	return &Template{source, body}, nil
}

// run is a template while it is rendered.
type run struct {
	steps, bytes int // that are left
	depth        int // of expressions and calls
	out          *strings.Builder
	date         time.Time
}

// Render returns the text of a template for the values of some names. Date is what strftime_now
// tells: its year, month and so on, in its own time zone.
func (t *Template) Render(names *Dict, date time.Time) (string, error) {
	r := &run{steps: MaxSteps, bytes: MaxBytes, out: &strings.Builder{}, date: date}
	root := &scope{vars: map[string]Value{}, outer: &scope{vars: globals}}
	for i, key := range names.keys {
		if id, ok := key.(string); ok {
			root.vars[id] = names.values[i]
		}
	}
	if _, err := enterBlock(t.body, r, &scope{outer: root}); err != nil {
		return "", err
	}
	return r.out.String(), nil
}

// spend counts steps.
func (r *run) spend(n int) error {
	if r.steps -= n; r.steps < 0 {
		return errSteps
	}
	return nil
}

// search counts the steps of reading n bytes.
func (r *run) search(n int) error { return r.spend(n / 64) }

// make counts n bytes that are about to be made, and the steps of it.
func (r *run) make(n int) error {
	if n < 0 || n > r.bytes {
		return errBytes
	}
	r.bytes -= n
	return r.search(n)
}

// write appends to what is rendered. The bytes have been counted where they were made; what
// stands in the template has not.
func (r *run) write(s string) error {
	if r.out.Len()+len(s) > MaxOutput {
		return errOutput
	}
	if err := r.make(len(s)); err != nil {
		return err
	}
	r.out.WriteString(s)
	return nil
}

// captured returns the text that f writes.
func (r *run) captured(f func() (syntax.Signal, error)) (string, syntax.Signal, error) {
	saved := r.out
	r.out = &strings.Builder{}
	how, err := f()
	s := r.out.String()
	r.out = saved
	return s, how, err
}

// eval computes an expression, and counts it.
func (r *run) eval(x syntax.Expr, s *scope) (Value, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	v, err := evalExpr(x, r, s)
	r.depth--
	return v, err
}

func (r *run) enter() error {
	if r.depth++; r.depth > maxDepth {
		return errDeep
	}
	return r.spend(1)
}

// scope has the variables of a part of the template, in those of a larger part.
type scope struct {
	vars  map[string]Value
	outer *scope
}

func (s *scope) set(id string, v Value) {
	if s.vars == nil {
		s.vars = map[string]Value{}
	}
	s.vars[id] = v
}

func (s *scope) get(id string) Value {
	for ; s != nil; s = s.outer {
		if v, ok := s.vars[id]; ok {
			return v
		}
	}
	return &undefined{fmt.Sprintf("%.100q is undefined", id)}
}
