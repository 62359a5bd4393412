package train

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/record"
	"github.com/tally-network/tally/core/tensor"
)

// Ignored is the label of a prediction that does not count, where labels have a sign, as in PyTorch.
const Ignored = -100

// terms are what a loss is the mean of, and what it is computed from.
type terms struct {
	n              int
	losses, counts string // float32 [n]: each loss times how much it counts, and that; "" counts: all count 1
	mean           string // in their place, where nothing else is asked of them

	language       bool
	logits, labels string // of what tells classes apart, float32 [n classes] and int64 [n]
	classes        int
	x, y           string // of what is compared with numbers, float32 [n]
	logit          bool   // whether x is one, and y a truth
}

// losses join a model to a batch.
var losses = map[string]func(*model) (terms, error){
	"next-token-cross-entropy":   nextToken,
	"masked-token-cross-entropy": func(m *model) (terms, error) { return m.crossEntropy(-1) },
	"cross-entropy":              func(m *model) (terms, error) { return m.crossEntropy(1) },
	"binary-cross-entropy":       binaryCrossEntropy,
	"squared-error":              regression(squared),
	"absolute-error":             regression(absolute),
	"huber":                      regression(huber),
	"contrastive":                contrastive,
	"preference":                 preference,
	"output":                     output,
}

// nextToken trains a language model, tokens [B T] to logits [B T V]. The target has T+1 tokens, each of
// which but the first is to be predicted from those before it. An input that is named for the target, or
// that no other field is named for, reads all tokens but the last.
func nextToken(m *model) (terms, error) {
	logits, f, err := m.language(m.Target)
	if err != nil {
		return terms{}, err
	}
	labels, counts, err := m.next(f, m.Mask)
	if err != nil {
		return terms{}, err
	}
	s := tensor.Shape{m.rows * logits.Shape[1], logits.Shape[2]}
	scores, labels := m.reshape(logits.Name, s...), m.reshape(labels, s[0])
	says, err := m.teacher.like(logits)
	if err != nil {
		return terms{}, err
	}
	if !m.scored && says == "" && counts == "" && len(m.Weights) == 0 && m.Smoothing == 0 { // what is most often trained takes the shortest way
		return terms{mean: m.b.With(graph.String("reduction", "mean")).Op("SoftmaxCrossEntropyLoss", scores, labels)}, nil
	}
	t, err := m.labelled(scores, m.reshape(says, s...), m.as(labels, f.Type, tensor.Int64), m.reshape(counts, s[0]), s)
	t.language = true
	return t, err
}

// language puts a language model over the tokens of a field, but for the last, and returns its logits.
func (m *model) language(name string) (logits graph.Value, f record.Field, err error) {
	if name == "" && len(m.fields) == 1 {
		name = m.fields[0].Name
	}
	f, v, err := m.field(name, "tokens")
	if err != nil {
		return logits, f, err
	}
	if !f.Type.Integer() || len(f.Shape) != 1 || f.Shape[0] < 2 {
		return logits, f, fmt.Errorf("field %q is %v%v, but tokens are integers [context + 1]", f.Name, f.Type, f.Shape)
	}
	i := slices.IndexFunc(m.Inputs, func(in graph.Value) bool { return in.Name == f.Name })
	if i < 0 {
		i = slices.IndexFunc(m.Inputs, func(in graph.Value) bool { _, other := m.fields.Find(in.Name); return !other })
	}
	if i < 0 {
		return logits, f, fmt.Errorf("no input of the model is for tokens: it has %q", names(m.Inputs))
	}
	in := m.Inputs[i]
	if !in.Type.Integer() || len(in.Shape) != 2 || in.Shape[1] != f.Shape[0]-1 {
		return logits, f, fmt.Errorf("input %q is %v%v, but should be integers [batch %d], one fewer than the tokens of a record", in.Name, in.Type, in.Shape, f.Shape[0]-1)
	}
	over := map[string]string{in.Name: m.as(m.columns(v, 0, f.Shape[0]-1), f.Type, in.Type)}
	outputs, err := m.use(over, f.Name)
	if err != nil {
		return logits, f, err
	}
	if logits, err = m.one(outputs); err != nil {
		return logits, f, err
	}
	if s := logits.Shape; len(s) != 3 || s[0] != m.rows || s[1] != f.Shape[0]-1 {
		return logits, f, fmt.Errorf("the model's output is %v%v, but should be float32 [%d %d vocabulary]", logits.Type, s, m.rows, f.Shape[0]-1)
	}
	return logits, f, nil
}

