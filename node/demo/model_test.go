package demo

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/format/safetensors"
	"github.com/tally-network/tally/format/text"
	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/model/replies"
)

// What training gives is a folder that opens as a model, with the same weights, and with the tokens that it was trained on.
func TestTrainedModelIsAFolder(t *testing.T) {
	tokens, err := text.Train(corpus, text.DefaultVocabulary)
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewModel(tokens.Size(), seed)
	if err != nil {
		t.Fatal(err)
	}
	g, err := m.Training(2, recordLength)
	if err != nil {
		t.Fatal(err)
	}
	data := tensor.Must(tensor.New(tensor.Int32, tensor.Shape{2, recordLength + 1}))
	r := train.Recipe{Loss: "next-token-cross-entropy", Optimizer: "sgd", Rate: train.Rate{LearningRate: 0.02}, Batch: 2}
	tr, err := train.New(g, r, data.Shape)
	if err != nil {
		t.Fatal(err)
	}
	trained, err := train.Export(tr.Start, g, r)
	if err != nil {
		t.Fatal(err)
	}
	weights := map[string]*tensor.Tensor{}
	for _, c := range trained.Consts {
		weights[c.Name] = c.Tensor
	}
	var file bytes.Buffer
	if err := safetensors.Write(&file, weights, nil); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), folderName)
	if err := writeFolder(dir, tokens, file.Bytes()); err != nil {
		t.Fatal(err)
	}
	f, err := files.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := m.WeightsRoot(m.WeightRoots(1))
	if got := f.Weights.WeightsRoot(f.Weights.WeightRoots(1)); got != want {
		t.Errorf("weights %v, want %v", got, want)
	}
	for _, s := range []string{corpus[:2000], "\n\n", "a☃b"} {
		a, err := tokens.Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := f.Tokenizer.Encode(s, true); err != nil || !slices.Equal(a, b) {
			t.Errorf("%.20q is %v in the folder, %v; it was trained as %v", s, b, err, a)
		}
	}
	if f.Template == nil || len(f.Ends) > 0 {
		t.Errorf("template %v, ends %v", f.Template, f.Ends)
	}
	s := replies.Start(f.Weights, cpu.New(1), replies.Options{})
	defer s.Close()
	n := 0 // far beyond what it was trained on
	for _, err := range s.Reply(t.Context(), &lm.Request{Prompt: []int32{1, 2, 3}, MaxTokens: 2 * recordLength}) {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	if n != 2*recordLength {
		t.Errorf("%d tokens", n)
	}
}

func TestModelIsOfLimitedSize(t *testing.T) {
	if _, err := NewModel(900, 0); err == nil || !strings.Contains(err.Error(), "fewer different characters") {
		t.Errorf("a large vocabulary: %v", err)
	}
	a, err := NewModel(67, 1)
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewModel(67, 2)
	if err != nil {
		t.Fatal(err)
	}
	if n := a.Parameters(); n < 50_000 || n > 90_000 {
		t.Errorf("%d parameters", n)
	}
	if a.WeightsRoot(a.WeightRoots(1)) == b.WeightsRoot(b.WeightRoots(1)) {
		t.Error("the weights do not follow from the seed")
	}
}
