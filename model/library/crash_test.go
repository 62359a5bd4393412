package library

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// Wherever a process was killed, there is no model, and the next pull brings one.
func TestWhatKilledPullsLeave(t *testing.T) {
	w := newWorld(t)
	b := aGGUF(t, 5000)
	w.give("/a.gguf", b)
	source := w.URL + "/a.gguf"
	for name, kill := range map[string]func(folder, digest string){
		"before the entry": func(folder, _ string) { _ = os.Remove(filepath.Join(folder, manifest)) },
		"with half of the files moved": func(folder, digest string) {
			_ = os.Remove(filepath.Join(folder, manifest))
			_ = os.Truncate(filepath.Join(folder, digest, "a.gguf"), 100)
		},
		"with a part of a file": func(folder, digest string) {
			_ = os.RemoveAll(folder)
			_ = os.MkdirAll(filepath.Join(folder, partialFolder, "files"), 0o700)
			_ = os.WriteFile(filepath.Join(folder, partialFolder, "source"), []byte(source), 0o600)
			_ = os.WriteFile(filepath.Join(folder, partialFolder, "files", "a.gguf"), bytes.Repeat([]byte{7}, 6000), 0o600)
		},
		"removing": func(folder, digest string) {
			_ = os.Remove(filepath.Join(folder, manifest))
			_ = os.RemoveAll(filepath.Join(folder, digest))
		},
	} {
		e := w.pull(t, source)
		kill(w.folder("a"), e.Digest)
		if all, err := w.List(); len(all) > 0 || err != nil {
			t.Errorf("%s: %v, %v", name, all, err)
		}
		if e := w.pull(t, source); e.Files[0].SHA256 != sum(b) {
			t.Errorf("%s: the file is another", name)
		}
	}
}

// A second name of somebody's file, left by a killed pull, is not written to by the pull of another source.
func TestSomebodysFileIsNotWrittenTo(t *testing.T) {
	w := newWorld(t)
	mine, theirs := aGGUF(t, 10), aGGUF(t, 9000)
	file := filepath.Join(t.TempDir(), "a.gguf")
	staged := filepath.Join(w.folder("a"), partialFolder, "files")
	if err := os.WriteFile(file, mine, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(staged, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(file, filepath.Join(staged, "a.gguf")); err != nil {
		t.Skip(err)
	}
	if err := os.WriteFile(filepath.Join(w.folder("a"), partialFolder, "source"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	w.give("/a.gguf", theirs)
	w.pull(t, w.URL+"/a.gguf")
	if !bytes.Equal(read(t, file), mine) {
		t.Error("it was")
	}
}

// An update replaces the old model at once, and nothing of it stays.
func TestUpdates(t *testing.T) {
	w := newWorld(t)
	file := filepath.Join(t.TempDir(), "a.gguf")
	for _, n := range []int{10, 20, 20} {
		b := aGGUF(t, n)
		_ = os.Remove(file)
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if e := w.pull(t, file); e.Bytes != int64(len(b)) {
			t.Errorf("%+v", e)
		}
	}
}
