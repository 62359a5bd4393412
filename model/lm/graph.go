package lm

import (
	"fmt"
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/model/lm/family"
)

// Graph returns the graph of rows tokens that follow past others. Its inputs are
//
//	tokens          int64 [rows], each below Vocabulary
//	keys.L, values.L  float32 [past, Shared, HeadSize] of each layer L, if past > 0
//
// and its outputs
//
//	logits          float32 [rows, Vocabulary]
//	new_keys.L, new_values.L  float32 [rows, Shared, HeadSize] of the tokens, which follow those
//
// It fails if that is no place of the model's context.
func (m *Model) Graph(rows, past int) (*graph.Graph, error) {
	if rows < 1 || past < 0 || rows > m.Context || past > m.Context-rows {
		return nil, fmt.Errorf("%s: %d tokens after %d are more than its context of %d", m.Family, rows, past, m.Context)
	}
	w := m.writer(rows)
	tokens := w.b.Input("tokens", tensor.Int64, tensor.Shape{rows})
	at := numbers(rows)
	for i := range at {
		at[i] += int64(past)
	}
	w.at = w.b.Const(tensor.Must(tensor.From(tensor.Shape{rows}, at)))
	x := w.embed(tokens)
	w.places()
	for i := range m.Layers {
		in := w.project(i, x)
		x = w.finish(i, x, w.attention(i, in, past))
	}
	w.output("logits", w.reshape(w.head(x), rows, m.Vocabulary))
	return w.b.Graph(), nil
}

// writer begins a graph of rows tokens.
func (m *Model) writer(rows int) *writer {
	return &writer{Model: m, b: graph.NewBuilder(m.Family), texts: 1, rows: rows, held: map[string]string{}, opened: map[string]string{}}
}

// head is the logits of tokens, [texts, rows, Vocabulary].
func (w *writer) head(x string) string {
	return w.cap(w.b.Op("MatMul", w.norm("model.norm", x), w.transposed(w.Head())), w.HeadCap)
}

// writer writes one graph. Values of tokens have the shape [texts, rows, Width].
type writer struct {
	*Model
	b      *graph.Builder
	texts  int               // 1, but in training
	rows   int               // tokens of a text
	at     string            // of each token its place, int64 [rows]
	held   map[string]string // weights that are in the graph already, as they are stored
	opened map[string]string // the same as float32
	inputs map[string]string // of a step's graph, in which weights are some; nil of others
	angles [2][2]string      // cosines and sines, [texts, rows, Turned/2], as Config.Rotary has them
	beside stageAdapters     // adapters of a stage's graph, in which their weights are inputs
}

// stored is a weight as it is stored.
func (w *writer) stored(name string) string {
	if w.held[name] == "" {
		x := w.weights[name].stored
		if w.inputs == nil {
			w.held[name] = w.b.Init(name, x)
		} else {
			_, in, _ := family.InLayer(name)
			w.held[name] = stepWriter{w}.read(0, in, x.Type, x.Shape...)
		}
	}
	return w.held[name]
}

// open is rows of a weight as float32.
func (w *writer) open(name, rows string) string {
	switch x := w.weights[name]; x.stored.Type {
	case tensor.Float32:
		return rows
	case tensor.Uint8:
		return w.b.With(graph.Int("type", int(x.of))).Op("Dequantize", rows)
	default:
		return w.b.Cast(rows, tensor.Float32)
	}
}

// weight is a weight as float32.
func (w *writer) weight(name string) string {
	if w.opened[name] == "" {
		w.opened[name] = w.open(name, w.stored(name))
	}
	return w.opened[name]
}

// transposed is a weight [out, in] as a product takes it.
func (w *writer) transposed(name string) string {
	return w.b.With(graph.Ints("perm", 1, 0)).Op("Transpose", w.weight(name))
}

func (w *writer) reshape(x string, s ...int) string { return w.b.Op("Reshape", x, w.b.Ints(s...)) }

