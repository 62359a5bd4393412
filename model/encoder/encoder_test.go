package encoder

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/format/safetensors"
	"github.com/tally-network/tally/model"
)

var tiny = Config{
	Kind: "bert", Width: 6, Layers: 2, Heads: 2, Intermediate: 10, Vocabulary: 11, Positions: 8, Types: 2,
	Epsilon: 1e-12, Activation: "gelu", Placing: "absolute",
}

// chance gives weights of a tiny encoder: the same ones each time.
func chance(c Config) map[string]*tensor.Tensor {
	out, state := map[string]*tensor.Tensor{}, uint32(1)
	shapes := c.shapes()
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		x := tensor.Must(tensor.New(tensor.Float32, shapes[name]))
		for i := range x.Len() {
			state = state*1664525 + 1013904223
			x.Set(i, tensor.F32(float32(state>>8)/(1<<23)-1))
		}
		out[name] = x
	}
	return out
}

func config(t testing.TB, c Config) []byte {
	t.Helper()
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func file(t testing.TB, all map[string]*tensor.Tensor) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := safetensors.Write(&b, all, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func read(t testing.TB, c Config, all map[string]*tensor.Tensor) (*Encoder, error) {
	t.Helper()
	b := file(t, all)
	return Read(config(t, c), bytes.NewReader(b), int64(len(b)))
}

// embedded runs an encoder, by way of its file, and returns all vectors one after another.
func embedded(t testing.TB, e *Encoder, ids, mask [][]int64) []float32 {
	t.Helper()
	g, err := e.Graph(len(ids), len(ids[0]))
	if err != nil {
		t.Fatal(err)
	}
	b, err := onnx.Write(g)
	if err != nil {
		t.Fatal(err)
	}
	s := tensor.Shape{len(ids), len(ids[0])}
	in := model.Values{IDs: tensor.Must(tensor.From(s, slices.Concat(ids...))), Mask: tensor.Must(tensor.From(s, slices.Concat(mask...)))}
	m, err := model.Load(bytes.NewReader(b), int64(len(b)), onnx.Options{}, lower.FP32, in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := m.Run(t.Context(), cpu.New(1), in)
	if err != nil {
		t.Fatal(err)
	}
	return tensor.Of[float32](out[Embedding])
}

func TestEncoderAgreesWithReference(t *testing.T) {
	ids := [][]int64{{3, 1, 4, 1, 5}, {9, 2, 6, 0, 0}, {0, 0, 0, 0, 0}}
	mask := [][]int64{{1, 1, 1, 1, 1}, {1, 1, 1, 0, 0}, {0, 0, 0, 0, 0}}
	for _, activation := range []string{"gelu", "gelu_new"} {
		c := tiny
		c.Activation = activation
		e, err := read(t, c, chance(c))
		if err != nil {
			t.Fatal(err)
		}
		got := embedded(t, e, ids, mask)
		for i := range ids {
			want := reference{c, chance(c)}.embed(ids[i], mask[i])
			for j, w := range want {
				if g := float64(got[i*c.Width+j]); math.Abs(g-w) > 2e-6 {
					t.Errorf("%s: text %d, element %d is %v, want %v", activation, i, j, g, w)
				}
			}
		}
	}
}

// What is behind the mask changes nothing.
func TestPaddingCountsNowhere(t *testing.T) {
	e, err := read(t, tiny, chance(tiny))
	if err != nil {
		t.Fatal(err)
	}
	mask := [][]int64{{1, 1, 0, 0}}
	a, b := embedded(t, e, [][]int64{{3, 1, 0, 0}}, mask), embedded(t, e, [][]int64{{3, 1, 7, 9}}, mask)
	if !slices.Equal(a, b) {
		t.Errorf("%v and %v", a, b)
	}
}

// reference computes a text's vector in float64, a number at a time.
type reference struct {
	Config
	weights map[string]*tensor.Tensor
}

func (r reference) at(name string, i int) float64 {
	return float64(tensor.Of[float32](r.weights[name])[i])
}

func (r reference) norm(name string, x []float64) []float64 {
	mean, variance := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x))
	}
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = (v-mean)/math.Sqrt(variance+r.Epsilon)*r.at(name+".weight", i) + r.at(name+".bias", i)
	}
	return out
}

func (r reference) linear(name string, x []float64) []float64 {
	out := make([]float64, r.weights[name+".bias"].Len())
	for o := range out {
		out[o] = r.at(name+".bias", o)
		for i, v := range x {
			out[o] += v * r.at(name+".weight", o*len(x)+i)
		}
	}
	return out
}

