package onnx

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// slack is the memory that reading may take above the size of the files.
const slack = 60 << 20

// spread is how much of it may be integers that take more memory than bytes of
// the file. What lowering a graph takes counts all of it but its tensors and
// lists, so that both together are within bounds.
const spread = 8 << 20

// file is the untrusted bytes, seen through a window, and the memory that may
// still be allocated for what they say.
type file struct {
	src    io.ReaderAt
	size   int64
	window []byte // the bytes from base on
	base   int64
	budget int64
	spread int64 // that may still be taken
}

const windowSize = 32 << 10

func newFile(src io.ReaderAt, size int64) *file {
	return &file{src: src, size: size, window: make([]byte, 0, windowSize), budget: size + slack, spread: spread}
}

// charge takes n items of size ≥ 1 bytes from the budget, before they exist.
func (f *file) charge(n, size int64) error {
	const round = 16 // the allocator rounds up, by an eighth or by this
	need := n*(size+size/8) + round
	if n > f.budget/size || need > f.budget {
		return errors.New("what the file describes needs far more memory than its size")
	}
	f.budget -= need
	return nil
}

// peek returns the n ≤ windowSize bytes at at, valid until the next call.
func (f *file) peek(at, n int64) ([]byte, error) {
	if at < f.base || at+n > f.base+int64(len(f.window)) {
		f.window = f.window[:min(windowSize, f.size-at)]
		f.base = at
		got, err := f.src.ReadAt(f.window, at)
		f.window = f.window[:got]
		if int64(got) < n {
			return nil, fmt.Errorf("byte %d: %w", at, err)
		}
	}
	return f.window[at-f.base:][:n], nil
}

// varint decodes the integer at at, which ends before end.
func (f *file) varint(at, end int64) (v uint64, next int64, err error) {
	b, err := f.peek(at, min(end-at, 10))
	if err != nil {
		return 0, 0, err
	}
	v, n := protowire.ConsumeVarint(b)
	if n < 0 {
		return 0, 0, fmt.Errorf("byte %d: broken integer", at)
	}
	return v, at + int64(n), nil
}

// field is one field of a message: its number, and where its value lies. The
// value of a packed field is several.
type field struct {
	num     protowire.Number
	at, end int64
}

func (x field) len() int64 { return x.end - x.at }

// floatSize is how many bytes a float takes, by its wire type.
var floatSize = map[protowire.Type]uint64{fixed32: 4, fixed64: 8}

// field decodes the field at at of a message that ends at end.
func (f *file) field(of *schema, at, end int64) (field, error) {
	tag, next, err := f.varint(at, end)
	if err != nil {
		return field{}, err
	}
	num, typ := protowire.DecodeTag(tag)
	if num < 1 || num > maxField || of.fields[num].name == "" {
		return field{}, fmt.Errorf("byte %d: %s has no field %d", at, of.name, num)
	}
	want := of.fields[num]
	if packed := typ == protowire.BytesType && want.use != once; typ != want.wire && !packed {
		return field{}, fmt.Errorf("byte %d: field %s of %s has wire type %d, not %d", at, want.name, of.name, typ, want.wire)
	}
	x := field{num: num, at: next}
	n := uint64(4)
	switch typ {
	case protowire.VarintType:
		_, x.end, err = f.varint(next, end)
		return x, err
	case protowire.Fixed64Type:
		n = 8
	case protowire.BytesType:
		if n, x.at, err = f.varint(next, end); err != nil {
			return field{}, err
		}
	}
	if n > uint64(end-x.at) {
		return field{}, fmt.Errorf("byte %d: field %s of %s takes %d bytes where %d are left", at, want.name, of.name, n, end-x.at)
	}
	if each := floatSize[want.wire]; each != 0 && n%each != 0 {
		return field{}, fmt.Errorf("byte %d: field %s of %s has %d bytes, which is no number of floats", at, want.name, of.name, n)
	}
	x.end = x.at + int64(n)
	return x, nil
}

