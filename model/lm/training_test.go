package lm

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu"
)

// What is trained is what is served: each of several texts has the logits that it has alone, bit for bit, in every family.
func TestTrainingEqualsServing(t *testing.T) {
	for _, dir := range folders(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			m, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			tokens, _ := expected(t, dir)
			const texts = 3
			n := tokens.Len()
			g, err := m.Training(texts, n)
			if err != nil {
				t.Fatal(err)
			}
			names := []string{}
			for _, c := range g.Consts {
				names = append(names, c.Name)
			}
			for _, need := range m.Weights() {
				if !slices.Contains(names, need.Name) {
					t.Errorf("%s is not trained", need.Name)
				}
			}
			if len(names) != len(m.Weights()) {
				t.Errorf("initializers %v: want the weights alone", names)
			}
			one, err := m.Graph(n, 0)
			if err != nil {
				t.Fatal(err)
			}
			all := tensor.Must(tensor.New(tensor.Int32, tensor.Shape{texts, n}))
			for i := range all.Len() { // each text begins elsewhere
				all.Set(i, tokens.At((i+3*(i/n))%n))
			}
			e := cpu.New(2)
			got := tensor.Of[float32](run(t, e, g, map[string]*tensor.Tensor{"tokens": all})["logits"])
			for i := range texts {
				alone := tensor.Must(tensor.New(tensor.Int64, tensor.Shape{n}))
				for j := range n {
					alone.Set(j, all.At(i*n+j))
				}
				want := tensor.Of[float32](run(t, e, one, map[string]*tensor.Tensor{"tokens": alone})["logits"])
				if !slices.Equal(got[i*len(want):(i+1)*len(want)], want) {
					t.Errorf("text %d has other logits than alone", i)
				}
			}
		})
	}
}

func TestTrainingRefuses(t *testing.T) {
	m, err := Open("testdata/llama")
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range [][2]int{{0, 4}, {2, 0}, {1, m.Context + 1}} {
		if _, err := m.Training(size[0], size[1]); err == nil || !strings.Contains(err.Error(), "training on") {
			t.Errorf("%d texts of %d tokens: %v", size[0], size[1], err)
		}
	}
	m.weights["model.norm.weight"] = weight{stored: tensor.Must(tensor.New(tensor.Uint8, tensor.Shape{1}))}
	if _, err := m.Training(1, 4); err == nil || !strings.Contains(err.Error(), "is quantised") {
		t.Errorf("a quantised model: %v", err)
	}
	if _, err := Make(&m.Config, func(string, tensor.Shape) *tensor.Tensor { return nil }); err == nil {
		t.Error("a model without weights")
	}
}
