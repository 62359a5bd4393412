package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// valueType is a type of values. The numbers are the format's.
type valueType uint32

const (
	typeUint8 valueType = iota
	typeInt8
	typeUint16
	typeInt16
	typeUint32
	typeInt32
	typeFloat32
	typeBool
	typeString
	typeArray
	typeUint64
	typeInt64
	typeFloat64
)

// valueTypes is indexed by valueType. Values without a size tell their length.
var valueTypes = [...]struct {
	name string
	size int // bytes
}{
	typeUint8: {"uint8", 1}, typeInt8: {"int8", 1}, typeUint16: {"uint16", 2}, typeInt16: {"int16", 2},
	typeUint32: {"uint32", 4}, typeInt32: {"int32", 4}, typeUint64: {"uint64", 8}, typeInt64: {"int64", 8},
	typeFloat32: {"float32", 4}, typeFloat64: {"float64", 8}, typeBool: {"bool", 1},
	typeString: {"string", 0}, typeArray: {"array", 0},
}

// known reports whether t is a type of values.
func (t valueType) known() bool { return t < valueType(len(valueTypes)) }

// width returns the bytes of a value, 0 if values tell their length.
func (t valueType) width() int { return valueTypes[t].size }

// Value is a value of the metadata, of any type. Values are equal if they are of one type and have
// the same bytes in a file.
type Value struct {
	typ valueType
	raw string // as the file has it, after the type
}

// Pair is a key of the metadata, and its value.
type Pair struct {
	Key  string
	Data Value
}

// Plain is what a value or the elements of an array can be.
type Plain interface {
	uint8 | int8 | uint16 | int16 | uint32 | int32 | uint64 | int64 | float32 | float64 | bool | string
}

// Of returns the value v.
func Of[T Plain](v T) Value { return Value{typeOf[T](), string(appendPlain(nil, v))} }

// ArrayOf returns an array of the given elements, which may be none.
func ArrayOf[T Plain](elements ...T) Value {
	b := appendHead(nil, typeOf[T](), len(elements))
	for _, v := range elements {
		b = appendPlain(b, v)
	}
	return Value{typeArray, string(b)}
}

// Nested returns an array of arrays. Other elements are refused.
func Nested(arrays ...Value) (Value, error) {
	b := appendHead(nil, typeArray, len(arrays))
	for i, v := range arrays {
		if v.typ != typeArray {
			return Value{}, fmt.Errorf("element %d is a %v, no array", i, v)
		}
		b = append(b, v.raw...)
	}
	return Value{typeArray, string(b)}, nil
}

func appendHead(b []byte, of valueType, n int) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(of))
	return binary.LittleEndian.AppendUint64(b, uint64(n))
}

func typeOf[T Plain]() valueType {
	switch any(*new(T)).(type) {
	case uint8:
		return typeUint8
	case int8:
		return typeInt8
	case uint16:
		return typeUint16
	case int16:
		return typeInt16
	case uint32:
		return typeUint32
	case int32:
		return typeInt32
	case uint64:
		return typeUint64
	case int64:
		return typeInt64
	case float32:
		return typeFloat32
	case float64:
		return typeFloat64
	case bool:
		return typeBool
	}
	return typeString
}

func appendPlain(b []byte, v any) []byte {
	if s, ok := v.(string); ok {
		return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
	}
	b, err := binary.Append(b, binary.LittleEndian, v)
	if err != nil {
		panic(err) // Plain has no other types
	}
	return b
}

// String returns the type of v, and of an array how many elements it has.
func (v Value) String() string {
	if v.typ != typeArray || len(v.raw) < arrayHead {
		return valueTypes[v.typ].name
	}
	of, n, _ := v.elements()
	if !of.known() {
		return "array"
	}
	return fmt.Sprintf("array of %d × %s", n, valueTypes[of].name)
}

// arrayHead is the bytes before an array's elements.
const arrayHead = 12

// errChanged says that a value's bytes are not those that were checked.
var errChanged = errors.New("the file changed while its header was read: read it again")

// elements returns the type, number and bytes of an array's elements.
func (v Value) elements() (of valueType, n int, raw string) {
	return valueType(number(v.raw[:4])), int(number(v.raw[4:arrayHead])), v.raw[arrayHead:]
}

// number returns the little-endian number that b is.
func number(b string) (n uint64) {
	for i := len(b) - 1; i >= 0; i-- {
		n = n<<8 | uint64(b[i])
	}
	return n
}

// integer returns the integer of a type whose bytes are b, as words of 64 bits. A signed one is
// extended. It fails for other types.
func integer(t valueType, b string) (word uint64, isSigned, ok bool) {
	n := number(b)
	switch t {
	case typeUint8, typeUint16, typeUint32, typeUint64:
		return n, false, true
	case typeInt8, typeInt16, typeInt32, typeInt64:
		shift := 64 - 8*len(b)
		return uint64(int64(n<<shift) >> shift), true, true
	}
	return 0, false, false
}

// floating returns the float of a type whose bytes are b. It fails for other types.
func floating(t valueType, b string) (v float64, ok bool) {
	switch t {
	case typeFloat32:
		return float64(math.Float32frombits(uint32(number(b)))), true
	case typeFloat64:
		return math.Float64frombits(number(b)), true
	}
	return 0, false
}
