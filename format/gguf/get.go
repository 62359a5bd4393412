package gguf

import (
	"errors"
	"fmt"
	"math"
)

// ErrNoKey says that the metadata has no value of a key.
var ErrNoKey = errors.New("the file has no such metadata")

// Has reports whether the metadata has a value of a key, of any type.
func (f *File) Has(key string) bool {
	_, ok := f.keys[key]
	return ok
}

// lookup returns the value of a key.
func (f *File) lookup(key string) (Value, error) {
	i, ok := f.keys[key]
	if !ok {
		return Value{}, fmt.Errorf("%.100q: %w", key, ErrNoKey)
	}
	return f.Metadata[i].Data, nil
}

// unwanted says that a value is of another type than is asked for.
func unwanted(key string, v Value, wanted string) error {
	return fmt.Errorf("metadata %.100q is of type %v where %s is wanted: convert the model again", key, v, wanted)
}

// Text returns the string of a key, in bytes that may be no UTF-8. Without it the error is ErrNoKey.
func (f *File) Text(key string) (string, error) {
	v, err := f.lookup(key)
	if err != nil {
		return "", err
	}
	if v.typ != typeString {
		return "", unwanted(key, v, "a string")
	}
	text, _, err := cutText(v.raw)
	return text, err
}

// cutText returns the string that b begins with, and what follows it.
func cutText(b string) (text, rest string, err error) {
	if len(b) < 8 {
		return "", "", errChanged
	}
	n, b := number(b[:8]), b[8:]
	if n > uint64(len(b)) {
		return "", "", errChanged
	}
	return b[:n], b[n:], nil
}

// Uint returns the integer of a key, of any width, which is not negative. Without it the error is
// ErrNoKey.
func (f *File) Uint(key string) (uint64, error) {
	v, err := f.lookup(key)
	if err != nil {
		return 0, err
	}
	n, isSigned, ok := integer(v.typ, v.raw)
	if !ok || isSigned && int64(n) < 0 {
		return 0, unwanted(key, v, "an integer from 0 on")
	}
	return n, nil
}

// Float returns the float of a key, of either width. Without it the error is ErrNoKey.
func (f *File) Float(key string) (float64, error) {
	v, err := f.lookup(key)
	if err != nil {
		return 0, err
	}
	x, ok := floating(v.typ, v.raw)
	if !ok {
		return 0, unwanted(key, v, "a float")
	}
	return x, nil
}

// Bool returns the truth value of a key. Without it the error is ErrNoKey.
func (f *File) Bool(key string) (bool, error) {
	v, err := f.lookup(key)
	if err != nil {
		return false, err
	}
	if v.typ != typeBool {
		return false, unwanted(key, v, "a bool")
	}
	return number(v.raw) != 0, nil
}

// array returns the type, number and bytes of the elements of a key's array.
func (f *File) array(key, wanted string) (of valueType, n int, raw string, err error) {
	v, err := f.lookup(key)
	switch {
	case err != nil:
		return 0, 0, "", err
	case v.typ != typeArray || len(v.raw) < arrayHead:
		return 0, 0, "", unwanted(key, v, wanted)
	}
	if of, n, raw = v.elements(); n < 0 || n > MaxElements || !of.known() {
		return 0, 0, "", errChanged
	}
	if width := of.width(); width > 0 && len(raw) != n*width {
		return 0, 0, "", errChanged
	}
	return of, n, raw, nil
}

// Texts returns the strings of a key's array: 16 bytes each, beside the header's. Without it the
// error is ErrNoKey.
func (f *File) Texts(key string) ([]string, error) {
	const wanted = "an array of strings"
	of, n, raw, err := f.array(key, wanted)
	if err != nil {
		return nil, err
	}
	if of != typeString {
		return nil, unwanted(key, f.Metadata[f.keys[key]].Data, wanted)
	}
	if n > len(raw)/8 {
		return nil, errChanged
	}
	out := make([]string, n)
	for i := range out {
		if out[i], raw, err = cutText(raw); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Ints returns the integers of a key's array, of any width. Without it the error is ErrNoKey.
func (f *File) Ints(key string) ([]int64, error) {
	return numbers(f, key, "an array of integers", func(of valueType, b string) (int64, bool) {
		word, isSigned, ok := integer(of, b)
		return int64(word), ok && (isSigned || word <= math.MaxInt64)
	})
}

// Floats returns the floats of a key's array, of either width. Without it the error is ErrNoKey.
func (f *File) Floats(key string) ([]float64, error) {
	return numbers(f, key, "an array of floats", floating)
}

// Bools returns the truth values of a key's array. Without it the error is ErrNoKey.
func (f *File) Bools(key string) ([]bool, error) {
	return numbers(f, key, "an array of bools", func(of valueType, b string) (bool, bool) { return number(b) != 0, of == typeBool })
}

// numbers returns the elements of a key's array, as convert gives them from type and bytes.
func numbers[T any](f *File, key, wanted string, convert func(of valueType, b string) (T, bool)) ([]T, error) {
	of, n, raw, err := f.array(key, wanted)
	if err != nil {
		return nil, err
	}
	width := of.width()
	if width == 0 {
		return nil, unwanted(key, f.Metadata[f.keys[key]].Data, wanted)
	}
	out := make([]T, n)
	for i := range out {
		v, ok := convert(of, raw[i*width:][:width])
		if !ok {
			return nil, unwanted(key, f.Metadata[f.keys[key]].Data, wanted)
		}
		out[i] = v
	}
	return out, nil
}
