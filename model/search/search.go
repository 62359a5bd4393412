// Package search writes models that learn a table for a search over hyper-parameters: each
// run trains a small classifier from the start, and gives how good it became.
//
// The classifier is a perceptron with one hidden layer of tanh. It learns by gradient descent
// over all rows of the training part, with momentum and weight decay. The table and the initial
// weights are constants of the model, and all steps are nodes. So a run needs its
// hyper-parameters alone.
//
// Call [ReadTable] first, and then [Trainer.Graph].
//
// Invariants: the same table gives the same model. Rows of the test part enter neither what is
// learned nor how it is scaled. Reading a text takes memory in proportion to its bytes.
//
// Sources: Rumelhart, Hinton and Williams, Nature 323 (1986); Glorot and Bengio, AISTATS 2010,
// for initial weights; Loshchilov and Hutter, arXiv 1711.05101, for decay apart from the gradient.
package search

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Inputs of the model, each a number.
const (
	Rate     = "lr"       // float32, of the mean gradient
	Momentum = "momentum" // float32, from 0 to 1
	Decay    = "decay"    // float32, of weights but not of biases
	Hidden   = "hidden"   // int64, hidden units that are used
	Seed     = "seed"     // int64, which initial weights
)

// Outputs of the model, each a float32 number. The inputs are outputs too, with a prefix, so
// that a row of results says which settings gave it.
const (
	Used               = "with_" // and the name of an input
	TrainLoss          = "train_loss"
	ValidationLoss     = "validation_loss"
	ValidationAccuracy = "validation_accuracy"
	TestAccuracy       = "test_accuracy"
)

// Limits on a trainer.
const (
	MaxHidden = 1 << 10
	MaxSteps  = 5000
	MaxSeeds  = 1 << 8
	// maxWeights bounds the initial weights of all seeds.
	maxWeights = 1 << 22
)

// Trainer says how a table is learned.
type Trainer struct {
	Table  *Table
	Hidden int // most hidden units
	Steps  int
	Seeds  int
}

// Check returns an error unless the model can be written.
func (t Trainer) Check() error {
	for _, b := range []struct {
		name    string
		n, most int
	}{{"hidden units", t.Hidden, MaxHidden}, {"steps", t.Steps, MaxSteps}, {"seeds", t.Seeds, MaxSeeds}} {
		if b.n < 1 || b.n > b.most {
			return fmt.Errorf("%d %s, want 1 to %d", b.n, b.name, b.most)
		}
	}
	if n := (t.Hidden + 1) * (len(t.Table.Features) + 1 + len(t.Table.Classes)) * t.Seeds; n > maxWeights {
		return fmt.Errorf("%d initial weights of %d seeds, limit %d: take fewer hidden units or seeds", n, t.Seeds, maxWeights)
	}
	return nil
}

// Graph writes the model.
func (t Trainer) Graph() (*graph.Graph, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	m := &builder{Builder: graph.NewBuilder("search"), Trainer: t}
	train, validation, test := t.Table.split()
	mean, deviation := t.Table.scale(train)
	learn := m.examples(train, mean, deviation)

	rate, momentum, decay := m.setting(Rate, tensor.Float32), m.setting(Momentum, tensor.Float32), m.setting(Decay, tensor.Float32)
	hidden, seed := m.setting(Hidden, tensor.Int64), m.setting(Seed, tensor.Int64)
	m.use(hidden)
	w := weights{m.initial(seed, "into", m.inputs(), t.Hidden+1), m.initial(seed, "out", t.Hidden+1, len(t.Table.Classes))}
	d := descent{momentum: momentum, rate: m.Op("Div", rate, m.Scalar(float32(len(train))))} // of the sum of gradients
	lost := m.Op("Mul", rate, decay)
	d.keep = weights{m.keep(lost, m.inputs()), m.keep(lost, t.Hidden+1)}
	for range t.Steps {
		w = m.step(w, m.gradients(learn, w), &d)
	}

	m.result(TrainLoss, m.loss(learn, w))
	check := m.examples(validation, mean, deviation)
	m.result(ValidationLoss, m.loss(check, w))
	m.result(ValidationAccuracy, m.accuracy(check, w))
	m.result(TestAccuracy, m.accuracy(m.examples(test, mean, deviation), w))
	return m.Builder.Graph(), nil
}

// builder writes the model. The last feature is 1, and so is the last hidden unit: the weights
// of these are biases.
type builder struct {
	*graph.Builder
	Trainer
	used   string // [hidden+1] 1 for units that are used
	always string // [hidden+1] 1 for the last
}

// inputs is the number of features with the one that is 1.
func (m *builder) inputs() int { return len(m.Table.Features) + 1 }

// examples are rows: features, either way, and the class as a vector and as a number.
type examples struct{ x, turned, classes, labels string }

func (m *builder) examples(rows []int, mean, deviation []float64) examples {
	n, f, c := len(rows), m.inputs(), len(m.Table.Classes)
	x, labels, one := make([]float32, n*f), make([]int64, n), make([]float32, c*c)
	for i, r := range rows {
		for j, v := range m.Table.row(r) {
			x[i*f+j] = float32((v - mean[j]) / deviation[j])
		}
		x[i*f+f-1] = 1
		labels[i] = int64(m.Table.labels[r])
	}
	for i := range c {
		one[i*c+i] = 1
	}
	e := examples{x: constant(m, tensor.Shape{n, f}, x), labels: constant(m, tensor.Shape{n}, labels)}
	e.turned = m.transposed(e.x)
	e.classes = m.With(graph.Int("axis", 0)).Op("Gather", constant(m, tensor.Shape{c, c}, one), e.labels)
	return e
}

