package train

import (
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// stepper writes the part of a step graph that follows the gradients. Each slot
// of the state is read under its name and has its new value under next/<name>.
type stepper struct {
	b     *graph.Builder
	slots []slot
	at    map[string]int // slots by their names
	due   string         // whether this step makes an update; empty: every one does
}

type slot struct {
	name, next string // of its value before and after the step
	start      *tensor.Tensor
}

// read adds a slot and returns the name of its value before the step.
func (s *stepper) read(name string, start *tensor.Tensor) string {
	s.at[name] = len(s.slots)
	s.slots = append(s.slots, slot{name: name, start: start})
	return name
}

// write computes the new value of a slot by an operator and returns its name.
func (s *stepper) write(name, op string, inputs ...string) string {
	next := &s.slots[s.at[name]].next
	*next = s.b.With().As("next/"+name).Op(op, inputs...)
	return *next
}

// update is write for what changes with an update alone, and not with every
// step whose gradients it accumulates. It returns what an update writes.
func (s *stepper) update(name, op string, inputs ...string) string {
	if s.due == "" {
		return s.write(name, op, inputs...)
	}
	next := s.b.Op(op, inputs...)
	s.write(name, "Where", s.due, next, name)
	return next
}

// param is a parameter during a step: the names of its values.
type param struct {
	name  string // in the consumer's graph
	value string // before the step
	grad  string
	shape tensor.Shape
}

// accumulate replaces the gradients by the mean of those since the last update,
// and lets every so many steps make one.
func (s *stepper) accumulate(r Recipe, step string, params []param) {
	if r.Accumulate < 2 {
		return
	}
	b := s.b
	every := b.Const(tensor.Scalar(int64(r.Accumulate)))
	whole := b.Op("Mul", b.Op("Div", step, every), every)
	s.due = b.Op("Equal", whole, step)
	part, zero := b.Scalar(1/float32(r.Accumulate)), b.Scalar(0)
	for i := range params {
		p := &params[i]
		old := s.zeros("g", *p)
		p.grad = b.Op("Add", old, b.Op("Mul", p.grad, part))
		s.write(old, "Where", s.due, zero, p.grad)
	}
}

// clip scales the gradients down to the greatest norm that they may have
// together.
func clip(b *graph.Builder, r Recipe, params []param) {
	if r.ClipNorm == 0 {
		return
	}
	total := ""
	for _, p := range params {
		square := b.With(graph.Int("keepdims", 0)).Op("ReduceSum", b.Op("Mul", p.grad, p.grad))
		if total != "" {
			square = b.Op("Add", total, square)
		}
		total = square
	}
	limit := b.Scalar(r.ClipNorm)
	scale := b.Op("Div", limit, b.Op("Max", b.Op("Sqrt", total), limit))
	for i := range params {
		params[i].grad = b.Op("Mul", params[i].grad, scale)
	}
}

// An optimizer writes what all parameters share and returns what writes the
// update of one. rate is the name of the step's learning rate.
type optimizer func(s *stepper, r Recipe, rate string) func(param)

var optimizers = map[string]optimizer{"sgd": sgd, "adam": adam, "adamw": adamw, "adagrad": adagrad}

// zeros adds a slot of a parameter's shape.
func (s *stepper) zeros(kind string, p param) string {
	return s.read(kind+"/"+p.name, tensor.Must(tensor.New(tensor.Float32, p.shape)))
}

// sgd: p ← (1 − rate·decay)·p − rate·g, or with momentum μ
//
//	m ← μ·m + g
//	p ← (1 − rate·decay)·p − rate·m, and with Nesterov's, − rate·(g + μ·m)
func sgd(s *stepper, r Recipe, rate string) func(param) {
	b := s.b
	decayed := decay(b, r, rate)
	return func(p param) {
		move := p.grad
		if r.Momentum != 0 {
			old := s.zeros("m", p)
			if move = s.update(old, "Add", b.Op("Mul", old, b.Scalar(r.Momentum)), p.grad); r.Nesterov {
				move = b.Op("Add", p.grad, b.Op("Mul", move, b.Scalar(r.Momentum)))
			}
		}
		s.update(p.value, "Sub", decayed(p), b.Op("Mul", move, rate))
	}
}

// adam is adamw with the decay as a part of the gradient (Kingma and Ba, 2014).
func adam(s *stepper, r Recipe, rate string) func(param) {
	inner := r
	inner.WeightDecay = 0
	update := adamw(s, inner, rate)
	return func(p param) {
		p.grad = penalised(s.b, r, p)
		update(p)
	}
}

// adamw (Loshchilov and Hutter, 2017), at update t, counted from 1:
//
//	m ← m + (1 − β₁)·(g − m)
//	v ← v + (1 − β₂)·(g² − v)
//	p ← (1 − rate·decay)·p − rate/(1 − β₁ᵗ) · m / (√v/√(1 − β₂ᵗ) + ε)
func adamw(s *stepper, r Recipe, rate string) func(param) {
	b := s.b
	one := b.Scalar(1)
	rest := func(slot string, beta float32) string {
		power := s.read(slot, tensor.Scalar[float32](1))
		return b.Op("Sub", one, s.update(power, "Mul", power, b.Scalar(beta)))
	}
	size := b.Op("Div", rate, rest("power/beta1", r.Beta1))
	root := b.Op("Sqrt", rest("power/beta2", r.Beta2))
	decayed := decay(b, r, rate)
	moment := func(slot string, p param, beta float32, towards string) string {
		old := s.zeros(slot, p)
		move := b.Op("Mul", b.Op("Sub", towards, old), b.Scalar(1-beta))
		return s.update(old, "Add", old, move)
	}
	return func(p param) {
		m := moment("m", p, r.Beta1, p.grad)
		v := moment("v", p, r.Beta2, b.Op("Mul", p.grad, p.grad))
		below := b.Op("Add", b.Op("Div", b.Op("Sqrt", v), root), b.Scalar(r.Epsilon))
		move := b.Op("Mul", b.Op("Div", m, below), size)
		s.update(p.value, "Sub", decayed(p), move)
	}
}

// adagrad (Duchi, Hazan and Singer, 2011): v ← v + g², p ← p − rate·g/(√v + ε).
func adagrad(s *stepper, r Recipe, rate string) func(param) {
	b := s.b
	return func(p param) {
		g := penalised(b, r, p)
		old := s.zeros("v", p)
		v := s.update(old, "Add", old, b.Op("Mul", g, g))
		below := b.Op("Add", b.Op("Sqrt", v), b.Scalar(r.Epsilon))
		s.update(p.value, "Sub", p.value, b.Op("Mul", b.Op("Div", g, below), rate))
	}
}

// penalised returns the gradient with the decay as a part of it.
func penalised(b *graph.Builder, r Recipe, p param) string {
	if r.WeightDecay == 0 || len(p.shape) < 2 {
		return p.grad
	}
	return b.Op("Add", p.grad, b.Op("Mul", p.value, b.Scalar(r.WeightDecay)))
}

// decay returns what writes (1 − rate·decay)·p, which is p itself where weights
// do not decay.
func decay(b *graph.Builder, r Recipe, rate string) func(param) string {
	if r.WeightDecay == 0 {
		return func(p param) string { return p.value }
	}
	keep := b.Op("Sub", b.Scalar(1), b.Op("Mul", rate, b.Scalar(r.WeightDecay)))
	return func(p param) string {
		if len(p.shape) < 2 {
			return p.value
		}
		return b.Op("Mul", p.value, keep)
	}
}
