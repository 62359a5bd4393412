package family

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/gguf"
)

// architecture is how GGUF files have a family.
type architecture struct {
	family string
	paired bool // what Features.Paired says
	wide   int  // layers of the one size whose scale follows from Width/Heads, since no key tells it
	wants  []string
}

var architectures = map[string]architecture{
	"llama":  {family: "llama", paired: true}, // and Mistral's
	"qwen2":  {family: "qwen2"},
	"qwen3":  {family: "qwen3"},
	"phi3":   {family: "phi3"},
	"gemma":  {family: "gemma"},
	"gemma2": {family: "gemma2", wide: 46, wants: []string{"attention.sliding_window", "attn_logit_softcapping", "final_logit_softcapping"}}, // the first files had none
	"gemma3": {family: "gemma3_text", wide: 62},
	"gpt2":   {family: "gpt2"},
}

// ggufNames are the names of weights there. Those in a layer follow its number.
var ggufNames = map[string]string{
	"model.embed_tokens":         "token_embd",
	"model.positions":            "position_embd",
	"model.norm":                 "output_norm",
	"lm_head":                    "output",
	"input_layernorm":            "attn_norm",
	"self_attn.qkv_proj":         "attn_qkv",
	"self_attn.q_proj":           "attn_q",
	"self_attn.k_proj":           "attn_k",
	"self_attn.v_proj":           "attn_v",
	"self_attn.q_norm":           "attn_q_norm",
	"self_attn.k_norm":           "attn_k_norm",
	"self_attn.o_proj":           "attn_output",
	"post_attention_layernorm":   "ffn_norm", // before the feed-forward part, unless the family has norms after
	"pre_feedforward_layernorm":  "ffn_norm",
	"post_feedforward_layernorm": "post_ffw_norm",
	"mlp.gate_proj":              "ffn_gate",
	"mlp.up_proj":                "ffn_up",
	"mlp.gate_up_proj":           "ffn_up",
	"mlp.down_proj":              "ffn_down",
}

// GGUFName is what a weight is called in a GGUF file.
func (c *Config) GGUFName(name string) string {
	layer, in, inLayer := InLayer(name)
	at := strings.LastIndexByte(in, '.')
	own := ggufNames[in[:at]]
	if c.Of.PostNorms && in[:at] == "post_attention_layernorm" {
		own = "post_attention_norm"
	}
	if inLayer {
		own = "blk." + layer + "." + own
	}
	return own + in[at:]
}

// Weights that say by what angles are divided. Of the long ones, which are for longer texts, nothing is read.
const (
	llamaFactors = "rope_freqs.weight"
	shortFactors = "rope_factors_short.weight"
	longFactors  = "rope_factors_long.weight"
)

// Factors names the weight of a file that [Config.SetFactors] wants, "" if there is none.
func (c *Config) Factors(f *gguf.File) string {
	for _, name := range []string{llamaFactors, shortFactors} {
		if _, ok := f.Find(name); ok {
			return name
		}
	}
	return ""
}

// SetFactors takes what angles are divided by, which the header of a file does not tell.
func (c *Config) SetFactors(x *tensor.Tensor) error {
	factors, err := c.factors(tensor.Of[float32](x))
	if err != nil {
		return err
	}
	c.Rotary[0].Factors, c.Rotary[1].Factors = factors, factors
	return nil
}

// Unread returns an error if a file has a weight that the graph does not read: the model is more than the family.
func (c *Config) Unread(f *gguf.File) error {
	read := map[string]bool{llamaFactors: c.Of.Paired, shortFactors: c.Of.Long, longFactors: c.Of.Long}
	for _, w := range c.Weights() {
		read[c.GGUFName(w.Name)] = true
	}
	for _, t := range f.Tensors {
		if !read[t.Name] {
			return fmt.Errorf("weight %q is none of the family %s: models that have it are not supported", t.Name, c.Family)
		}
	}
	return nil
}

