package lm

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/quant"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/format/peft"
	"github.com/tally-network/tally/format/safetensors"
	"github.com/tally-network/tally/model/lm/family"
)

// adapters are those in testdata, and their bases.
var adapters = map[string]string{"llama-some": "llama", "llama-other": "llama", "llama-all": "llama", "gpt2": "gpt2", "phi3": "phi3"}

// adapted opens a model of testdata with an adapter.
func adapted(t testing.TB, base *Model, name string) *Model {
	t.Helper()
	m, err := base.Adapted("testdata/adapters/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// An adapted model computes what PEFT does, but for the last digits, and the same bits by graph and by stages.
func TestAdaptersEqualPEFT(t *testing.T) {
	for name, of := range adapters { // each alone
		base, err := Open("testdata/" + of)
		if err != nil {
			t.Fatal(err)
		}
		m := adapted(t, base, name)
		tokens, want := expected(t, "testdata/adapters/"+name)
		g, err := m.Graph(tokens.Len(), 0)
		if err != nil {
			t.Fatal(err)
		}
		got := tensor.Of[float32](run(t, cpu.New(2), g, map[string]*tensor.Tensor{"tokens": tokens})["logits"])
		worst := 0.0
		for i, x := range got {
			worst = max(worst, math.Abs(float64(x-tensor.Of[float32](want)[i])))
		}
		if t.Logf("%s: logits differ by %.2g at most", name, worst); !(worst < 1e-4) {
			t.Errorf("%s: logits differ by %v", name, worst)
		}
		all := int32s(tensor.Of[int64](tokens))
		for _, cuts := range [][]int{{1, 2, 3, 4, 20}, {5, 12, 13, 20}} {
			for _, e := range []engine.Executor{cpu.New(1), cpu.New(2), engine.Reference{}} {
				s := m.NewSession(e)
				for _, end := range cuts {
					logits, err := s.Append(t.Context(), all[s.Len():end]...)
					if err != nil {
						t.Fatal(err)
					}
					if !slices.Equal(logits, got[(end-1)*m.Vocabulary:end*m.Vocabulary]) {
						t.Fatalf("%s: after %d tokens in %v the logits are others", name, end, cuts)
					}
				}
			}
		}
	}
}

// drawnAdapter returns a model with an adapter of given rank of products whose names end so, with weights that are drawn.
func drawnAdapter(r *rand.Rand, base *Model, rank int, typ tensor.DType, ends ...string) *Model {
	a := &adapter{base: base, inputs: map[string]*tensor.Tensor{"scale": vector(float32(r.NormFloat64()))}}
	draw := func(name string, s ...int) {
		x := tensor.Must(tensor.New(typ, s))
		for i := range x.Len() {
			x.Set(i, tensor.FloatWord(typ, 0.3*r.NormFloat64()))
		}
		a.inputs[name] = x
	}
	for _, w := range base.Weights() {
		body, _ := strings.CutSuffix(w.Name, ".weight")
		if !slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(body, end) }) {
			continue
		}
		in, out := w.Shape[1], w.Shape[0]
		if base.Of.Columns {
			in, out = out, in
		}
		draw(body+family.AdapterA, rank, in)
		draw(body+family.AdapterB, out, rank)
	}
	return a.model()
}