func constant[T tensor.Element](m *builder, s tensor.Shape, v []T) string {
	return m.Const(tensor.Must(tensor.From(s, v)))
}

// use masks the hidden units that are too many.
func (m *builder) use(hidden string) {
	order, always := make([]int64, m.Hidden+1), make([]float32, m.Hidden+1)
	for i := range order {
		order[i] = int64(i)
	}
	order[m.Hidden], always[m.Hidden] = math.MaxInt64, 1
	less := m.Op("Less", constant(m, tensor.Shape{m.Hidden + 1}, order), hidden)
	m.used = m.Cast(less, tensor.Float32)
	m.always = constant(m, tensor.Shape{m.Hidden + 1}, always)
}

// weights are the names of both matrices, or of what belongs to each.
type weights struct{ into, out string }

// initial picks weights by seed: uniform, with the variance that Glorot and Bengio propose.
func (m *builder) initial(seed, purpose string, in, out int) string {
	v := make([]float32, 0, m.Seeds*in*out)
	bound := math.Sqrt(6 / float64(in+out))
	for s := range m.Seeds {
		for i := range in {
			for j := range out {
				h := draw(purpose, uint64(s), uint64(i), uint64(j))
				x := float64(binary.LittleEndian.Uint32(h[:]))/(1<<31) - 1
				if i == in-1 {
					x = 0 // biases
				}
				v = append(v, float32(x*bound))
			}
		}
	}
	return m.With(graph.Int("axis", 0)).As(purpose).Op("Gather", constant(m, tensor.Shape{m.Seeds, in, out}, v), seed)
}

// keep is what decay leaves of each row of weights; the last are biases.
func (m *builder) keep(lost string, rows int) string {
	decays := make([]float32, rows)
	for i := range rows - 1 {
		decays[i] = 1
	}
	return m.Op("Sub", m.Scalar(1), m.Op("Mul", lost, constant(m, tensor.Shape{rows, 1}, decays)))
}

// layers computes activations and scores of classes.
func (m *builder) layers(x string, w weights) (tanh, hidden, scores string) {
	tanh = m.Op("Tanh", m.Op("MatMul", x, w.into))
	hidden = m.Op("Add", m.Op("Mul", tanh, m.used), m.always)
	return tanh, hidden, m.Op("MatMul", hidden, w.out)
}

// gradients are those of the loss, times the number of examples.
func (m *builder) gradients(e examples, w weights) weights {
	tanh, hidden, scores := m.layers(e.x, w)
	d := m.Op("Sub", m.With(graph.Int("axis", 1)).Op("Softmax", scores), e.classes)
	slope := m.Op("Mul", m.Op("Sub", m.Scalar(1), m.Op("Mul", tanh, tanh)), m.used)
	dHidden := m.Op("Mul", m.Op("MatMul", d, m.transposed(w.out)), slope)
	return weights{m.Op("MatMul", e.turned, dHidden), m.Op("MatMul", m.transposed(hidden), d)}
}

func (m *builder) transposed(x string) string {
	return m.With(graph.Ints("perm", 1, 0)).Op("Transpose", x)
}

// descent is what steps share.
type descent struct {
	rate, momentum string
	keep, speed    weights // no speed before the first step
}

// step follows the gradients.
func (m *builder) step(w, g weights, d *descent) weights {
	d.speed = weights{m.faster(d, d.speed.into, g.into), m.faster(d, d.speed.out, g.out)}
	return weights{m.moved(d, w.into, d.keep.into, d.speed.into), m.moved(d, w.out, d.keep.out, d.speed.out)}
}

func (m *builder) faster(d *descent, speed, gradient string) string {
	if speed == "" {
		return gradient
	}
	return m.Op("Add", m.Op("Mul", d.momentum, speed), gradient)
}

func (m *builder) moved(d *descent, w, keep, speed string) string {
	return m.Op("Sub", m.Op("Mul", keep, w), m.Op("Mul", d.rate, speed))
}

// loss is the mean cross-entropy.
func (m *builder) loss(e examples, w weights) string {
	_, _, scores := m.layers(e.x, w)
	return m.Op("SoftmaxCrossEntropyLoss", scores, e.labels)
}

// accuracy is the part of the examples whose class has the highest score.
func (m *builder) accuracy(e examples, w weights) string {
	_, _, scores := m.layers(e.x, w)
	right := m.Op("Equal", m.With(graph.Int("axis", 1), graph.Int("keepdims", 0)).Op("ArgMax", scores), e.labels)
	return m.With(graph.Int("keepdims", 0)).Op("ReduceMean", m.Cast(right, tensor.Float32))
}

// setting is a number that a record gives.
func (m *builder) setting(name string, t tensor.DType) string {
	value := m.Input(name, t, nil)
	m.output(Used+name, value, t)
	return value
}

func (m *builder) result(name, value string) { m.output(name, value, tensor.Float32) }

// output makes a number an output, under a name of its own.
func (m *builder) output(name, value string, t tensor.DType) {
	m.Output(m.With().As(name).Op("Identity", value), t, nil)
}
