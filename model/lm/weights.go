package lm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/quant"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/safetensors"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/model/lm/family"
)

// Model is a language model: its configuration, and its weights by the names that Llama has for them.
type Model struct {
	family.Config
	weights map[string]weight
	forms   *Forms
}

// weight is a weight as it is stored: floats, or rows of blocks, which are uint8.
type weight struct {
	stored *tensor.Tensor
	of     quant.Type // what the blocks are
}

// maxIndex bounds the index of files in bytes, and maxFiles their number.
const (
	maxIndex = 64 << 20
	maxFiles = 1 << 10
)

// Open reads a folder with config.json and weights as safetensors, in one file or in those that model.safetensors.index.json names.
func Open(dir string) (*Model, error) {
	text, err := bounded.ReadFile(filepath.Join(dir, "config.json"), family.MaxConfig)
	if err != nil {
		return nil, err
	}
	c, err := family.Parse(text)
	if err != nil {
		return nil, err
	}
	files, err := WeightFiles(dir)
	if err != nil {
		return nil, err
	}
	all := map[string]*tensor.Tensor{}
	for _, name := range files {
		some, err := readWeights(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for k, t := range some { // each has its own key
			if all[k] != nil {
				return nil, fmt.Errorf("%s: weight %q stands in another file, too", name, k)
			}
			all[k] = t
		}
	}
	return New(c, all)
}

// WeightFiles names the files of weights that a folder has, by its index or without one, sorted.
func WeightFiles(dir string) ([]string, error) {
	text, err := bounded.ReadFile(filepath.Join(dir, "model.safetensors.index.json"), maxIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return []string{"model.safetensors"}, nil
	} else if err != nil {
		return nil, err
	}
	var index struct {
		Files map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, fmt.Errorf("model.safetensors.index.json: %w", err)
	}
	seen := map[string]bool{}
	var files []string
	for _, f := range index.Files { // sorted below
		if filepath.Base(f) != f || !strings.HasSuffix(f, ".safetensors") {
			return nil, fmt.Errorf("model.safetensors.index.json names %q: want a .safetensors file of the same folder", f)
		}
		if !seen[f] {
			seen[f] = true
			files = append(files, f)
		}
	}
	if len(files) == 0 || len(files) > maxFiles {
		return nil, fmt.Errorf("model.safetensors.index.json names %d files: want 1 to %d", len(files), maxFiles)
	}
	slices.Sort(files)
	return files, nil
}

func readWeights(path string) (map[string]*tensor.Tensor, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	all, _, err := safetensors.Read(f, info.Size())
	return all, err
}

// New returns the model of a configuration and of weights by their family's names. It fails unless each weight that the graph reads is
// there, in its shape, with finite shape and a float type; others are left out.
func New(c *family.Config, given map[string]*tensor.Tensor) (*Model, error) {
	m := &Model{Config: *c, weights: map[string]weight{}}
	for _, w := range c.Weights() {
		t := c.Find(given, w.Name)
		if t == nil {
			return nil, fmt.Errorf("%s: weight %q is missing", c.Family, w.Name)
		}
		if !t.Type.Float() || t.Type == tensor.Float64 || !t.Shape.Equal(w.Shape) {
			return nil, fmt.Errorf("%s: weight %q is %v%v: want %v of float32, float16 or bfloat16", c.Family, w.Name, t.Type, t.Shape, w.Shape)
		}
		m.weights[w.Name] = weight{stored: t}
	}
	return m, nil
}
