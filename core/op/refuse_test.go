package op_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
)

// What cannot be done exactly is refused by the name of its node, with words
// that say what to do.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		want  string
		op    string
		attrs []graph.Attr
		in    []arg
		outs  int
	}{
		{"not supported; write the model without it", "Convolve", nil, []arg{f(1, 1, 3, 3), f(1, 1, 2, 2)}, 1},
		{"it has 1 inputs, but takes 2", "Add", nil, []arg{f(1)}, 1},
		{"it has 3 outputs, but gives 1 to 2", "Dropout", nil, []arg{f(1)}, 3},
		{"input 0 is missing", "Sub", nil, []arg{none, f(1)}, 1},
		{`attribute "alpha" is not supported`, "Relu", []graph.Attr{graph.Float("alpha", 1)}, []arg{f(1)}, 1},
		{`attribute "axis" is a float, but should be an integer`, "Softmax", []graph.Attr{graph.Float("axis", 1)}, []arg{f(1)}, 1},
		{"are float32 and int64; cast one", "Mul", nil, []arg{f(2), few(2)}, 1},
		{"it does not take bool", "Add", nil, []arg{bools(2), bools(2)}, 1},
		{"do not broadcast", "Add", nil, []arg{f(2), f(3)}, 1},
		{"is int64, but should be a float", "Exp", nil, []arg{few(2)}, 1},
		{"not defined on float64; cast", "Erf", nil, []arg{as(tensor.Float64, f(2))}, 1},
		{"cannot be multiplied", "MatMul", nil, []arg{as(tensor.Int8, few(2, 2)), as(tensor.Int8, few(2, 2))}, 1},
		{"alpha is 0.5, but should be an integer", "Gemm", []graph.Attr{graph.Float("alpha", 0.5)}, []arg{few(2, 2), few(2, 2)}, 1},
		{"element type 8 is not supported", "Cast", []graph.Attr{graph.Int("to", 8)}, []arg{f(2)}, 1},
		{"float32 does not have powers of type bool", "Pow", nil, []arg{f(2), bools(2)}, 1},
		{"takes integers, or any numbers with fmod 1", "Mod", nil, []arg{f(2), f(2)}, 1},
		{"is not LEFT or RIGHT", "BitShift", nil, []arg{few(2), few(2)}, 1},
		{"does not take float32, but integers", "BitwiseAnd", nil, []arg{f(2), f(2)}, 1},
		{"elements of different sizes", "BitCast", to(tensor.Int64), []arg{f(2)}, 1},
		{"should be one number", "Clip", nil, []arg{f(2), f(2)}, 1},
		{"does not broadcast to [2]", "PRelu", nil, []arg{f(2), f(3, 2)}, 1},
		{"out of range for int8", "Shrink", []graph.Attr{graph.Float("bias", 1e20)}, []arg{as(tensor.Int8, few(2))}, 1},
		{"must be constant", "Reshape", nil, []arg{f(2), few(1)}, 1},
		{"should be a short list of integers", "Reshape", nil, []arg{f(2), fixed(f(1))}, 1},
		{"does not fit the 6 elements", "Reshape", nil, []arg{f(6), list(4)}, 1},
		{"does not fit the 6 elements", "Reshape", nil, []arg{f(6), list(-1, 4)}, 1},
		{"has the extent -1", "Reshape", nil, []arg{f(6), list(-1, -1)}, 1},
		{"copies axis 1", "Reshape", nil, []arg{f(6), list(6, 0)}, 1},
		{"is not between 0 and 2^40", "Reshape", nil, []arg{f(6), list(1<<62, 1<<62)}, 1},
		{"is not between 0 and 2^40", "Expand", nil, []arg{f(1), list(math.MaxInt64)}, 1},
		{"more than 2^40 elements", "Expand", nil, []arg{f(1), list(1<<39, 1<<39)}, 1},
		{"is not between 0 and 2^40", "ConstantOfShape", nil, []arg{list(-1)}, 1},
		{"axes, limit 8", "Unsqueeze", nil, []arg{f(1, 1, 1, 1, 1, 1, 1), list(0, 1, 2)}, 1},
		{"name one twice", "Unsqueeze", nil, []arg{f(1), list(0, 0)}, 1},
		{"axis 3 does not exist", "Flatten", []graph.Attr{graph.Int("axis", 3)}, []arg{f(2)}, 1},
		{"is not 1", "Squeeze", nil, []arg{f(2), list(0)}, 1},
		{"does not permute", "Transpose", []graph.Attr{graph.Ints("perm", 0, 0)}, []arg{f(2, 2)}, 1},
		{"does not permute", "Transpose", []graph.Attr{graph.Ints("perm", 0, -1)}, []arg{f(2, 2)}, 1},
		{"exactly one value", "Constant", nil, nil, 1},
		{"its value is missing", "Constant", []graph.Attr{graph.Tensor("value", nil)}, nil, 1},
		{"should have one", "ConstantOfShape", []graph.Attr{graph.Tensor("value", tensor.Must(tensor.New(tensor.Int32, tensor.Shape{0})))}, []arg{list(1)}, 1},
		{"give it the attribute seed", "Dropout", nil, []arg{f(2), ratio(0.5), yes}, 1},
		{"should be one value", "Dropout", nil, []arg{f(2), f(2), yes}, 1},
		{"give it the attribute seed", "RandomNormal", []graph.Attr{graph.Ints("shape", 2)}, nil, 1},
		{"more than 2^32 elements", "RandomNormal", sown(1, graph.Ints("shape", 1<<33)), nil, 1},
		{"it draws floats, not int64", "RandomUniformLike", sown(1), []arg{few(2)}, 1},
		{"should be a float", "Bernoulli", sown(1), []arg{few(2)}, 1},
		{"should be floats [batch classes]", "Multinomial", sown(1), []arg{f(2)}, 1},
		{"may differ on axis 0 alone", "Concat", axisIs(0), []arg{f(2, 3), f(2, 2)}, 1},
		{"axis 2 does not exist", "Concat", axisIs(2), []arg{f(2), f(2)}, 1},
		{"do not make up axis 0", "Split", nil, []arg{f(4), list(1, 2)}, 2},
		{"do not make up axis 0", "Split", nil, []arg{f(4), list(5, -1)}, 2},
		{"names 2 outputs, but gives 3", "Split", []graph.Attr{graph.Int("num_outputs", 3)}, []arg{f(4)}, 2},
		{"step on axis 0 is 0", "Slice", nil, []arg{f(4), list(0), list(1), list(0), list(0)}, 1},
		{"have lengths 1, 2, 1 and 0", "Slice", nil, []arg{f(4), list(0), list(1, 2)}, 1},
		{"axis 9 does not exist", "Slice", nil, []arg{f(4), list(0), list(1), list(9)}, 1},
		{`mode "mirror" is not supported`, "Pad", padMode("mirror"), []arg{f(4), list(1, 1)}, 1},
		{"does not go with queries", "Attention", nil, []arg{f(1, 1, 2, 2), f(1, 2, 2), f(1, 1, 2, 2)}, 1},
		{"0 heads do not divide", "Attention", nil, []arg{f(1, 2, 2), f(1, 2, 2), f(1, 2, 2)}, 1},
		{"do not share 2 heads", "Attention", nil, []arg{f(1, 3, 2, 2), f(1, 2, 2, 2), f(1, 2, 2, 2)}, 1},
		{"which do not go together", "Attention", nil, []arg{f(1, 1, 2, 2), f(1, 1, 2, 3), f(1, 1, 2, 2)}, 1},
		{"past_key and past_value go together", "Attention", nil, []arg{f(1, 1, 2, 2), f(1, 1, 2, 2), f(1, 1, 2, 2), none, f(1, 1, 1, 2)}, 1},
		{"does not broadcast to [1 1 2 3]", "Attention", nil, []arg{f(1, 1, 2, 2), f(1, 1, 3, 2), f(1, 1, 3, 2), f(4, 3)}, 1},
		{"qk_matmul_output_mode 4", "Attention", []graph.Attr{graph.Int("qk_matmul_output_mode", 4)}, []arg{f(1, 1, 2, 2), f(1, 1, 2, 2), f(1, 1, 2, 2)}, 1},
		{"scale -1 is not supported", "Attention", []graph.Attr{graph.Float("scale", -1)}, []arg{f(1, 1, 2, 2), f(1, 1, 2, 2), f(1, 1, 2, 2)}, 1},
		{"no type of floats", "Attention", []graph.Attr{graph.Int("softmax_precision", 7)}, []arg{f(1, 1, 2, 2), f(1, 1, 2, 2), f(1, 1, 2, 2)}, 1},
		{"cannot be turned in pairs", "RotaryEmbedding", nil, []arg{f(1, 1, 2, 3), f(1, 2, 1), f(1, 2, 1)}, 1},
		{"should have [positions 1] and [1 2]", "RotaryEmbedding", nil, []arg{f(1, 1, 2, 2), f(1, 2, 1), f(1, 2, 1), few(1, 2)}, 1},
		{`update_rule "fast" is not supported`, "LinearAttention", headCounts(1, 1, rule("fast")), []arg{f(1, 1, 2), f(1, 1, 2), f(1, 1, 2)}, 1},
		{"decay (input 5) is required", "LinearAttention", headCounts(1, 1), []arg{f(1, 1, 2), f(1, 1, 2), f(1, 1, 2)}, 1},
		{"may have 1 to 4096", "LinearAttention", headCounts(1, 1, rule("linear")), []arg{f(1, 20000, 1), f(1, 20000, 1), f(1, 20000, 1)}, 1},
		{"past_state has shape", "CausalConvWithState", nil, []arg{f(1, 2, 3), f(2, 1, 3), none, f(1, 2, 3)}, 1},
		{`activation "relu" is not supported`, "CausalConvWithState", []graph.Attr{graph.String("activation", "relu")}, []arg{f(1, 2, 3), f(2, 1, 3)}, 1},
		{"should be float32[1 2 2]", "RNN", nil, []arg{f(1, 1, 2), f(1, 3, 2), f(1, 2, 2)}, 1},
		{`direction "up" is not supported`, "LSTM", []graph.Attr{graph.String("direction", "up")}, []arg{f(1, 1, 2), f(1, 8, 2), f(1, 8, 2)}, 1},
		{"1 activations are given, but it takes 2", "GRU", []graph.Attr{graph.Strings("activations", "Tanh")}, []arg{f(1, 1, 2), f(1, 6, 2), f(1, 6, 2)}, 1},
		{`activation "Erf" is not supported`, "RNN", []graph.Attr{graph.Strings("activations", "Erf")}, []arg{f(1, 1, 2), f(1, 2, 2), f(1, 2, 2)}, 1},
		{"hidden_size is 3", "RNN", []graph.Attr{graph.Int("hidden_size", 3)}, []arg{f(1, 1, 2), f(1, 2, 2), f(1, 2, 2)}, 1},
		{"must be constant", "NonMaxSuppression", nil, []arg{f(1, 4, 4), f(1, 1, 4)}, 1},
		{"should be float32 [batch count 4]", "NonMaxSuppression", nil, []arg{four, scored(1, 1, 2, 3)}, 1},
		{"do not cut 8 items", "TfIdfVectorizer", badGrams, []arg{sentences}, 1},
		{"1 weights are given", "TfIdfVectorizer", grams(2, 0, "IDF", graph.Floats("weights", 1)), []arg{sentences}, 1},
		{`mode "TD" is not supported`, "TfIdfVectorizer", grams(2, 0, "TD"), []arg{sentences}, 1},
		{"the sequence has 0 steps", "RNN", nil, []arg{f(0, 1, 2), f(1, 2, 2), f(1, 2, 2)}, 1},
		{"both should be int8, uint8, int16 or uint16", "QuantizeLinear", []graph.Attr{graph.Int("output_dtype", 7)}, []arg{f(2), f()}, 1},
		{"which is not supported", "QuantizeLinear", []graph.Attr{graph.Int("output_dtype", 21)}, []arg{f(2), f()}, 1},
		{"does not go with axis 1 of [2 3] in blocks of 0", "QuantizeLinear", nil, []arg{f(2, 3), f(2)}, 1},
		{"in blocks of 4", "DequantizeLinear", []graph.Attr{graph.Int("block_size", 4)}, []arg{bytes(2, 3), f(2, 3)}, 1},
		{"scale and zero point have shapes", "DequantizeLinear", nil, []arg{bytes(2, 3), f(), bytes(3)}, 1},
		{"does not bring int64", "DequantizeLinear", nil, []arg{few(2), f()}, 1},
		{"does not go with matrices of shape [3 4]", "MatMulInteger", nil, []arg{bytes(3, 4), bytes(4, 2), bytes(4)}, 1},
		{"should be int8 or uint8", "MatMulInteger", nil, []arg{f(3, 4), bytes(4, 2)}, 1},
		{"should be one number", "ConvInteger", nil, []arg{bytes(1, 2, 4), bytes(1, 2, 2), bytes(2)}, 1},
		{"does not go with kernels", "ConvInteger", nil, []arg{bytes(1, 2, 4), bytes(1, 2, 2), none, bytes(2)}, 1},
		{"the scales are float32, float32 and float16", "QLinearMatMul", nil, []arg{bytes(1, 1), f(), bytes(), bytes(1, 1), f(), bytes(), as(tensor.Float16, f()), bytes()}, 1},
		{"are too wide for 2 elements", "Pad", padMode("reflect"), []arg{f(2), list(0, 1<<30)}, 1},
		{"it is empty", "Pad", padMode("edge"), []arg{f(2, 0), list(0, 1, 0, 0)}, 1},
		{"should be one float32", "Pad", nil, []arg{f(2), list(0, 1), few(1)}, 1},
		{"has no end", "Range", nil, limits(tensor.Int64, 0, 1, 0), 1},
		{"has no end", "Range", nil, limits(tensor.Float32, 0, math.NaN(), 1), 1},
		{"more than 2^40", "Range", nil, limits(tensor.Int64, 0, 1<<41, 1), 1},
		{"must be constant", "Range", nil, []arg{few(), few(), few()}, 1},
		{"3 repeats are given for 1 axes", "Tile", nil, []arg{f(2), list(1, 1, 1)}, 1},
		{"is to be repeated -1 times", "Tile", nil, []arg{f(2), list(-1)}, 1},
		{"more than 2^40 elements", "Tile", nil, []arg{f(2, 2), list(1<<39, 1<<39)}, 1},
		{"the depth is -1", "OneHot", nil, []arg{few(2), list(-1), f(2)}, 1},
		{"should be numbers and two values", "OneHot", nil, []arg{few(2), list(3), f(3)}, 1},
		{"should be matrices", "Trilu", nil, []arg{f(2)}, 1},
		{"should be a matrix", "EyeLike", nil, []arg{f(2)}, 1},
		{"no 5 first of the 4", "TopK", nil, []arg{f(2, 4), list(5)}, 1},
		{"must be constant", "TopK", nil, []arg{f(2, 4), few(1)}, 1},
		{"must be constant", "NonZero", nil, []arg{f(2)}, 1},
		{"must be constant", "Unique", nil, []arg{f(2)}, 1},
		{"must be constant", "Compress", nil, []arg{f(2), bools(2)}, 1},
		{"selects element 2 of the 2", "Compress", axisIs(0), []arg{f(2, 3), fixed(given(tensor.Bool, []int{3}, 0, 0, 1))}, 1},
		{"should be axes 0 and 1", "ReverseSequence", []graph.Attr{graph.Int("time_axis", 2)}, []arg{f(2, 2, 2), few(2)}, 1},
		{"should be 3 integers", "ReverseSequence", nil, []arg{f(2, 3), few(2)}, 1},
		{"does not go into a cache", "TensorScatter", nil, []arg{f(2, 3, 2), f(2, 4, 2)}, 1},
		{"does not go into a cache", "TensorScatter", axisIs(0), []arg{f(2, 3), f(2, 3)}, 1},
		{"with 1 axes of batches", "GatherND", []graph.Attr{graph.Int("batch_dims", 1)}, []arg{f(2, 3), few(3, 1)}, 1},
		{"3 pads are given for 1 axes", "Pad", nil, []arg{f(4), list(1, 1, 1)}, 1},
		{"leave nothing", "Pad", nil, []arg{f(4), list(-3, -3)}, 1},
		{"pad 9223372036854775807 is out of range", "Pad", nil, []arg{f(4), list(math.MaxInt64, 0)}, 1},
		{"indices are int32 or int64", "Gather", nil, []arg{f(4), f(1)}, 1},
		{"do not go with data", "GatherElements", nil, []arg{f(4), few(1, 1)}, 1},
		{"reach outside data", "GatherElements", nil, []arg{f(4, 2), few(1, 3)}, 1},
		{"do not select from data", "GatherND", nil, []arg{f(4), few(1, 2)}, 1},
		{"updates have shape", "ScatterND", nil, []arg{f(4), few(2, 1), f(3)}, 1},
		{`reduction "mean" is not supported`, "ScatterND", []graph.Attr{reduction("mean")}, []arg{f(4), few(2, 1), f(2)}, 1},
		{"do not fit: 3 against 4", "MatMul", nil, []arg{f(2, 3), f(4, 2)}, 1},
		{"cannot be multiplied", "MatMul", nil, []arg{f(), f(4)}, 1},
		{"should be a matrix", "Gemm", nil, []arg{f(2), f(2, 2)}, 1},
		{"does not broadcast to [2 2]", "Gemm", nil, []arg{f(2, 2), f(2, 2), f(3, 1, 1)}, 1},
		{"axis -3 does not exist", "ReduceSum", nil, []arg{f(2, 2), list(-3)}, 1},
		{"axis 0 does not exist", "ArgMax", nil, []arg{f()}, 1},
		{"axis -1 does not exist", "Softmax", nil, []arg{f()}, 1},
		{"stash_type is int64, but should be a float", "LayerNormalization", []graph.Attr{graph.Int("stash_type", 7)}, []arg{f(2), f(2)}, 1},
		{"does not broadcast to [2]", "LayerNormalization", nil, []arg{f(2), f(3)}, 1},
		{"input \"x1\" must be constant", "CumSum", nil, []arg{f(2), few()}, 1},
		{"should be one axis", "CumSum", nil, []arg{f(2), list(0, 1)}, 1},
		{"axis 1 does not exist", "CumProd", nil, []arg{f(2), list(1)}, 1},
		{"p is 3, but should be 1 or 2", "LpNormalization", []graph.Attr{graph.Int("p", 3)}, []arg{f(2)}, 1},
		{"it sums over 0 channels", "LRN", nil, []arg{f(2, 3)}, 1},
		{"it sums over 1099511627776 channels", "LRN", []graph.Attr{graph.Int("size", 1<<40)}, []arg{f(2, 3)}, 1},
		{"3 channels do not make 2 groups", "GroupNormalization", []graph.Attr{graph.Int("num_groups", 2)}, []arg{f(2, 3, 1), f(3), f(3)}, 1},
		{"3 channels do not make 0 groups", "GroupNormalization", nil, []arg{f(2, 3, 1), f(3), f(3)}, 1},
		{"a number for each channel", "InstanceNormalization", nil, []arg{f(2, 3, 1), f(3), f(2)}, 1},
		{"should have at least 3 axes", "InstanceNormalization", nil, []arg{f(2, 3), f(3), f(3)}, 1},
		{"in training_mode only", "BatchNormalization", nil, []arg{f(2, 3), f(3), f(3), f(3), f(3)}, 3},
		{"axis 3 does not exist", "MeanVarianceNormalization", nil, []arg{f(2, 3, 4)}, 1},
		{"weights are float32[2], but should be float32[3]", "NegativeLogLikelihoodLoss", nil, []arg{f(2, 3), few(2), f(2)}, 1},
		{`reduction "max" is not supported`, "NegativeLogLikelihoodLoss", []graph.Attr{reduction("max")}, []arg{f(2, 3), few(2)}, 1},
		{"the number of terms, 256, is no int8", "ReduceMean", nil, []arg{ints(tensor.Int8, 0, 1, 256)}, 1},
		{"labels have shape [3], but should have [2]", "SoftmaxCrossEntropyLoss", nil, []arg{f(2, 3), few(3)}, 1},
		{"forward transform of the conjugate", "DFT", []graph.Attr{inverse}, []arg{f(1, 6, 2)}, 1},
		{`approximation "fast" is not supported`, "Gelu", []graph.Attr{graph.String("approximate", "fast")}, []arg{f(2)}, 1},
	} {
		s := sample{name: "bad", op: c.op, attrs: c.attrs, in: c.in, outs: c.outs}
		_, tensors := s.draw()
		b, _, outputs := s.build(tensors)
		b.Output(outputs[0], 0, nil)
		_, err := op.Infer(b.Graph(), lower.FP32)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `node "y" (`+c.op+`)`) {
			t.Errorf("%s: want %q with the node's name, got: %v", c.op, c.want, err)
		}
	}
}

// A model whose cost cannot be counted, or that holds too much, is refused
// before anything is allocated.
func TestCostIsBounded(t *testing.T) {
	b := graph.NewBuilder("big")
	x := b.Input("x", tensor.Float32, tensor.Shape{500_000, 500_000})
	y := x
	for range 6 {
		y = b.Op("MatMul", y, x)
	}
	b.Output(y, 0, nil)
	if _, err := op.Infer(b.Graph(), lower.FP32); err == nil || !strings.Contains(err.Error(), "more than is allowed") {
		t.Fatal(err)
	}
	b = graph.NewBuilder("constant")
	c := b.Const(tensor.Scalar[float32](1))
	big := b.Op("Neg", b.Op("Expand", c, b.Ints(1<<38)))
	b.Output(b.Op("Shape", big), 0, nil)
	typed, err := op.Infer(b.Graph(), lower.FP32) // not computed, only typed
	if err != nil {
		t.Fatal(err)
	}
	if got := evaluate(t, typed, nil, nil)[0]; got.At(0) != 1<<38 {
		t.Fatal(got)
	}
}
