// Package schema says what the fields of training records mean: which columns of a table a model reads,
// and what its outputs predict.
//
// Call [Schema.Encoded] for the file, and [Read] for what it says. It is JSON, in exactly one form:
//
//	{"version":1,"inputs":[{"name":"features","columns":[{"name":"length"},{"name":"colour","category":"red"}]}],"target":{"name":"kind","classes":["cat","dog"]}}
//
// A column of texts is a number for each text: 1 where a record says it, else 0.
//
// Invariant: equal schemas have equal files.
//
// Source: our own.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// MaxBytes bounds a file.
const MaxBytes = 4 << 20

// Schema is what records mean.
type Schema struct {
	Version int     `json:"version"`
	Inputs  []Input `json:"inputs"`
	Target  *Target `json:"target,omitempty"` // nil if the loss has none
}

// Input is what an input of the model reads.
type Input struct {
	Name    string   `json:"name"`
	Columns []Column `json:"columns"` // one behind another
}

// Column is a column of a table, or one of its texts.
type Column struct {
	Name     string  `json:"name"`
	Category *string `json:"category,omitempty"` // which the number stands for; nil of numbers
}

// Target is the column that the model predicts.
type Target struct {
	Name    string   `json:"name"`
	Classes []string `json:"classes,omitempty"` // by number; none of numbers
}

const version = 1

// Encoded returns the file.
func (s Schema) Encoded() ([]byte, error) {
	s.Version = version
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if b.Len() > MaxBytes {
		return nil, fmt.Errorf("schema: its columns and classes take %d bytes, the limit is %d", b.Len(), MaxBytes)
	}
	return b.Bytes(), nil
}

// Read reads a file. Only what Encoded gives is one.
func Read(r io.Reader) (s Schema, err error) {
	b, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return s, fmt.Errorf("schema: %w", err)
	}
	if len(b) > MaxBytes {
		return s, fmt.Errorf("schema: more than %d bytes", MaxBytes)
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("schema: %w", err)
	}
	if s.Version != version {
		return s, fmt.Errorf("schema: version %d: version %d is read", s.Version, version)
	}
	again, err := s.Encoded()
	if err == nil && !bytes.Equal(again, b) {
		err = errors.New("schema: it is not written in its one form")
	}
	return s, err
}