// Whatever is in a step beside it, a row has the bits that it has alone: of the base, of adapters of its form, of the same adapter.
func TestRowsOfAdaptersEqualThoseAlone(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	base, err := Open("testdata/qwen2")
	if err != nil {
		t.Fatal(err)
	}
	models := []*Model{base}
	for range 5 {
		models = append(models, drawnAdapter(r, base, 3, tensor.BFloat16, "q_proj", "o_proj", "down_proj"))
	}
	for _, e := range []engine.Executor{cpu.New(1), cpu.New(2)} {
		s := base.Stages(e)
		for _, of := range [][]int{{0, 1}, {1, 1}, {1, 2}, {0, 3, 4, 5, 1, 3}, {5, 2, 0, 0, 1}} {
			parts := make([]Part, len(of))
			alone := make([]*Session, len(of))
			for i, m := range of {
				parts[i] = Part{Sequence: &Sequence{}, Model: models[m]}
				alone[i] = models[m].NewSession(cpu.New(1))
			}
			for range 3 {
				for i := range parts {
					n := 1 + r.IntN(5)*r.IntN(2)
					parts[i].Tokens, parts[i].Logits = make([]int32, n), 1
					for j := range n {
						parts[i].Tokens[j] = int32(r.IntN(base.Vocabulary))
					}
				}
				got, err := s.Step(t.Context(), parts)
				if err != nil {
					t.Fatal(err)
				}
				for i, p := range parts {
					want, err := alone[i].Append(t.Context(), p.Tokens...)
					if err != nil {
						t.Fatal(err)
					}
					if !slices.Equal(tensor.Of[float32](got[i]), want) {
						t.Fatalf("%v: part %d of %d tokens has other logits than alone", of, i, len(p.Tokens))
					}
				}
			}
		}
	}
}

// counting counts the programs that are prepared.
type counting struct {
	*cpu.Executor
	prepared int
}

func (c *counting) Prepare(p *graph.Program) (engine.Runner, error) {
	c.prepared++
	return c.Executor.Prepare(p)
}

// Stages read any number of adapters of any forms, and keep plans of those that were read last: nothing is planned anew for one of them.
func TestManyForms(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	base, err := Open("testdata/llama")
	if err != nil {
		t.Fatal(err)
	}
	e := &counting{Executor: cpu.New(1)}
	s := base.Stages(e)
	forms := make([]*Model, maxAdapterSizes+3)
	read := func(i int) (planned int) {
		t.Helper()
		before := e.prepared
		got, err := s.Step(t.Context(), []Part{{Sequence: &Sequence{}, Tokens: []int32{5, 6}, Logits: 1, Model: forms[i]}})
		if err != nil {
			t.Fatal(err)
		}
		if i%16 == 0 {
			want, err := forms[i].NewSession(cpu.New(1)).Append(t.Context(), 5, 6)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(tensor.Of[float32](got[0]), want) {
				t.Fatalf("rank %d: other logits", i+1)
			}
		}
		return e.prepared - before
	}
	for i := range forms {
		forms[i] = drawnAdapter(r, base, i+1, tensor.Float32, "v_proj")
		if i < maxAdapterSizes && read(i) == 0 {
			t.Fatalf("rank %d was planned before", i+1)
		}
	}
	for range 2 {
		for i := range maxAdapterSizes {
			if n := read(i); n > 0 {
				t.Fatalf("%d programs are planned anew for rank %d, one of %d", n, i+1, maxAdapterSizes)
			}
		}
	}
	read(0) // which was read longest ago
	for i := range 3 {
		if read(maxAdapterSizes+i) == 0 {
			t.Errorf("rank %d was planned before", maxAdapterSizes+i+1)
		}
	}
	if read(0) > 0 || read(1) == 0 || read(2) == 0 || read(3) == 0 {
		t.Error("the forms are not those that were read last")
	}
	if n, of := len(s.first.plans), len(s.last.bySize); n > maxAdapterSizes || of > maxAdapterSizes {
		t.Errorf("%d plans are kept, of %d sizes", n, of)
	}
}