// next returns the tokens of a field from the second on, in its type, and how much each counts, "" if all count
// alike.
func (m *model) next(f record.Field, mask string) (labels, counts string, err error) {
	labels = m.columns(m.values[f.Name], 1, f.Shape[0])
	if mask == "" {
		return labels, "", nil
	}
	k, v, err := m.field(mask, "mask")
	if err == nil && !k.Shape.Equal(f.Shape) {
		err = fmt.Errorf("field %q has the shape %v, but a mask of %q has %v", k.Name, k.Shape, f.Name, f.Shape)
	}
	if err != nil {
		return "", "", err
	}
	return labels, m.as(m.columns(v, 1, f.Shape[0]), k.Type, tensor.Float32), nil
}

// columns returns columns of a value.
func (m *model) columns(v string, from, to int) string {
	return m.b.Op("Slice", v, m.b.Ints(from), m.b.Ints(to), m.b.Ints(1))
}

// reshape gives a value another shape; what is not there stays so.
func (m *model) reshape(v string, s ...int) string {
	if v == "" {
		return ""
	}
	return m.b.Op("Reshape", v, m.b.Ints(s...))
}

// crossEntropy compares logits with labels, one of the classes along an axis: of [B C …] with [B …] for
// axis 1, of [B … C] with [B …] for the last. A label of [Ignored] does not count.
func (m *model) crossEntropy(axis int) (terms, error) {
	f, labels, err := m.field(m.Target, "target")
	if err != nil {
		return terms{}, err
	}
	outputs, err := m.use(nil, f.Name)
	if err != nil {
		return terms{}, err
	}
	o, err := m.one(outputs)
	if err != nil {
		return terms{}, err
	}
	if axis < 0 {
		axis = len(o.Shape) - 1
	}
	want := append(tensor.Shape{m.rows}, f.Shape...)
	if !f.Type.Integer() || len(o.Shape) < 2 || !drop(o.Shape, axis).Equal(want) {
		return terms{}, fmt.Errorf("target %q is %v%v in each record, the model's output %v%v: labels are integers, one for all classes along axis %d", f.Name, f.Type, f.Shape, o.Type, o.Shape, axis)
	}
	says, err := m.teacher.like(o)
	if err != nil {
		return terms{}, err
	}
	counts, err := m.mask(f)
	if err != nil {
		return terms{}, err
	}
	n := want.Elements()
	s := tensor.Shape{n, o.Shape[axis]}
	return m.labelled(m.classesLast(o.Name, o.Shape, axis), m.classesLast(says, o.Shape, axis), m.as(m.reshape(labels, n), f.Type, tensor.Int64), counts, s)
}

// classesLast makes a row of each prediction; what is not there stays so.
func (m *model) classesLast(v string, s tensor.Shape, axis int) string {
	if v != "" && axis != len(s)-1 {
		v = m.b.With(graph.Ints("perm", lastly(len(s), axis)...)).Op("Transpose", v)
	}
	return m.reshape(v, s.Elements()/s[axis], s[axis])
}

func drop(s tensor.Shape, axis int) tensor.Shape {
	return append(s[:axis:axis], s[axis+1:]...)
}

// lastly is the permutation of n axes that puts one last.
func lastly(n, axis int) (out []int) {
	for i := range n {
		if i != axis {
			out = append(out, i)
		}
	}
	return append(out, axis)
}