// ParseGGUF reads the header of a GGUF file, as llama.cpp's converter writes it. It reads no weights: what [Config.Factors] names is still to be set.
func ParseGGUF(f *gguf.File) (*Config, error) {
	arch, err := f.Text("general.architecture")
	if err != nil {
		return nil, err
	}
	a, ok := architectures[arch]
	if !ok {
		return nil, fmt.Errorf("a GGUF file of architecture %.40q is not supported: there are %v", arch, slices.Sorted(maps.Keys(architectures)))
	}
	r := &keyReader{f: f, arch: arch, asked: map[string]bool{}}
	s := r.settings(a)
	scale := float32(0)
	if families[a.family].Scalar {
		scale = r.float("attention.scale", 0)
	}
	r.rest()
	if r.err != nil {
		return nil, r.err
	}
	c, err := s.config()
	if err != nil {
		return nil, err
	}
	c.Of.Paired = a.paired
	c.Of.UnitOffset = false // the converter has added the 1
	c.Of.Columns = false    // and made columns rows
	c.Of.OutBias = c.Of.Bias && r.has("blk.0.attn_output.bias")
	c.Of.MLPBias = r.has("blk.0.ffn_down.bias")
	c.Tied = !r.has("output.weight")
	if scale != 0 {
		c.Scale = scale
	}
	return c, nil
}

// keyReader reads keys of an architecture, up to the first error.
type keyReader struct {
	f     *gguf.File
	arch  string
	asked map[string]bool
	err   error
}

// settings are what config.json would say.
func (r *keyReader) settings(a architecture) *settings {
	of := families[a.family]
	s := &settings{Family: a.family}
	s.Layers, s.Width, s.Heads = r.number("block_count", 0), r.number("embedding_length", 0), r.number("attention.head_count", 0)
	s.Shared, s.Context = r.number("attention.head_count_kv", s.Heads), r.number("context_length", 0)
	s.sizes.Hidden, s.HeadSize = r.number("feed_forward_length", 0), r.number("attention.key_length", s.Width/max(s.Heads, 1))
	if of.LayerNorm {
		s.Epsilon = r.float("attention.layer_norm_epsilon", 0)
	} else {
		s.RMSEpsilon = r.float("attention.layer_norm_rms_epsilon", 0)
	}
	if e, ok := r.f.Find("token_embd.weight"); !ok || len(e.Shape) != 2 {
		r.fail("there is no token_embd.weight, or it is no matrix")
	} else {
		s.Vocabulary = e.Shape[0]
	}
	s.Bias = r.has("blk.0.attn_q.bias")
	if of.Softcaps {
		for key, to := range map[string]**float32{"attn_logit_softcapping": &s.Softcap, "final_logit_softcapping": &s.HeadCap} { // each has its own
			v := r.float(key, 0)
			*to = &v
		}
	}
	if of.Scalar {
		v := float32(s.HeadSize)
		if s.Layers == a.wide {
			v = float32(s.Width / max(s.Heads, 1))
		}
		s.Scalar = &v
	}
	for _, key := range a.wants {
		if whole, ok := r.ask(key); !ok {
			r.fail("%s is missing: convert the model again", whole)
		}
	}
	r.rotation(&s.rotation, &of)
	r.windows(s, &of)
	r.refuse(s.HeadSize)
	return s
}

// rotation reads by what angles queries and keys turn.
func (r *keyReader) rotation(s *rotation, of *Features) {
	if of.Learned {
		return
	}
	s.Theta, s.turned = r.float("rope.freq_base", 10_000), r.number("rope.dimension_count", 0)
	if of.LocalRotary {
		s.LocalTheta = r.float("rope.freq_base_swa", 10_000)
	}
	kind, factor := r.text("rope.scaling.type", "linear"), r.float("rope.scaling.factor", r.float("rope.scale_linear", 0))
	switch {
	case kind == "none" || kind == "linear" && (factor == 0 || factor == 1):
	case kind == "linear":
		s.Scaling = &scaling{Type: kind, Factor: factor}
	case kind == "longrope" && of.Long:
	default:
		r.fail("%s.rope.scaling.type %q is not supported", r.arch, kind)
	}
	if !of.Long {
		return
	}
	original, length := r.float("rope.scaling.original_context_length", 0), r.float("rope.scaling.attn_factor", 0)
	if short, ok := r.f.Find(shortFactors); ok {
		factors := slices.Repeat([]float32{1}, min(short.Shape.Elements(), maxWidth)) // until they are set
		s.Scaling = &scaling{Type: "longrope", Short: factors, Original: original, Length: length}
	} else if kind == "longrope" || length != 0 {
		r.fail("weight %q is missing", shortFactors)
	}
}