// A mix takes what one step reads: any of a base and its adapters of one form, a few at a time.
func TestMixes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	base, err := Open("testdata/llama")
	if err != nil {
		t.Fatal(err)
	}
	other, err := Open("testdata/llama")
	if err != nil {
		t.Fatal(err)
	}
	var x Mix
	for i := range maxAdapters {
		if m := drawnAdapter(r, base, 2, tensor.Float32, "v_proj"); !x.Take(m) || !x.Take(m) {
			t.Errorf("adapter %d is refused", i)
		}
	}
	if !x.Take(base) || x.Take(other) || x.Take(drawnAdapter(r, base, 2, tensor.Float32, "v_proj")) {
		t.Error("the base is refused, or a stranger or one adapter more is not")
	}
	x = Mix{}
	if !x.Take(base) || !x.Take(drawnAdapter(r, base, 2, tensor.Float32, "v_proj")) || x.Take(drawnAdapter(r, base, 3, tensor.Float32, "v_proj")) {
		t.Error("adapters of two forms are taken")
	}
	if _, err := base.Stages(cpu.New(1)).Step(t.Context(), []Part{{Sequence: &Sequence{}, Tokens: []int32{1}, Model: other}}); err == nil || !strings.Contains(err.Error(), "no step reads together") {
		t.Errorf("%v", err)
	}
}

