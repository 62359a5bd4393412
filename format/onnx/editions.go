package onnx

import "github.com/tally-network/tally/core/graph"

// Operator sets that are read.
const (
	OldestSet = 13
	NewestSet = 27
)

// edition is a version of an operator's definition that graphs can tell from
// the one before. The rule takes a node across it, in whichever direction the
// graph's set lies.
type edition struct {
	since int
	rule  rule
}

// editions lists, in ascending order, where operators changed between the sets
// that are read: inputs, outputs, attributes, defaults or their meaning.
// Definitions that only take more element types are not listed. A nil rule
// says that what was added means, by default, what was meant before.
var editions = map[string][]edition{
	"AffineGrid":          {{20, introduced}},
	"Attention":           {{23, introduced}},
	"AveragePool":         {{19, nil}}, // dilations
	"BatchNormalization":  {{14, inferenceOnly}},
	"Bernoulli":           {{15, introduced}},
	"BitCast":             {{26, introduced}},
	"BitwiseAnd":          {{18, introduced}},
	"BitwiseNot":          {{18, introduced}},
	"BitwiseOr":           {{18, introduced}},
	"BitwiseXor":          {{18, introduced}},
	"BlackmanWindow":      {{17, introduced}},
	"Cast":                {{19, nil}, {24, withoutAttr("round_mode")}}, // saturate
	"CastLike":            {{15, introduced}, {19, nil}, {24, withoutAttr("round_mode")}},
	"CausalConvWithState": {{27, introduced}},
	"CenterCropPad":       {{18, introduced}},
	"Col2Im":              {{18, introduced}},
	"CumProd":             {{26, introduced}},
	"DFT":                 {{17, introduced}, {20, attrToInput("axis", 2, 1)}},
	"DeformConv":          {{19, introduced}},
	"DequantizeLinear":    {{21, nil}, {23, withoutAttr("output_dtype")}}, // block_size
	"GRU":                 {{14, nil}},                                    // layout
	"Gelu":                {{20, introduced}},
	"GridSample":          {{16, introduced}, {20, renamedValue("mode", map[string]string{"bilinear": "linear", "bicubic": "cubic"})}},
	"GroupNormalization":  {{18, introduced}, {21, notUpgraded("scale and bias were by group and are by channel: export the model with operator set 21")}},
	"HammingWindow":       {{17, introduced}},
	"HannWindow":          {{17, introduced}},
	"HardSwish":           {{14, introduced}},
	"ImageDecoder":        {{20, introduced}},
	"LSTM":                {{14, nil}}, // layout
	"LayerNormalization":  {{17, introduced}},
	"LinearAttention":     {{27, introduced}},
	"LpPool":              {{18, nil}}, // ceil_mode, dilations
	"MelWeightMatrix":     {{17, introduced}},
	"Mish":                {{18, introduced}},
	"Optional":            {{15, introduced}},
	"OptionalGetElement":  {{15, introduced}},
	"OptionalHasElement":  {{15, introduced}, {18, nil}}, // the input is optional
	"Pad":                 {{18, nil}},                   // axes
	"QuantizeLinear":      {{19, nil}, {21, nil}, {23, withoutAttr("precision")}},
	"RMSNormalization":    {{23, introduced}},
	"RNN":                 {{14, nil}}, // layout
	"Range":               {{27, withoutAttr("stash_type")}},
	"ReduceL1":            {{18, attrToInput("axes", 1)}},
	"ReduceL2":            {{18, attrToInput("axes", 1)}},
	"ReduceLogSum":        {{18, attrToInput("axes", 1)}},
	"ReduceLogSumExp":     {{18, attrToInput("axes", 1)}},
	"ReduceMax":           {{18, attrToInput("axes", 1)}},
	"ReduceMean":          {{18, attrToInput("axes", 1)}},
	"ReduceMin":           {{18, attrToInput("axes", 1)}},
	"ReduceProd":          {{18, attrToInput("axes", 1)}},
	"ReduceSumSquare":     {{18, attrToInput("axes", 1)}},
	"RegexFullMatch":      {{20, introduced}},
	"Reshape":             {{14, nil}}, // allowzero
	"Resize":              {{18, nil}}, // antialias, axes, keep_aspect_ratio_policy
	"RoiAlign":            {{16, oldDefault(graph.Attr{Name: "coordinate_transformation_mode", Kind: graph.AttrString, String: "output_half_pixel"})}},
	"RotaryEmbedding":     {{23, introduced}},
	"STFT":                {{17, introduced}},
	"ScatterElements":     {{16, nil}}, // reduction
	"ScatterND":           {{16, nil}}, // reduction
	"SequenceMap":         {{17, introduced}},
	"Shape":               {{15, nil}}, // start, end
	"Split":               {{18, equalParts}},
	"StringConcat":        {{20, introduced}},
	"StringSplit":         {{20, introduced}},
	"Swish":               {{24, introduced}},
	"TensorScatter":       {{24, introduced}},
	"Trilu":               {{14, introduced}},
}