func (r reference) attend(at string, x [][]float64, mask []int64, token int) []float64 {
	size := r.Width / r.Heads
	q := r.linear(at+"self.query", x[token])
	out := make([]float64, r.Width)
	for h := range r.Heads {
		total, sums := 0.0, make([]float64, size)
		for other := range x {
			if mask[other] == 0 {
				continue
			}
			k, v, score := r.linear(at+"self.key", x[other]), r.linear(at+"self.value", x[other]), 0.0
			for i := range size {
				score += q[h*size+i] * k[h*size+i]
			}
			weight := math.Exp(score / math.Sqrt(float64(size)))
			total += weight
			for i := range size {
				sums[i] += weight * v[h*size+i]
			}
		}
		for i := range size {
			out[h*size+i] = sums[i] / total
		}
	}
	return r.linear(at+"output.dense", out)
}

func (r reference) gelu(x float64) float64 {
	if r.Activation == "gelu_new" {
		return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	}
	return x / 2 * (1 + math.Erf(x/math.Sqrt2))
}

func plus(x, y []float64) []float64 {
	out := slices.Clone(x)
	for i := range y {
		out[i] += y[i]
	}
	return out
}

func (r reference) embed(ids, mask []int64) []float64 {
	mean := make([]float64, r.Width)
	if !slices.Contains(mask, 1) {
		return mean
	}
	x := make([][]float64, len(ids))
	for p, id := range ids {
		v := make([]float64, r.Width)
		for i := range v {
			v[i] = r.at("embeddings.word_embeddings.weight", int(id)*r.Width+i) + r.at("embeddings.position_embeddings.weight", p*r.Width+i) + r.at("embeddings.token_type_embeddings.weight", i)
		}
		x[p] = r.norm("embeddings.LayerNorm", v)
	}
	for l := range r.Layers {
		at, next := fmt.Sprintf("encoder.layer.%d.", l), make([][]float64, len(x))
		for p := range x {
			y := r.norm(at+"attention.output.LayerNorm", plus(x[p], r.attend(at+"attention.", x, mask, p)))
			wide := r.linear(at+"intermediate.dense", y)
			for i, v := range wide {
				wide[i] = r.gelu(v)
			}
			next[p] = r.norm(at+"output.LayerNorm", plus(y, r.linear(at+"output.dense", wide)))
		}
		x = next
	}
	square := 0.0
	for p := range x {
		if mask[p] == 1 {
			mean = plus(mean, x[p])
		}
	}
	for _, v := range mean {
		square += v * v
	}
	for i := range mean {
		mean[i] /= math.Sqrt(square)
	}
	return mean
}

// Halves and names with a prefix are read too.
func TestWeightsOfOtherForms(t *testing.T) {
	want, err := read(t, tiny, chance(tiny))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*tensor.Tensor{"pooler.dense.bias": tensor.Scalar(float32(1))}
	for name, x := range chance(tiny) {
		half := tensor.Must(tensor.New(tensor.BFloat16, x.Shape))
		for i := range x.Len() {
			half.Set(i, tensor.FloatWord(tensor.BFloat16, tensor.FloatOf(x.Type, x.At(i))))
		}
		all["bert."+name] = half
	}
	got, err := read(t, tiny, all)
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range want.weights {
		for i, v := range tensor.Of[float32](x) {
			if g := tensor.Of[float32](got.weights[name])[i]; math.Abs(float64(g-v)) > 1.0/256 {
				t.Fatalf("%s: element %d is %v, want about %v", name, i, g, v)
			}
		}
	}
}

