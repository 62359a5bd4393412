package train

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/record"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train/pattern"
)

// Recipe says how a model is trained. What is zero is left out.
type Recipe struct {
	Fields record.Fields // of a record; none: it is the tokens of a text
	Loss   string        // cross-entropy, squared-error, …
	LossOptions
	Optimizer string // sgd, adam, adamw or adagrad
	Rate
	Momentum     float32 // decay rate of the velocity (sgd)
	Nesterov     bool    // look ahead along the velocity (sgd)
	Beta1, Beta2 float32 // decay rates of the moments (adam, adamw)
	Epsilon      float32 // added to the root of the second moment (adam, adamw, adagrad)
	WeightDecay  float32 // a step, relative to the rate; adam and adagrad add it to the gradient; not for tensors with fewer than two axes
	ClipNorm     float32 // greatest Euclidean norm of all gradients together
	Passes
	Batch    int           // records a step
	Seed     uint64        // of what Dropout drops, and of augmentations
	Profile  lower.Profile // of the arithmetic; an order says it beside its recipe
	Frozen   []string      // patterns of initializers that stay as they are
	Adapters Adapters
	Augment  []Augment // what happens to records, in this order
	Best     Best      // which state is wanted
}

// Passes say how many passes over the model make an update, and of what.
type Passes struct {
	Accumulate int // steps whose mean gradient makes one update; 0 is 1
	Recompute  int // greatest number of parts of the forward pass that the backward pass computes again in turn; 0 and 1 keep everything
}

// Rate is the learning rate over the steps.
type Rate struct {
	LearningRate float32 // after the warm-up
	Warmup       int     // steps over which the rate grows linearly from 0
	Schedule     string  // how it falls afterwards: constant, which is the default, linear or cosine
	Decay        int     // steps over which it falls
	Final        float32 // what is left of it in the end, relative
}

// LossOptions say what a loss compares, and how. What is zero has its default.
type LossOptions struct {
	Output      string    // of the model; needed if it has several
	Target      string    // field; needed unless one is left that no input is named for
	Mask        string    // field: how much each prediction counts, 0 for nothing
	Smoothing   float32   // part of a label that all classes share (cross-entropy)
	Weights     []float32 // how much a label counts, by class; of the binary loss the one of true
	Delta       float32   // error from where on it grows linearly (huber)
	Temperature float32   // by which similarities are divided (contrastive), or logits beside a teacher's
	Beta        float32   // by which preferences are multiplied (preference)
	Teacher     string    // output of the model that the others learn from ([LossOptions.split]); "": none
	Weight      float32   // of the teacher, beside the labels: from 0 to 1
}

const maxClasses = 1 << 9 // that have weights of their own

func (a *LossOptions) check() error {
	switch {
	case !(a.Smoothing >= 0 && a.Smoothing < 1):
		return fmt.Errorf("a smoothing of %v is not between 0 and 1", a.Smoothing)
	case len(a.Weights) > maxClasses:
		return fmt.Errorf("weights of %d classes, the limit is %d", len(a.Weights), maxClasses)
	case !(a.Weight >= 0 && a.Weight <= 1):
		return fmt.Errorf("a teacher that weighs %v, which is not between 0 and 1", a.Weight)
	case a.Weight > 0 && a.Teacher == "":
		return fmt.Errorf("a weight of %v is a teacher's, and there is none", a.Weight)
	case a.Teacher != "" && a.Temperature != 0 && !(a.Temperature >= MinTemperature && a.Temperature <= MaxTemperature):
		return fmt.Errorf("a temperature of %v beside a teacher is not between %v and %v: beyond, rounding outweighs what it says", a.Temperature, MinTemperature, MaxTemperature)
	}
	for _, w := range a.Weights {
		if !(w >= 0 && w <= 1e6) {
			return fmt.Errorf("a class that weighs %v, which is not between 0 and a million", w)
		}
	}
	for _, of := range []struct {
		what string
		x    float32
	}{{"delta", a.Delta}, {"temperature", a.Temperature}, {"beta", a.Beta}} {
		if !(of.x >= 0 && of.x <= 1e6) {
			return fmt.Errorf("%s %v is not between 0 and a million", of.what, of.x)
		}
	}
	return nil
}

// maxBatch bounds the records of a step.
const maxBatch = 1 << 20

