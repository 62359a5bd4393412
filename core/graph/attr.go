package graph

import "github.com/tally-network/tally/core/tensor"

// Int returns an integer attribute.
func Int(name string, v int) Attr { return Attr{Name: name, Kind: AttrInt, Int: int64(v)} }

// Float returns a float attribute.
func Float(name string, v float32) Attr { return Attr{Name: name, Kind: AttrFloat, Float: v} }

// String returns a string attribute.
func String(name, v string) Attr { return Attr{Name: name, Kind: AttrString, String: v} }

// Ints returns an attribute that lists integers.
func Ints(name string, v ...int) Attr {
	a := Attr{Name: name, Kind: AttrInts, Ints: make([]int64, len(v))}
	for i, x := range v {
		a.Ints[i] = int64(x)
	}
	return a
}

// Tensor returns a tensor attribute.
func Tensor(name string, t *tensor.Tensor) Attr {
	return Attr{Name: name, Kind: AttrTensor, Tensor: t}
}
