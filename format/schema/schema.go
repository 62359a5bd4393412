// Package schema says what the fields of training records mean: which columns of a table a model reads,
// and what its outputs tell.
//
// Call [Schema.Encoded] for the file, and [Read] for what it says. It is JSON, in exactly one form:
//
//	{"version":1,"inputs":[{"name":"features","columns":["length","colour=red"]}],"target":{"name":"kind","classes":["cat","dog"]}}
//
// A column that stands for one text of several is called column=text.
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
	Columns []string `json:"columns"` // one behind another
}

// Target is what the model is to tell.
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
