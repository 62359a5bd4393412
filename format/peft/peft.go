// Package peft writes adapters that an order has trained as PEFT writes them, for what loads LoRA adapters: tally serve, and of families whose weights
// have Llama's names transformers and vLLM.
//
// Call [Of] with a model as training exports it.
//
// Invariant: what is written gives Wx + s·B(Ax) where the trained model gives (W + s·BA)x: the same but for roundings. What core/train calls A and B are,
// of weights [out, in], PEFT's B and A.
//
// Source: save_pretrained of PEFT 0.21.
package peft

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/core/train/pattern"
	"github.com/tally-network/tally/format/safetensors"
)

// Names of the files of a folder.
const (
	Config  = "adapter_config.json"
	Weights = "adapter_model.safetensors"
)

// settings are adapter_config.json. Keys that are left out have PEFT's defaults.
type settings struct {
	Type    string   `json:"peft_type"`
	Base    *string  `json:"base_model_name_or_path"`
	Rank    int      `json:"r"`
	Alpha   float32  `json:"lora_alpha"`
	Targets []string `json:"target_modules"`
	Columns bool     `json:"fan_in_fan_out"`
	Bias    string   `json:"bias"`
	Serves  bool     `json:"inference_mode"`
}

// Of returns the files of a folder with a model's adapters, by their names. It returns none if there are no adapters, or if one is of no
// matrix of a product: PEFT writes those of embeddings otherwise. Nor does it if the model had adapters of an earlier order, which have another scale.
func Of(g *graph.Graph, a *train.Adapters) (map[string][]byte, error) {
	if a.Rank == 0 {
		return nil, nil
	}
	chosen, err := pattern.Chosen(g, a.Of)
	if err != nil {
		return nil, err
	}
	consts := map[string]*tensor.Tensor{}
	for _, c := range g.Consts {
		consts[c.Name] = c.Tensor
	}
	s := settings{Type: "LORA", Rank: a.Rank, Alpha: a.Alpha, Bias: "none", Serves: true}
	weights := map[string]*tensor.Tensor{}
	for _, c := range g.Consts {
		first, last := train.Adapting(c.Name)
		x, y := consts[first], consts[last]
		if x == nil || y == nil {
			continue
		}
		module, is := strings.CutSuffix(c.Name, ".weight")
		rows, ok := outFirst(g, c.Name)
		w := c.Tensor
		if !is || !ok || !chosen[c.Name] || !matrix(w, w.Shape...) || !matrix(x, w.Shape[0], a.Rank) || !matrix(y, a.Rank, w.Shape[1]) {
			return nil, nil
		}
		if !rows { // W is [in, out], and so is the product of both
			x, y = transposed(y), transposed(x)
			s.Columns = true
		}
		s.Targets = append(s.Targets, module)
		weights["base_model.model."+module+".lora_B.weight"] = x
		weights["base_model.model."+module+".lora_A.weight"] = y
	}
	if len(weights) == 0 {
		return nil, nil
	}
	slices.Sort(s.Targets)
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := safetensors.Write(&b, weights, map[string]string{"format": "pt"}); err != nil {
		return nil, err
	}
	return map[string][]byte{Config: append(text, '\n'), Weights: b.Bytes()}, nil
}

// matrix reports whether a tensor is a float32 matrix of such a shape.
func matrix(t *tensor.Tensor, s ...int) bool {
	return t.Type == tensor.Float32 && len(s) == 2 && t.Shape.Equal(s)
}

// outFirst says of an adapted weight whether its rows are what a product gives, or its columns; not ok if it is read in another way.
func outFirst(g *graph.Graph, weight string) (rows, ok bool) {
	adapted := ""
	for _, n := range g.Nodes { // training reads the sum in place of the weight
		if n.Op == "Add" && n.Inputs[0] == weight {
			adapted = n.Outputs[0]
		}
	}
	for _, n := range g.Nodes {
		at := slices.Index(n.Inputs, adapted)
		if adapted == "" || at < 0 {
			continue
		}
		this := false
		switch {
		case n.Op == "Transpose" && turns(n):
			this = true
		case n.Op == "MatMul" && at == 1:
		default:
			return false, false
		}
		if ok && this != rows {
			return false, false
		}
		rows, ok = this, true
	}
	return rows, ok
}

// turns reports whether a Transpose exchanges two axes.
func turns(n graph.Node) bool {
	a := n.Attr("perm")
	return a == nil || slices.Equal(a.Ints, []int64{1, 0})
}

func transposed(x *tensor.Tensor) *tensor.Tensor {
	rows, columns := x.Shape[0], x.Shape[1]
	y := tensor.Must(tensor.New(x.Type, tensor.Shape{columns, rows}))
	from, to := tensor.Of[float32](x), tensor.Of[float32](y)
	for i := range rows {
		for j := range columns {
			to[j*rows+i] = from[i*columns+j]
		}
	}
	return y
}
