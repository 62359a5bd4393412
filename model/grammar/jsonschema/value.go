package jsonschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Bounds of a schema as it comes.
const (
	MaxBytes  = 256 << 10
	maxDepth  = 64
	maxValues = 1 << 15
)

// value is a JSON value whose objects keep their order.
type value struct {
	of      kind
	text    string // of a string; of a number as it is written
	items   []*value
	members []member
}

type member struct {
	name string
	*value
}

// kind is a type of JSON, as schemas name them.
type kind string

const (
	isNull    kind = "null"
	isBoolean kind = "boolean" // text is true or false
	isNumber  kind = "number"
	isString  kind = "string"
	isArray   kind = "array"
	isObject  kind = "object"

	integer kind = "integer" // of types alone
)

// get returns a member, nil if there is none.
func (v *value) get(name string) *value {
	for _, m := range v.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// read reads a whole text.
func read(text []byte) (*value, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("it has %d bytes: want at most %d", len(text), MaxBytes)
	}
	r := &reader{d: json.NewDecoder(bytes.NewReader(text))}
	r.d.UseNumber()
	v, err := r.value(0)
	if err != nil {
		return nil, err
	}
	if _, err := r.d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows it")
	}
	return v, nil
}

type reader struct {
	d     *json.Decoder
	count int
}

func (r *reader) value(depth int) (*value, error) {
	if r.count++; depth > maxDepth || r.count > maxValues {
		return nil, fmt.Errorf("it is nested more than %d deep, or has more than %d values", maxDepth, maxValues)
	}
	t, err := r.token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case nil:
		return &value{of: isNull, text: "null"}, nil
	case bool:
		return &value{of: isBoolean, text: fmt.Sprint(t)}, nil
	case json.Number:
		return &value{of: isNumber, text: t.String()}, nil
	case string:
		return &value{of: isString, text: t}, nil
	case json.Delim:
		if t == '[' {
			return r.array(depth)
		}
	}
	return r.object(depth)
}

func (r *reader) token() (json.Token, error) {
	t, err := r.d.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("it is no JSON: %w", err)
	}
	return t, nil
}

func (r *reader) array(depth int) (*value, error) {
	v := &value{of: isArray}
	for r.d.More() {
		item, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		v.items = append(v.items, item)
	}
	_, err := r.token()
	return v, err
}

func (r *reader) object(depth int) (*value, error) {
	v := &value{of: isObject}
	seen := map[string]bool{}
	for r.d.More() {
		t, err := r.token()
		if err != nil {
			return nil, err
		}
		name := t.(string) // the decoder has looked
		if seen[name] {
			return nil, fmt.Errorf("it has %.60q twice in one object", name)
		}
		seen[name] = true
		of, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		v.members = append(v.members, member{name, of})
	}
	_, err := r.token()
	return v, err
}

// quote writes a string in the one way that strings are written.
func quote(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		b.WriteString(spelling(r))
	}
	b.WriteByte('"')
	return b.String()
}

// spelling is how a character stands in a string.
func spelling(r rune) string {
	switch r {
	case '"', '\\':
		return `\` + string(r)
	case '\b':
		return `\b`
	case '\f':
		return `\f`
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	}
	if r < ' ' {
		return fmt.Sprintf(`\u%04x`, r)
	}
	return string(r)
}

// write writes a value without white space.
func (v *value) write(b *strings.Builder) {
	switch v.of {
	case isString:
		b.WriteString(quote(v.text))
	case isArray:
		b.WriteByte('[')
		for i, item := range v.items {
			if i > 0 {
				b.WriteByte(',')
			}
			item.write(b)
		}
		b.WriteByte(']')
	case isObject:
		b.WriteByte('{')
		for i, m := range v.members {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(quote(m.name))
			b.WriteByte(':')
			m.write(b)
		}
		b.WriteByte('}')
	default:
		b.WriteString(v.text)
	}
}