// mask returns how much each prediction of a target counts, in its order, "" if all count alike.
func (m *model) mask(target record.Field) (string, error) {
	if m.Mask == "" {
		return "", nil
	}
	f, v, err := m.field(m.Mask, "mask")
	if err != nil {
		return "", err
	}
	each, one := f.Shape.Equal(target.Shape), f.Shape.Elements() == 1
	if !each && !one {
		return "", fmt.Errorf("field %q has the shape %v, but a mask of %q has %v, or one element", f.Name, f.Shape, target.Name, target.Shape)
	}
	n := target.Shape.Elements()
	v = m.reshape(m.as(v, f.Type, tensor.Float32), m.rows, f.Shape.Elements())
	if !each {
		v = m.b.Op("Expand", v, m.b.Ints(m.rows, n))
	}
	return m.reshape(v, m.rows*n), nil
}

// labelled is the cross-entropy of logits [N C] against int64 labels [N], each counted as counts, float32
// [N], says, times the weight of its class:
//
//	Σ ((1 − ε)·w[y]·−log p[y] + ε/C · Σ_c w[c]·−log p[c]) / Σ w[y]
//
// It is 0 if nothing counts. A teacher's logits are mixed in ([teacher.mix]).
func (m *model) labelled(logits, says, labels, counts string, s tensor.Shape) (terms, error) {
	b := m.b
	if n := len(m.Weights); n > 0 && n != s[1] {
		return terms{}, fmt.Errorf("%d classes have weights, but the model tells %d apart", n, s[1])
	}
	signed := b.Const(tensor.Scalar[int64](Ignored))
	valid := b.Op("Not", b.Op("Equal", labels, signed))
	labels = b.Op("Where", valid, labels, b.Const(tensor.Scalar[int64](0)))
	weight := b.Cast(valid, tensor.Float32)
	if counts != "" {
		weight = b.Op("Mul", weight, counts)
	}
	logs := b.With(graph.Int("axis", 1)).Op("LogSoftmax", logits)
	picked := b.With(graph.Int("axis", 1)).Op("GatherElements", logs, b.Op("Unsqueeze", labels, b.Ints(1)))
	loss := b.Op("Neg", m.reshape(picked, s[0]))
	var of string // weights of classes
	each := weight
	if len(m.Weights) > 0 {
		of = b.Const(tensor.Must(tensor.From(tensor.Shape{s[1]}, m.Weights)))
		each = b.Op("Mul", weight, b.With(graph.Int("axis", 0)).Op("Gather", of, labels))
	}
	loss = b.Op("Mul", loss, each)
	if e := m.Smoothing; e > 0 {
		all := logs
		if of != "" {
			all = b.Op("Mul", logs, of)
		}
		rows := b.With(graph.Int("keepdims", 0)).Op("ReduceSum", all, b.Ints(1))
		rows = b.Op("Mul", b.Op("Mul", rows, b.Scalar(-e/float32(s[1]))), weight)
		loss = b.Op("Add", b.Op("Mul", loss, b.Scalar(1-e)), rows)
	}
	if says != "" {
		loss = m.teacher.mix(b, loss, logits, says, each)
	}
	return terms{n: s[0], losses: loss, counts: each, logits: logits, labels: labels, classes: s[1]}, nil
}

// sum adds all elements.
func (m *model) sum(v string) string { return m.b.With(graph.Int("keepdims", 0)).Op("ReduceSum", v) }

// mean is the mean of terms, as far as they count; 0 if none does.
func (m *model) mean(t terms) string {
	b := m.b
	switch {
	case t.mean != "":
		return t.mean
	case t.counts == "":
		return b.Op("Mul", m.sum(t.losses), b.Scalar(1/float32(t.n)))
	}
	total := m.sum(t.counts)
	return b.Op("Div", m.sum(t.losses), b.Op("Where", b.Op("Greater", total, b.Scalar(0)), total, b.Scalar(1)))
}

