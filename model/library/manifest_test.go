package library

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tally-network/tally/internal/testkit/lmtest"
)

// The manifest of a model is made once, and again where what is kept of it is none.
func TestManifestsAreKept(t *testing.T) {
	w := newWorld(t)
	e := w.pull(t, lmtest.Folder(t, "tiny", nil))
	first, err := w.Manifest(e, nil, 2)
	if err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(w.dir, manifestsDir, e.Digest)
	text, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	for _, damaged := range [][]byte{text, text[:len(text)/2], {}} {
		if err := os.WriteFile(kept, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := w.Manifest(e, nil, 1)
		if err != nil || m.Root() != first.Root() || m.Chunks != 1 || m.Layers != 2 {
			t.Errorf("%+v, %v, want %v", m, err, first)
		}
	}
	if err := os.WriteFile(filepath.Join(e.Path, "config.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Manifest(e, nil, 1); err == nil {
		t.Error("a model that has changed has a manifest")
	}
}
