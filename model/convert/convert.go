// Package convert makes GGUF files of folders as Hugging Face has them.
//
// Call [File]. Weights keep their type, but for vectors, which become float32. Metadata is what llama.cpp's converter writes of architecture, tokenizer
// and chat template; nothing is written of names and licences.
//
// Invariants: the file follows from the folder alone, bit for bit, on every machine. It is the same model: what a GGUF file cannot say, or what is not
// read back from it, is an error. One weight at a time is in memory.
//
// Source: llama.cpp's convert_hf_to_gguf.py, as model/lm/family has it.
package convert

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/tally-network/tally/core/quant"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/gguf"
	"github.com/tally-network/tally/format/safetensors"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/model/lm/family"
)

// File writes the model of a folder to a file that is empty, and reads it back.
func File(to *os.File, dir string) error {
	texts, err := files.ReadTexts(dir)
	if err != nil {
		return err
	}
	parts, err := texts.Parse()
	if err != nil {
		return err
	}
	metadata, err := parts.Config.GGUF()
	if err != nil {
		return err
	}
	more, err := texts.GGUF(parts)
	if err != nil {
		return err
	}
	weights, err := weightsOf(dir, parts.Config)
	if err != nil {
		return err
	}
	if err := gguf.Write(to, append(metadata, more...), weights); err != nil {
		return err
	}
	return readBack(to.Name(), parts)
}

// readBack returns an error unless a file has the model that was written.
func readBack(path string, p *files.Parts) error {
	texts, err := files.ReadTexts(path)
	if err != nil {
		return err
	}
	got, err := texts.Parse()
	if err != nil {
		return fmt.Errorf("what was written is read back: %w", err)
	}
	if !slices.Equal(got.Ends, p.Ends) {
		return fmt.Errorf("tokens %v end replies, and those of the GGUF file are %v", p.Ends, got.Ends)
	}
	return p.Config.Same(got.Config)
}

// weightsOf lists the weights of a folder, which are read when they are written.
func weightsOf(dir string, c *family.Config) ([]gguf.Weight, error) {
	names, err := lm.WeightFiles(dir)
	if err != nil {
		return nil, err
	}
	if err := lm.Check(dir); err != nil {
		return nil, err
	}
	at := map[string]*source{}
	for _, name := range names {
		path := filepath.Join(dir, name)
		all, err := list(path)
		if err != nil {
			return nil, err
		}
		for key, info := range all { // each its own
			at[key] = &source{path: path, name: key, info: info}
		}
	}
	var weights []gguf.Weight
	for _, w := range c.Weights() {
		for _, name := range c.FolderNames(w.Name) {
			if s := at[name]; s != nil {
				weights = append(weights, s.weight(c, w))
				break
			}
		}
	}
	return weights, nil
}

func list(path string) (map[string]safetensors.Info, error) {
	f, size, err := bounded.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return safetensors.List(f, size)
}

// source gives the bytes of a weight in a GGUF file, which is read once somebody wants them.
type source struct {
	path, name string
	info       safetensors.Info
	change     func(t *tensor.Tensor) *tensor.Tensor
	rest       *bytes.Reader
}

var types = map[tensor.DType]quant.Type{tensor.Float32: quant.F32, tensor.Float16: quant.F16, tensor.BFloat16: quant.BF16}

// weight is the weight in a GGUF file.
func (s *source) weight(c *family.Config, w family.Weight) gguf.Weight {
	shape, of := w.Shape, types[s.info.Type]
	if len(shape) == 1 {
		of = quant.F32
	}
	if c.IsTransposed(w) {
		shape = tensor.Shape{shape[1], shape[0]}
	}
	s.change = func(t *tensor.Tensor) *tensor.Tensor { return c.ToGGUF(w, t) }
	return gguf.Weight{Name: c.GGUFName(w.Name), Type: of, Shape: shape, Blocks: s}
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	if s.rest == nil {
		t, err := s.load()
		if err != nil {
			return 0, err
		}
		s.rest = bytes.NewReader(s.change(t).Bytes())
	}
	n, err := s.rest.Read(p)
	if errors.Is(err, io.EOF) {
		s.rest = bytes.NewReader(nil) // lets go of them
	}
	return n, err
}

func (s *source) load() (*tensor.Tensor, error) {
	f, size, err := bounded.Open(s.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return safetensors.ReadOne(f, size, s.name)
}
