package files

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/tally-network/tally/core/quant"
	"github.com/tally-network/tally/format/gguf"
	"github.com/tally-network/tally/format/peft"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/model/lm/family"
)

// AdapterFiles are the names of the files that make up an adapter, in its folder.
var AdapterFiles = []string{peft.Config, peft.Weights}

// Description is what people ask of a model before they run it.
type Description struct {
	Family     string       `json:"family"`
	Name       string       `json:"name,omitempty"`
	License    string       `json:"license,omitempty"`
	Parameters int          `json:"parameters"`
	Bytes      int64        `json:"file_bytes"`
	Stored     []StoredType `json:"stored,omitempty"` // of a GGUF file, the most bytes first
	Layers     int          `json:"layers"`
	Width      int          `json:"width"`
	Heads      int          `json:"heads"`
	Shared     int          `json:"key_heads"`
	HeadSize   int          `json:"head_size"`
	Hidden     int          `json:"hidden"`
	Vocabulary int          `json:"vocabulary"`
	Context    int          `json:"context"`
	Windowed   int          `json:"windowed_layers"`   // that look back no further than a window
	TokenBytes int          `json:"bytes_a_token"`     // of its keys and values
	Memory     int64        `json:"weights_in_memory"` // bytes: as they are stored; of a folder, as float32
	Adapter    *Adapter     `json:"adapter,omitempty"`
}

// Adapter is what people ask of an adapter.
type Adapter struct {
	Base       string   `json:"base,omitempty"` // as its author calls it
	Rank       int      `json:"rank"`
	Scale      float32  `json:"scale"`
	Targets    []string `json:"targets,omitempty"`
	Parameters int      `json:"parameters"`
	Bytes      int64    `json:"file_bytes"`
}

func adapterOf(a *lm.Adapter) *Adapter {
	return &Adapter{Base: a.Base, Rank: a.Rank, Scale: a.Scale, Targets: a.Targets, Parameters: a.Parameters, Bytes: a.Bytes}
}

// IsAdapter reports whether a folder has an adapter, as PEFT writes it.
func IsAdapter(path string) bool {
	info, err := os.Stat(filepath.Join(path, peft.Config))
	return err == nil && info.Mode().IsRegular()
}

// DescribeAdapter reads what the folder of an adapter says; no weights.
func DescribeAdapter(dir string) (*Adapter, error) {
	a, err := lm.ReadAdapter(dir)
	if err != nil {
		return nil, err
	}
	return adapterOf(a), nil
}

// StoredType is what a file has of a type.
type StoredType struct {
	Type    string `json:"type"`
	Weights int    `json:"weights"`
	Bytes   int64  `json:"bytes"`
}

// Describe reads a folder's config.json, or a GGUF file's head; no weights.
func Describe(path string) (*Description, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return describeGGUF(path, info.Size())
	}
	text, err := bounded.ReadFile(filepath.Join(path, configName), maxText)
	if err != nil {
		return nil, err
	}
	c, err := family.Parse(text)
	if err != nil {
		return nil, err
	}
	names, err := lm.WeightFiles(path)
	if err != nil {
		return nil, err
	}
	d := describe(c)
	for _, name := range names {
		info, err := os.Stat(filepath.Join(path, name))
		if err != nil {
			return nil, err
		}
		d.Bytes += info.Size()
	}
	return d, nil
}

func describeGGUF(path string, size int64) (*Description, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	f, err := gguf.Read(file, size)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	c, err := family.ParseGGUF(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	d := describe(c)
	d.Bytes = size
	for key, to := range map[string]*string{"general.name": &d.Name, "general.license": &d.License} { // each has its own
		if f.Has(key) {
			if *to, err = f.Text(key); err != nil {
				return nil, err
			}
		}
	}
	of := map[quant.Type]*StoredType{}
	for _, t := range f.Tensors {
		if of[t.Type] == nil {
			of[t.Type] = &StoredType{Type: t.Type.String()}
		}
		of[t.Type].Weights += t.Shape.Elements()
		of[t.Type].Bytes += t.Bytes
	}
	d.Memory = 0
	for _, k := range slices.Sorted(maps.Keys(of)) {
		d.Stored = append(d.Stored, *of[k])
		d.Memory += of[k].Bytes
	}
	slices.SortStableFunc(d.Stored, func(a, b StoredType) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return d, nil
}

func describe(c *family.Config) *Description {
	m := c
	d := &Description{
		Family: c.Family, Parameters: m.Parameters(), Layers: c.Layers, Width: c.Width, Heads: c.Heads, Shared: c.Shared, HeadSize: c.HeadSize,
		Hidden: c.Hidden, Vocabulary: c.Vocabulary, Context: c.Context, TokenBytes: c.TokenBytes(),
	}
	d.Memory = 4 * int64(d.Parameters)
	for _, w := range c.Windows {
		if w >= 0 {
			d.Windowed++
		}
	}
	return d
}
