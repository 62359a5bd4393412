package quant

import (
	"errors"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/tensor"
)

func TestNames(t *testing.T) {
	for _, typ := range Types {
		if !typ.Valid() {
			t.Errorf("%v is not valid", typ)
		}
		for _, name := range []string{typ.String(), strings.ToLower(typ.String())} {
			if got, err := Parse(name); got != typ || err != nil {
				t.Errorf("%s: %v (%v)", name, got, err)
			}
		}
		if got, err := FromGGML(uint32(typ)); got != typ || err != nil {
			t.Errorf("%d: %v (%v)", typ, got, err)
		}
	}
	valid := 0
	for n := range 300 {
		typ, err := FromGGML(uint32(n))
		if err == nil {
			valid++
		} else if !errors.Is(err, errors.ErrUnsupported) || typ != 0 {
			t.Errorf("%d: %v (%v)", n, typ, err)
		}
		if n < 256 && Type(n).Valid() != (err == nil) {
			t.Errorf("%d is valid: %v, and %v", n, Type(n).Valid(), err)
		}
	}
	if valid != len(Types) {
		t.Errorf("%d numbers are types, of %d", valid, len(Types))
	}
	if got := Type(200).String(); got != "quant(200)" {
		t.Error(got)
	}
}

func TestTypesThatAreRefused(t *testing.T) {
	for n, want := range map[uint32]string{
		10: "weights of type Q2_K: convert them to one of [F32 F16 Q4_0", 26: "type I32", 39: "type MXFP4", 4: "type Q4_2",
		42: "the unknown type 42", 1<<32 - 1: "the unknown type 4294967295",
	} {
		if _, err := FromGGML(n); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v, want %q", n, err, want)
		}
	}
	for name, want := range map[string]string{
		"q3_k": "type Q3_K", "Q4_K_M": `no type of weights is called "Q4_K_M": use one of`, "": "is called", strings.Repeat("x", 99): `"xxxxxxxxxxxxxxxxxxxx":`,
	} {
		if _, err := Parse(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
}

func TestSize(t *testing.T) {
	for _, c := range []struct {
		typ   Type
		shape tensor.Shape
		want  int64 // −1: refused
	}{
		{F32, nil, 4}, {F32, tensor.Shape{3, 5}, 60}, {F16, tensor.Shape{7}, 14}, {BF16, tensor.Shape{0, 4}, 0},
		{Q4_0, tensor.Shape{2, 64}, 72}, {Q6_K, tensor.Shape{3, 512}, 1260}, {Q8_0, tensor.Shape{4, 0}, 0},
		{Q4_0, nil, -1}, {Q4_0, tensor.Shape{32, 16}, -1}, {Q4_K, tensor.Shape{8, 32}, -1}, {Q8_0, tensor.Shape{-32}, -1},
		{Q8_0, tensor.Shape{1 << 40, 1 << 40}, -1}, {F32, tensor.Shape{1 << 33}, -1}, {Q4_0, tensor.Shape{1 << 34}, 9 << 30},
		{Type(10), tensor.Shape{256}, -1}, {Type(255), tensor.Shape{256}, -1},
	} {
		got, err := c.typ.Size(c.shape)
		if err != nil {
			got = -1
		}
		if got != c.want {
			t.Errorf("%v%v: %d, want %d (%v)", c.typ, c.shape, got, c.want, err)
		}
	}
}

func TestBytesThatAreNoBlocks(t *testing.T) {
	for _, typ := range Types {
		_, size := typ.Block()
		if err := typ.Check(make([]byte, 2*size+1)); err == nil || !strings.Contains(err.Error(), "no whole blocks") {
			t.Errorf("%v: %v", typ, err)
		}
		if err := typ.Check(nil); err != nil {
			t.Errorf("%v: %v", typ, err)
		}
	}
	if err := Type(10).Check(nil); err == nil {
		t.Error("Q2_K is checked")
	}
	for name, call := range map[string]func(){
		"half a block":  func() { Q4_0.Decode(make([]float32, 32), make([]byte, 17)) },
		"too much room": func() { Q4_0.Decode(make([]float32, 33), make([]byte, 18)) },
		"no type":       func() { Type(10).Decode(nil, nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is decoded", name)
				}
			}()
			call()
		}()
	}
	if n, size := Type(255).Block(); n != 0 || size != 0 {
		t.Errorf("no type has blocks of %d elements in %d bytes", n, size)
	}
}
