package family

import (
	"maps"
	"slices"
)

// Features are what tells families apart.
type Features struct {
	Norms
	Biases
	Fused       bool    // one weight has queries, keys and values; one gate and up
	Columns     bool    // weights are [in, out]
	Learned     bool    // positions have embeddings, and nothing is turned
	Paired      bool    // in rows of queries and keys, what is turned together are neighbours; else elements of both halves of a head, as graphs want it
	Plain       bool    // the feed-forward part has no gate
	EmbedScale  bool    // embeddings are multiplied by √Width
	Softcaps    bool    // config.json may have them
	Scalar      bool    // query_pre_attn_scalar is the scale
	Windowed    bool    // config.json may have windows
	Pattern     int     // each so many layers one sees all, unless layer_types say it
	LocalRotary bool    // layers with a window have a base of their own
	Partial     bool    // config.json may say that a part of each head is turned
	Long        bool    // config.json may have longrope
	Tied        bool    // unless config.json says otherwise
	Theta       float32 // unless config.json says otherwise
	Activation  string  // likewise

	legacyGelu bool              // where config.json says gelu, the weights were made with its approximation
	names      map[string]string // of weights
}

// Norms are what norms a family has, and which.
type Norms struct {
	LayerNorm  bool // with mean and bias; else root mean square
	UnitOffset bool // norms multiply by 1 + weight
	PostNorms  bool // what attention and feed-forward give is normed, too
	QKNorm     bool // queries and keys are normed, head by head
}

// Biases are where a family adds some.
type Biases struct {
	Bias    bool // to queries, keys and values
	OutBias bool // where these have one, to what attention gives
	MLPBias bool // to the feed-forward part

	ignoresBias bool // attention_bias says nothing
}

// Weights that families call by other names. %d is the layer.
var gpt2Names = map[string]string{
	"model.embed_tokens.weight":       "wte.weight",
	"model.positions.weight":          "wpe.weight",
	"model.norm.weight":               "ln_f.weight",
	"model.norm.bias":                 "ln_f.bias",
	"input_layernorm.weight":          "ln_1.weight",
	"input_layernorm.bias":            "ln_1.bias",
	"post_attention_layernorm.weight": "ln_2.weight",
	"post_attention_layernorm.bias":   "ln_2.bias",
	"self_attn.qkv_proj.weight":       "attn.c_attn.weight",
	"self_attn.qkv_proj.bias":         "attn.c_attn.bias",
	"self_attn.o_proj.weight":         "attn.c_proj.weight",
	"self_attn.o_proj.bias":           "attn.c_proj.bias",
	"mlp.up_proj.weight":              "mlp.c_fc.weight",
	"mlp.up_proj.bias":                "mlp.c_fc.bias",
	"mlp.down_proj.weight":            "mlp.c_proj.weight",
	"mlp.down_proj.bias":              "mlp.c_proj.bias",
}

var (
	gemma = Norms{UnitOffset: true, PostNorms: true}

	families = map[string]Features{
		"llama":   {Theta: 10_000, Activation: "silu", Biases: Biases{OutBias: true}},
		"mistral": {Theta: 10_000, Activation: "silu", Windowed: true, Biases: Biases{ignoresBias: true}},
		"qwen2":   {Theta: 10_000, Activation: "silu", Windowed: true, Biases: Biases{Bias: true, ignoresBias: true}},
		"qwen3":   {Theta: 10_000, Activation: "silu", Windowed: true, Norms: Norms{QKNorm: true}, Biases: Biases{OutBias: true}},
		"phi3":    {Theta: 10_000, Activation: "silu", Windowed: true, Fused: true, Partial: true, Long: true, Biases: Biases{ignoresBias: true}},
		"gemma":   {Theta: 10_000, Activation: "gelu_pytorch_tanh", Norms: Norms{UnitOffset: true}, Biases: Biases{OutBias: true}, EmbedScale: true, legacyGelu: true, Tied: true},
		"gemma2": {Theta: 10_000, Activation: "gelu_pytorch_tanh", Norms: gemma, Biases: Biases{OutBias: true}, EmbedScale: true,
			Softcaps: true, Scalar: true, Windowed: true, Pattern: 2, Tied: true},
		"gemma3_text": {Theta: 1_000_000, Activation: "gelu_pytorch_tanh", Norms: Norms{UnitOffset: true, PostNorms: true, QKNorm: true},
			Biases: Biases{OutBias: true}, EmbedScale: true, Softcaps: true, Scalar: true, Windowed: true, Pattern: 6, LocalRotary: true, Tied: true},
		"gpt2": {Activation: "gelu_new", Norms: Norms{LayerNorm: true}, Biases: Biases{Bias: true, OutBias: true, MLPBias: true},
			Fused: true, Columns: true, Learned: true, Plain: true, Tied: true, names: gpt2Names},
	}
)

// Names returns the families that are known, sorted.
func Names() []string { return slices.Sorted(maps.Keys(families)) }
