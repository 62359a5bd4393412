package family

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tally-network/tally/core/tensor"
)

// Config is what a model is, beside its weights.
type Config struct {
	Family     string // as config.json names it
	Layers     int
	Width      int // of a token between layers
	Heads      int // of queries
	Shared     int // heads of keys and values, each for as many of queries
	HeadSize   int
	Turned     int // elements of a head that know its place: the first ones; 0 if positions are learned
	Hidden     int // of the feed-forward part
	Vocabulary int
	Context    int // tokens that it was made for
	Epsilon    float32
	Tied       bool // the head is the embedding
	Softcap    float32
	HeadCap    float32 // softcap of the logits; 0: none
	Scale      float32 // of products of queries and keys; 0: 1/√HeadSize
	Windows    []int   // by layer: how many tokens before its own a token sees; −1: all
	Rotary     [2]Rotary
	Of         Features
}

// Rotary is how queries and keys know their places: angle = place · base^(−2i/Turned), divided by Factor and Factors, or as Llama 3 scales it.
type Rotary struct {
	Base    float32
	Factor  float32   // 0: 1
	Factors []float32 // of each angle; nil: 1
	Length  float32   // of what is turned, beside what it was; 0: 1
	Llama3  *Llama3
}

// Llama3 divides the slow frequencies by a factor, and those in between by less.
type Llama3 struct{ Factor, Low, High, Original float32 }

// Bounds of what is taken, so that no number of a stranger's file overflows or makes endless work.
const (
	maxLayers     = 512
	maxWidth      = 1 << 17
	maxVocabulary = 1 << 21
	maxContext    = 1 << 24

	// MaxConfig bounds the bytes of config.json.
	MaxConfig = 1 << 20
)

// settings is config.json as far as it is read. Keys of other families have other names for the same.
type settings struct {
	Family string `json:"model_type"`
	sizes
	gpt2
	rotation
	RMSEpsilon float32  `json:"rms_norm_eps"`
	Epsilon    float32  `json:"layer_norm_epsilon"`
	Activation string   `json:"hidden_act"`
	Activated  string   `json:"hidden_activation"`
	Tied       *bool    `json:"tie_word_embeddings"`
	Bias       bool     `json:"attention_bias"`
	MLPBias    bool     `json:"mlp_bias"`
	Softcap    *float32 `json:"attn_logit_softcapping"`
	HeadCap    *float32 `json:"final_logit_softcapping"`
	Scalar     *float32 `json:"query_pre_attn_scalar"`
	Window     *int     `json:"sliding_window"`
	UseWindow  *bool    `json:"use_sliding_window"`
	Types      []string `json:"layer_types"`
}

type sizes struct {
	Layers     int `json:"num_hidden_layers"`
	Width      int `json:"hidden_size"`
	Heads      int `json:"num_attention_heads"`
	Shared     int `json:"num_key_value_heads"`
	HeadSize   int `json:"head_dim"`
	Hidden     int `json:"intermediate_size"`
	Vocabulary int `json:"vocab_size"`
	Context    int `json:"max_position_embeddings"`

	Experts      *int `json:"num_local_experts"`
	Qwen3Experts *int `json:"num_experts"`
}

// gpt2 has GPT-2's names.
type gpt2 struct {
	NLayer     int    `json:"n_layer"`
	NEmbd      int    `json:"n_embd"`
	NHead      int    `json:"n_head"`
	NInner     int    `json:"n_inner"`
	NPositions int    `json:"n_positions"`
	Function   string `json:"activation_function"`
}

type rotation struct {
	Theta      float32                    `json:"rope_theta"`
	LocalTheta float32                    `json:"rope_local_base_freq"`
	Partial    *float32                   `json:"partial_rotary_factor"`
	Original   float32                    `json:"original_max_position_embeddings"`
	Scaling    *scaling                   `json:"rope_scaling"`
	turned     int                        // as a GGUF file has it; 0: as Partial says
	Parameters map[string]json.RawMessage `json:"rope_parameters"`
}

