package train_test

import (
	"fmt"
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// network builds the models of these tests. testdata/pytorch.py builds the same.
type network struct {
	*graph.Builder
	params []string
}

func newNetwork(name string) *network { return &network{Builder: graph.NewBuilder(name)} }

// numbers are between offset−scale and offset+scale, look arbitrary, and follow
// from a name.
func numbers(name string, scale, offset float64, shape ...int) *tensor.Tensor {
	seed := 0
	for i, c := range []byte(name) {
		seed += (i + 1) * int(c)
	}
	t := tensor.Must(tensor.New(tensor.Float32, shape))
	for i := range t.Len() {
		u := float64((31*seed+7919*i+13*i*i)%1009)/504.5 - 1
		t.Set(i, tensor.F32(float32(offset+float64(scale*u))))
	}
	return t
}

func (n *network) param(name string, scale, offset float64, shape ...int) string {
	n.params = append(n.params, name)
	return n.Init(name, numbers(name, scale, offset, shape...))
}

func (n *network) linear(name, x string, in, out int) string {
	w := n.param(name+".weight", 1.5/math.Sqrt(float64(in)), 0, in, out)
	return n.Op("Add", n.Op("MatMul", x, w), n.param(name+".bias", 0.1, 0, out))
}

func (n *network) norm(name, x string, width int) string {
	scale, shift := n.param(name+".scale", 0.1, 1, width), n.param(name+".shift", 0.1, 0, width)
	return n.With(graph.Int("axis", -1)).Op("LayerNormalization", x, scale, shift)
}

func (n *network) conv(name, x string, in, out int) string {
	scale := map[int]float64{1: 0.6, 4: 0.3}[in]
	w := n.param(name+".weight", scale, 0, out, in, 3, 3)
	return n.With(graph.Ints("pads", 1, 1, 1, 1)).Op("Conv", x, w, n.param(name+".bias", 0.1, 0, out))
}

func (n *network) pool(op, x string) string {
	return n.With(graph.Ints("kernel_shape", 2, 2), graph.Ints("strides", 2, 2)).Op(op, x)
}

// embed adds the tokens of a language model, [rows context], and what they mean.
func (n *network) embed(scale float64, rows, context, vocabulary, width int) (embedding, x string) {
	tokens := n.Input("tokens", tensor.Int32, tensor.Shape{rows, context})
	embedding = n.param("embedding", scale, 0, vocabulary, width)
	return embedding, n.Op("Gather", embedding, tokens)
}

// deepMLP predicts a token from the one before it through a number of layers.
func deepMLP(layers, width, rows, context int) *graph.Graph {
	n := newNetwork("mlp")
	_, x := n.embed(0.5, rows, context, vocab, width)
	for i := range layers {
		x = n.Op("Relu", n.linear(fmt.Sprintf("layer%d", i), x, width, width))
	}
	n.Output(n.linear("head", x, width, vocab), tensor.Float32, nil)
	return n.Graph()
}

// images predicts tokens from pictures that the tokens are made into.
func images(rows, context int) *graph.Graph {
	n := newNetwork("cnn")
	_, x := n.embed(0.5, rows, context, vocab, 4*36/context)
	x = n.Op("Reshape", x, n.Ints(rows, 4, 6, 6))
	for i := range 4 {
		x = n.Op("Relu", n.conv(fmt.Sprintf("conv%d", i), x, 4, 4))
	}
	x = n.Op("Reshape", n.pool("MaxPool", x), n.Ints(rows, 36))
	x = n.linear("head", x, 36, context*vocab)
	n.Output(n.Op("Reshape", x, n.Ints(rows, context, vocab)), tensor.Float32, nil)
	return n.Graph()
}

// gpt is the shape of a language model whose head reuses its embedding.
type gpt struct {
	vocabulary, context, width, heads, layers int
	dropout                                   bool
}

func (c gpt) graph(rows int) *graph.Graph {
	n := newNetwork("gpt")
	embedding, x := n.embed(0.5, rows, c.context, c.vocabulary, c.width)
	x = n.Op("Add", x, n.param("positions", 0.2, 0, c.context, c.width))
	mask := tensor.Must(tensor.New(tensor.Float32, tensor.Shape{c.context, c.context}))
	for i := range mask.Len() {
		if i%c.context > i/c.context {
			mask.Set(i, tensor.F32(-1e9))
		}
	}
	future := n.With(graph.Tensor("value", mask)).Op("Constant")
	for i := range c.layers {
		at := fmt.Sprintf("layer%d.", i)
		x = n.Op("Add", x, c.drop(n, 2*i, c.attention(n, at, n.norm(at+"norm1", x, c.width), future)))
		up := n.Op("Gelu", n.linear(at+"up", n.norm(at+"norm2", x, c.width), c.width, 4*c.width))
		x = n.Op("Add", x, c.drop(n, 2*i+1, n.linear(at+"down", up, 4*c.width, c.width)))
	}
	x = n.norm("norm", x, c.width)
	n.Output(n.Op("MatMul", x, n.With(graph.Ints("perm", 1, 0)).Op("Transpose", embedding)), tensor.Float32, nil)
	return n.Graph()
}

func (c gpt) attention(n *network, at, x, future string) string {
	turn := func(x string, perm ...int) string { return n.With(graph.Ints("perm", perm...)).Op("Transpose", x) }
	qkv := n.With(graph.Int("axis", -1), graph.Int("num_outputs", 3)).Ops("Split", 3, n.linear(at+"qkv", x, c.width, 3*c.width))
	for i := range qkv {
		qkv[i] = turn(n.Op("Reshape", qkv[i], n.Ints(-1, c.context, c.heads, c.width/c.heads)), 0, 2, 1, 3)
	}
	root := n.With(graph.Tensor("value", tensor.Scalar(float32(math.Sqrt(float64(c.width/c.heads)))))).Op("Constant")
	scores := n.Op("Div", n.Op("MatMul", qkv[0], turn(qkv[1], 0, 1, 3, 2)), root)
	y := n.Op("MatMul", n.With(graph.Int("axis", -1)).Op("Softmax", n.Op("Add", scores, future)), qkv[2])
	return n.linear(at+"out", n.Op("Reshape", turn(y, 0, 2, 1, 3), n.Ints(-1, c.context, c.width)), c.width, c.width)
}

// drop leaves out a quarter of x.
func (c gpt) drop(n *network, seed int, x string) string {
	if !c.dropout {
		return x
	}
	ratio := n.With(graph.Tensor("value", tensor.Scalar[float32](0.25))).Op("Constant")
	yes := tensor.Must(tensor.New(tensor.Bool, nil))
	yes.Set(0, 1)
	training := n.With(graph.Tensor("value", yes)).Op("Constant")
	return n.With(graph.Int("seed", seed)).Op("Dropout", x, ratio, training)
}
