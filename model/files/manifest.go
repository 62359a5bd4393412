package files

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/model/steps"
)

// Limits of a manifest.
const (
	maxFiles  = 16
	MaxBytes  = 80 << 20 // of all its files
	maxName   = 64
	MaxStored = 4 << 10 // bytes of a manifest
)

// Manifest is what a language model is. Its root names the model wherever it is bought and sold.
type Manifest struct {
	Layers  int
	Chunks  int        // of a sequence that can be disputed
	Steps   canon.Hash // root of the table of its steps, as model/steps has it
	Weights canon.Hash // root of the state of all weights, as model/lm has them
	Files   []File     // its texts, by name
}

// File is a text of a model.
type File struct {
	Name  string
	Bytes uint64
	Hash  canon.Hash
}

// Manifest returns the manifest of a model that is open. It hashes all weights, on so many threads; those of a base once.
func (f *Files) Manifest(threads int) (*Manifest, error) {
	roots := f.weightRoots(threads)
	t, err := steps.New(f.Weights, roots, threads)
	if err != nil {
		return nil, err
	}
	m := &Manifest{Layers: t.Layers, Chunks: t.Chunks, Steps: t.Root(), Weights: f.Weights.WeightsRoot(roots)}
	for _, name := range slices.Sorted(maps.Keys(f.Texts)) {
		text := f.Texts[name]
		m.Files = append(m.Files, File{name, uint64(len(text)), canon.Sum(canon.DomainFile, text)})
	}
	return m, m.check()
}

func (f *Files) weightRoots(threads int) map[string]canon.Hash {
	switch {
	case f.roots != nil:
	case f.base == nil:
		f.roots = f.Weights.WeightRoots(threads)
	default:
		f.roots = f.Weights.AdapterRoots(threads)
		maps.Copy(f.roots, f.base.weightRoots(threads))
	}
	return f.roots
}

// Root returns the root of the model.
func (m *Manifest) Root() canon.Hash {
	d := m.Disputed()
	return d.Root()
}

// Disputed returns what games about the model's replies know of it.
func (m *Manifest) Disputed() dispute.Model {
	return dispute.Model{Layers: m.Layers, Chunks: m.Chunks, Steps: m.Steps, Assets: canon.Sum(canon.DomainAssets, canon.Marshal((*assets)(m)))}
}

// assets are a manifest as that of all else than steps.
type assets Manifest

// Code walks the fields of a.
func (a *assets) Code(w *canon.Codec) {
	w.Hash(&a.Weights)
	canon.Seq(w, &a.Files, maxFiles, 2+canon.HashSize, func(w *canon.Codec, f *File) {
		w.String(&f.Name, maxName)
		w.U64(&f.Bytes)
		w.Hash(&f.Hash)
	})
}

// Code walks the fields of m.
func (m *Manifest) Code(w *canon.Codec) {
	w.Int(&m.Layers, dispute.MaxLayers)
	w.Int(&m.Chunks, dispute.MaxChunks)
	w.Hash(&m.Steps)
	(*assets)(m).Code(w)
	if !w.Reading() {
		return
	}
	if err := m.check(); err != nil {
		w.Fail("%v", err)
	}
}

func (m *Manifest) check() error {
	if err := (&dispute.Model{Layers: m.Layers, Chunks: m.Chunks}).Check(); err != nil {
		return err
	}
	total := uint64(0)
	for i, f := range m.Files {
		most, known := maxBytes[f.Name]
		switch {
		case !known:
			return fmt.Errorf("a model has a file called %.64q, which nothing is read from", f.Name)
		case i > 0 && f.Name <= m.Files[i-1].Name:
			return fmt.Errorf("the files of a model are not sorted")
		case f.Bytes > uint64(most):
			return fmt.Errorf("%s has %d bytes, of at most %d", f.Name, f.Bytes, most)
		}
		total += f.Bytes
	}
	if total > MaxBytes {
		return fmt.Errorf("the files of a model have %d bytes without its weights, of at most %d", total, MaxBytes)
	}
	return nil
}

// Verify returns an error unless text is the file of m.
func (f *File) Verify(text []byte) error {
	if uint64(len(text)) != f.Bytes || canon.Sum(canon.DomainFile, text) != f.Hash {
		return fmt.Errorf("%s is not what the model's root says", f.Name)
	}
	return nil
}