// scaling is how angles are scaled, by rope_scaling or rope_parameters.
type scaling struct {
	Type     string  `json:"rope_type"`
	Old      string  `json:"type"`
	Factor   float32 `json:"factor"`
	Low      float32 `json:"low_freq_factor"`
	High     float32 `json:"high_freq_factor"`
	Original float32 `json:"original_max_position_embeddings"`
	Theta    float32 `json:"rope_theta"`
	Partial  float32 `json:"partial_rotary_factor"`

	Short  []float32 `json:"short_factor"`
	Long   []float32 `json:"long_factor"`
	Length float32   `json:"attention_factor"`
}

// Parse reads config.json of a family that is known.
func Parse(text []byte) (*Config, error) {
	if len(text) > MaxConfig {
		return nil, fmt.Errorf("config.json has %d bytes, more than %d", len(text), MaxConfig)
	}
	var s settings
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("config.json: %w", err)
	}
	return s.config()
}

// config returns what settings say.
func (s *settings) config() (*Config, error) {
	of, ok := families[s.Family]
	switch {
	case s.Family == "":
		return nil, errors.New("config.json names no model_type")
	case s.Experts != nil || s.Qwen3Experts != nil:
		return nil, fmt.Errorf("%s is a mixture of experts, which is not supported", s.Family)
	case !ok:
		return nil, fmt.Errorf("model_type %q is not supported: there are %v", s.Family, Names())
	}
	c := &Config{
		Family: s.Family, Of: of, Layers: either(s.Layers, s.NLayer), Width: either(s.Width, s.NEmbd), Heads: either(s.Heads, s.NHead), Hidden: either(s.Hidden, s.NInner),
		Vocabulary: s.Vocabulary, Context: either(s.Context, s.NPositions), Epsilon: either(s.RMSEpsilon, s.Epsilon), Tied: of.Tied, HeadSize: s.HeadSize,
	}
	if s.Tied != nil {
		c.Tied = *s.Tied
	}
	c.Shared = either(s.Shared, c.Heads)
	if c.Hidden == 0 {
		c.Hidden = 4 * c.Width
	}
	if c.HeadSize == 0 && c.Heads > 0 {
		c.HeadSize = c.Width / c.Heads
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	c.Of.Bias = c.Of.Bias || s.Bias && !of.ignoresBias
	c.Of.MLPBias = c.Of.MLPBias || s.MLPBias
	return c, errors.Join(c.setActivation(s), c.setScales(s), c.setWindows(s), c.setRotary(s))
}

// either returns the first that is not zero.
func either[T comparable](x ...T) (zero T) {
	for _, v := range x {
		if v != zero {
			return v
		}
	}
	return zero
}

func (c *Config) check() error {
	for _, n := range []struct {
		name        string
		value, most int
	}{
		{"num_hidden_layers", c.Layers, maxLayers}, {"hidden_size", c.Width, maxWidth}, {"num_attention_heads", c.Heads, maxWidth}, {"num_key_value_heads", c.Shared, maxWidth},
		{"head_dim", c.HeadSize, maxWidth}, {"intermediate_size", c.Hidden, maxWidth}, {"vocab_size", c.Vocabulary, maxVocabulary}, {"max_position_embeddings", c.Context, maxContext},
	} {
		if n.value < 1 || n.value > n.most {
			return fmt.Errorf("%s: %s is %d: want 1 to %d", c.Family, n.name, n.value, n.most)
		}
	}
	switch {
	case c.Heads%c.Shared != 0:
		return fmt.Errorf("%s: %d heads do not share %d heads of keys", c.Family, c.Heads, c.Shared)
	case c.Heads > maxWidth/c.HeadSize:
		return fmt.Errorf("%s: %d heads of %d elements are too many", c.Family, c.Heads, c.HeadSize)
	case !c.Of.Learned && c.HeadSize%2 != 0:
		return fmt.Errorf("%s: a head of %d elements cannot be turned in pairs", c.Family, c.HeadSize)
	case !(c.Epsilon > 0) || c.Epsilon > 1:
		return fmt.Errorf("%s: the epsilon of norms is %v", c.Family, c.Epsilon)
	}
	return nil
}

func (c *Config) setActivation(s *settings) error {
	name := either(s.Activated, s.Activation, s.Function, c.Of.Activation)
	if name == "gelu" && c.Of.legacyGelu {
		name = c.Of.Activation
	}
	switch name {
	case "silu", "gelu_pytorch_tanh", "gelu_new", "gelu", "relu":
		c.Of.Activation = name
		return nil
	}
	return fmt.Errorf("%s: activation %q is not supported", c.Family, name)
}

func (c *Config) setScales(s *settings) error {
	for _, cap := range []struct {
		from *float32
		to   *float32
	}{{s.Softcap, &c.Softcap}, {s.HeadCap, &c.HeadCap}} {
		if cap.from != nil && c.Of.Softcaps {
			*cap.to = *cap.from
		}
	}
	if s.Scalar != nil && c.Of.Scalar {
		c.Scale = float32(1 / math.Sqrt(float64(*s.Scalar)))
	}
	if !Finite(c.Softcap, c.HeadCap, c.Scale) || c.Softcap < 0 || c.HeadCap < 0 {
		return fmt.Errorf("%s: softcaps %v and %v, and scale %v", c.Family, c.Softcap, c.HeadCap, c.Scale)
	}
	return nil
}

// setWindows says how far each layer looks back.
func (c *Config) setWindows(s *settings) error {
	c.Windows = slices.Repeat([]int{-1}, c.Layers)
	if !c.Of.Windowed || s.Window == nil || s.UseWindow != nil && !*s.UseWindow {
		if slices.Contains(s.Types, sliding) {
			return fmt.Errorf("%s: layer_types name windows of no size", c.Family)
		}
		return nil
	}
	if *s.Window < 1 || *s.Window > maxContext {
		return fmt.Errorf("%s: sliding_window is %d", c.Family, *s.Window)
	}
	if len(s.Types) > 0 && len(s.Types) != c.Layers {
		return fmt.Errorf("%s: %d layer_types for %d layers", c.Family, len(s.Types), c.Layers)
	}
	for i := range c.Windows {
		kind := sliding
		if len(s.Types) > 0 {
			kind = s.Types[i]
		} else if c.Of.Pattern > 0 && (i+1)%c.Of.Pattern == 0 {
			kind = full
		}
		switch kind {
		case sliding:
			c.Windows[i] = *s.Window - 1
		case full:
		default:
			return fmt.Errorf("%s: layer type %q is not supported", c.Family, kind)
		}
	}
	return nil
}

// Types of layers.
const (
	sliding = "sliding_attention"
	full    = "full_attention"
)

// setRotary says by what angles layers turn: first those that see all, then those with a window, where a family tells them apart.
func (c *Config) setRotary(s *settings) error {
	if c.Of.Learned {
		return nil
	}
	given := scaling{Theta: s.Theta, Type: "default"}
	if s.Scaling != nil {
		given = *s.Scaling
		given.Theta = either(given.Theta, s.Theta)
	}
	local := scaling{Theta: either(s.LocalTheta, s.Theta), Type: "default"}
	if len(s.Parameters) > 0 {
		if err := s.parameters(&given, &local); err != nil {
			return fmt.Errorf("%s: rope_parameters: %w", c.Family, err)
		}
	} else if !c.Of.LocalRotary {
		local = given
	}
	part := either(given.Partial, 1)
	if s.Partial != nil && part == 1 {
		part = *s.Partial
	}
	if err := c.turn(either(s.turned, int(float64(part)*float64(c.HeadSize)))); err != nil {
		return err
	}
	for i, g := range []scaling{given, local} {
		g.Original = either(g.Original, s.Original)
		r, err := g.rotary(c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Family, err)
		}
		c.Rotary[i] = r
	}
	if c.Rotary[0].Factors != nil { // angles for longer texts are others, also of the tokens before
		c.Context = min(c.Context, int(either(given.Original, s.Original)))
	}
	return nil
}

