package dataset

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/schema"
	"github.com/tally-network/tally/format/table"
)

// maxFeatures bounds the numbers of a record's features.
const maxFeatures = 1 << 16

// maxElements bounds the features of all records.
const maxElements = tensor.MaxBytes / 4

// matrix is features, column by column: numbers as they are, truths as 0 and 1, and each text of a category as a
// column of its own that is 1 where it is said.
type matrix struct {
	records int
	alloc   tensor.Allocator
	names   []schema.Column
	columns []feature
}

// feature is one number of each record.
type feature struct {
	of    *tensor.Tensor
	is    int32 // of a category: the text that it stands for
	texts bool
	fill  float64 // what a missing value becomes; NaN: nothing was learnt
}

func (x *matrix) width() int { return len(x.names) }

// listed names the features for people.
func (x *matrix) listed() string {
	var out []string
	for _, c := range x.names {
		if c.Category != nil {
			c.Name += " " + *c.Category
		}
		out = append(out, c.Name)
	}
	return listed(out)
}

// add adds a column whose missing values become what was learnt, "" if nothing was.
func (x *matrix) add(c *table.Column, learnt string) error {
	more := 1
	if c.Kind == table.Category {
		more = len(c.Categories)
	}
	if n := x.width() + more; n > maxFeatures || n > maxElements/x.records {
		return fmt.Errorf("with column %q records have %d features, %d of them: name some columns in data.ignore", c.Name, n, x.records)
	}
	switch c.Kind {
	case table.Integer, table.Real, table.Boolean:
		v, err := c.Tensor(tensor.Float32)
		if err != nil {
			return err
		}
		x.names, x.columns = append(x.names, schema.Column{Name: c.Name}), append(x.columns, feature{of: v, fill: number(learnt)})
		return nil
	case table.Category:
		for k, text := range c.Categories {
			f := feature{of: c.Values, is: int32(k), texts: true, fill: math.NaN()}
			if learnt == text {
				f.fill = 1
			} else if learnt != "" {
				f.fill = 0
			}
			x.names, x.columns = append(x.names, schema.Column{Name: c.Name, Category: &text}), append(x.columns, f)
		}
		return nil
	}
	return fmt.Errorf("column %q is %v, which is no feature among others: name it in data.ignore, or give the model an input %q", c.Name, c.Kind, c.Name)
}

// number returns what was learnt of a column of numbers, or of truths; NaN if nothing was.
func number(learnt string) float64 {
	if truth, ok := table.Truth([]byte(learnt)); ok {
		if truth {
			return 1
		}
		return 0
	}
	if v, err := strconv.ParseFloat(learnt, 64); err == nil {
		return v
	}
	return math.NaN()
}

// fills returns what missing values become, by feature.
func (x *matrix) fills() (out []float64) {
	for _, f := range x.columns {
		out = append(out, f.fill)
	}
	return out
}

func (f *feature) at(record int) float32 {
	if !f.texts {
		return tensor.Of[float32](f.of)[record]
	}
	if tensor.Of[int32](f.of)[record] == f.is {
		return 1
	}
	return 0
}

// tensor returns the features, float32 [records width].
func (x *matrix) tensor() (*tensor.Tensor, error) {
	t, err := x.alloc.New(tensor.Float32, tensor.Shape{x.records, x.width()})
	if err != nil {
		return nil, err
	}
	all := tensor.Of[float32](t)
	for c := range x.columns {
		for r := range x.records {
			v := x.columns[c].at(r)
			if math.IsInf(float64(v), 0) || v != v {
				return nil, fmt.Errorf("column %q is %v in record %d, which nothing can be learnt from", x.names[c].Name, v, r+1)
			}
			all[r*x.width()+c] = v
		}
	}
	return t, nil
}

// moments returns mean and deviation of each feature over some records; those of texts stay as they are.
func (x *matrix) moments(records []int) (mean, deviation []float64) {
	for c := range x.columns {
		f := &x.columns[c]
		m, d := 0., 1.
		if !f.texts {
			m, d = spread(len(records), func(i int) float64 { return float64(f.at(records[i])) })
		}
		mean, deviation = append(mean, m), append(deviation, d)
	}
	return mean, deviation
}

// moments returns mean and deviation of the elements of some rows of a tensor of uint8 or float32, for each place modulo
// the channels, which are the last axis.
func moments(t *tensor.Tensor, records []int, each, channels int) (mean, deviation []float64) {
	if t.Type == tensor.Uint8 {
		return momentsOfBytes(t.Bytes(), records, each, channels)
	}
	all := tensor.Of[float32](t)
	for c := range channels {
		per := each / channels
		m, d := spread(len(records)*per, func(i int) float64 { return float64(all[records[i/per]*each+i%per*channels+c]) })
		mean, deviation = append(mean, m), append(deviation, d)
	}
	return mean, deviation
}

