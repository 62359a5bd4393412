package zoo

import (
	"fmt"
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// net is a model while it is built: layers that add nodes and parameters.
type net struct {
	*graph.Builder
	*values
	seed    uint64
	outline bool // parameters are inputs
	trained int  // numbers of parameters
	drops   int  // nodes that drop values
}

// parameter is a tensor that is trained.
func (n *net) parameter(name string, first fill, shape ...int) string {
	n.trained += tensor.Shape(shape).Elements()
	if n.outline {
		return n.Input(name, tensor.Float32, shape)
	}
	return n.statistic(name, first, shape...)
}

// statistic is an initializer that gradients do not change.
func (n *net) statistic(name string, first fill, shape ...int) string {
	t := tensor.Must(tensor.New(tensor.Float32, shape))
	first(tensor.Of[float32](t), n.seed, name)
	return n.Init(name, t)
}

// constant is a value that is not trained, as an initializer would be.
func (n *net) constant(name string, t *tensor.Tensor) string {
	return n.With(graph.Tensor("value", t)).As(name).Op("Constant")
}

// gemm is x·Wᵀ + b of rows. The value is called as.
func (n *net) gemm(as, name, x string, in, out int, first fill) string {
	w := n.parameter(name+".weight", first, out, in)
	return n.With(graph.Int("transB", 1)).As(as).Op("Gemm", x, w, n.parameter(name+".bias", first, out))
}

// linear is gemm with PyTorch's first weights.
func (n *net) linear(as, name, x string, in, out int) string {
	return n.gemm(as, name, x, in, out, uniform(in))
}

// conv is a convolution over images.
type conv struct {
	in, out, kernel int
	stride, pad     int
	bias            bool
	first           fill // nil: as PyTorch
}

// convolve applies a convolution. The value is called as.
func (n *net) convolve(as, name, x string, c conv) string {
	if c.first == nil {
		c.first = uniform(c.in * c.kernel * c.kernel)
	}
	in := []string{x, n.parameter(name+".weight", c.first, c.out, c.in, c.kernel, c.kernel)}
	if c.bias {
		in = append(in, n.parameter(name+".bias", c.first, c.out))
	}
	return n.With(graph.Ints("kernel_shape", c.kernel, c.kernel), graph.Ints("strides", c.stride, c.stride), graph.Ints("pads", c.pad, c.pad, c.pad, c.pad)).
		As(as).Op("Conv", in...)
}

// pool takes the greatest, or the mean, of windows.
func (n *net) pool(op, x string, kernel, stride, pad int) string {
	return n.With(graph.Ints("kernel_shape", kernel, kernel), graph.Ints("strides", stride, stride), graph.Ints("pads", pad, pad, pad, pad)).Op(op, x)
}

// norm normalises channels, as the setting says.
func (n *net) norm(name, x string, channels int) string {
	scale, shift := n.parameter(name+".weight", all(1), channels), n.parameter(name+".bias", all(0), channels)
	if n.word("norm") == "batch" {
		mean, variance := n.statistic(name+".running_mean", all(0), channels), n.statistic(name+".running_var", all(1), channels)
		return n.With(graph.Float("epsilon", 1e-5), graph.Float("momentum", 0.9)).As(name).Op("BatchNormalization", x, scale, shift, mean, variance)
	}
	return n.With(graph.Int("num_groups", n.int("groups")), graph.Float("epsilon", 1e-5)).As(name).Op("GroupNormalization", x, scale, shift)
}

// groupsDivide returns an error unless channels make groups.
func (n *net) groupsDivide(width int) error {
	if g := n.int("groups"); n.word("norm") == "group" && width%g != 0 {
		return fmt.Errorf("groups=%d do not divide width=%d: choose groups=%d, or norm=batch", g, width, divisor(width, g))
	}
	return nil
}

// divisor returns the greatest divisor of n that is at most most.
func divisor(n, most int) int {
	for n%most != 0 {
		most--
	}
	return most
}

// layerNorm normalises each row.
func (n *net) layerNorm(scale, shift, x string, width int, epsilon float32) string {
	scale, shift = n.parameter(scale, all(1), width), n.parameter(shift, all(0), width)
	attrs := []graph.Attr{graph.Int("axis", -1)}
	if epsilon != 0 {
		attrs = append(attrs, graph.Float("epsilon", epsilon))
	}
	return n.With(attrs...).Op("LayerNormalization", x, scale, shift)
}

// drop zeroes a share of values in training.
func (n *net) drop(x string) string {
	share := n.share("dropout")
	if share == 0 {
		return x
	}
	n.drops++
	return n.With(graph.Int("seed", n.drops)).Op("Dropout", x, n.constant("ratio", tensor.Scalar(float32(share))))
}

// activate applies the activation of the settings.
func (n *net) activate(x string) string {
	return n.Op(map[string]string{"relu": "Relu", "gelu": "Gelu", "tanh": "Tanh", "sigmoid": "Sigmoid"}[n.word("activation")], x)
}

// mixer is attention between the tokens of a record, by several heads.
type mixer struct {
	name                 string // of its constants, with a dot behind it
	tokens, width, heads int
	mask                 string // added to the scores; may be empty
}

// attend maps queries, keys and values, [rows 3·width], to their mixture, [rows width].
func (n *net) attend(m mixer, x string) string {
	heads := func(v string) string {
		v = n.Op("Reshape", v, n.Ints(-1, m.tokens, m.heads, m.width/m.heads))
		return n.With(graph.Ints("perm", 0, 2, 1, 3)).Op("Transpose", v)
	}
	qkv := n.With(graph.Int("axis", -1), graph.Int("num_outputs", 3)).Ops("Split", 3, x)
	scale := float32(1 / math.Sqrt(float64(m.width/m.heads)))
	q := n.Op("Mul", qkv[0], n.constant(m.name+"scale", tensor.Scalar(scale)))
	k := n.With(graph.Ints("perm", 0, 1, 3, 2)).Op("Transpose", heads(qkv[1]))
	scores := n.Op("MatMul", heads(q), k)
	if m.mask != "" {
		scores = n.Op("Add", scores, m.mask)
	}
	y := n.Op("MatMul", n.With(graph.Int("axis", -1)).Op("Softmax", scores), heads(qkv[2]))
	y = n.With(graph.Ints("perm", 0, 2, 1, 3)).Op("Transpose", y)
	return n.Op("Reshape", y, n.Ints(-1, m.width))
}

// headsDivide returns an error unless each head gets as many elements.
func headsDivide(heads, width int) error {
	if width%heads != 0 {
		return fmt.Errorf("heads=%d do not divide width=%d: choose heads=%d", heads, width, divisor(width, min(heads, width)))
	}
	return nil
}