func (w *writer) output(name, x string) {
	w.b.Output(w.b.With().As(name).Op("Identity", x), 0, nil)
}

// embed looks the tokens up, in the table as it is stored.
func (w *writer) embed(tokens string) string {
	const table, places = family.Embedding, family.Positions
	x := w.open(table, w.b.With(graph.Int("axis", 0)).Op("Gather", w.stored(table), tokens))
	if w.Of.EmbedScale {
		x = w.b.Op("Mul", x, w.b.Scalar(float32(math.Sqrt(float64(w.Width)))))
	}
	if w.Of.Learned {
		x = w.b.Op("Add", x, w.open(places, w.b.With(graph.Int("axis", 0)).Op("Gather", w.stored(places), w.at)))
	}
	return w.reshape(x, w.texts, w.rows, w.Width)
}

// places writes the angles by which queries and keys turn.
func (w *writer) places() {
	if w.Of.Learned {
		return
	}
	b, half := w.b, w.Turned/2
	places := w.reshape(b.Cast(w.at, tensor.Float32), w.rows, 1)
	for i, r := range w.Rotary {
		angles := b.Op("Mul", places, w.frequencies(r, half))
		for j, fn := range []string{"Cos", "Sin"} {
			x := b.Op(fn, angles)
			if r.Length != 0 {
				x = b.Op("Mul", x, b.Scalar(r.Length))
			}
			w.angles[i][j] = w.reshape(x, 1, w.rows, half)
			if w.texts > 1 {
				w.angles[i][j] = b.Op("Expand", w.angles[i][j], b.Ints(w.texts, w.rows, half))
			}
		}
	}
}

// frequencies writes base^(−2i/Turned), scaled.
func (w *writer) frequencies(r family.Rotary, half int) string {
	b := w.b
	exponents := make([]float32, half)
	for i := range exponents {
		exponents[i] = float32(2*i) / float32(w.Turned)
	}
	lengths := b.Op("Pow", b.Scalar(r.Base), b.Const(vector(exponents...)))
	if r.Factors != nil {
		lengths = b.Op("Mul", b.Const(vector(r.Factors...)), lengths)
	}
	f := b.Op("Reciprocal", lengths)
	if r.Factor != 0 {
		f = b.Op("Div", f, b.Scalar(r.Factor))
	}
	if l := r.Llama3; l != nil {
		// Waves longer than Original / Low are slowed by Factor, those shorter than Original / High are as they were, others in between.
		waves := b.Op("Div", b.Scalar(2*math.Pi), f)
		slow := b.Op("Div", f, b.Scalar(l.Factor))
		smooth := b.Op("Div", b.Op("Sub", b.Op("Div", b.Scalar(l.Original), waves), b.Scalar(l.Low)), b.Scalar(l.High-l.Low))
		between := b.Op("Add", b.Op("Div", b.Op("Mul", b.Op("Sub", b.Scalar(1), smooth), f), b.Scalar(l.Factor)), b.Op("Mul", smooth, f))
		f = b.Op("Where", b.Op("Greater", waves, b.Scalar(l.Original/l.Low)), slow,
			b.Op("Where", b.Op("Less", waves, b.Scalar(l.Original/l.High)), f, between))
	}
	return f
}

// norm norms the last axis.
func (w *writer) norm(name, x string) string {
	scale := w.weight(name + ".weight")
	attrs := []graph.Attr{graph.Float("epsilon", w.Epsilon)}
	if w.Of.LayerNorm {
		return w.b.With(attrs...).Op("LayerNormalization", x, scale, w.weight(name+".bias"))
	}
	if w.Of.UnitOffset {
		scale = w.b.Op("Add", w.b.Scalar(1), scale)
	}
	return w.b.With(attrs...).Op("RMSNormalization", x, scale)
}