// message is a part of the file whose fields have been checked against its
// schema and counted.
type message struct {
	*file
	of      *schema
	at, end int64
	count   [maxField + 1]int32
}

// message checks that x holds a message of the given schema.
func (f *file) message(of *schema, x field) (m message, err error) {
	m = message{file: f, of: of, at: x.at, end: x.end}
	for at := x.at; at < x.end; {
		y, err := f.field(of, at, x.end)
		if err != nil {
			return m, err
		}
		switch spec := of.fields[y.num]; {
		case spec.use == refused && y.len() > 0:
			return m, unsupported(fmt.Sprintf("%s %s", of.name, spec.why))
		case spec.use == once && m.count[y.num] > 0:
			return m, fmt.Errorf("byte %d: %s has two fields %s", at, of.name, spec.name)
		case m.count[y.num] == 1<<30:
			return m, fmt.Errorf("%s has too many fields %s", of.name, spec.name)
		}
		m.count[y.num]++
		at = y.end
	}
	return m, nil
}

// has reports whether the field num is given.
func (m *message) has(num protowire.Number) bool { return m.count[num] > 0 }

// fields yields the fields in the order of the file.
func (m *message) fields() iter.Seq2[field, error] {
	return func(yield func(field, error) bool) {
		for at := m.at; at < m.end; {
			x, err := m.field(m.of, at, m.end)
			if !yield(x, err) || err != nil {
				return
			}
			at = x.end
		}
	}
}

// varints yields the integers of the repeated field num, packed or not.
func (m *message) varints(num protowire.Number) iter.Seq2[uint64, error] {
	return func(yield func(uint64, error) bool) {
		for x, err := range m.fields() {
			if err != nil {
				yield(0, err)
				return
			}
			for at := x.at; x.num == num && at < x.end; {
				v, next, err := m.varint(at, x.end)
				if !yield(v, err) || err != nil {
					return
				}
				at = next
			}
		}
	}
}

// countVarints returns how many integers the repeated field num has.
func (m *message) countVarints(num protowire.Number) (n int64, err error) {
	for _, err := range m.varints(num) {
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

// wide returns the bytes that the integers of the repeated field num take at
// the given size each.
func (f *file) wide(m *message, num protowire.Number, size int) (int64, error) {
	n, err := m.countVarints(num)
	if err != nil {
		return 0, err
	}
	written, err := m.total(num)
	if err != nil {
		return 0, err
	}
	n *= int64(size)
	if f.spread -= max(0, n-written); f.spread < 0 {
		return 0, fmt.Errorf("the integers in %s take far more memory than the file has bytes of them: store them as raw_data", m.of.fields[num].name)
	}
	return n, nil
}

// total returns the bytes in all values of the field num.
func (m *message) total(num protowire.Number) (n int64, err error) {
	for x, err := range m.fields() {
		if err != nil {
			return 0, err
		}
		if x.num == num {
			n += x.len()
		}
	}
	return n, nil
}

// int returns the value of an integer field.
func (f *file) int(x field) (int64, error) {
	v, _, err := f.varint(x.at, x.end)
	return int64(v), err
}

// blob returns the value of a byte field of at most limit ≤ windowSize bytes.
func (f *file) blob(x field, limit int64) (string, error) {
	if x.len() > limit {
		return "", fmt.Errorf("byte %d: %d bytes where at most %d are taken", x.at, x.len(), limit)
	}
	if err := f.charge(x.len(), 1); err != nil {
		return "", err
	}
	b, err := f.peek(x.at, x.len())
	return string(b), err
}

// text returns the value of a text field of at most limit bytes.
func (f *file) text(x field, limit int64) (string, error) {
	s, err := f.blob(x, limit)
	if err == nil && !utf8.ValidString(s) {
		return "", fmt.Errorf("byte %d: text is not UTF-8", x.at)
	}
	return s, err
}
