package library

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/tally-network/tally/internal/replace"
)

// commit makes what a pull has gathered a model of the library. Before the entry is written the old model is there, and after
// it the new one.
func (l *Library) commit(e, old *Entry) error {
	folder := l.folder(e.Name)
	staged, whole := filepath.Join(folder, partialFolder, "files"), filepath.Join(folder, e.Digest)
	if old == nil || old.Digest != e.Digest {
		if err := sweep(staged, e.Files); err != nil {
			return err
		}
		if err := os.RemoveAll(whole); err != nil { // of a pull that was killed here
			return err
		}
		if err := os.Rename(staged, whole); err != nil {
			return err
		}
		if err := replace.Flush(folder); err != nil {
			return err
		}
	}
	e.Path = filepath.Join(whole, e.GGUF)
	if err := e.stamp(); err != nil {
		return err
	}
	e.describe()
	if err := l.write(e); err != nil {
		return err
	}
	return l.clean(e)
}

// sweep removes from a folder what is no file of the model, such as a file of an older commit, and flushes the rest.
func sweep(folder string, files []File) error {
	return filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return replace.Flush(name)
		}
		rel, err := filepath.Rel(folder, name)
		if err != nil || slices.ContainsFunc(files, func(f File) bool { return f.Name == filepath.ToSlash(rel) }) {
			return err
		}
		return os.Remove(name)
	})
}

// clean removes what else is in a model's folder: older files, and what a pull has gathered.
func (l *Library) clean(e *Entry) error {
	folder := l.folder(e.Name)
	entries, err := os.ReadDir(folder)
	for _, d := range entries {
		if d.Name() != manifest && d.Name() != e.Digest {
			err = errors.Join(err, os.RemoveAll(filepath.Join(folder, d.Name())))
		}
	}
	return err
}
