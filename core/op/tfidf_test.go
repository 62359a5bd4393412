package op_test

import (
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

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

var _ = withoutGradient("TfIdfVectorizer")

var _ = refuse(
	refusal{"do not cut 8 items", "TfIdfVectorizer", badGrams, []arg{sentences}, 1},
	refusal{"1 weights are given", "TfIdfVectorizer", grams(2, 0, "IDF", graph.Floats("weights", 1)), []arg{sentences}, 1},
	refusal{`mode "TD" is not supported`, "TfIdfVectorizer", grams(2, 0, "TD"), []arg{sentences}, 1},
)

// grams are the attributes of a pool: 5, 7; 5 7, 7 5, 5 5.
func grams(most, skip int, mode string, more ...graph.Attr) []graph.Attr {
	return append(more, graph.Int("max_gram_length", most), graph.Int("max_skip_count", skip), graph.Int("min_gram_length", 1), graph.String("mode", mode),
		graph.Ints("ngram_counts", 0, 2), graph.Ints("ngram_indexes", 0, 1, 4, 3, 5), graph.Ints("pool_int64s", 5, 7, 5, 7, 7, 5, 5, 5))
}

var sentences = given(tensor.Int64, []int{2, 4}, 5, 7, 5, 5, 7, 7, 9, 5)

// badGrams cut a pair in two.
var badGrams = []graph.Attr{graph.Int("max_gram_length", 2), graph.Int("min_gram_length", 1), graph.Ints("ngram_counts", 0, 1), graph.Ints("pool_int64s", 5, 7, 7, 5, 5, 5, 7, 7)}
