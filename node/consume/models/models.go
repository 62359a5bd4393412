// Package models reads the files of models that an order names, and writes those that it hands over, and those that it has trained.
//
// Call [Read] for a model, [Open] for any other file that a field of an order names, [Write] for what providers will read, and [WriteTrained]
// and [WriteAdapter] for what was trained.
//
// Invariant: files lie in folders that the order's author may read from, for all who work on the order see them.
//
// Source: docs/trust.md.
package models

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/model/batch"
)

// Open opens the file of a field that lies in one of some folders.
func Open(folders []string, field, name string) (*os.File, int64, error) {
	f, size, err := bounded.OpenWithin(folders, name)
	if errors.Is(err, bounded.ErrOutside) {
		err = fmt.Errorf("%w: all who work on the order would see it. If you want that, copy it beside the order file, under a name without a leading dot, or add --allow with its folder", err)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", field, err)
	}
	return f, size, err
}

// Read reads a model that lies in one of some folders, and so do the files beside it to
// which it leaves its weights.
func Read(folders []string, name string, opt onnx.Options) (*graph.Graph, error) {
	f, size, err := Open(folders, "model", name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	opt.Files = func(path string) (*os.File, int64, error) {
		return Open(folders, "external data", bounded.Sibling(name, path))
	}
	g, err := onnx.Read(f, size, opt)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", name, err)
	}
	return g, nil
}

// Write returns a model's file. What providers will read must give what was made here.
func Write(g *graph.Graph) ([]byte, error) {
	b, err := onnx.Write(g)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	back, err := onnx.Read(bytes.NewReader(b), int64(len(b)), onnx.Options{})
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	again, err := onnx.Write(back)
	if err != nil || !bytes.Equal(again, b) {
		return nil, fmt.Errorf("the model does not survive being written and read again (%v)", err)
	}
	return b, nil
}

// WriteTrained returns the file of a trained model. It takes any number of records, as the dimension batch, unless the model can take none but those
// of the order.
func WriteTrained(g *graph.Graph) ([]byte, error) {
	if free, err := batch.Free(g); err == nil {
		return onnx.WriteBatch(free, "batch")
	}
	return onnx.Write(g)
}
