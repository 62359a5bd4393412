// Package replace writes files that are there whole or not at all, whenever a process
// ends. [File] does it for bytes in memory, and [With] for what is too large for that; [Create] replaces nothing. [Flush] makes
// it durable.
//
// Invariant: a reader finds the old file or the new one, and no part of either. A power cut
// may bring the old one back.
package replace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// File replaces a file by one with the given contents, which only its owner can read.
// Several may write one file at the same time; the last wins.
func File(name string, b []byte) error {
	return With(name, func(f *os.File) error {
		_, err := f.Write(b)
		return err
	})
}

// With replaces a file as File does, by what fill writes.
func With(name string, fill func(f *os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.tmp")
	if err != nil {
		return err
	}
	if err = errors.Join(fill(f), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Flush makes the names in a folder durable, those that are gone too.
func Flush(folder string) error {
	if runtime.GOOS == "windows" {
		return nil // folders cannot be flushed
	}
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Create writes a file that is not there yet, which everybody can read.
func Create(name string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Link(f.Name(), name) // fails where something is
	}
	if errors.Is(err, fs.ErrExist) {
		err = fmt.Errorf("%s is there already: remove it, or choose another name: %w", name, fs.ErrExist)
	}
	return errors.Join(err, os.Remove(f.Name()))
}
