package home

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/tally-network/tally/internal/replace"
)

// WriteFile replaces a file whole, or not at all, and durably.
func WriteFile(path string, data []byte, perm os.FileMode) error {
	tmp := path + ".tmp"
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return rename(tmp, path)
}

// rename moves a file to its name, durably.
func rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return replace.Flush(filepath.Dir(to))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
