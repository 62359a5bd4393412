package record

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Field is one part of every record, such as an image or a label.
type Field struct {
	Name  string
	Type  tensor.DType
	Shape tensor.Shape // within a record; without axes it is one element
}

// Fields are the parts of records, one behind another in words of 32 bits:
//
//	field   ⌈elements·size / 4⌉ words; elements in row-major order, each from its least
//	        significant bit on; the rest of the last word is zero
//	record  its fields in order
//
// So whatever records hold, they are an int32 tensor [records, words] like any other.
type Fields []Field

// Limits on fields.
const (
	MaxFields    = 1 << 8
	MaxFieldName = 1 << 7
	maxWords     = 1 << 28 // of a record
	wordBytes    = 4
)

// words returns how many words the field takes.
func (f *Field) words() int {
	return (f.Shape.Elements()*f.Type.Size() + wordBytes - 1) / wordBytes
}

// Words returns how many words a record takes: the columns of a tensor of records.
func (fs Fields) Words() (n int) {
	for i := range fs {
		n += fs[i].words()
	}
	return n
}

// Check returns an error unless the fields have names of their own, and a record that is not
// too long.
func (fs Fields) Check() error {
	if len(fs) == 0 || len(fs) > MaxFields {
		return fmt.Errorf("records have %d fields, but should have 1 to %d", len(fs), MaxFields)
	}
	names, words := map[string]bool{}, 0
	for i := range fs {
		f := &fs[i]
		switch {
		case f.Name == "" || len(f.Name) > MaxFieldName:
			return fmt.Errorf("a field's name has %d bytes, but should have 1 to %d", len(f.Name), MaxFieldName)
		case names[f.Name]:
			return fmt.Errorf("two fields are called %q", f.Name)
		case !f.Type.Valid():
			return fmt.Errorf("field %q has no known type", f.Name)
		}
		if err := f.Shape.Check(); err != nil {
			return fmt.Errorf("field %q: %w", f.Name, err)
		}
		if n := f.Shape.Elements(); n < 1 || n > maxWords {
			return fmt.Errorf("field %q has %d elements, but should have 1 to %d", f.Name, n, maxWords)
		}
		if words += f.words(); words > maxWords {
			return fmt.Errorf("a record takes more than %d words", maxWords)
		}
		names[f.Name] = true
	}
	return nil
}

// Find returns the field of a name.
func (fs Fields) Find(name string) (Field, bool) {
	i := slices.IndexFunc(fs, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return Field{}, false
	}
	return fs[i], true
}

// Names returns the names in order.
func (fs Fields) Names() (out []string) {
	for _, f := range fs {
		out = append(out, f.Name)
	}
	return out
}

// Pack makes records of the values of each field, [records …]. All have as many.
func (fs Fields) Pack(values map[string]*tensor.Tensor) (*tensor.Tensor, error) {
	return fs.PackIn(nil, values, nil)
}

// PackIn is Pack into memory of an allocator, of the records with these indices, in their order; nil: of all. The caller holds the
// values until it returns.
func (fs Fields) PackIn(alloc tensor.Allocator, values map[string]*tensor.Tensor, records []int) (*tensor.Tensor, error) {
	n, err := fs.count(values)
	if err != nil {
		return nil, err
	}
	if records == nil {
		for i := range n {
			records = append(records, i)
		}
	}
	words := fs.Words()
	out, err := alloc.New(tensor.Int32, tensor.Shape{len(records), words})
	if err != nil {
		return nil, err
	}
	at := 0
	for _, f := range fs {
		from, size := values[f.Name].Bytes(), f.Shape.Elements()*f.Type.Size()
		for to, r := range records {
			if r < 0 || r >= n {
				return nil, fmt.Errorf("there are %d records, and no record %d", n, r)
			}
			copy(out.Bytes()[(to*words+at)*wordBytes:], from[r*size:(r+1)*size])
		}
		at += f.words()
	}
	return out, nil
}

// count returns how many records the values of the fields are of.
func (fs Fields) count(values map[string]*tensor.Tensor) (int, error) {
	if err := fs.Check(); err != nil {
		return 0, err
	}
	records := -1
	for _, f := range fs {
		v := values[f.Name]
		if v == nil || v.Type != f.Type || len(v.Shape) == 0 || !v.Shape[1:].Equal(f.Shape) {
			return 0, fmt.Errorf("field %q has no values of %v%v a record", f.Name, f.Type, f.Shape)
		}
		if records < 0 {
			records = v.Shape[0]
		}
		if v.Shape[0] != records {
			return 0, fmt.Errorf("field %q has %d records, the fields before it %d", f.Name, v.Shape[0], records)
		}
	}
	return max(records, 0), nil
}

