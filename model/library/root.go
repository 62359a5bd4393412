package library

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/internal/replace"
	"github.com/tally-network/tally/model/files"
)

// rootsDir has the roots of models, by their digests: it takes a second for each gigabyte to find one.
const rootsDir = ".roots"

// Root returns the root by which a language model is bought and sold.
func (l *Library) Root(e *Entry, threads int) (canon.Hash, error) {
	if err := e.Usable(); err != nil {
		return canon.Hash{}, err
	}
	kept := filepath.Join(l.dir, rootsDir, filepath.Base(e.Digest))
	if text, err := bounded.ReadFile(kept, 256); err == nil {
		if root, err := canon.ParseHash(strings.TrimSpace(string(text))); err == nil {
			return root, nil
		}
	}
	f, err := files.Open(e.Path)
	if err != nil {
		return canon.Hash{}, fmt.Errorf("%s: %w", e.Name, err)
	}
	m, err := f.Manifest(threads)
	if err != nil {
		return canon.Hash{}, fmt.Errorf("%s: %w", e.Name, err)
	}
	root := m.Root()
	if err := os.MkdirAll(filepath.Dir(kept), 0o700); err != nil {
		return root, err
	}
	return root, replace.File(kept, []byte(root.String()+"\n"))
}