// turn says how many elements of a head are turned.
func (c *Config) turn(n int) error {
	if n != c.HeadSize && !c.Of.Partial {
		return fmt.Errorf("%s: %d of %d elements of a head are turned: only all are supported", c.Family, n, c.HeadSize)
	}
	if n < 2 || n > c.HeadSize || n%2 != 0 {
		return fmt.Errorf("%s: %d elements of a head of %d cannot be turned in pairs", c.Family, n, c.HeadSize)
	}
	c.Turned = n
	return nil
}

// parameters reads rope_parameters: of all layers, or by type of layer.
func (s *rotation) parameters(given, local *scaling) error {
	byType := false
	for kind, to := range map[string]*scaling{full: given, sliding: local} { // each has its own place
		if text, ok := s.Parameters[kind]; ok {
			byType = true
			*to = scaling{}
			if err := json.Unmarshal(text, to); err != nil {
				return err
			}
		}
	}
	if byType {
		return nil
	}
	text, err := json.Marshal(s.Parameters)
	if err != nil {
		return err
	}
	*given = scaling{}
	err = json.Unmarshal(text, given)
	*local = *given
	return err
}

func (g *scaling) rotary(c *Config) (r Rotary, err error) {
	r.Base = either(g.Theta, c.Of.Theta)
	switch kind := either(g.Type, g.Old, "default"); {
	case kind == "default":
	case kind == "linear":
		r.Factor = g.Factor
	case kind == "llama3":
		r.Llama3 = &Llama3{g.Factor, g.Low, g.High, g.Original}
		if !(g.Factor >= 1) || !(g.Low > 0) || !(g.High > g.Low) || !(g.Original >= 1) || !Finite(g.Factor, g.High, g.Original) {
			return r, fmt.Errorf("rope_scaling of llama3: %+v", *r.Llama3)
		}
	case c.Of.Long && (kind == "longrope" || kind == "su" || kind == "yarn"): // older names of the first
		if r.Factors, err = c.factors(g.Short); err != nil {
			return r, err
		}
		if !(g.Original >= 2) || g.Original > maxContext || !Finite(g.Length, g.Factor) || g.Length < 0 {
			return r, fmt.Errorf("rope_scaling of longrope: original_max_position_embeddings is %v, attention_factor %v", g.Original, g.Length)
		}
		r.Length = either(g.Length, longLength(either(float64(g.Factor), float64(c.Context)/float64(g.Original)), float64(g.Original)))
	default:
		return r, fmt.Errorf("rope_scaling %q is not supported", kind)
	}
	if !(r.Base > 1) || !(r.Factor >= 0) || !Finite(r.Base, r.Factor) {
		return r, fmt.Errorf("rope_theta %v, factor %v", r.Base, r.Factor)
	}
	return r, nil
}

// longLength is √(1 + log scale / log original), as longrope has it. Of powers of two, which files have, it is the same on every machine.
func longLength(scale, original float64) float32 {
	if scale <= 1 {
		return 1
	}
	return float32(math.Sqrt(1 + math.Log2(scale)/math.Log2(original)))
}

// factors returns x, if these are what angles can be divided by.
func (c *Config) factors(x []float32) ([]float32, error) {
	if len(x) != c.Turned/2 {
		return nil, fmt.Errorf("%d factors of angles: want %d", len(x), c.Turned/2)
	}
	for _, f := range x {
		if !(f > 0) || !Finite(f) {
			return nil, fmt.Errorf("a factor of angles is %v", f)
		}
	}
	return x, nil
}

// Finite reports whether all of x are numbers, and none is infinite.
func Finite(x ...float32) bool {
	for _, v := range x {
		if v != v || math.IsInf(float64(v), 0) {
			return false
		}
	}
	return true
}

// TokenBytes returns what a token's keys and values take in memory, in float32.
func (c *Config) TokenBytes() int {
	return 2 * c.Layers * c.Shared * c.HeadSize * tensor.Float32.Size()
}