// windows reads how far layers look back.
func (r *keyReader) windows(s *settings, of *Features) {
	window := r.number("attention.sliding_window", 0)
	if window == 0 {
		return
	}
	if of.Pattern == 0 && !of.Long {
		r.fail("%s.attention.sliding_window is not supported", r.arch)
		return
	}
	s.Window = &window
	const pattern = "attention.sliding_window_pattern"
	r.asked[pattern] = true
	if !r.f.Has(r.arch + "." + pattern) {
		return
	}
	types := map[bool]string{false: full, true: sliding}
	if by, err := r.f.Bools(r.arch + "." + pattern); err == nil { // of each layer
		for _, looksBack := range by {
			s.Types = append(s.Types, types[looksBack])
		}
		return
	}
	every := r.number(pattern, 0)
	for i := range min(s.Layers, maxLayers) {
		s.Types = append(s.Types, types[every == 0 || i%every < every-1])
	}
}

// refuse reads keys that must be what other models leave them.
func (r *keyReader) refuse(headSize int) {
	if n := r.number("attention.value_length", headSize); n != headSize {
		r.fail("%s: keys of %d elements and values of %d are not supported", r.arch, headSize, n)
	}
	if r.number("expert_count", 0) != 0 {
		r.fail("%s is a mixture of experts (%s.expert_count), which is not supported", r.arch, r.arch)
	}
	for _, key := range []string{"expert_used_count", "pooling_type", "nextn_predict_layers"} {
		if r.number(key, 0) != 0 {
			r.fail("%s.%s is not supported", r.arch, key)
		}
	}
	if key := "attention.causal"; r.has(r.arch + "." + key) {
		r.asked[key] = true
		if causal, err := r.f.Bool(r.arch + "." + key); err != nil || !causal {
			r.fail("%s: tokens that see those after them are not supported", r.arch)
		}
	}
	for _, key := range []string{"vocab_size", "tensor_data_layout", "rope.scaling.finetuned"} { // say nothing that the weights do not
		r.asked[key] = true
	}
}

// rest refuses keys of the architecture that nobody has asked for.
func (r *keyReader) rest() {
	for _, p := range r.f.Metadata {
		if key, ok := strings.CutPrefix(p.Key, r.arch+"."); ok && !r.asked[key] {
			r.fail("%.100s is not supported", p.Key)
		}
	}
}

func (r *keyReader) fail(format string, args ...any) {
	r.err = errors.Join(r.err, fmt.Errorf(format, args...))
}

// has reports whether there is a weight, or a key.
func (r *keyReader) has(name string) bool {
	_, ok := r.f.Find(name)
	return ok || r.f.Has(name)
}

// ask returns the whole name of a key, and whether it is there.
func (r *keyReader) ask(key string) (whole string, ok bool) {
	r.asked[key] = true
	return r.arch + "." + key, r.f.Has(r.arch + "." + key)
}

func (r *keyReader) number(key string, otherwise int) int {
	whole, ok := r.ask(key)
	if !ok {
		return otherwise
	}
	n, err := r.f.Uint(whole)
	if err != nil || n > maxContext {
		r.err = errors.Join(r.err, fmt.Errorf("%s is %d: want at most %d", whole, n, maxContext), err)
	}
	return int(min(n, maxContext))
}

func (r *keyReader) float(key string, otherwise float32) float32 {
	whole, ok := r.ask(key)
	if !ok {
		return otherwise
	}
	v, err := r.f.Float(whole)
	if n, notFloat := r.f.Uint(whole); notFloat == nil { // some are written as integers
		v, err = float64(min(n, math.MaxInt32)), nil
	}
	if err != nil || !Finite(float32(v)) {
		r.err = errors.Join(r.err, fmt.Errorf("%s is %v", whole, v), err)
	}
	return float32(v)
}

func (r *keyReader) text(key, otherwise string) string {
	whole, ok := r.ask(key)
	if !ok {
		return otherwise
	}
	v, err := r.f.Text(whole)
	r.err = errors.Join(r.err, err)
	return v
}