// linear multiplies by a weight, and adds its bias if it has one.
func (w *writer) linear(name, x string) string {
	var y string
	if w.Of.Columns {
		y = w.b.Op("MatMul", x, w.weight(name+".weight"))
	} else {
		y = w.b.Op("MatMul", x, w.transposed(name+".weight"))
	}
	if w.weights[name+".bias"].stored != nil {
		y = w.b.Op("Add", y, w.weight(name+".bias"))
	}
	return w.adapted(name, x, y)
}

// adapted adds to y, which a weight makes of x, what the model's adapter makes of it, or each token's own. These are the same nodes: a token of several is chosen.
func (w *writer) adapted(name, x, y string) string {
	move := func(a, b, scale string) string {
		low := w.b.Op("MatMul", x, w.b.With(graph.Ints("perm", 1, 0)).Op("Transpose", a))
		move := w.b.Op("MatMul", low, w.b.With(graph.Ints("perm", 1, 0)).Op("Transpose", b))
		return w.b.Op("Add", y, w.b.Op("Mul", move, scale))
	}
	if w.beside.form == nil {
		if w.weights[name+family.AdapterA].stored == nil {
			return y
		}
		return move(w.weight(name+family.AdapterA), w.weight(name+family.AdapterB), w.b.Const(w.adapter.inputs["scale"]))
	}
	if _, is := w.beside.form.inputs[name+family.AdapterA]; !is {
		return y
	}
	chosen := y
	for slot := range max(w.beside.slots, 1) {
		moved := move(w.slot(slot, name+family.AdapterA), w.slot(slot, name+family.AdapterB), w.slot(slot, "scale"))
		if w.beside.slots == 0 {
			return moved
		}
		chosen = w.b.Op("Where", w.has(slot), moved, chosen)
	}
	return chosen
}

// cap bounds values softly.
func (w *writer) cap(x string, by float32) string {
	if by == 0 {
		return x
	}
	return w.b.Op("Mul", w.b.Op("Tanh", w.b.Op("Div", x, w.b.Scalar(by))), w.b.Scalar(by))
}

// finish adds to x what attention y, [texts, rows, Heads·HeadSize], and the feed-forward part of a layer make of it.
func (w *writer) finish(i int, x, y string) string {
	at := family.Layer(i)
	y = w.linear(at+"self_attn.o_proj", y)
	before := at + "post_attention_layernorm"
	if w.Of.PostNorms {
		y, before = w.norm(before, y), at+"pre_feedforward_layernorm"
	}
	x = w.b.Op("Add", x, y)
	y = w.feedForward(at+"mlp.", w.norm(before, x))
	if w.Of.PostNorms {
		y = w.norm(at+"post_feedforward_layernorm", y)
	}
	return w.b.Op("Add", x, y)
}

// part is columns from…to−1.
func (w *writer) part(x string, from, to int) string {
	return w.b.Op("Slice", x, w.b.Ints(from), w.b.Ints(to), w.b.Ints(2))
}

// project makes queries, keys and values of a layer out of x, [texts, heads, rows, HeadSize].
func (w *writer) project(i int, x string) [3]string {
	at := family.Layer(i) + "self_attn."
	x = w.norm(family.Layer(i)+"input_layernorm", x)
	q, kv := w.Heads*w.HeadSize, w.Shared*w.HeadSize
	var in [3]string
	if w.Of.Fused {
		all := w.linear(at+"qkv_proj", x)
		in = [3]string{w.part(all, 0, q), w.part(all, q, q+kv), w.part(all, q+kv, q+2*kv)}
	} else {
		in = [3]string{w.linear(at+"q_proj", x), w.linear(at+"k_proj", x), w.linear(at+"v_proj", x)}
	}
	heads := [3]int{w.Heads, w.Shared, w.Shared}
	for j := range in {
		in[j] = w.reshape(in[j], w.texts, w.rows, heads[j], w.HeadSize)
		if w.Of.QKNorm && j < 2 {
			in[j] = w.norm(at+[2]string{"q_norm", "k_norm"}[j], in[j])
		}
		in[j] = w.byHeads(in[j])
		if !w.Of.Learned && j < 2 {
			in[j] = w.turn(i, in[j])
		}
	}
	return in
}

