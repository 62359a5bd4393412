package peft_test

import (
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/format/peft"
)

// model has a product by a matrix [6 4], and initializers beside it.
func model(t *testing.T, beside map[string]tensor.Shape) *graph.Graph {
	t.Helper()
	b := graph.NewBuilder("model")
	x := b.Input("x", tensor.Float32, tensor.Shape{2, 6})
	w := b.Init("fc.weight", tensor.Must(tensor.New(tensor.Float32, tensor.Shape{6, 4})))
	b.Output(b.Op("MatMul", x, w), tensor.Float32, tensor.Shape{2, 4})
	g := b.Graph()
	for name, s := range beside { // each alone
		g.Consts = append(g.Consts, graph.Const{Name: name, Tensor: tensor.Must(tensor.New(tensor.Float32, s))})
	}
	return g
}

// Names prove nothing: what is called an adapter may be anything, and may be of an earlier order with another scale.
func TestOnlyTheOrdersAdapters(t *testing.T) {
	adapt := train.Adapters{Rank: 2, Alpha: 4, Of: []string{"fc.weight"}}
	adapted, err := train.Adapt(model(t, nil), train.Recipe{Adapters: adapt})
	if err != nil {
		t.Fatal(err)
	}
	if files, err := peft.Of(adapted, &adapt); err != nil || len(files) != 2 {
		t.Fatalf("%d files of an adapter, %v", len(files), err)
	}
	scalars := model(t, map[string]tensor.Shape{"fc.weight.lora_a": {}, "fc.weight.lora_b": {}})
	for name, c := range map[string]struct {
		g *graph.Graph
		a train.Adapters
	}{
		"no adapters":                     {scalars, train.Adapters{}},
		"scalars of such names":           {scalars, adapt},
		"those of an earlier order":       {adapted, train.Adapters{}},
		"those of an earlier order, too":  {adapted, train.Adapters{Rank: 2, Alpha: 64, Of: []string{"x*"}}},
		"another rank than the matrices'": {adapted, train.Adapters{Rank: 3, Alpha: 4, Of: []string{"fc.weight"}}},
	} {
		if files, _ := peft.Of(c.g, &c.a); files != nil {
			t.Errorf("%s: %d files", name, len(files))
		}
	}
}
