package op

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Counting of n-grams: runs of numbers, in which a few may be skipped between
// one and the next.

var _ = define(
	lower.Operator{Name: "TfIdfVectorizer", Min: 1, Max: 1, Outputs: 1, Expand: expandTfIdf, Attrs: []graph.Attr{
		graph.Int("max_gram_length", 0), graph.Int("max_skip_count", 0), graph.Int("min_gram_length", 0), graph.String("mode", ""),
		graph.Ints("ngram_counts"), graph.Ints("ngram_indexes"), graph.Ints("pool_int64s"), graph.Floats("weights"),
	}},
)

// expandTfIdf compares each run of the input, of each length and with each skip,
// with every n-gram of the pool, and adds up where they agree.
func expandTfIdf(c *lower.Call, b *graph.Builder) ([]string, error) {
	s, t := c.In[0].Shape, c.In[0].Type
	if len(s) != 1 && len(s) != 2 || t != tensor.Int32 && t != tensor.Int64 {
		return nil, fmt.Errorf("input %q is %v%v, but should be int32 or int64 with one or two axes", c.Inputs[0], t, s)
	}
	pools, err := ngramPools(c, b)
	if err != nil {
		return nil, err
	}
	lead := s[:len(s)-1]
	var parts []string // counts of the n-grams of each length
	for i, p := range pools {
		sum := b.Op("Expand", b.Scalar(0), b.Ints(append(lead.Clone(), p.count)...))
		for skip := 0; skip <= c.Int("max_skip_count"); skip++ {
			runs := s[len(s)-1] - i*(skip+1)
			if runs < 1 || i == 0 && skip > 0 || i+1 < c.Int("min_gram_length") || i >= c.Int("max_gram_length") || p.count == 0 {
				break
			}
			sum = b.Op("Add", sum, agreements(c, b, p.items, skip+1, runs))
			if err := c.Settle(); err != nil { // or many skips are all there before they are refused
				return nil, err
			}
		}
		parts = append(parts, sum)
	}
	return ngramColumns(c, b, parts, lead)
}

// pool is the n-grams of one length: the first number of each, the second …
type pool struct {
	count int
	items []string // values [count 1]
}

// ngramPools cuts the list of all n-grams at the places that ngram_counts names.
func ngramPools(c *lower.Call, b *graph.Builder) (out []pool, err error) {
	items, starts := c.AttrOrDefault("pool_int64s").Ints, intsAttr(c, "ngram_counts")
	for i, from := range starts {
		to, n := len(items), i+1
		if n < len(starts) {
			to = starts[n]
		}
		if from < 0 || to < from || to > len(items) || (to-from)%n != 0 {
			return nil, fmt.Errorf("ngram_counts %v do not cut %d items into n-grams", starts, len(items))
		}
		p := pool{count: (to - from) / n}
		for j := range n {
			column, err := c.Account.NewConst(tensor.Int64, tensor.Shape{p.count, 1})
			if err != nil {
				return nil, err
			}
			for k := range p.count {
				column.Set(k, tensor.Word(items[from+k*n+j]))
			}
			p.items = append(p.items, b.Const(column))
		}
		out = append(out, p)
	}
	if len(out) == 0 || c.Int("max_gram_length") > len(out) || c.Int("min_gram_length") < 1 || c.Int("max_skip_count") < 0 {
		return nil, fmt.Errorf("n-grams of %d to %d with up to %d skipped, and the pool has up to %d", c.Int("min_gram_length"), c.Int("max_gram_length"), c.Int("max_skip_count"), len(out))
	}
	return out, nil
}

// agreements counts, for each n-gram, the runs that equal it, whose numbers lie
// step apart.
func agreements(c *lower.Call, b *graph.Builder, items []string, step, runs int) string {
	same := ""
	for j, item := range items {
		part := b.Op("Slice", c.Inputs[0], b.Ints(j*step), b.Ints(j*step+runs), b.Ints(-1))
		equal := b.Op("Equal", b.Op("Unsqueeze", b.Cast(part, tensor.Int64), b.Ints(-2)), item)
		if same != "" {
			equal = b.Op("And", same, equal)
		}
		same = equal
	}
	return b.With(graph.Int("keepdims", 0)).Op("ReduceSum", b.Cast(same, tensor.Float32), b.Ints(-1))
}

// ngramColumns puts the counts of all n-grams at the places that ngram_indexes names,
// as the mode has them.
func ngramColumns(c *lower.Call, b *graph.Builder, parts []string, lead tensor.Shape) ([]string, error) {
	index, weights := intsAttr(c, "ngram_indexes"), c.AttrOrDefault("weights").Floats
	all := b.With(graph.Int("axis", -1)).Op("Concat", append(parts, b.Op("Expand", b.Scalar(0), b.Ints(append(lead.Clone(), 1)...)))...)
	if err := c.Settle(); err != nil {
		return nil, err
	}
	shape := c.Value(all).Shape
	total := shape[len(shape)-1] - 1
	if len(index) != total || total == 0 || len(weights) != 0 && len(weights) != total {
		return nil, fmt.Errorf("%d indexes and %d weights are given for %d n-grams", len(index), len(weights), total)
	}
	if slices.Min(index) < 0 || slices.Max(index) >= maxVector {
		return nil, fmt.Errorf("ngram_indexes %v are out of range", index)
	}
	if c.Text("mode") != "TF" {
		w, err := c.Account.NewConst(tensor.Float32, tensor.Shape{total + 1})
		if err != nil {
			return nil, err
		}
		for i := range total {
			w.Set(i, tensor.F32(1))
			if len(weights) > 0 {
				w.Set(i, tensor.F32(tensor.CanonNaN(weights[i])))
			}
		}
		switch c.Text("mode") {
		case "IDF":
			all = b.Op("Where", b.Op("Greater", all, b.Scalar(0)), b.Const(w), b.Scalar(0))
		case "TFIDF":
			all = b.Op("Mul", all, b.Const(w))
		default:
			return nil, fmt.Errorf("mode %q is not supported; use TF, IDF or TFIDF", c.Text("mode"))
		}
	}
	from := slices.Repeat([]int{total}, slices.Max(index)+1) // a column of zeros, unless
	for i, at := range index {
		from[at] = i
	}
	places, err := intTable(c, tensor.Shape{len(from)}, func(i int) int { return from[i] })
	if err != nil {
		return nil, err
	}
	return []string{b.With(graph.Int("axis", -1)).Op("Gather", all, b.Const(places))}, nil
}
