package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/tally-network/tally/core/tensor"
)

// Limits of a file.
const (
	MaxHeader   = 16 << 20 // bytes of JSON
	MaxTensors  = 1 << 16
	MaxMetadata = 1 << 12 // entries
)

// metadataKey is the header's entry that is no tensor.
const metadataKey = "__metadata__"

// align is what the elements' start is a multiple of.
const align = 8

// dtypes are the format's names of element types, in the order in which their
// tensors are written.
var dtypes = []struct {
	typ  tensor.DType
	name string
}{
	{tensor.Uint64, "U64"}, {tensor.Int64, "I64"}, {tensor.Float64, "F64"},
	{tensor.Float32, "F32"}, {tensor.Uint32, "U32"}, {tensor.Int32, "I32"},
	{tensor.BFloat16, "BF16"}, {tensor.Float16, "F16"}, {tensor.Uint16, "U16"}, {tensor.Int16, "I16"},
	{tensor.Int8, "I8"}, {tensor.Uint8, "U8"}, {tensor.Bool, "BOOL"},
}

// rank returns the place of t's element type in dtypes, -1 if it has none.
func rank(t *tensor.Tensor) int {
	for i, d := range dtypes {
		if t != nil && d.typ == t.Type {
			return i
		}
	}
	return -1
}

// entry is what the header says of a tensor.
type entry struct {
	Type    string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"` // from the end of the header
}

// Write writes the tensors and the metadata to w.
func Write(w io.Writer, tensors map[string]*tensor.Tensor, metadata map[string]string) error {
	names := slices.SortedFunc(maps.Keys(tensors), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(tensors[a]), rank(tensors[b])), cmp.Compare(a, b))
	})
	header, err := encodeHeader(names, tensors, metadata)
	if err != nil {
		return fmt.Errorf("write safetensors: %w", err)
	}
	if _, err := w.Write(header); err != nil {
		return fmt.Errorf("write safetensors: %w", err)
	}
	for _, name := range names {
		if _, err := w.Write(tensors[name].Bytes()); err != nil {
			return fmt.Errorf("write safetensors: tensor %q: %w", name, err)
		}
	}
	return nil
}

// encodeHeader returns the bytes before the elements.
func encodeHeader(names []string, tensors map[string]*tensor.Tensor, metadata map[string]string) ([]byte, error) {
	if len(names) > MaxTensors {
		return nil, fmt.Errorf("%d tensors, limit %d", len(names), MaxTensors)
	}
	var b bytes.Buffer
	b.Write(make([]byte, 8)) // the length, known at the end
	b.WriteByte('{')
	if len(metadata) > MaxMetadata {
		return nil, fmt.Errorf("%d entries of metadata, limit %d", len(metadata), MaxMetadata)
	}
	if len(metadata) > 0 {
		for k, v := range metadata {
			if !utf8.ValidString(k) || !utf8.ValidString(v) {
				return nil, fmt.Errorf("metadata %q is not UTF-8", k)
			}
		}
		if err := member(&b, metadataKey, metadata); err != nil { // sorted by key
			return nil, err
		}
	}
	var at int64
	for _, name := range names {
		t, r := tensors[name], rank(tensors[name])
		switch {
		case r < 0:
			return nil, fmt.Errorf("tensor %q is missing or of an unknown type", name)
		case name == metadataKey || !utf8.ValidString(name):
			return nil, fmt.Errorf("a tensor cannot be called %q", name)
		}
		end := at + int64(len(t.Bytes()))
		if err := member(&b, name, entry{dtypes[r].name, append([]int{}, t.Shape...), [2]int64{at, end}}); err != nil {
			return nil, err
		}
		at = end
	}
	b.WriteByte('}')
	for b.Len()%align != 0 {
		b.WriteByte(' ')
	}
	if b.Len()-8 > MaxHeader {
		return nil, fmt.Errorf("the header takes %d bytes, limit %d: shorten names or metadata", b.Len()-8, MaxHeader)
	}
	binary.LittleEndian.PutUint64(b.Bytes(), uint64(b.Len()-8))
	return b.Bytes(), nil
}

// member appends one member of the header's object.
func member(b *bytes.Buffer, key string, value any) error {
	if b.Len() > 9 {
		b.WriteByte(',')
	}
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	for i, v := range []any{key, value} {
		if i > 0 {
			b.WriteByte(':')
		}
		if err := enc.Encode(v); err != nil {
			return err
		}
		b.Truncate(b.Len() - 1) // Encode ends the line
	}
	return nil
}
