package train

import (
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// stepper writes the part of a step graph that follows the gradients. Each slot
// of the state is read under its name and has its new value under next/<name>.
type stepper struct {
	b     *graph.Builder
	slots []slot
}

type slot struct {
	name, next string // of its value before and after the step
	start      *tensor.Tensor
}

// read adds a slot and returns the name of its value before the step.
func (s *stepper) read(name string, start *tensor.Tensor) string {
	s.slots = append(s.slots, slot{name: name, start: start})
	return name
}

// write computes the new value of a slot by an operator and returns its name.
func (s *stepper) write(name, op string, inputs ...string) string {
	i := slices.IndexFunc(s.slots, func(x slot) bool { return x.name == name })
	s.slots[i].next = s.b.With().As("next/"+name).Op(op, inputs...)
	return s.slots[i].next
}

// param is a parameter during a step: the names of its values.
type param struct {
	name  string // in the consumer's graph
	value string // before the step
	grad  string
	shape tensor.Shape
}

// An optimizer writes what all parameters share and returns what writes the
// update of one. rate is the name of the step's learning rate.
type optimizer func(s *stepper, r Recipe, rate string) func(param)

var optimizers = map[string]optimizer{"sgd": sgd, "adamw": adamw}

// sgd: p ← (1 − rate·decay)·p − rate·g.
func sgd(s *stepper, r Recipe, rate string) func(param) {
	decayed := decay(s.b, r, rate)
	return func(p param) {
		s.write(p.value, "Sub", decayed(p), s.b.Op("Mul", p.grad, rate))
	}
}

// adamw, at step t, counted from 1:
//
//	m ← m + (1 − β₁)·(g − m)
//	v ← v + (1 − β₂)·(g² − v)
//	p ← (1 − rate·decay)·p − rate/(1 − β₁ᵗ) · m / (√v/√(1 − β₂ᵗ) + ε)
func adamw(s *stepper, r Recipe, rate string) func(param) {
	b := s.b
	one := b.Scalar(1)
	rest := func(slot string, beta float32) string {
		power := s.read(slot, tensor.Scalar[float32](1))
		return b.Op("Sub", one, s.write(power, "Mul", power, b.Scalar(beta)))
	}
	size := b.Op("Div", rate, rest("power/beta1", r.Beta1))
	root := b.Op("Sqrt", rest("power/beta2", r.Beta2))
	decayed := decay(b, r, rate)
	moment := func(slot string, p param, beta float32, towards string) string {
		old := s.read(slot+"/"+p.name, tensor.Must(tensor.New(tensor.Float32, p.shape)))
		move := b.Op("Mul", b.Op("Sub", towards, old), b.Scalar(1-beta))
		return s.write(old, "Add", old, move)
	}
	return func(p param) {
		m := moment("m", p, r.Beta1, p.grad)
		v := moment("v", p, r.Beta2, b.Op("Mul", p.grad, p.grad))
		below := b.Op("Add", b.Op("Div", b.Op("Sqrt", v), root), b.Scalar(r.Epsilon))
		move := b.Op("Mul", b.Op("Div", m, below), size)
		s.write(p.value, "Sub", decayed(p), move)
	}
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

// learningRate writes the rate of a step from the number of steps done by its
// end.
func learningRate(b *graph.Builder, r Recipe, step string) string {
	if r.Warmup < 2 {
		return b.Scalar(r.LearningRate)
	}
	part := b.Op("Div", b.With(graph.Int("to", int(tensor.Float32))).Op("Cast", step), b.Scalar(float32(r.Warmup)))
	return b.Op("Mul", b.Op("Min", part, b.Scalar(1)), b.Scalar(r.LearningRate))
}