// paired puts the model over a batch and returns its output beside a target of the same shape, both
// float32 [n].
func (m *model) paired() (t terms, err error) {
	f, v, err := m.field(m.Target, "target")
	if err != nil {
		return t, err
	}
	outputs, err := m.use(nil, f.Name)
	if err != nil {
		return t, err
	}
	out, err := m.one(outputs)
	if err != nil {
		return t, err
	}
	t.n = m.rows * f.Shape.Elements()
	same := out.Shape.Equal(append(tensor.Shape{m.rows}, f.Shape...)) || len(f.Shape) == 0 && out.Shape.Equal(tensor.Shape{m.rows, 1})
	if !same {
		return t, fmt.Errorf("target %q is %v%v in each record, the model's output %v%v: they have one shape", f.Name, f.Type, f.Shape, out.Type, out.Shape)
	}
	t.counts, err = m.mask(f)
	t.x, t.y = m.reshape(out.Name, t.n), m.reshape(m.as(v, f.Type, tensor.Float32), t.n)
	return t, err
}

// binaryCrossEntropy compares logits with truths, 0 or 1 or between, of the same shape:
//
//	(1 − y)·x + (1 + (w − 1)·y)·log(1 + e⁻ˣ)     w: the weight of what is true
func binaryCrossEntropy(m *model) (terms, error) {
	t, err := m.paired()
	if err != nil {
		return t, err
	}
	b, w := m.b, float32(1)
	switch len(m.Weights) {
	case 0:
	case 1:
		w = m.Weights[0]
	default:
		return t, fmt.Errorf("%d weights, but the binary loss has one, of what is true", len(m.Weights))
	}
	soft := b.Op("Softplus", b.Op("Neg", t.x))
	if w != 1 {
		soft = b.Op("Mul", soft, b.Op("Add", b.Op("Mul", t.y, b.Scalar(w-1)), b.Scalar(1)))
	}
	t.logit, t.losses = true, b.Op("Add", b.Op("Mul", b.Op("Sub", b.Scalar(1), t.y), t.x), soft)
	return m.counted(t), nil
}

// counted multiplies each loss by how much it counts.
func (m *model) counted(t terms) terms {
	if t.counts != "" {
		t.losses = m.b.Op("Mul", t.losses, t.counts)
	}
	return t
}

// regression compares numbers with numbers of the same shape, by a function of the error.
func regression(of func(m *model, d string) string) func(*model) (terms, error) {
	return func(m *model) (terms, error) {
		t, err := m.paired()
		if err != nil {
			return t, err
		}
		t.losses = of(m, m.b.Op("Sub", t.x, t.y))
		return m.counted(t), nil
	}
}

func squared(m *model, d string) string { return m.b.Op("Mul", d, d) }

func absolute(m *model, d string) string { return m.b.Op("Abs", d) }

// huber is ½d² up to δ, and δ·(|d| − ½δ) from there on; δ is 1 unless it is said.
func huber(m *model, d string) string {
	b, delta := m.b, m.Delta
	if delta == 0 {
		delta = 1
	}
	size := b.Op("Abs", d)
	within := b.Op("Mul", b.Op("Mul", d, d), b.Scalar(0.5))
	beyond := b.Op("Mul", b.Op("Sub", size, b.Scalar(float32(0.5*delta))), b.Scalar(delta))
	return b.Op("Where", b.Op("LessOrEqual", size, b.Scalar(delta)), within, beyond)
}

