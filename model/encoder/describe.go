package encoder

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tally-network/tally/internal/bounded"
)

// Description is what people ask of an encoder before they run it.
type Description struct {
	Family     string `json:"family"`
	Parameters int    `json:"parameters"`
	Bytes      int64  `json:"file_bytes"`
	Layers     int    `json:"layers"`
	Width      int    `json:"width"` // of a vector
	Heads      int    `json:"heads"`
	Vocabulary int    `json:"vocabulary"`
	Context    int    `json:"context"`           // tokens of a text
	Memory     int64  `json:"weights_in_memory"` // bytes, as float32
}

// Describe reads the settings of the encoder in a folder; no weights.
func Describe(dir string) (*Description, error) {
	c, context, err := settings(dir)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(filepath.Join(dir, weightsFile))
	if err != nil {
		return nil, err
	}
	d := &Description{Family: c.Kind, Bytes: info.Size(), Layers: c.Layers, Width: c.Width, Heads: c.Heads, Vocabulary: c.Vocabulary, Context: context}
	for _, s := range c.shapes() { // a sum
		d.Parameters += s.Elements()
	}
	d.Memory = 4 * int64(d.Parameters)
	return d, nil
}

const weightsFile = "model.safetensors"

// settings reads the config of a folder, and how many tokens a text may have.
func settings(dir string) (*Config, int, error) {
	text, err := bounded.ReadFile(filepath.Join(dir, "config.json"), maxConfig)
	if err != nil {
		return nil, 0, err
	}
	c, err := parse(text)
	if err != nil {
		return nil, 0, err
	}
	if err := errors.Join(checkPooling(filepath.Join(dir, "1_Pooling", "config.json")), checkModules(filepath.Join(dir, "modules.json"))); err != nil {
		return nil, 0, err
	}
	var limits struct {
		Tokens int `json:"max_seq_length"`
	}
	if err := optional(filepath.Join(dir, "sentence_bert_config.json"), &limits); err != nil {
		return nil, 0, err
	}
	if limits.Tokens < 1 || limits.Tokens > c.Positions {
		limits.Tokens = c.Positions
	}
	return c, limits.Tokens, nil
}

// parse reads a config.json.
func parse(text []byte) (*Config, error) {
	c := &Config{}
	err := json.Unmarshal(text, c)
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return nil, fmt.Errorf("config.json: %w", err)
	}
	return c, nil
}

// optional reads a file of settings, if there is one.
func optional(name string, into any) error {
	text, err := bounded.ReadFile(name, maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// checkModules returns an error if sentence-transformers' file says that more is done to a text than an encoder here does.
func checkModules(name string) error {
	var all []struct {
		Type string `json:"type"`
	}
	if err := optional(name, &all); err != nil {
		return err
	}
	for _, m := range all {
		switch m.Type {
		case "sentence_transformers.models.Transformer", "sentence_transformers.models.Pooling", "sentence_transformers.models.Normalize":
		default:
			return fmt.Errorf("%s: a module %.60q is not supported, only the mean of tokens and its normalization", name, m.Type)
		}
	}
	return nil
}
