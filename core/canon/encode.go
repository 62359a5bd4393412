package canon

import (
	"encoding/binary"
	"slices"
)

// Encoder appends canonical encodings to a byte slice. The zero value is ready.
type Encoder struct{ b []byte }

// Encode returns the bytes that write produces.
func Encode(write func(*Encoder)) []byte {
	var e Encoder
	write(&e)
	return e.b
}

// Bytes returns what has been written; the encoder keeps ownership.
func (e *Encoder) Bytes() []byte { return e.b }

// Grow makes room for n more bytes at once.
func (e *Encoder) Grow(n int) { e.b = slices.Grow(e.b, n) }

// Raw appends b as it is. The length must be known to the reader.
func (e *Encoder) Raw(b []byte) { e.b = append(e.b, b...) }

// U8 appends one byte.
func (e *Encoder) U8(v uint8) { e.b = append(e.b, v) }

// Bool appends 0 or 1.
func (e *Encoder) Bool(v bool) {
	if v {
		e.U8(1)
	} else {
		e.U8(0)
	}
}

// Uint appends v as minimal LEB128.
func (e *Encoder) Uint(v uint64) { e.b = binary.AppendUvarint(e.b, v) }

// Int appends v, zigzagged.
func (e *Encoder) Int(v int64) { e.b = binary.AppendVarint(e.b, v) }

// Fixed64 appends v as eight little-endian bytes.
func (e *Encoder) Fixed64(v uint64) { e.b = binary.LittleEndian.AppendUint64(e.b, v) }

// Blob appends the length of b and b.
func (e *Encoder) Blob(b []byte) {
	e.Uint(uint64(len(b)))
	e.Raw(b)
}

// String appends s as a blob.
func (e *Encoder) String(s string) {
	e.Uint(uint64(len(s)))
	e.b = append(e.b, s...)
}

// Hash appends the 32 bytes of h.
func (e *Encoder) Hash(h Hash) { e.Raw(h[:]) }

// Hashes appends a list of hashes.
func (e *Encoder) Hashes(hs []Hash) {
	e.Uint(uint64(len(hs)))
	for _, h := range hs {
		e.Hash(h)
	}
}

// List appends the length of items, then each item by write.
func List[T any](e *Encoder, items []T, write func(*Encoder, T)) {
	e.Uint(uint64(len(items)))
	for _, it := range items {
		write(e, it)
	}
}