// contrastive wants each of the first of two outputs [B D] to be more like the second of its own record
// than like those of the batch's others, and the reverse. Likeness is the cosine over the temperature,
// which is 0.07 unless it is said; the loss is the mean of both cross-entropies.
func contrastive(m *model) (terms, error) {
	outputs, err := m.use(nil)
	if err != nil {
		return terms{}, err
	}
	if len(outputs) != 2 || len(outputs[0].Shape) != 2 || !outputs[0].Shape.Equal(outputs[1].Shape) || outputs[0].Type != tensor.Float32 || outputs[1].Type != tensor.Float32 {
		return terms{}, fmt.Errorf("the contrastive loss is of a model with two outputs, float32 [batch width] both")
	}
	b, t := m.b, m.Temperature
	if t == 0 {
		t = 0.07
	}
	unit := func(o graph.Value) string {
		length := b.With(graph.Int("keepdims", 1)).Op("ReduceSum", b.Op("Mul", o.Name, o.Name), b.Ints(1))
		return b.Op("Div", o.Name, b.Op("Sqrt", b.Op("Add", length, b.Scalar(1e-12))))
	}
	alike := b.Op("MatMul", unit(outputs[0]), b.With(graph.Ints("perm", 1, 0)).Op("Transpose", unit(outputs[1])))
	alike = b.Op("Mul", alike, b.Scalar(1/t))
	own := make([]int64, m.rows)
	for i := range own {
		own[i] = int64(i)
	}
	labels := b.Const(tensor.Must(tensor.From(tensor.Shape{m.rows}, own)))
	each := b.With(graph.String("reduction", "none"))
	one := each.Op("SoftmaxCrossEntropyLoss", alike, labels)
	other := each.Op("SoftmaxCrossEntropyLoss", b.With(graph.Ints("perm", 1, 0)).Op("Transpose", alike), labels)
	return terms{n: m.rows, losses: b.Op("Mul", b.Op("Add", one, other), b.Scalar(0.5))}, nil
}

// preference trains a language model on pairs of texts, the fields chosen and rejected, against the model
// that it starts as (direct preference optimization):
//
//	−log σ(β·((log π(chosen) − log π₀(chosen)) − (log π(rejected) − log π₀(rejected))))
//
// where log π is the sum over the tokens that count. Fields chosen_mask and rejected_mask say which do. β is
// 0.1 unless it is said. Source: Rafailov et al., arXiv 2305.18290.
func preference(m *model) (terms, error) {
	trained, beta := m.params, m.Beta
	if beta == 0 {
		beta = 0.1
	}
	b := m.b
	gap := func(name string) (string, error) {
		m.params = trained
		now, err := m.likelihood(name)
		if err != nil {
			return "", err
		}
		m.params = nil // the initializers as they are
		before, err := m.likelihood(name)
		return b.Op("Sub", now, before), err
	}
	chosen, err := gap("chosen")
	if err != nil {
		return terms{}, err
	}
	rejected, err := gap("rejected")
	m.params = trained
	if err != nil {
		return terms{}, err
	}
	by := b.Op("Mul", b.Op("Sub", chosen, rejected), b.Scalar(beta))
	return terms{n: m.rows, losses: b.Op("Softplus", b.Op("Neg", by))}, nil
}

// likelihood returns the logarithm of how likely the model finds the tokens of a field, [rows].
func (m *model) likelihood(name string) (string, error) {
	logits, f, err := m.language(name)
	if err != nil {
		return "", err
	}
	mask := name + "_mask"
	if _, ok := m.fields.Find(mask); !ok {
		mask = ""
	}
	labels, counts, err := m.next(f, mask)
	if err != nil {
		return "", err
	}
	b := m.b
	logs := b.With(graph.Int("axis", 2)).Op("LogSoftmax", logits.Name)
	picked := b.With(graph.Int("axis", 2)).Op("GatherElements", logs, b.Op("Unsqueeze", m.as(labels, f.Type, tensor.Int64), b.Ints(2)))
	picked = m.reshape(picked, m.rows, logits.Shape[1])
	if counts != "" {
		picked = b.Op("Mul", picked, counts)
	}
	return b.With(graph.Int("keepdims", 0)).Op("ReduceSum", picked, b.Ints(1)), nil
}

// output takes an output of the model for the loss: the mean of its elements.
func output(m *model) (terms, error) {
	outputs, err := m.use(nil)
	if err != nil {
		return terms{}, err
	}
	o, err := m.one(outputs)
	if err != nil {
		return terms{}, err
	}
	n := o.Shape.Elements()
	return terms{n: n, losses: m.reshape(o.Name, n)}, nil
}
