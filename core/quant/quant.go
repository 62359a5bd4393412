// Package quant defines what block-quantised weights mean: the float32 that each block of bytes
// stands for, bit for bit.
//
// A weight is rows of blocks. A block holds a few elements as small integers, and one or two
// scales by which they are multiplied. The types, their names and their numbers are ggml's, and so
// is the meaning. An element is what ggml's reference dequantisation gives: float32, each operation
// rounded once, in its order. F32, F16 and BF16 are blocks of one element without scales.
//
// [FromGGML] gives the type of a number in a file, and [Parse] that of a name. [Type.Size] says how
// many bytes a weight takes, [Type.Check] whether its scales are finite, and [Type.Decode] what
// its elements are.
//
// Invariants: Decode depends on nothing but the bytes, whatever they are, allocates nothing, and
// gives no NaN but the canonical one. A block that Check passes has finite elements only, unless its
// type has no scales.
//
// Source: ggml-quants.c and ggml-common.h (github.com/ggml-org/ggml), and the package gguf (PyPI),
// against which tests compare.
package quant

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tally-network/tally/core/tensor"
)

// Type is a type of quantised weights. The numbers are ggml's; not every number is a type.
type Type uint8

// The types. A name tells the bits of an element; of _0 the integers are signed and have one
// scale, of _1 they have a minimum too. Blocks of _K have scales of parts within.
const (
	F32    Type = 0
	F16    Type = 1
	Q4_0   Type = 2
	Q4_1   Type = 3
	Q5_0   Type = 6
	Q5_1   Type = 7
	Q8_0   Type = 8
	Q4_K   Type = 12
	Q5_K   Type = 13
	Q6_K   Type = 14
	IQ4_NL Type = 20 // integers are places in a table that is not linear
	BF16   Type = 30
)

// Types are all types, in the order of their numbers.
var Types = []Type{F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K, IQ4_NL, BF16}

// traits is what a type is.
type traits struct {
	name           string
	elements, size int   // of a block; size in bytes
	scales         []int // where in a block its float16 scales are, in bytes
	decode         func(dst []float32, src []byte)
}

// kinds is indexed by type. What has only a name is one of ggml's that is not decoded here.
var kinds = [...]traits{
	F32: {"F32", 1, 4, nil, decodeF32}, F16: {"F16", 1, 2, nil, decodeF16}, BF16: {"BF16", 1, 2, nil, decodeBF16},
	Q4_0: {"Q4_0", 32, 18, []int{0}, decodeQ4_0}, Q4_1: {"Q4_1", 32, 20, []int{0, 2}, decodeQ4_1},
	Q5_0: {"Q5_0", 32, 22, []int{0}, decodeQ5_0}, Q5_1: {"Q5_1", 32, 24, []int{0, 2}, decodeQ5_1},
	Q8_0: {"Q8_0", 32, 34, []int{0}, decodeQ8_0}, IQ4_NL: {"IQ4_NL", 32, 18, []int{0}, decodeIQ4_NL},
	Q4_K: {"Q4_K", 256, 144, []int{0, 2}, decodeQ4_K}, Q5_K: {"Q5_K", 256, 176, []int{0, 2}, decodeQ5_K},
	Q6_K: {"Q6_K", 256, 210, []int{208}, decodeQ6_K},

	4: {name: "Q4_2"}, 5: {name: "Q4_3"}, 9: {name: "Q8_1"}, 10: {name: "Q2_K"}, 11: {name: "Q3_K"}, 15: {name: "Q8_K"},
	16: {name: "IQ2_XXS"}, 17: {name: "IQ2_XS"}, 18: {name: "IQ3_XXS"}, 19: {name: "IQ1_S"}, 21: {name: "IQ3_S"},
	22: {name: "IQ2_S"}, 23: {name: "IQ4_XS"}, 24: {name: "I8"}, 25: {name: "I16"}, 26: {name: "I32"}, 27: {name: "I64"},
	28: {name: "F64"}, 29: {name: "IQ1_M"}, 31: {name: "Q4_0_4_4"}, 32: {name: "Q4_0_4_8"}, 33: {name: "Q4_0_8_8"},
	34: {name: "TQ1_0"}, 35: {name: "TQ2_0"}, 36: {name: "IQ4_NL_4_4"}, 37: {name: "IQ4_NL_4_8"}, 38: {name: "IQ4_NL_8_8"},
	39: {name: "MXFP4"}, 40: {name: "NVFP4"}, 41: {name: "Q1_0"},
}

