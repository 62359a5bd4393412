package lm

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/model/lm/family"
)

// Columns returns how many steps a chunk of a sequence takes, if each is to be disputed alone (docs/adr/0071-disputes-of-replies.md).
func (m *Model) Columns() int { return 2*m.Layers + 2 }

// Column returns the program of one step: of a chunk, the column of the table. Each reads states: the weights of its layer, a place, and
//
//	column     beside                           gives
//	0          tokens of the chunk              x of layer 0
//	2i + 1     x of layer i                     keys and values of layer i
//	2i + 2     x of layer i, its keys and       x of layer i + 1
//	           values, and those of all
//	           chunks before, in order
//	the last   the request, x, tokens of the    wrong
//	           chunks up to this one in order,
//	           and of the next
//
// with the slots
//
//	first, judged, prompt, read  int64 [1], of a place: of the chunk its first token, the token that is drawn again, and how many tokens the
//	                             prompt has, and the sequence without its last
//	tokens        int64 [Chunk], as [TokenPage] has them; of the last page again, if there is no next
//	x             float32 [1, Chunk, Width]
//	keys, values  float32 [Chunk, Shared, HeadSize]; zeros from token read on
//	wrong         int64 [1]: 1 if another token is drawn than the one that stands at judged; and 1 more, if one that ends the reply comes before it
//
// and those of [Request.State]. All values are those of [Stages], bit for bit.
func (m *Model) Column(chunk, column int) (*graph.Program, error) {
	w := stepWriter{m.writer(Chunk)}
	w.inputs = map[string]string{}
	groups := 3
	switch {
	case column == 0:
		w.at = w.b.Op("Add", w.place("first"), w.b.Const(vector(numbers(Chunk)...)))
		w.output("x", w.embed(w.read(2, "tokens", tensor.Int64, Chunk)))
	case column == m.Columns()-1:
		w.drawColumn(chunk)
		groups = chunk + 6
	case column%2 == 1:
		w.pageColumn(column / 2)
	default:
		w.layerColumn(column/2-1, chunk)
		groups = chunk + 4
	}
	p, err := lowered(w.b.Graph())
	if err != nil {
		return nil, err
	}
	return p.Mix(groups, func(slot string) (int, string) {
		group, name, _ := strings.Cut(slot, "/")
		n, _ := strconv.Atoi(group) // as read writes it
		return n, name
	})
}

// stepWriter writes the graph of a step.
type stepWriter struct{ *writer }

// read is a slot of a state that a step reads.
func (w stepWriter) read(group int, slot string, t tensor.DType, shape ...int) string {
	name := fmt.Sprintf("%d/%s", group, slot)
	if w.inputs[name] == "" {
		w.inputs[name] = w.b.Input(name, t, shape)
	}
	return w.inputs[name]
}

func (w stepWriter) place(slot string) string { return w.read(1, slot, tensor.Int64, 1) }

// queued begins a layer's step: what x is, and its queries, keys and values.
func (w stepWriter) queued(i int) (x string, in [3]string) {
	w.at = w.b.Op("Add", w.place("first"), w.b.Const(vector(numbers(Chunk)...)))
	w.places()
	x = w.read(2, "x", tensor.Float32, 1, Chunk, w.Width)
	return x, w.project(i, x)
}

// pageColumn writes the keys and values of a layer.
func (w stepWriter) pageColumn(i int) {
	_, in := w.queued(i)
	known := w.reshape(w.b.Op("Less", w.at, w.place("read")), Chunk, 1, 1)
	for j, name := range []string{"keys", "values"} {
		w.output(name, w.b.Op("Where", known, w.ofTokens(in[1+j]), w.b.Scalar(0)))
	}
}

// layerColumn writes what a layer makes of x.
func (w stepWriter) layerColumn(i, chunk int) {
	x, in := w.queued(i)
	args := []string{in[0]}
	for _, name := range []string{"keys", "values"} {
		var pages []string
		for c := range chunk {
			pages = append(pages, w.read(4+c, name, tensor.Float32, Chunk, w.Shared, w.HeadSize))
		}
		pages = append(pages, w.read(3, name, tensor.Float32, Chunk, w.Shared, w.HeadSize))
		args = append(args, w.byHeads(w.reshape(w.joined(pages), 1, len(pages)*Chunk, w.Shared, w.HeadSize)))
	}
	y := w.b.With(w.attentionAttrs(i)...).Op("CachedAttention", args...)
	w.output("x", w.finish(i, x, w.reshape(w.byTokens(y), 1, Chunk, w.Heads*w.HeadSize)))
}

// joined is pages one after the other.
func (w stepWriter) joined(pages []string) string {
	if len(pages) == 1 {
		return pages[0]
	}
	return w.b.With(graph.Int("axis", 0)).Op("Concat", pages...)
}

// ofColumn says whether a column reads a weight, and by what name.
func (m *Model) ofColumn(column int, weight string) (name string, ok bool) {
	switch {
	case column == 0:
		return weight, weight == family.Embedding || weight == family.Positions
	case column == m.Columns()-1:
		return weight, weight == m.Head() || strings.HasPrefix(weight, "model.norm.")
	}
	return strings.CutPrefix(weight, family.Layer((column-1)/2))
}

// ColumnWeights returns the weights of a column: of a layer, or those before or behind all of them. Those of a layer go by their names in it.
func (m *Model) ColumnWeights(column int) *graph.State {
	named := map[string]*tensor.Tensor{}
	for weight, w := range m.weights { // each its own
		if name, ok := m.ofColumn(column, weight); ok {
			named[name] = w.stored
		}
	}
	return stateOf(named)
}

// ColumnKind says what the program of a column follows from, beside its chunk: columns of one kind have one program. That of those which the
// chunk changes nothing in is the same in all.
func (m *Model) ColumnKind(column int) (kind string, byChunk bool) {
	switch {
	case column == 0:
		return "first", false
	case column == m.Columns()-1:
		return "last", true
	}
	kind = fmt.Sprintf("%d %d", column%2, m.Windows[(column-1)/2])
	for _, weight := range slices.Sorted(maps.Keys(m.weights)) {
		if name, ok := m.ofColumn(column, weight); ok {
			w := m.weights[weight]
			kind += fmt.Sprintf(" %s %v %v %v", name, w.stored.Type, w.stored.Shape, w.of)
		}
	}
	return kind, column%2 == 0
}
