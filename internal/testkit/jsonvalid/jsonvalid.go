// Package jsonvalid says whether a text is JSON of a schema, as JSON Schema 2020-12 defines it. Call [Check].
//
// Invariant: it shares nothing with what compiles schemas to automata, so that one tests the other. Formats are asserted.
package jsonvalid

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Check returns an error unless a text is JSON that a schema accepts.
func Check(schema, text string) error {
	s, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		return fmt.Errorf("the schema: %w", err)
	}
	if !utf8.ValidString(text) {
		return errors.New("it is not UTF-8")
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	const at = "mem:schema"
	if err := c.AddResource(at, s); err != nil {
		return fmt.Errorf("the schema: %w", err)
	}
	compiled, err := c.Compile(at)
	if err != nil {
		return fmt.Errorf("the schema: %w", err)
	}
	return compiled.Validate(v)
}