// Read writes into b what takes each field out of a batch of records [rows words], and returns
// the names of the values, [rows …] each.
func (fs Fields) Read(b *graph.Builder, batch string, rows int) map[string]string {
	out, at := map[string]string{}, 0
	for _, f := range fs {
		v := batch
		if len(fs) > 1 {
			v = b.Op("Slice", batch, b.Ints(at), b.Ints(at+f.words()), b.Ints(1))
		}
		if v = f.elements(b, v, rows); len(f.Shape) != 1 {
			v = b.Op("Reshape", v, b.Ints(append([]int{rows}, f.Shape...)...))
		}
		out[f.Name] = v
		at += f.words()
	}
	return out
}

// elements makes elements of the field, [rows elements], of its words, int32 [rows words].
func (f *Field) elements(b *graph.Builder, words string, rows int) string {
	size := f.Type.Size()
	switch {
	case f.Type == tensor.Int32:
		return words
	case size == wordBytes:
		return bitsAs(b, words, f.Type)
	}
	v := bitsAs(b, words, tensor.Uint32)
	raw := map[int]tensor.DType{1: tensor.Uint8, 2: tensor.Uint16, 8: tensor.Uint64}[size]
	if size < wordBytes {
		each := wordBytes / size
		shifts := make([]uint32, each)
		for i := range shifts {
			shifts[i] = uint32(8 * size * i)
		}
		by := b.Const(tensor.Must(tensor.From(tensor.Shape{1, 1, each}, shifts)))
		v = b.Op("Reshape", v, b.Ints(rows, f.words(), 1))
		v = b.Cast(b.With(graph.String("direction", "RIGHT")).Op("BitShift", v, by), raw)
		v = b.Op("Reshape", v, b.Ints(rows, each*f.words()))
		v = b.Op("Slice", v, b.Ints(0), b.Ints(f.Shape.Elements()), b.Ints(1))
	} else {
		v = b.Op("Reshape", b.Cast(v, raw), b.Ints(rows, f.Shape.Elements(), 2))
		half := func(i int) string { return b.Op("Slice", v, b.Ints(i), b.Ints(i+1), b.Ints(2)) }
		high := b.With(graph.String("direction", "LEFT")).Op("BitShift", half(1), b.Const(tensor.Scalar(uint64(32))))
		v = b.Op("Reshape", b.Op("BitwiseOr", half(0), high), b.Ints(rows, f.Shape.Elements()))
	}
	if f.Type == tensor.Bool {
		return b.Cast(v, tensor.Bool)
	}
	return bitsAs(b, v, f.Type)
}

// bitsAs takes the bits of a value as those of another type of the same size.
func bitsAs(b *graph.Builder, v string, t tensor.DType) string {
	return b.With(graph.Int("to", int(t))).Op("BitCast", v)
}

// Code walks the parts of f.
func (f *Field) Code(c *canon.Codec) {
	c.String(&f.Name, MaxFieldName)
	c.U8((*uint8)(&f.Type))
	canon.With(c, &f.Shape, tensor.Shape.Encode, tensor.DecodeShape)
}

// Unpack returns the values of a field of records, [records …].
func (fs Fields) Unpack(records *tensor.Tensor, name string) (*tensor.Tensor, error) {
	words := fs.Words()
	if records.Type != tensor.Int32 || len(records.Shape) != 2 || records.Shape[1] != words {
		return nil, fmt.Errorf("records are %v%v, but should be %v[records %d]", records.Type, records.Shape, tensor.Int32, words)
	}
	at := 0
	for _, f := range fs {
		if f.Name != name {
			at += f.words()
			continue
		}
		n := f.Shape.Elements() * f.Type.Size()
		b := make([]byte, 0, records.Shape[0]*n)
		for r := range records.Shape[0] {
			b = append(b, records.Bytes()[(r*words+at)*wordBytes:][:n]...)
		}
		return tensor.FromBytes(f.Type, append(tensor.Shape{records.Shape[0]}, f.Shape...), b)
	}
	return nil, fmt.Errorf("records have no field %q, but %q", name, fs.Names())
}
