package train

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// bins are those of the histogram that the area under the curve is of.
const bins = 1 << 10

// metrics are all that there are. Each counts a prediction that counts at all once, but for the loss,
// where it counts as much as in training.
var metrics = []metric{
	{"loss", always, lossSums, meanLoss, true},
	{"perplexity", func(t *terms) bool { return t.language }, lossSums, func(b *graph.Builder, of func(string) string) string {
		return b.Op("Exp", meanLoss(b, of))
	}, true},
	{"accuracy", func(t *terms) bool { return t.classes > 0 }, accuracySums(1), ratio("right_1", "counted"), false},
	{"top_5", func(t *terms) bool { return t.classes > 5 }, accuracySums(5), ratio("right_5", "counted"), false},
	{"f1", func(t *terms) bool { return t.classes > 0 && !t.language }, confusionSums, macroF1, false},
	{"accuracy", isTruth, truthSums, func(b *graph.Builder, of func(string) string) string {
		right := b.Op("Add", of("true_positive"), of("true_negative"))
		return share(b, right, b.Op("Add", right, b.Op("Add", of("false_positive"), of("false_negative"))))
	}, false},
	{"f1", isTruth, truthSums, func(b *graph.Builder, of func(string) string) string {
		return f1(b, of("true_positive"), of("false_positive"), of("false_negative"))
	}, false},
	{"auc", isTruth, histogramSums, areaUnderCurve, false},
	{"mean_absolute_error", isNumber, errorSums("absolute", func(b *graph.Builder, d string) string { return b.Op("Abs", d) }), ratio("absolute", "counted"), true},
	{"mean_squared_error", isNumber, errorSums("squared", func(b *graph.Builder, d string) string { return b.Op("Mul", d, d) }), ratio("squared", "counted"), true},
}

func always(*terms) bool { return true }

func isTruth(t *terms) bool { return t.x != "" && t.logit }

func isNumber(t *terms) bool { return t.x != "" && !t.logit }

// total adds all elements of a value, as float64 if they are floats, else as int64, and calls the sum
// by a name.
func (m *model) total(name, v string, t tensor.DType) sum {
	return sum{name, m.sum(m.b.Cast(v, t)), t, nil}
}

// counts returns which predictions count at all, bool [n].
func (m *model) counts(t *terms) string {
	if t.counts == "" {
		return m.b.Op("Expand", m.b.Const(tensor.Must(tensor.Bools(tensor.Shape{1}, true))), m.b.Ints(t.n))
	}
	return m.b.Op("Greater", t.counts, m.b.Scalar(0))
}

func (m *model) and(a, b string) string { return m.b.Op("And", a, b) }

// share is the ratio of two sums as float64, 0 if the second is.
func share(b *graph.Builder, part, whole string) string {
	p, w := b.Cast(part, tensor.Float64), b.Cast(whole, tensor.Float64)
	zero := b.Const(tensor.Scalar[float64](0))
	none := b.Op("Equal", w, zero)
	return b.Op("Where", none, zero, b.Op("Div", p, b.Op("Where", none, b.Const(tensor.Scalar[float64](1)), w)))
}

func ratio(part, whole string) func(*graph.Builder, func(string) string) string {
	return func(b *graph.Builder, of func(string) string) string { return share(b, of(part), of(whole)) }
}

func lossSums(m *model, t *terms) []sum {
	losses := m.total("losses", t.losses, tensor.Float64)
	if t.counts == "" {
		return []sum{losses, m.total("counts", m.b.Cast(m.counts(t), tensor.Int64), tensor.Float64)}
	}
	return []sum{losses, m.total("counts", t.counts, tensor.Float64)}
}

func meanLoss(b *graph.Builder, of func(string) string) string {
	return share(b, of("losses"), of("counts"))
}

// accuracySums count predictions of which the label is among the k classes that the model finds
// likeliest. Of equals the classes of lower number come first; a label that the model finds NaN is never right.
func accuracySums(k int) func(*model, *terms) []sum {
	return func(m *model, t *terms) []sum {
		b := m.b
		all, label := m.classes(t), b.Op("Reshape", t.labels, b.Ints(t.n, 1))
		own := b.With(graph.Int("axis", 1)).Op("GatherElements", t.logits, label)
		tied := m.and(b.Op("Equal", t.logits, own), b.Op("Less", all, label))
		before := b.Cast(b.Op("Or", b.Op("Greater", t.logits, own), tied), tensor.Int32)
		place := b.With(graph.Int("keepdims", 0)).Op("ReduceSum", before, b.Ints(1))
		number := b.Op("Reshape", b.Op("Equal", own, own), b.Ints(t.n))
		right := m.and(m.and(b.Op("Less", place, b.Const(tensor.Scalar(int32(k)))), number), m.counts(t))
		return []sum{m.total(fmt.Sprintf("right_%d", k), right, tensor.Int64), m.total("counted", m.counts(t), tensor.Int64)}
	}
}

