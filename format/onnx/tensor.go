package onnx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/elements"
)

// elemNames are ONNX's element types, by number.
var elemNames = []string{
	"undefined", "float32", "uint8", "int8", "uint16", "int16", "int32", "int64", "string", "bool", "float16",
	"float64", "uint32", "uint64", "complex64", "complex128", "bfloat16", "float8e4m3fn", "float8e4m3fnuz",
	"float8e5m2", "float8e5m2fnuz", "uint4", "int4", "float4e2m1", "float8e8m0", "uint2", "int2", "float6e2m3", "float6e3m2",
}

// elemType reads an element type, which must be one that a tensor can have.
func (f *file) elemType(x field) (tensor.DType, error) {
	v, err := f.int(x)
	switch {
	case err != nil:
		return 0, err
	case v < 0 || v >= int64(len(elemNames)):
		return 0, fmt.Errorf("unknown element type %d", v)
	case !tensor.DType(v).Valid():
		return 0, unsupported("element type " + elemNames[v] + " is not supported: convert it to a type of numbers, or bool")
	}
	return tensor.DType(v), nil
}

func (r *reader) initializer(x field) (c graph.Const, err error) {
	c.Name, c.Tensor, err = r.tensor(x)
	return c, err
}

// typedData is the field that holds elements of a type outside raw_data.
var typedData = map[tensor.DType]protowire.Number{
	tensor.Float32: tensorFloats, tensor.Float64: tensorDoubles,
	tensor.Int8: tensorInt32s, tensor.Int16: tensorInt32s, tensor.Int32: tensorInt32s,
	tensor.Uint8: tensorInt32s, tensor.Uint16: tensorInt32s, tensor.Bool: tensorInt32s,
	tensor.Float16: tensorInt32s, tensor.BFloat16: tensorInt32s, // their bits
	tensor.Int64: tensorInt64s, tensor.Uint32: tensorUint64s, tensor.Uint64: tensorUint64s,
}

// dataFields are all fields that can hold elements.
var dataFields = []protowire.Number{tensorFloats, tensorInt32s, 6, tensorInt64s, tensorRaw, tensorDoubles, tensorUint64s}

// tensor reads a TensorProto up to its elements, which are loaded later: the
// tensor returned has only a type and a shape until then.
func (r *reader) tensor(x field) (name string, t *tensor.Tensor, err error) {
	if err := r.charge(1, loadCost); err != nil {
		return "", nil, err
	}
	m, err := r.message(&tensorSchema, x)
	if err != nil {
		return "", nil, err
	}
	t = &tensor.Tensor{}
	var location int64
	for y, err := range m.fields() {
		if err != nil {
			return "", nil, err
		}
		switch y.num {
		case tensorName:
			name, err = r.name(y)
		case tensorType:
			t.Type, err = r.elemType(y)
		case tensorLocation:
			location, err = r.int(y)
		}
		if err != nil {
			return "", nil, err
		}
	}
	if !t.Type.Valid() {
		return "", nil, errors.New("no element type is given")
	}
	if t.Shape, err = r.dims(&m); err != nil {
		return "", nil, err
	}
	l := load{into: t, name: name}
	switch location {
	case 0:
		l.from, err = r.inside(&m, t)
	case 1:
		l.part, err = r.outside(&m, t)
	default:
		err = fmt.Errorf("unknown data_location %d", location)
	}
	r.loads = append(r.loads, l)
	return name, t, err
}

func (r *reader) dims(m *message) (tensor.Shape, error) {
	n, err := m.countVarints(tensorDims)
	if err != nil {
		return nil, err
	}
	shape, err := r.newShape(n)
	if err != nil {
		return nil, err
	}
	for v, err := range m.varints(tensorDims) {
		if err != nil {
			return nil, err
		}
		shape = append(shape, int(int64(v)))
	}
	return shape, nil
}