func TestFoldersAreRefused(t *testing.T) {
	weights := file(t, chance(tiny))
	without := chance(tiny)
	delete(without, "encoder.layer.1.output.dense.bias")
	other := func(change func(*Config)) []byte {
		c := tiny
		change(&c)
		return config(t, c)
	}
	for want, files := range map[string]map[string][]byte{
		"config.json: no such file":                     {"model.safetensors": weights},
		"save_pretrained":                               {"config.json": config(t, tiny)},
		"config.json: unexpected end":                   {"config.json": []byte("{"), "model.safetensors": weights},
		`model_type is "gpt2"`:                          {"config.json": other(func(c *Config) { c.Kind = "gpt2" }), "model.safetensors": weights},
		"hidden_size is 0":                              {"config.json": other(func(c *Config) { c.Width = 0 }), "model.safetensors": weights},
		"num_hidden_layers is 1000000":                  {"config.json": other(func(c *Config) { c.Layers = 1e6 }), "model.safetensors": weights},
		"does not divide hidden_size":                   {"config.json": other(func(c *Config) { c.Heads = 4 }), "model.safetensors": weights},
		`hidden_act is "relu"`:                          {"config.json": other(func(c *Config) { c.Activation = "relu" }), "model.safetensors": weights},
		`position_embedding_type is "relative_key"`:     {"config.json": other(func(c *Config) { c.Placing = "relative_key" }), "model.safetensors": weights},
		"layer_norm_eps is 0":                           {"config.json": other(func(c *Config) { c.Epsilon = 0 }), "model.safetensors": weights},
		"pad_token_id is 11":                            {"config.json": other(func(c *Config) { c.Padding = 11 }), "model.safetensors": weights},
		"its shape is [10], and by config.json [12]":    {"config.json": other(func(c *Config) { c.Intermediate = 12 }), "model.safetensors": weights},
		`"encoder.layer.1.output.dense.bias": it is mi`: {"config.json": config(t, tiny), "model.safetensors": file(t, without)},
		"model.safetensors: read safetensors":           {"config.json": config(t, tiny), "model.safetensors": weights[:len(weights)-1]},
		"pooling_mode_cls_token is on":                  {"config.json": config(t, tiny), "model.safetensors": weights, "1_Pooling/config.json": []byte(`{"pooling_mode_cls_token": true}`)},
	} {
		dir := t.TempDir()
		for name, b := range files {
			name = filepath.Join(dir, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	e, err := read(t, tiny, chance(tiny))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range [][2]int{{0, 1}, {1, 0}, {1, tiny.Positions + 1}, {maxScores, 8}} {
		if _, err := e.Graph(s[0], s[1]); err == nil {
			t.Errorf("a batch of %d texts of %d tokens was taken", s[0], s[1])
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(config(f, tiny), file(f, chance(tiny)))
	f.Add([]byte(`{"model_type": "bert"}`), []byte{})
	f.Fuzz(func(t *testing.T, config, weights []byte) {
		e, err := Read(config, bytes.NewReader(weights), int64(len(weights)))
		if err != nil {
			return
		}
		if g, err := e.Graph(1, 1); err != nil || len(g.Inputs) != 2 {
			t.Errorf("an encoder that was read cannot be written: %v", err)
		}
	})
}

func TestTexts(t *testing.T) {
	c := tiny
	c.Padding = 3
	e := &Encoder{Config: c}
	ids := tensor.Must(tensor.From(tensor.Shape{2, 3}, []int32{1, 2, 3, 10, 3, 3}))
	got, err := e.Texts(ids, nil)
	if err != nil || !slices.Equal(tensor.Of[int64](got.Mask), []int64{1, 1, 0, 1, 0, 0}) || !slices.Equal(tensor.Of[int64](got.IDs), []int64{1, 2, 3, 10, 3, 3}) {
		t.Errorf("%v, %v", got, err)
	}
	ones := tensor.Must(tensor.From(tensor.Shape{2, 3}, []int64{1, 1, 1, 1, 1, 1}))
	if got, err = e.Texts(ids, ones); err != nil || !got.Mask.Equal(ones) {
		t.Errorf("%v, %v", got, err)
	}
	for want, in := range map[string][2]*tensor.Tensor{
		"number 1 of text 0 is 11, want 0 to 10": {tensor.Must(tensor.From(tensor.Shape{1, 2}, []int64{1, 11})), nil},
		"is -1, want":                            {tensor.Must(tensor.From(tensor.Shape{1, 1}, []int32{-1})), nil},
		"float32[1 1], want int32 or int64":      {tensor.Must(tensor.From(tensor.Shape{1, 1}, []float32{1})), nil},
		"int64[1], want":                         {tensor.Must(tensor.From(tensor.Shape{1}, []int64{1})), nil},
		"and the model reads 8":                  {tensor.Must(tensor.New(tensor.Int64, tensor.Shape{1, 9})), nil},
		"the mask has shape [1 6]":               {ids, tensor.Must(tensor.New(tensor.Int64, tensor.Shape{1, 6}))},
		"mask: number 0 of text 0 is 2":          {tensor.Must(tensor.New(tensor.Int64, tensor.Shape{1, 1})), tensor.Must(tensor.From(tensor.Shape{1, 1}, []int64{2}))},
	} {
		if _, err := e.Texts(in[0], in[1]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
