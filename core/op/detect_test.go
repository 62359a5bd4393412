package op_test

import (
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// boxed are boxes of a batch, four numbers each.
func boxed(v ...float64) arg {
	return fixed(given(tensor.Float32, []int{1, len(v) / 4, 4}, v...))
}

func scored(classes int, v ...float64) arg {
	return fixed(given(tensor.Float32, []int{1, classes, len(v) / classes}, v...))
}

// The second box overlaps the first by 9/11, the third by nothing, the fourth
// has no area.
var four = boxed(0, 0, 1, 1, 1, 1.1, 0, 0.1, 0, 10, 1, 11, 5, 5, 5, 5)

var _ = add(
	sample{name: "NonMaxSuppression", op: "NonMaxSuppression", in: []arg{four, scored(1, 0.5, 0.75, 0.75, 0.25), list(3), reals(0.5), reals(0.25)},
		want: results(array{[]int{2, 3}, []float64{0, 0, 1, 0, 0, 2}})},
	sample{name: "NonMaxSuppression, classes", op: "NonMaxSuppression", in: []arg{four, scored(2, 4, 3, 2, 1, 1, 2, 3, 4), list(2), reals(0.9)},
		want: results(array{[]int{4, 3}, []float64{0, 0, 0, 0, 0, 1, 0, 1, 3, 0, 1, 2}})},
	sample{name: "NonMaxSuppression, none", op: "NonMaxSuppression", in: []arg{four, scored(1, 1, 2, 3, 4)}, want: results(array{[]int{0, 3}, nil})},
	sample{name: "NonMaxSuppression, centres", op: "NonMaxSuppression", attrs: []graph.Attr{graph.Int("center_point_box", 1)},
		in:   []arg{boxed(0.5, 0.5, 1, 1, 0.5, 0.6, 1, 1, 0.5, 9, 1, 1), scored(1, 3, 2, 1), list(9), reals(0.5)},
		want: results(array{[]int{2, 3}, []float64{0, 0, 0, 0, 0, 2}})},
)

// grams are the attributes of a pool: 5, 7; 5 7, 7 5, 5 5.
func grams(most, skip int, mode string, more ...graph.Attr) []graph.Attr {
	return append(more, graph.Int("max_gram_length", most), graph.Int("max_skip_count", skip), graph.Int("min_gram_length", 1), graph.String("mode", mode),
		graph.Ints("ngram_counts", 0, 2), graph.Ints("ngram_indexes", 0, 1, 4, 3, 5), graph.Ints("pool_int64s", 5, 7, 5, 7, 7, 5, 5, 5))
}

var sentences = given(tensor.Int64, []int{2, 4}, 5, 7, 5, 5, 7, 7, 9, 5)

var _ = add(
	sample{name: "TfIdfVectorizer", op: "TfIdfVectorizer", attrs: grams(2, 0, "TF"), in: []arg{sentences},
		want: results(array{[]int{2, 6}, []float64{3, 1, 0, 1, 1, 1, 1, 2, 0, 0, 0, 0}})},
	sample{name: "TfIdfVectorizer, skips", op: "TfIdfVectorizer", attrs: grams(2, 1, "TF"), in: []arg{sentences},
		want: results(array{[]int{2, 6}, []float64{3, 1, 0, 2, 1, 2, 1, 2, 0, 1, 0, 0}})},
	sample{name: "TfIdfVectorizer, a list, weighted", op: "TfIdfVectorizer", attrs: grams(1, 9, "TFIDF", graph.Floats("weights", 2, 3, 4, 5, 6)),
		in: []arg{given(tensor.Int32, []int{4}, 5, 7, 5, 5)}, want: results(listed(6, 3, 0, 0, 0, 0))},
	sample{name: "TfIdfVectorizer, weights of what is there", op: "TfIdfVectorizer", attrs: grams(2, 0, "IDF", graph.Floats("weights", 2, 3, 4, 5, 6)),
		in: []arg{given(tensor.Int32, []int{4}, 5, 7, 5, 5)}, want: results(listed(2, 3, 0, 5, 4, 6))},
)

var _ = add(
	sample{name: "OptionalGetElement", op: "OptionalGetElement", in: []arg{f(2, 3)}, want: func(in []array) []array { return in }},
	sample{name: "OptionalHasElement", op: "OptionalHasElement", in: []arg{f(2)}, want: results(array{nil, []float64{1}})},
	sample{name: "OptionalHasElement, nothing", op: "OptionalHasElement", in: []arg{none}, want: results(array{nil, []float64{0}})},
)

var _ = withoutGradient("NonMaxSuppression", "TfIdfVectorizer", "OptionalHasElement")

// badGrams cut a pair in two.
var badGrams = []graph.Attr{graph.Int("max_gram_length", 2), graph.Int("min_gram_length", 1), graph.Ints("ngram_counts", 0, 1), graph.Ints("pool_int64s", 5, 7, 7, 5, 5, 5, 7, 7)}