// adapterFolder writes a folder with an adapter of testdata, changed: settings, and weights by name; nil leaves one out.
func adapterFolder(t *testing.T, of string, change func(config string) string, weights map[string]*tensor.Tensor) string {
	t.Helper()
	dir := t.TempDir()
	text, err := os.ReadFile(filepath.Join("testdata/adapters", of, "adapter_config.json"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := readFile(filepath.Join("testdata/adapters", of, peft.Weights), readAll)
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range weights { // each its own
		if all[name] = x; x == nil {
			delete(all, name)
		}
	}
	var b bytes.Buffer
	if err := safetensors.Write(&b, all, nil); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"adapter_config.json": []byte(change(string(text))), peft.Weights: b.Bytes()} { // each alone
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// What an order delivers has trained adapters beside the base's matrices. Taken for a model it would reply as the base.
func TestAdaptersAmongWeightsAreRefused(t *testing.T) {
	all, err := readFile("testdata/llama/model.safetensors", readAll)
	if err != nil {
		t.Fatal(err)
	}
	all["model.layers.0.self_attn.q_proj.weight.lora_a"] = tensor.Must(tensor.New(tensor.Float32, tensor.Shape{1}))
	config, err := os.ReadFile("testdata/llama/config.json")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := safetensors.Write(&b, all, nil); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, b := range map[string][]byte{"config.json": config, "model.safetensors": b.Bytes()} { // each alone
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "with --adapter") {
		t.Errorf("%v", err)
	}
	if err := Check(dir); err == nil || !strings.Contains(err.Error(), "with --adapter") {
		t.Errorf("checked alone: %v", err)
	}
}

// A pipe under the name of a file is refused: who reads it would wait for good.
func TestPipesAreRefused(t *testing.T) {
	dir := adapterFolder(t, "llama-some", func(config string) string { return config }, nil)
	pipe := filepath.Join(dir, peft.Weights)
	if err := os.Remove(pipe); err != nil {
		t.Fatal(err)
	}
	if err := exec.Command("mkfifo", pipe).Run(); err != nil {
		t.Skip(err)
	}
	if _, err := ReadAdapter(dir); err == nil {
		t.Error("a pipe is an adapter")
	}
}

func TestAdapterRefusals(t *testing.T) {
	base, err := Open("testdata/llama")
	if err != nil {
		t.Fatal(err)
	}
	const a, b = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight", "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight"
	as := func(from, to string) func(string) string {
		return func(config string) string {
			if !strings.Contains(config, from) {
				t.Errorf("no %q", from)
			}
			return strings.Replace(config, from, to, 1)
		}
	}
	same := func(config string) string { return config }
	floats := func(s ...int) *tensor.Tensor { return tensor.Must(tensor.New(tensor.Float32, s)) }
	type given = map[string]*tensor.Tensor
	for i, c := range []struct {
		says    string
		change  func(string) string
		weights given
	}{
		{"use_dora is true, which is not supported: merge it", as(`"use_dora": false`, `"use_dora": true`), nil},
		{"rank_pattern is {", as(`"rank_pattern": {}`, `"rank_pattern": {"q_proj": 8}`), nil},
		{"modules_to_save is [", as(`"modules_to_save": null`, `"modules_to_save": ["lm_head"]`), nil},
		{"something_new is 1", as(`"use_dora"`, `"something_new": 1, "use_dora"`), nil},
		{`bias is "all"`, as(`"bias": "none"`, `"bias": "all"`), nil},
		{`peft_type is "IA3"`, as(`"LORA"`, `"IA3"`), nil},
		{`task_type is "SEQ_CLS"`, as(`"CAUSAL_LM"`, `"SEQ_CLS"`), nil},
		{`init_lora_weights is "pissa", which changes the base`, as(`"init_lora_weights": true`, `"init_lora_weights": "pissa"`), nil},
		{"r is 0: want 1", as(`"r": 4`, `"r": 0`), nil},
		{"r is 5000", as(`"r": 4`, `"r": 5000`), nil},
		{"lora_alpha is 0", as(`"lora_alpha": 8`, `"lora_alpha": 0`), nil},
		{"lora_alpha is 1e+30", as(`"lora_alpha": 8`, `"lora_alpha": 1e30`), nil},
		{"target_modules: ", as(`"target_modules": [`, `"target_modules": [3,`), nil},
		{"no weights of [\"o_proj\"]", as(`"target_modules": [`, `"target_modules": ["o_proj",`), nil},
		{"adapter_config.json: ", func(string) string { return "[]" }, nil},
		{"is longer than 1048576 bytes", func(string) string { return strings.Repeat(" ", 2_000_000) }, nil},
		{"is [5 16]: want [4 16]", same, given{a: floats(5, 16)}},
		{"is [16 5]: want [16 4]", same, given{b: floats(16, 5)}},
		{"without the other of its pair", same, given{b: nil}},
		{"without the other of its pair", same, given{a: nil}},
		{"no product in a layer", same, given{"base_model.model.lm_head.lora_A.weight": floats(4, 16)}},
		{"no product in a layer", same, given{"base_model.model.model.layers.7.self_attn.q_proj.lora_A.weight": floats(4, 16)}},
		{"no product in a layer", same, given{"base_model.model.model.layers.0.input_layernorm.lora_A.weight": floats(4, 16)}},
		{"no product in a layer", same, given{"base_model.model.model.layers.0.self_attn.q_proj.lora_magnitude_vector": floats(16)}},
		{"is int32: want float32", same, given{a: tensor.Must(tensor.New(tensor.Int32, tensor.Shape{4, 16}))}},
		{"is there twice", same, given{strings.Replace(a, "model.model.", "model.", 1): floats(4, 16)}},
	} {
		if _, err := base.Adapted(adapterFolder(t, "llama-some", c.change, c.weights)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("case %d: %v, want %q", i, err, c.says)
		}
	}
	if _, err := base.Adapted(t.TempDir()); err == nil {
		t.Error("an empty folder is an adapter")
	}
	bare := adapterFolder(t, "llama-some", same, nil)
	if err := os.Remove(filepath.Join(bare, peft.Weights)); err != nil {
		t.Fatal(err)
	}
	if _, err := base.Adapted(bare); err == nil || !strings.Contains(err.Error(), "safe_serialization") {
		t.Error(err)
	}
	if _, err := adapted(t, base, "llama-some").Adapted("testdata/adapters/llama-some"); err == nil || !strings.Contains(err.Error(), "has an adapter already") {
		t.Error(err)
	}
	gpt2, err := Open("testdata/gpt2")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gpt2.Adapted("testdata/adapters/llama-some"); err == nil || !strings.Contains(err.Error(), "want [4 64], for rank 4 and this base: take its own base") {
		t.Error(err)
	}
}

// What an adapter's folder says is known without a base.
func TestReadAdapter(t *testing.T) {
	a, err := ReadAdapter("testdata/adapters/llama-all")
	if err != nil || a.Rank != 3 || a.Scale != float32(5/math.Sqrt(3)) || a.Base != "llama" || len(a.Targets) != 14 || a.Parameters == 0 || a.Bytes < 2*int64(a.Parameters) {
		t.Errorf("%+v, %v", a, err)
	}
}

// Weights in blocks have adapters as others have, and an adapted model has roots of its own over those of its base.
func TestAdaptedBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	b := blocky(t, quant.Q4_K)
	base, err := ReadGGUF(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	m := drawnAdapter(r, base, 16, tensor.Float32, "_proj")
	tokens := []int32{5, 79, 0, 31, 31, 2, 64, 17, 8}
	g, err := m.Graph(len(tokens), 0)
	if err != nil {
		t.Fatal(err)
	}
	in := make([]int64, len(tokens))
	for i, id := range tokens {
		in[i] = int64(id)
	}
	whole := tensor.Of[float32](run(t, cpu.New(2), g, map[string]*tensor.Tensor{"tokens": vector(in...)})["logits"])
	s := m.NewSession(cpu.New(1))
	for _, end := range []int{4, 5, 9} {
		got, err := s.Append(t.Context(), tokens[s.Len():end]...)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, whole[(end-1)*m.Vocabulary:end*m.Vocabulary]) {
			t.Fatalf("after %d tokens the logits are others", end)
		}
	}
	all, own := m.WeightRoots(1), base.WeightRoots(1)
	for name, root := range own { // each alone
		if all[name] != root {
			t.Errorf("%s has another root", name)
		}
	}
	for name, root := range m.AdapterRoots(1) { // each alone
		own[name] = root
	}
	if fmt.Sprint(all) != fmt.Sprint(own) {
		t.Error("the roots of base and adapter are not those of the model")
	}
}

// A step of eight tokens, one of each sequence: of the base, of one adapter of rank 16, and of eight; and of a prompt's 128. The base has 25 million weights.
func BenchmarkAdapters(b *testing.B) {
	c, err := family.Parse([]byte(`{"model_type": "llama", "num_hidden_layers": 8, "hidden_size": 512, "num_attention_heads": 8, "num_key_value_heads": 4, "intermediate_size": 1536,
		"vocab_size": 1024, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "tie_word_embeddings": true}`))
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	base, err := Make(c, func(_ string, s tensor.Shape) *tensor.Tensor {
		x := tensor.Must(tensor.New(tensor.Float32, s))
		for i := range x.Len() {
			x.Set(i, tensor.F32(float32(0.02*r.NormFloat64())))
		}
		return x
	})
	if err != nil {
		b.Fatal(err)
	}
	models := []*Model{base}
	for range maxAdapters {
		models = append(models, drawnAdapter(r, base, 16, tensor.BFloat16, "_proj"))
	}
	for _, x := range []struct {
		name        string
		of          []int
		rows, parts int
	}{{"base", []int{0}, 1, 8}, {"one", []int{1}, 1, 8}, {"eight", []int{1, 2, 3, 4, 5, 6, 7, 8}, 1, 8}, {"prompt-base", []int{0}, 128, 1}, {"prompt-one", []int{1}, 128, 1}} {
		b.Run(x.name, func(b *testing.B) {
			s := base.Stages(cpu.New(1))
			parts := make([]Part, x.parts)
			for i := range parts {
				parts[i] = Part{Sequence: &Sequence{}, Tokens: make([]int32, x.rows), Logits: 1, Model: models[x.of[i%len(x.of)]]}
			}
			step := func() {
				for _, p := range parts {
					p.Sequence.Cut(0)
				}
				if _, err := s.Step(b.Context(), parts); err != nil {
					b.Fatal(err)
				}
			}
			step()
			b.ReportAllocs()
			least := time.Hour // others may be at work
			for b.Loop() {
				begun := time.Now()
				step()
				least = min(least, time.Since(begun))
			}
			b.ReportMetric(float64(least.Microseconds())/1e3, "ms-at-best")
		})
	}
}