// momentsOfBytes is moments of bytes, of which it counts how often each value stands there.
func momentsOfBytes(all []byte, records []int, each, channels int) (mean, deviation []float64) {
	counts := make([][256]int, channels)
	for _, r := range records {
		for i := 0; i < each; i += channels {
			for c, v := range all[r*each+i:][:channels] {
				counts[c][v]++
			}
		}
	}
	n := float64(len(records) * (each / channels))
	for c := range counts {
		var sum, squares float64
		for v, count := range counts[c] {
			sum += float64(float64(v) * float64(count))
		}
		m := sum / n
		for v, count := range counts[c] {
			d := float64(v) - m
			squares += float64(float64(d*d) * float64(count))
		}
		mean, deviation = append(mean, m), append(deviation, rootOr1(squares/n))
	}
	return mean, deviation
}

// spread returns mean and deviation of n numbers, a deviation of 1 where all are equal.
func spread(n int, at func(i int) float64) (mean, deviation float64) {
	var sum, squares float64
	for i := range n {
		sum += at(i)
	}
	mean = sum / float64(n)
	for i := range n {
		d := at(i) - mean
		squares += float64(d * d)
	}
	return mean, rootOr1(squares / float64(n))
}

// rootOr1 returns the deviation of a variance, 1 where all numbers are equal.
func rootOr1(variance float64) float64 {
	if d := math.Sqrt(variance); d > 0 {
		return d
	}
	return 1
}

// before puts nodes before an input of the model, which becomes another.
func (m *maker) before(in, raw graph.Value, build func(b *graph.Builder, x string) string) {
	g, input := m.out.Model, in.Name
	b := graph.Extend(g)
	y := build(b, input)
	out := *b.Graph()
	out.Inputs = slices.Clone(out.Inputs)
	for i := range out.Inputs {
		if out.Inputs[i].Name == input {
			out.Inputs[i] = raw
		}
	}
	old, made := out.Nodes[:len(g.Nodes)], out.Nodes[len(g.Nodes):]
	nodes := slices.Clone(made)
	for _, n := range old {
		n.Inputs = renamed(n.Inputs, input, y)
		nodes = append(nodes, n)
	}
	out.Nodes = nodes
	m.out.Model, m.out.Own[in.Name] = &out, graph.Value{Name: y, Type: in.Type, Shape: in.Shape}
}

// behind puts nodes behind an output of a graph, which keeps its name.
func behind(g *graph.Graph, at int, build func(b *graph.Builder, x string) string) *graph.Graph {
	b := graph.Extend(g)
	name := g.Outputs[at].Name
	inner := b.Fresh(name + ".inner")
	y := build(b, inner)
	out := *b.Graph()
	out.Nodes = slices.Clone(out.Nodes)
	for i := range out.Nodes {
		n := &out.Nodes[i]
		n.Inputs, n.Outputs = renamed(n.Inputs, name, inner), renamed(n.Outputs, name, inner)
		n.Outputs = renamed(n.Outputs, y, name)
	}
	return &out
}

func renamed(names []string, from, to string) []string {
	out := slices.Clone(names)
	for i := range out {
		if out[i] == from {
			out[i] = to
		}
	}
	return out
}

// constant writes numbers into a graph, where training leaves them as they are.
func constant(b *graph.Builder, t tensor.DType, v []float64, s tensor.Shape) string {
	k := tensor.Must(tensor.New(t, s))
	for i, x := range v {
		k.Set(i, tensor.FloatWord(t, x))
	}
	return b.With(graph.Tensor("value", k)).Op("Constant")
}

func cast(b *graph.Builder, x string, from, to tensor.DType) string {
	if from == to {
		return x
	}
	return b.Cast(x, to)
}

// filled puts something in the place of NaN.
func filled(b *graph.Builder, x string, t tensor.DType, fill []float64, s tensor.Shape) string {
	return b.Op("Where", b.Op("IsNaN", x), constant(b, t, fill, s), x)
}

// scaled takes a mean from a value, and divides by a deviation.
func scaled(b *graph.Builder, x string, t tensor.DType, mean, deviation []float64, s tensor.Shape) string {
	return b.Op("Div", b.Op("Sub", x, constant(b, t, mean, s)), constant(b, t, deviation, s))
}

func shaped(b *graph.Builder, x string, from, to tensor.Shape) string {
	if from.Equal(to) {
		return x
	}
	k := tensor.Must(tensor.New(tensor.Int64, tensor.Shape{len(to)}))
	for i, n := range to {
		if i == 0 {
			n = -1 // of any batch
		}
		k.Set(i, tensor.Word(int64(n)))
	}
	return b.Op("Reshape", x, b.With(graph.Tensor("value", k)).Op("Constant"))
}
