package lm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	adapter *adapter // nil: there is none
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
	c, all, err := readFolder(dir, readAll)
	if err != nil {
		return nil, err
	}
	return New(c, all)
}

func readAll(src io.ReaderAt, size int64) (map[string]*tensor.Tensor, error) {
	all, _, err := safetensors.Read(src, size, nil)
	return all, err
}

// Check returns the error that [Open] or [OpenGGUF] would, for the model at a path. It has one weight in memory at a time, at most.
func Check(path string) error {
	if info, err := os.Stat(path); err != nil {
		return err
	} else if !info.IsDir() {
		return checkGGUF(path)
	}
	c, all, err := readFolder(path, safetensors.List)
	if err != nil {
		return err
	}
	for _, w := range c.Weights() {
		x, ok := find(all, c.FolderNames(w.Name))
		if err := fits(c, w, x, ok); err != nil {
			return err
		}
	}
	return nil
}

// readFolder reads config.json, and of all files of weights what read reads.
func readFolder[T any](dir string, read func(src io.ReaderAt, size int64) (map[string]T, error)) (*family.Config, map[string]T, error) {
	text, err := bounded.ReadFile(filepath.Join(dir, "config.json"), family.MaxConfig)
	if err != nil {
		return nil, nil, err
	}
	c, err := family.Parse(text)
	if err != nil {
		return nil, nil, err
	}
	files, err := WeightFiles(dir)
	if err != nil {
		return nil, nil, err
	}
	all := map[string]T{}
	for _, name := range files {
		some, err := readFile(filepath.Join(dir, name), read)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		for k, t := range some { // each has its own key
			if _, twice := all[k]; twice {
				return nil, nil, fmt.Errorf("%s: weight %q stands in another file, too", name, k)
			}
			if strings.HasSuffix(k, ".lora_a") { // as an order delivers them: without, it is the base that would reply
				return nil, nil, fmt.Errorf("%s: %q adapts the model and is no part of it: take the folder that it was made from, and give the adapter with --adapter", name, k)
			}
			all[k] = t
		}
	}
	return c, all, nil
}

// WeightFiles names the files of weights that a folder has, sorted: one, or those of its index.
func WeightFiles(dir string) ([]string, error) {
	const whole = "model.safetensors"
	if _, err := os.Stat(filepath.Join(dir, whole)); err == nil {
		return []string{whole}, nil // an index beside it is of another model, or of the same one in parts
	}
	text, err := bounded.ReadFile(filepath.Join(dir, "model.safetensors.index.json"), maxIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return []string{whole}, nil
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

func readFile[T any](path string, read func(src io.ReaderAt, size int64) (T, error)) (none T, err error) {
	f, size, err := bounded.Open(path)
	if err != nil {
		return none, err
	}
	defer f.Close()
	return read(f, size)
}

// New returns the model of a configuration and of weights by their family's names. It fails unless each weight that the graph reads is
// there, in its shape, with finite shape and a float type; others are left out.
func New(c *family.Config, given map[string]*tensor.Tensor) (*Model, error) {
	m := &Model{Config: *c, weights: map[string]weight{}}
	for _, w := range c.Weights() {
		var x safetensors.Info
		t, ok := find(given, c.FolderNames(w.Name))
		if ok = ok && t != nil; ok {
			x = safetensors.Info{Type: t.Type, Shape: t.Shape}
		}
		if err := fits(c, w, x, ok); err != nil {
			return nil, err
		}
		m.weights[w.Name] = weight{stored: t}
	}
	return m, nil
}

// find returns the first that there is of some names.
func find[T any](given map[string]T, names []string) (x T, ok bool) {
	for _, name := range names {
		if x, ok = given[name]; ok {
			return x, true
		}
	}
	return x, false
}

// fits returns an error unless a weight is there as the graph wants it.
func fits(c *family.Config, w family.Weight, x safetensors.Info, ok bool) error {
	if !ok {
		return fmt.Errorf("%s: weight %q is missing", c.Family, w.Name)
	}
	if !x.Type.Float() || x.Type == tensor.Float64 || !x.Shape.Equal(w.Shape) {
		return fmt.Errorf("%s: weight %q is %v%v: want %v of float32, float16 or bfloat16", c.Family, w.Name, x.Type, x.Shape, w.Shape)
	}
	return nil
}
