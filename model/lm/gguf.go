package lm

import (
	"fmt"
	"io"
	"strings"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/gguf"
	"github.com/tally-network/tally/model/lm/family"
)

// OpenGGUF reads a model from a GGUF file. Its weights stay in their blocks.
func OpenGGUF(path string) (*Model, error) {
	m, err := readFile(path, ReadGGUF)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// ReadGGUF is OpenGGUF of the first size bytes of src.
func ReadGGUF(src io.ReaderAt, size int64) (*Model, error) {
	m := &Model{weights: map[string]weight{}}
	c, err := eachWeight(src, size, func(name string, w weight) { m.weights[name] = w })
	if err != nil {
		return nil, err
	}
	m.Config = *c
	return m, nil
}

// checkGGUF returns the error that OpenGGUF would.
func checkGGUF(path string) error {
	_, err := readFile(path, func(src io.ReaderAt, size int64) (*family.Config, error) {
		return eachWeight(src, size, func(string, weight) {})
	})
	return err
}

// eachWeight reads the weights of a file, one after the other.
func eachWeight(src io.ReaderAt, size int64, take func(name string, w weight)) (*family.Config, error) {
	f, err := gguf.Read(src, size)
	if err != nil {
		return nil, err
	}
	c, err := family.ParseGGUF(f)
	if err != nil {
		return nil, err
	}
	if err := setFactors(c, f); err != nil {
		return nil, err
	}
	for _, need := range c.Weights() {
		name := c.GGUFName(need.Name)
		t, ok := f.Find(name)
		if !ok {
			return nil, fmt.Errorf("weight %q is missing", name)
		}
		if !t.Shape.Equal(need.Shape) { // before it is read
			return nil, fmt.Errorf("weight %q is %v: want %v", name, t.Shape, need.Shape)
		}
		x, err := f.Stored(t)
		if err != nil {
			return nil, err // which names it
		}
		if c.Of.Paired && (strings.Contains(name, "attn_q.") || strings.Contains(name, "attn_k.")) {
			family.MoveRows(x, c.HeadSize, false)
		}
		take(need.Name, weight{x, t.Type})
	}
	return c, c.Unread(f)
}

// setFactors reads what angles are divided by.
func setFactors(c *family.Config, f *gguf.File) error {
	name := c.Factors(f)
	if name == "" {
		return nil
	}
	t, _ := f.Find(name)
	if !t.Shape.Equal(tensor.Shape{c.Turned / 2}) {
		return fmt.Errorf("weight %q is %v: want %v", name, t.Shape, tensor.Shape{c.Turned / 2})
	}
	x, err := f.Float32(t)
	if err == nil {
		err = c.SetFactors(x)
	}
	if err != nil {
		return fmt.Errorf("weight %q: %w", name, err)
	}
	return nil
}