// of returns what t is; for what is no type, nothing.
func (t Type) of() *traits {
	if t.Valid() {
		return &kinds[t]
	}
	return &traits{}
}

// Valid reports whether t is one of Types.
func (t Type) Valid() bool { return int(t) < len(kinds) && kinds[t].decode != nil }

// String returns ggml's name of t, also where t is no type but ggml has one of that number.
func (t Type) String() string {
	if int(t) < len(kinds) {
		return kinds[t].name
	}
	return fmt.Sprintf("quant(%d)", uint8(t))
}

// Parse returns the type of a name, in letters of either case. A name of ggml that is no type is
// errors.ErrUnsupported.
func Parse(name string) (Type, error) {
	for i, k := range kinds {
		if strings.EqualFold(k.name, name) {
			return FromGGML(uint32(i))
		}
	}
	return 0, fmt.Errorf("no type of weights is called %.20q: use one of %v", name, Types)
}

// FromGGML returns the type of ggml's number n. A number that is no type is errors.ErrUnsupported,
// by its name.
func FromGGML(n uint32) (Type, error) {
	switch {
	case n >= uint32(len(kinds)):
		return 0, fmt.Errorf("weights of the unknown type %d: convert them to one of %v: %w", n, Types, errors.ErrUnsupported)
	case kinds[n].decode == nil:
		return 0, fmt.Errorf("weights of type %s: convert them to one of %v: %w", kinds[n].name, Types, errors.ErrUnsupported)
	}
	return Type(n), nil
}

// Block returns how many elements a block of t holds, and its size in bytes; zeros if t is
// no type.
func (t Type) Block() (elements, size int) { return t.of().elements, t.of().size }

// Size returns the bytes that a weight of a shape takes, at most tensor.MaxBytes. It fails for what
// is no type or no shape, and where the last axis, a row, is not of whole blocks.
func (t Type) Size(s tensor.Shape) (int64, error) {
	if !t.Valid() {
		return 0, fmt.Errorf("%v is no type of weights", t)
	}
	if err := s.Check(); err != nil {
		return 0, err
	}
	elements, size := t.Block()
	if _, cols := s.Matrix(); cols%elements != 0 {
		return 0, fmt.Errorf("rows of %d elements are no blocks of %d, as %v has them: use a type of smaller blocks", cols, elements, t)
	}
	n := int64(s.Elements()/elements) * int64(size)
	if n > tensor.MaxBytes {
		return 0, fmt.Errorf("a weight %v%v takes %d bytes, limit %d", t, s, n, tensor.MaxBytes)
	}
	return n, nil
}

// Check refuses blocks of which a scale is infinite or NaN, bytes that are no whole blocks, and what
// is no type. Types without scales may hold infinities and NaNs.
func (t Type) Check(src []byte) error {
	k := t.of()
	switch {
	case k.decode == nil:
		return fmt.Errorf("%v is no type of weights", t)
	case len(src)%k.size != 0:
		return fmt.Errorf("%d bytes are no whole blocks of %v, which take %d", len(src), t, k.size)
	}
	for _, scale := range k.scales {
		for at := scale; at < len(src); at += k.size {
			if !finite(src[at+1]) {
				return fmt.Errorf("a scale of block %d is not finite: the weights are damaged, make or fetch them again", at/k.size)
			}
		}
	}
	return nil
}

// Decode writes the elements of whole blocks into dst, which has room for just them. Otherwise,
// or if t is no type, it panics. In a block that Check refuses every element is NaN.
func (t Type) Decode(dst []float32, src []byte) {
	k := t.of()
	if k.decode == nil || len(src)%k.size != 0 || len(dst) != len(src)/k.size*k.elements {
		panic(fmt.Sprintf("%d bytes of %v decoded into %d elements", len(src), t, len(dst)))
	}
	k.decode(dst, src)
	for _, scale := range k.scales {
		for at := scale; at < len(src); at += k.size {
			if !finite(src[at+1]) {
				spoil(dst[at/k.size*k.elements:][:k.elements])
			}
		}
	}
}
