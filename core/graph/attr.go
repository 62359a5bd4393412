package graph

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/tensor"
)

var attrKinds = map[AttrKind]string{
	AttrFloat: "a float", AttrInt: "an integer", AttrString: "a string",
	AttrTensor: "a tensor", AttrGraph: "a graph", AttrFloats: "a list of floats", AttrInts: "a list of integers", AttrStrings: "a list of strings",
}

// String says what an attribute of the kind is.
func (k AttrKind) String() string {
	if s, ok := attrKinds[k]; ok {
		return s
	}
	return fmt.Sprintf("of kind %d", uint8(k))
}

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

// Strings returns an attribute that lists strings.
func Strings(name string, v ...string) Attr {
	return Attr{Name: name, Kind: AttrStrings, Strings: slices.Clone(v)}
}

// Floats returns an attribute that lists floats.
func Floats(name string, v ...float32) Attr {
	return Attr{Name: name, Kind: AttrFloats, Floats: slices.Clone(v)}
}

// Tensor returns a tensor attribute.
func Tensor(name string, t *tensor.Tensor) Attr {
	return Attr{Name: name, Kind: AttrTensor, Tensor: t}
}