// attention lets tokens look at those before them, after past others, and outputs their keys and values.
func (w *writer) attention(i int, in [3]string, past int) string {
	args := append(in[:], "")
	for j, name := range []string{"keys", "values"} {
		w.output(fmt.Sprintf("new_%s.%d", name, i), w.ofTokens(in[1+j]))
		if past > 0 {
			x := w.b.Input(fmt.Sprintf("%s.%d", name, i), tensor.Float32, tensor.Shape{past, w.Shared, w.HeadSize})
			args = append(args, w.byHeads(w.reshape(x, 1, past, w.Shared, w.HeadSize)))
		}
	}
	return w.look(i, args...)
}

// look lets queries of a layer look at keys and values, each at those of its own place and before.
func (w *writer) look(i int, args ...string) string {
	y := w.b.With(append(w.attentionAttrs(i), graph.Int("is_causal", 1))...).Op("Attention", args...)
	return w.reshape(w.byTokens(y), w.texts, w.rows, w.Heads*w.HeadSize)
}

// attentionAttrs are the attributes of attention in a layer.
func (m *Model) attentionAttrs(i int) []graph.Attr {
	var attrs []graph.Attr
	if m.Windows[i] >= 0 {
		attrs = append(attrs, graph.Int("left_window_size", m.Windows[i]))
	}
	if m.Scale != 0 {
		attrs = append(attrs, graph.Float("scale", m.Scale))
	}
	if m.Softcap != 0 {
		attrs = append(attrs, graph.Float("softcap", m.Softcap))
	}
	return attrs
}

// ofTokens gives [1, heads, rows, HeadSize] the shape [rows, heads, HeadSize].
func (w *writer) ofTokens(x string) string { return w.reshape(w.byTokens(x), w.rows, -1, w.HeadSize) }

// byHeads gives [texts, tokens, heads, size] the shape [texts, heads, tokens, size], and byTokens does the opposite.
func (w *writer) byHeads(x string) string {
	return w.b.With(graph.Ints("perm", 0, 2, 1, 3)).Op("Transpose", x)
}

func (w *writer) byTokens(x string) string { return w.byHeads(x) }

// turn turns queries or keys by the angles of their places.
func (w *writer) turn(i int, x string) string {
	angles := w.angles[0]
	if w.Windows[i] >= 0 {
		angles = w.angles[1]
	}
	var attrs []graph.Attr
	if w.Turned != w.HeadSize {
		attrs = append(attrs, graph.Int("rotary_embedding_dim", w.Turned))
	}
	return w.b.With(attrs...).Op("RotaryEmbedding", x, angles[0], angles[1])
}

func (w *writer) feedForward(at, x string) string {
	var y string
	switch {
	case w.Of.Plain:
		y = w.activate(w.linear(at+"up_proj", x))
	case w.Of.Fused:
		both := w.linear(at+"gate_up_proj", x)
		y = w.b.Op("Mul", w.activate(w.part(both, 0, w.Hidden)), w.part(both, w.Hidden, 2*w.Hidden))
	default:
		y = w.b.Op("Mul", w.activate(w.linear(at+"gate_proj", x)), w.linear(at+"up_proj", x))
	}
	return w.linear(at+"down_proj", y)
}

func (w *writer) activate(x string) string {
	switch w.Of.Activation {
	case "silu":
		return w.b.Op("Mul", x, w.b.Op("Sigmoid", x))
	case "relu":
		return w.b.Op("Relu", x)
	case "gelu":
		return w.b.Op("Gelu", x)
	}
	return w.b.With(graph.String("approximate", "tanh")).Op("Gelu", x)
}
