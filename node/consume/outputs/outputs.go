// Package outputs writes what a batch gave to files. Call [Write] with a tensor for each output of the model, of all records.
//
// Invariants: a file is there whole or not at all. Numbers are written such that reading them gives the same bits.
//
// Source: docs/adr/0057-split-orders.md has the results of parts joined to one such set.
package outputs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/jsonlines"
	"github.com/tally-network/tally/format/npy"
	"github.com/tally-network/tally/format/safetensors"
	"github.com/tally-network/tally/internal/replace"
)

// Formats are those in which results of a batch are written, the default first.
var Formats = []string{"npy", "safetensors", "jsonl"}

// Write writes outputs of so many records to a directory in one of Formats, and returns the file of each.
func Write(dir, format string, outputs map[string]*tensor.Tensor, records int) (map[string]string, error) {
	names := slices.Sorted(maps.Keys(outputs))
	files := map[string]string{}
	all := func(name string) string {
		for _, n := range names {
			files[n] = filepath.Join(dir, name)
		}
		return filepath.Join(dir, name)
	}
	var b bytes.Buffer
	switch format {
	case "safetensors":
		if err := safetensors.Write(&b, outputs, nil); err != nil {
			return nil, err
		}
		return files, replace.File(all("results.safetensors"), b.Bytes())
	case "jsonl":
		if err := writeLines(&b, names, outputs, records); err != nil {
			return nil, err
		}
		return files, replace.File(all("results.jsonl"), b.Bytes())
	case "npy":
		for i, file := range npy.FileNames(names) {
			b.Reset()
			files[names[i]] = filepath.Join(dir, file)
			if err := errors.Join(npy.Write(&b, outputs[names[i]]), replace.File(files[names[i]], b.Bytes())); err != nil {
				return nil, err
			}
		}
		return files, nil
	}
	return nil, fmt.Errorf("results are written as one of %v, not as %q", Formats, format)
}

// writeLines writes a JSON object for each record, with each output as nested lists.
func writeLines(b *bytes.Buffer, names []string, outputs map[string]*tensor.Tensor, records int) error {
	for _, n := range names {
		if s := outputs[n].Shape; s[0] != records {
			return fmt.Errorf("output %q has no axis of records, so it cannot be written line by line: choose npy or safetensors", n)
		}
	}
	for record := range records {
		b.WriteByte('{')
		for i, n := range names {
			if i > 0 {
				b.WriteByte(',')
			}
			key, err := json.Marshal(n)
			if err != nil {
				return err
			}
			b.Write(key)
			b.WriteByte(':')
			t := outputs[n]
			b.Write(jsonlines.Append(b.AvailableBuffer(), t, t.Shape[1:], record*t.Shape[1:].Elements()))
		}
		b.WriteString("}\n")
	}
	return nil
}
