// Package replace writes files that are there whole or not at all, whenever a process
// ends. [File] is all of it.
//
// Invariant: a reader finds the old file or the new one, and no part of either. A power cut
// may bring the old one back.
package replace

import (
	"errors"
	"os"
	"path/filepath"
)

// File replaces a file by one with the given contents, which only its owner can read.
// Several may write one file at the same time; the last wins.
func File(name string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
