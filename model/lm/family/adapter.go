package family

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/tensor"
)

// Adapter is what LoRA has trained beside a model, but for its weights: where a product gives Wx, it gives Wx + Scale·B(Ax) instead (Hu et al., 2021).
type Adapter struct {
	Rank    int
	Scale   float32
	Targets []string // ends of the names of what is adapted; nil: the weights alone say it
	Base    string   // what its author calls the model that it is for; "" if it is not said
}

// Weights of an adapter are called as that of the product which they are beside, with an end of their own.
const (
	AdapterA = ".lora_A.weight" // [Rank, in]
	AdapterB = ".lora_B.weight" // [out, Rank]
)

// Bounds of an adapter.
const (
	maxRank  = 1 << 12
	maxAlpha = 1e6
	maxBase  = 256
)

// adapterSettings is adapter_config.json as far as it is read.
type adapterSettings struct {
	Type    string          `json:"peft_type"`
	Task    *string         `json:"task_type"`
	Rank    int             `json:"r"`
	Alpha   float64         `json:"lora_alpha"`
	Stable  bool            `json:"use_rslora"`
	Bias    string          `json:"bias"`
	Begin   json.RawMessage `json:"init_lora_weights"`
	Targets json.RawMessage `json:"target_modules"`
	Base    *string         `json:"base_model_name_or_path"`
}

// readKeys are those of adapterSettings, and silentKeys those that change no token of a trained adapter: how it was trained, and which modules have
// weights, which the weights themselves say.
var (
	readKeys   = []string{"peft_type", "task_type", "r", "lora_alpha", "use_rslora", "bias", "init_lora_weights", "target_modules", "base_model_name_or_path"}
	silentKeys = []string{
		"auto_mapping", "corda_config", "eva_config", "exclude_modules", "fan_in_fan_out", "inference_mode", "layers_pattern", "layers_to_transform", "loftq_config",
		"lora_dropout", "lora_ga_config", "megatron_core", "peft_version", "qalora_group_size", "revision", "runtime_config",
	}
)

// merged says what to do about an adapter that is not supported.
const merged = "merge it into its base (merge_and_unload of PEFT) and take the folder that this gives"

// ParseAdapter reads adapter_config.json as PEFT writes it, of MaxConfig bytes at most. What changes tokens and is not known is refused by name.
func ParseAdapter(text []byte) (*Adapter, error) {
	var keys map[string]json.RawMessage
	var s adapterSettings
	for _, to := range []any{&keys, &s} {
		if err := json.Unmarshal(text, to); err != nil {
			return nil, fmt.Errorf("adapter_config.json: %w", err)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !slices.Contains(readKeys, key) && !slices.Contains(silentKeys, key) && !unset(keys[key]) {
			return nil, fmt.Errorf("adapter_config.json: %.40s is %.60s, which is not supported: %s", key, keys[key], merged)
		}
	}
	return s.adapter()
}

// unset reports whether a setting is off, as those are that PEFT writes and an adapter does not use.
func unset(value json.RawMessage) bool {
	return slices.Contains([]string{"null", "false", "{}", "[]", `""`}, string(value))
}

func (s *adapterSettings) adapter() (*Adapter, error) {
	refuse := func(format string, args ...any) (*Adapter, error) {
		return nil, fmt.Errorf("adapter_config.json: "+format, args...)
	}
	switch begin := string(s.Begin); {
	case s.Type != "LORA":
		return refuse("peft_type is %.40q: only LORA is supported", s.Type)
	case s.Task != nil && *s.Task != "CAUSAL_LM":
		return refuse("task_type is %.40q: only adapters of CAUSAL_LM give tokens", *s.Task)
	case s.Rank < 1 || s.Rank > maxRank:
		return refuse("r is %d: want 1 to %d", s.Rank, maxRank)
	case !(math.Abs(s.Alpha) >= 1/maxAlpha && math.Abs(s.Alpha) <= maxAlpha):
		return refuse("lora_alpha is %v: want a number from %v to %v", s.Alpha, 1/maxAlpha, maxAlpha)
	case s.Bias != "" && s.Bias != "none":
		return refuse("bias is %.40q, whose biases are not supported: %s", s.Bias, merged)
	case !slices.Contains([]string{"", "null", "true", "false", `"gaussian"`, `"orthogonal"`, `"eva"`}, begin):
		return refuse("init_lora_weights is %.40s, which changes the base as well: %s", begin, merged)
	}
	a := &Adapter{Rank: s.Rank, Scale: float32(s.Alpha / float64(s.Rank))}
	if s.Stable {
		a.Scale = float32(s.Alpha / math.Sqrt(float64(s.Rank)))
	}
	if s.Base != nil {
		a.Base = *s.Base
	}
	if len(a.Base) > maxBase {
		return refuse("base_model_name_or_path has %d bytes: want %d at most", len(a.Base), maxBase)
	}
	if pattern := ""; len(s.Targets) > 0 && json.Unmarshal(s.Targets, &pattern) != nil { // a pattern says no more than the weights do
		if err := json.Unmarshal(s.Targets, &a.Targets); err != nil {
			return refuse("target_modules: %w", err)
		}
	}
	return a, nil
}

// AdapterWeights returns what each weight of an adapter's file is called beside a model's own, by its name in the file. It fails unless all are of the model
// and of the right shape, each A has its B, and all that the adapter is said to be for has some.
func (a *Adapter) AdapterWeights(c *Config, given map[string]tensor.Shape) (map[string]string, error) {
	known := map[string]Weight{} // by their names in a file
	for _, w := range c.Weights() {
		_, _, inLayer := InLayer(w.Name)
		if body, is := strings.CutSuffix(w.Name, ".weight"); is && inLayer && len(w.Shape) == 2 {
			in, out := w.Shape[1], w.Shape[0]
			if c.Of.Columns {
				in, out = out, in
			}
			for _, name := range c.FolderNames(w.Name) {
				name = "base_model.model." + strings.TrimSuffix(name, ".weight")
				known[name+AdapterA] = Weight{body + AdapterA, tensor.Shape{a.Rank, in}}
				known[name+AdapterB] = Weight{body + AdapterB, tensor.Shape{out, a.Rank}}
			}
		}
	}
	names, unused := map[string]string{}, slices.Clone(a.Targets)
	has := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		w, ok := known[name]
		switch {
		case !ok:
			return nil, fmt.Errorf("the adapter has weight %.100q, and the %s has no product in a layer that it is for: take the adapter's own base, or %s", name, c.Family, merged)
		case !given[name].Equal(w.Shape):
			return nil, fmt.Errorf("weight %q of the adapter is %v: want %v, for rank %d and this base: take its own base", name, given[name], w.Shape, a.Rank)
		case has[w.Name]:
			return nil, fmt.Errorf("weight %q of the adapter is there twice, under other names", name)
		}
		names[name], has[w.Name] = w.Name, true
		module := name[:len(name)-len(AdapterA)] // both ends have one length
		unused = slices.DeleteFunc(unused, func(end string) bool { return strings.HasSuffix(module, "."+end) })
	}
	for name := range has { // any will do
		if body := name[:len(name)-len(AdapterA)]; !has[body+AdapterA] || !has[body+AdapterB] {
			return nil, fmt.Errorf("weight %q of the adapter is without the other of its pair: its file is not whole", name)
		}
	}
	switch {
	case len(names) == 0:
		return nil, fmt.Errorf("the adapter has no weights")
	case len(unused) > 0:
		return nil, fmt.Errorf("the adapter has no weights of %.100q, which its target_modules name: its file is not whole", unused)
	}
	return names, nil
}
