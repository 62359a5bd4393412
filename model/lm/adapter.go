package lm

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/peft"
	"github.com/tally-network/tally/format/safetensors"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/model/lm/family"
)

// Adapter is what of an adapter's folder is known without a base.
type Adapter struct {
	family.Adapter
	Parameters int
	Bytes      int64 // of its weights' file
}

// ReadAdapter reads what a folder says of an adapter; none of its weights.
func ReadAdapter(dir string) (*Adapter, error) {
	a, given, err := listAdapter(dir)
	if err != nil {
		return nil, err
	}
	out := &Adapter{Adapter: *a}
	for _, x := range given { // a sum
		out.Parameters += x.Shape.Elements()
	}
	info, err := os.Stat(filepath.Join(dir, peft.Weights))
	if err == nil {
		out.Bytes = info.Size()
	}
	return out, err
}

// listAdapter reads adapter_config.json, and which weights there are.
func listAdapter(dir string) (*family.Adapter, map[string]safetensors.Info, error) {
	text, err := bounded.ReadFile(filepath.Join(dir, peft.Config), family.MaxConfig)
	if err != nil {
		return nil, nil, err
	}
	a, err := family.ParseAdapter(text)
	if err != nil {
		return nil, nil, err
	}
	given, err := readFile(filepath.Join(dir, peft.Weights), safetensors.List)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%s has no %s: save the adapter with safe_serialization, which writes one", dir, peft.Weights)
	} else if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", peft.Weights, err)
	}
	return a, given, nil
}

// Adapted returns the model with the adapter in a folder as PEFT writes it. Both models share the weights that they have in common, and are as any others: what
// an adapter adds to a product is nodes of the graph. Nothing is read that does not fit the model.
func (m *Model) Adapted(dir string) (*Model, error) {
	if m.adapter != nil {
		return nil, errors.New("the model has an adapter already: take its base")
	}
	a, given, err := listAdapter(dir)
	if err != nil {
		return nil, err
	}
	shapes := map[string]tensor.Shape{}
	for name, x := range given { // each alone
		if !x.Type.Float() || x.Type == tensor.Float64 {
			return nil, fmt.Errorf("%s: weight %q is %v: want float32, float16 or bfloat16", peft.Weights, name, x.Type)
		}
		shapes[name] = x.Shape
	}
	names, err := a.AdapterWeights(&m.Config, shapes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	all, err := readFile(filepath.Join(dir, peft.Weights), readAll)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", peft.Weights, err)
	}
	scale := vector(a.Scale)
	own := &adapter{base: m, inputs: map[string]*tensor.Tensor{"scale": scale}}
	for name, to := range names { // each its own
		x := all[name]
		if x == nil || x.Type != given[name].Type || !x.Shape.Equal(given[name].Shape) {
			return nil, fmt.Errorf("%s has changed while it was read: try again", peft.Weights)
		}
		own.inputs[to] = x
	}
	return own.model(), nil
}

// adapter is what tells a model from its base.
type adapter struct {
	base   *Model
	inputs map[string]*tensor.Tensor // its weights by their names, and its scale
	form   *adapterForm
}

// adapterForm is what of an adapter decides the graph of a stage: names, types and shapes of what it reads. Adapters that are alike share plans.
type adapterForm struct {
	key    string // equal of forms that are
	inputs map[string]safetensors.Info
}

// model returns the base with the adapter.
func (a *adapter) model() *Model {
	m := *a.base
	m.weights, m.adapter = maps.Clone(m.weights), a
	a.form = &adapterForm{inputs: map[string]safetensors.Info{}}
	for _, name := range slices.Sorted(maps.Keys(a.inputs)) {
		x := a.inputs[name]
		a.form.inputs[name] = safetensors.Info{Type: x.Type, Shape: x.Shape}
		a.form.key += fmt.Sprintf("%s %v%v\n", name, x.Type, x.Shape)
		if name != "scale" {
			m.weights[name] = weight{stored: x}
		}
	}
	return &m
}

// base is the model without its adapter.
func (m *Model) base() *Model {
	if m.adapter == nil {
		return m
	}
	return m.adapter.base
}

// SharesBase reports whether two models differ in their adapters at most, so that stages of one read for the other.
func (m *Model) SharesBase(other *Model) bool { return m.base() == other.base() }