// classes are the numbers of the classes, int64 [1 classes].
func (m *model) classes(t *terms) string {
	all := make([]int64, t.classes)
	for c := range all {
		all[c] = int64(c)
	}
	return m.b.Const(tensor.Must(tensor.From(tensor.Shape{1, t.classes}, all)))
}

// confusionSums count for each class the predictions of it, the labels, and where both agree.
func confusionSums(m *model, t *terms) []sum {
	b, all := m.b, m.classes(t)
	counts := b.Op("Reshape", m.counts(t), b.Ints(t.n, 1))
	is := func(v string) string { return m.and(b.Op("Equal", b.Op("Reshape", v, b.Ints(t.n, 1)), all), counts) }
	said := is(b.With(graph.Int("axis", 1), graph.Int("keepdims", 0)).Op("ArgMax", t.logits))
	labels := is(t.labels)
	column := func(name, v string) sum {
		v = b.With(graph.Int("keepdims", 0)).Op("ReduceSum", b.Cast(v, tensor.Int64), b.Ints(0))
		return sum{name, v, tensor.Int64, tensor.Shape{t.classes}}
	}
	return []sum{column("said", said), column("labels", labels), column("agreed", m.and(said, labels))}
}

// macroF1 is the mean over the classes that were said or are labels of 2·agreed / (said + labels).
func macroF1(b *graph.Builder, of func(string) string) string {
	both := b.Op("Add", of("said"), of("labels"))
	each := share(b, b.Op("Add", of("agreed"), of("agreed")), both)
	there := b.Cast(b.Op("Greater", both, b.Const(tensor.Scalar[int64](0))), tensor.Int64)
	total := b.With(graph.Int("keepdims", 0))
	return share(b, total.Op("ReduceSum", each), total.Op("ReduceSum", there))
}

// truthSums count what is said to be true or false against what is.
func truthSums(m *model, t *terms) []sum {
	b, counts := m.b, m.counts(t)
	said, is := b.Op("Greater", t.x, b.Scalar(0)), b.Op("Greater", t.y, b.Scalar(0.5))
	no := func(v string) string { return b.Op("Not", v) }
	denied := b.Op("LessOrEqual", t.x, b.Scalar(0)) // which NaN is not
	count := func(name, a, c string) sum { return m.total(name, m.and(m.and(a, c), counts), tensor.Int64) }
	return []sum{
		count("true_positive", said, is), count("true_negative", denied, no(is)),
		count("false_positive", no(denied), no(is)), count("false_negative", no(said), is),
	}
}

func f1(b *graph.Builder, agreed, onlySaid, onlyIs string) string {
	twice := b.Op("Add", agreed, agreed)
	return share(b, twice, b.Op("Add", twice, b.Op("Add", onlySaid, onlyIs)))
}

// histogramSums count what is true and what is false by how likely the model finds it, in bins of equal
// width from 0 to 1.
func histogramSums(m *model, t *terms) []sum {
	b := m.b
	at := b.Cast(b.Op("Mul", b.Op("Sigmoid", t.x), b.Scalar(bins)), tensor.Int64)
	at = b.Op("Min", at, b.Const(tensor.Scalar[int64](bins-1)))
	is := b.Op("Greater", t.y, b.Scalar(0.5))
	count := func(name, which string) sum {
		ones := b.Cast(m.and(which, m.counts(t)), tensor.Int64)
		none := b.Const(tensor.Must(tensor.New(tensor.Int64, tensor.Shape{bins})))
		v := b.With(graph.String("reduction", "add"), graph.Int("axis", 0)).Op("ScatterElements", none, at, ones)
		return sum{name, v, tensor.Int64, tensor.Shape{bins}}
	}
	return []sum{count("positives", is), count("negatives", b.Op("Not", is))}
}

// areaUnderCurve is the share of pairs of a true and a false one of which the true one is in a higher
// bin, those in one bin counted half.
func areaUnderCurve(b *graph.Builder, of func(string) string) string {
	below := b.With(graph.Int("exclusive", 1)).Op("CumSum", of("negatives"), b.Const(tensor.Scalar[int64](0)))
	below = b.Cast(below, tensor.Float64) // products of counts may exceed int64
	positives, negatives := b.Cast(of("positives"), tensor.Float64), b.Cast(of("negatives"), tensor.Float64)
	twice := b.Op("Add", b.Op("Add", below, below), negatives)
	sum := func(v string) string { return b.With(graph.Int("keepdims", 0)).Op("ReduceSum", v) }
	pairs := b.Op("Mul", sum(positives), sum(negatives))
	return share(b, sum(b.Op("Mul", positives, twice)), b.Op("Add", pairs, pairs))
}

// errorSums add up a function of the error.
func errorSums(name string, of func(*graph.Builder, string) string) func(*model, *terms) []sum {
	return func(m *model, t *terms) []sum {
		b, counts := m.b, m.counts(t)
		d := b.Cast(b.Op("Sub", t.x, t.y), tensor.Float64)
		d = b.Op("Where", counts, of(b, d), b.Const(tensor.Scalar[float64](0)))
		return []sum{m.total(name, d, tensor.Float64), m.total("counted", counts, tensor.Int64)}
	}
}