// Check returns an error unless every field is in its range.
func (r Recipe) Check() error {
	if _, ok := losses[r.Loss]; !ok {
		return fmt.Errorf("loss %q is not supported; use %s", r.Loss, choices(losses))
	}
	if err := r.LossOptions.check(); err != nil {
		return err
	}
	if r.Teacher != "" && !slices.Contains(teachable, r.Loss) {
		return fmt.Errorf("a teacher tells classes apart, which loss %q does not; use %s", r.Loss, strings.Join(teachable, " or "))
	}
	if _, ok := optimizers[r.Optimizer]; !ok {
		return fmt.Errorf("optimizer %q is not supported; use %s", r.Optimizer, choices(optimizers))
	}
	switch {
	case !(r.LearningRate > 0 && r.LearningRate <= 1e6):
		return fmt.Errorf("learning rate %v is not between 0 and a million", r.LearningRate)
	case r.Warmup < 0 || r.Warmup > 1<<24:
		return fmt.Errorf("a warm-up of %d steps is not between 0 and 2^24", r.Warmup)
	case !(r.Beta1 >= 0 && r.Beta1 < 1 && r.Beta2 >= 0 && r.Beta2 < 1):
		return fmt.Errorf("decay rates %v and %v are not between 0 and 1", r.Beta1, r.Beta2)
	case schedules[r.Schedule] == nil:
		return fmt.Errorf("schedule %q is not supported; use %s", r.Schedule, choices(schedules))
	case r.Decay < 0 || r.Decay > 1<<24 || r.Decay == 0 && r.Schedule != "" && r.Schedule != "constant":
		return fmt.Errorf("a rate that falls over %d steps is not between 1 and 2^24", r.Decay)
	case !(r.Final >= 0 && r.Final <= 1):
		return fmt.Errorf("a rate that falls to %v of itself is not between 0 and 1", r.Final)
	case !(r.Momentum >= 0 && r.Momentum < 1) || r.Momentum != 0 && r.Optimizer != "sgd":
		return fmt.Errorf("momentum %v is not between 0 and 1, or not for %s", r.Momentum, r.Optimizer)
	case r.Nesterov && r.Momentum == 0:
		return fmt.Errorf("nesterov looks along the momentum; give one")
	case !(r.ClipNorm >= 0 && r.ClipNorm <= 1e6):
		return fmt.Errorf("a greatest norm of %v is not between 0 and a million", r.ClipNorm)
	case r.Accumulate < 0 || r.Accumulate > 1<<16:
		return fmt.Errorf("gradients of %d steps in one update are not between 1 and 2^16", r.Accumulate)
	case r.Recompute < 0 || r.Recompute > maxParts:
		return fmt.Errorf("a forward pass of %d parts is not between 1 and %d", r.Recompute, maxParts)
	case !(r.Epsilon >= 0 && r.Epsilon <= 1) || r.Optimizer != "sgd" && r.Epsilon == 0:
		return fmt.Errorf("epsilon %v is not between 0 and 1", r.Epsilon)
	case !(r.WeightDecay >= 0 && r.WeightDecay <= 1e6):
		return fmt.Errorf("weight decay %v is not between 0 and a million", r.WeightDecay)
	case r.Batch < 1 || r.Batch > maxBatch:
		return fmt.Errorf("a batch of %d records is not between 1 and 2^20", r.Batch)
	}
	if err := pattern.Check(r.Frozen, r.Adapters.Of); err != nil {
		return err
	}
	if err := r.Best.Check(); err != nil {
		return err
	}
	if len(r.Augment) > maxAugments {
		return fmt.Errorf("%d augmentations, the limit is %d", len(r.Augment), maxAugments)
	}
	for i := range r.Augment {
		if err := r.Augment[i].check(); err != nil {
			return err
		}
	}
	return r.Adapters.check()
}

func choices[V any](table map[string]V) string {
	names := slices.Sorted(maps.Keys(table))
	return strings.Join(slices.DeleteFunc(names, func(s string) bool { return s == "" }), " or ")
}

// fields returns what is in records of so many words.
func (r *Recipe) fields(words int) (record.Fields, error) {
	fs := r.Fields
	if len(fs) == 0 {
		fs = record.Fields{{Name: "tokens", Type: tensor.Int32, Shape: tensor.Shape{words}}}
	}
	if err := fs.Check(); err != nil {
		return nil, err
	}
	if n := fs.Words(); n != words {
		return nil, fmt.Errorf("records have %d words, but their fields take %d", words, n)
	}
	return fs, nil
}
