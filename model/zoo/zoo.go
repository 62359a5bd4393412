package zoo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Architecture is one way to build a model.
type Architecture struct {
	Name     string    `json:"name"`
	About    string    `json:"about"`
	Settings []Setting `json:"settings"`

	build func(*net) error
}

// Architectures are all that there are.
var Architectures = []*Architecture{&gpt, &mlp, &lenet, &resnet, &vit, &lstm, &unet}

// Limits on a model, which is made in memory.
const (
	MaxParameters = 1 << 28
	maxInput      = 1 << 28 // elements of a batch
)

// Settings of several architectures.
const (
	MaxExtent = 1 << 12 // of most axes
	maxBatch  = 1 << 16
	maxWords  = 1 << 16 // of a vocabulary, and classes
)

func batch(standard int) Setting {
	return number("batch", standard, 1, maxBatch, "records that the graph takes at once")
}

// predicts are the settings of what a model is asked for.
func predicts(classes int) []Setting {
	return []Setting{
		number("classes", classes, 0, maxWords, "classes to tell apart, a logit for each; 0: numbers are predicted"),
		number("outputs", 1, 1, maxWords, "numbers that are predicted, with classes=0"),
	}
}

// pictures are the settings of images.
func pictures(channels, size, least int) []Setting {
	return []Setting{
		number("channels", channels, 1, 1024, "channels of the image"),
		number("size", size, least, 1024, "height and width of the image"),
	}
}

// normalized are the settings of what stands behind convolutions.
func normalized() []Setting {
	return []Setting{
		word("norm", "normalisation over groups of channels, or over the batch", "group", "batch"),
		number("groups", 8, 1, 1024, "groups of channels, with norm=group"),
	}
}

func dropout(where string) Setting {
	return Setting{Name: "dropout", Default: "0", Bounds: &Bounds{0, 0.9, false}, About: "share of values that Dropout zeroes in training " + where}
}

func activation() Setting {
	return word("activation", "between layers", "relu", "gelu", "tanh", "sigmoid")
}

func join(parts ...[]Setting) []Setting { return slices.Concat(parts...) }

// Model is what New builds.
type Model struct {
	Graph      *graph.Graph
	Parameters int // numbers that are trained
}

// Find returns the architecture of a name.
func Find(name string) (*Architecture, error) {
	var names []string
	for _, a := range Architectures {
		if a.Name == name {
			return a, nil
		}
		names = append(names, a.Name)
	}
	return nil, fmt.Errorf("no architecture %q: there are %s", name, strings.Join(names, ", "))
}

// New builds a model. Settings that are not chosen have their defaults. An error says which setting to change.
func (a *Architecture) New(chosen map[string]string, seed uint64) (*Model, error) {
	m, err := a.Outline(chosen)
	switch {
	case err != nil:
		return nil, err
	case m.Parameters > MaxParameters:
		return nil, fmt.Errorf("%s would have %d parameters, limit %d: choose smaller %s", a.Name, m.Parameters, MaxParameters, a.sizes())
	}
	return a.model(chosen, seed, false)
}

// Outline builds a model without weights: its parameters are inputs after the first. It takes no memory for them,
// however many they are.
func (a *Architecture) Outline(chosen map[string]string) (*Model, error) {
	return a.model(chosen, 0, true)
}

// sizes names the settings that parameters grow with.
func (a *Architecture) sizes() string {
	var out []string
	for _, name := range []string{"width", "layers", "blocks", "stages", "depth", "size", "vocabulary", "inputs"} {
		if slices.Contains(a.names(), name) {
			out = append(out, name)
		}
	}
	return strings.Join(out, ", ")
}

// model builds a model, or its outline.
func (a *Architecture) model(chosen map[string]string, seed uint64, outline bool) (*Model, error) {
	v, err := a.resolve(chosen)
	if err != nil {
		return nil, err
	}
	n := &net{Builder: graph.NewBuilder(a.Name), values: v, seed: seed, outline: outline}
	if err := a.build(n); err != nil {
		return nil, fmt.Errorf("%s: %w", a.Name, err)
	}
	return &Model{n.Builder.Graph(), n.trained}, nil
}

// input adds the input.
func (n *net) input(name string, t tensor.DType, shape ...int) (string, error) {
	if e := tensor.Shape(shape).Elements(); e > maxInput {
		return "", fmt.Errorf("a batch of shape %v would have %d numbers, limit %d: choose a smaller batch", shape, e, maxInput)
	}
	return n.Input(name, t, shape), nil
}

// target returns what the output is called, and how many numbers it has.
func (n *net) target() (name string, width int, err error) {
	if classes := n.int("classes"); classes > 0 {
		if n.given["outputs"] {
			err = fmt.Errorf("outputs=%d is for numbers that are predicted: choose classes=0 too, or leave outputs out", n.int("outputs"))
		}
		return "logits", classes, err
	}
	return "value", n.int("outputs"), nil
}