// inside returns a reader of the elements that the message itself holds, once
// it has seen that they are as many as the shape says.
func (r *reader) inside(m *message, t *tensor.Tensor) (io.Reader, error) {
	need, err := elements.Size(t.Type, t.Shape)
	if err != nil {
		return nil, err
	}
	if m.has(tensorFiles) {
		return nil, errors.New("external_data is given and data_location is not EXTERNAL")
	}
	var data protowire.Number
	for _, num := range dataFields {
		if m.has(num) && data != 0 {
			return nil, fmt.Errorf("elements in %s and in %s", tensorSchema.fields[data].name, tensorSchema.fields[num].name)
		} else if m.has(num) {
			data = num
		}
	}
	var have int64
	var from io.Reader
	s := stream{file: r.file, num: data, next: m.at, end: m.end}
	switch typed := typedData[t.Type]; {
	case data == 0:
		from = &s
	case data == tensorRaw || data == typed && floatSize[tensorSchema.fields[data].wire] != 0:
		have, err = m.total(data)
		from = &s
	case data == typed:
		have, err = r.wide(m, data, t.Type.Size())
		from = &integers{s, t.Type}
	default:
		return nil, fmt.Errorf("%v elements in %s, where %s or raw_data hold them", t.Type, tensorSchema.fields[data].name, tensorSchema.fields[typed].name)
	}
	if err != nil {
		return nil, err
	}
	if have != need {
		return nil, fmt.Errorf("%v%v takes %d bytes of elements, the file has %d", t.Type, t.Shape, need, have)
	}
	return from, r.charge(need, 1)
}

// ReadTensor returns the tensor in the first size bytes of src, which hold one
// TensorProto, and its name.
func ReadTensor(src io.ReaderAt, size int64) (string, *tensor.Tensor, error) {
	name, t, err := readTensor(src, size)
	if err != nil {
		return "", nil, fmt.Errorf("read ONNX tensor: %w", err)
	}
	return name, t, nil
}

func readTensor(src io.ReaderAt, size int64) (string, *tensor.Tensor, error) {
	if size < 0 || size > MaxBytes {
		return "", nil, fmt.Errorf("file has %d bytes, limit %d", size, int64(MaxBytes))
	}
	r := &reader{file: newFile(src, size)}
	name, t, err := r.tensor(field{at: 0, end: size})
	if err != nil {
		return "", nil, err
	}
	return name, t, r.load(r.loads[0])
}

// stream reads the bytes of all values of one field of a tensor, one after
// another.
type stream struct {
	*file
	num       protowire.Number
	next, end int64 // the fields not read yet
	cur       field // what is left of the current value
}

// Read fills p from the current value, as far as that goes.
func (s *stream) Read(p []byte) (int, error) {
	if err := s.advance(); err != nil {
		return 0, err
	}
	n, err := s.src.ReadAt(p[:min(int64(len(p)), s.cur.len())], s.cur.at)
	s.cur.at += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

// advance moves to the next value unless some of this one is left.
func (s *stream) advance() error {
	for s.cur.len() == 0 {
		if s.next >= s.end {
			return io.EOF
		}
		x, err := s.field(&tensorSchema, s.next, s.end)
		if err != nil {
			return err
		}
		if s.next = x.end; x.num == s.num {
			s.cur = x
		}
	}
	return nil
}

// integers turns the varints of a field into little-endian elements.
type integers struct {
	stream
	typ tensor.DType
}

// Read writes whole elements only: p is a whole number of them.
func (s *integers) Read(p []byte) (n int, err error) {
	for size := s.typ.Size(); n+size <= len(p); n += size {
		if err := s.advance(); err != nil {
			return n, err
		}
		u, next, err := s.varint(s.cur.at, s.cur.end)
		if err != nil {
			return n, err
		}
		s.cur.at = next
		if !fits(s.typ, u) {
			return n, fmt.Errorf("element %d does not fit %v", int64(u), s.typ)
		}
		switch size {
		case 1:
			p[n] = byte(u)
		case 2:
			binary.LittleEndian.PutUint16(p[n:], uint16(u))
		case 4:
			binary.LittleEndian.PutUint32(p[n:], uint32(u))
		default:
			binary.LittleEndian.PutUint64(p[n:], u)
		}
	}
	return n, nil
}

// fits reports whether u, sign-extended if typ is signed, is an element of typ:
// a number, a boolean or the bits of a float.
func fits(typ tensor.DType, u uint64) bool {
	unused := uint(64 - 8*typ.Size())
	switch {
	case typ == tensor.Bool:
		return u <= 1
	case typ.Signed():
		return int64(u)<<unused>>unused == int64(u)
	}
	return u<<unused>>unused == u
}
