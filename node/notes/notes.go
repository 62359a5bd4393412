// Package notes keeps what a role notes about orders in files of its own, to save work
// after a restart.
//
// [Dir.Of] names where a note belongs, and [Write] writes it. [Dir.Forget] lets go of all
// notes of an order.
//
// Invariants: a note is there whole or not at all. One that is lost costs time and nothing
// else.
package notes

import (
	"os"
	"path/filepath"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/internal/replace"
)

// Dir is the directory of a role's notes.
type Dir string

// Of returns the directory of notes of one kind about an order.
func (d Dir) Of(order canon.Hash, kind string) string {
	return filepath.Join(string(d), "orders", order.String(), kind)
}

// Forget removes all notes about an order.
func (d Dir) Forget(order canon.Hash) error { return os.RemoveAll(d.Of(order, "")) }

// Write makes the directory of a note, and replaces the note whole or not at all.
func Write(name string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return replace.File(name, b)
}
