package quant

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/tally-network/tally/core/tensor"
)

// reference is what ggml.py writes of a type.
type reference struct {
	Number          uint32
	Elements, Bytes int
	Values          string // float32 of two blocks, in hexadecimal
	Digest          string // SHA-256 of the float32 of all blocks
}

func references(t *testing.T) (r map[string]reference) {
	t.Helper()
	b, err := os.ReadFile("testdata/ggml.json")
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// finites are all float16 that are finite.
func finites() (out []uint16) {
	for h := range 1 << 16 {
		if h&0x7c00 != 0x7c00 {
			out = append(out, uint16(h))
		}
	}
	return out
}

// blocks are those of ggml.py.
func blocks(typ Type) (b []byte) {
	if typ == F16 || typ == BF16 {
		for h := range 1 << 16 {
			b = binary.LittleEndian.AppendUint16(b, uint16(h))
		}
		return b
	}
	all, k := finites(), &kinds[typ]
	for i := 0; len(b) < len(all)*k.size; i++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%v %d", typ, i))
		b = append(b, sum[:]...)
	}
	b = b[:len(all)*k.size]
	for n, at := range k.scales {
		for i := range all {
			order := i
			if n == 1 {
				order = i * 40009 % len(all)
			}
			binary.LittleEndian.PutUint16(b[i*k.size+at:], all[order])
		}
	}
	return b
}

func decode(typ Type, b []byte) []float32 {
	elements, size := typ.Block()
	out := make([]float32, len(b)/size*elements)
	typ.Decode(out, b)
	return out
}

// raw are the little-endian bytes of x.
func raw(x []float32) []byte {
	out := make([]byte, 0, 4*len(x))
	for _, v := range x {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}

// Every finite scale, zeros of both signs and subnormals among them, with every integer of six bits
// that multiplies scale or minimum, gives the bits that ggml's own package gives.
func TestDecodeEqualsGGML(t *testing.T) {
	all := references(t)
	if len(all) != len(Types) {
		t.Fatalf("%d types, and references for %d", len(Types), len(all))
	}
	for _, typ := range Types {
		t.Run(typ.String(), func(t *testing.T) {
			r, b := all[typ.String()], blocks(typ)
			elements, size := typ.Block()
			if r.Number != uint32(typ) || r.Elements != elements || r.Bytes != size {
				t.Fatalf("number %d, %d elements in %d bytes; ggml says %+v", typ, elements, size, r)
			}
			if err := typ.Check(b); err != nil {
				t.Fatal(err)
			}
			got := raw(decode(typ, b))
			want, err := hex.DecodeString(r.Values)
			if err != nil || len(want) != 8*elements {
				t.Fatalf("%d bytes of values (%v)", len(want), err)
			}
			at := len(b) / size / 3 * elements * 4
			if part := got[at:][:len(want)]; !bytes.Equal(part, want) {
				for i := 0; i < len(want); i += 4 {
					if !bytes.Equal(part[i:i+4], want[i:i+4]) {
						t.Fatalf("element %d is %x, want %x", i/4, part[i:i+4], want[i:i+4])
					}
				}
			}
			if sum := fmt.Sprintf("%x", sha256.Sum256(got)); sum != r.Digest {
				t.Fatalf("two blocks are equal, others of %d are not: digest %s, want %s", len(b)/size, sum, r.Digest)
			}
		})
	}
}

func TestFloatsEqualTensors(t *testing.T) {
	for typ, dtype := range map[Type]tensor.DType{F16: tensor.Float16, BF16: tensor.BFloat16} {
		for i, v := range decode(typ, blocks(typ)) {
			if got, want := math.Float32bits(v), tensor.F32(float32(tensor.FloatOf(dtype, tensor.Word(i)))); tensor.Word(got) != want {
				t.Fatalf("%v %#04x is %#08x, want %#08x", typ, i, got, want)
			}
		}
	}
	nan := []byte{1, 0, 0x80, 0xff}
	if got := math.Float32bits(decode(F32, nan)[0]); got != 0x7fc00000 {
		t.Errorf("a NaN is decoded as %#08x", got)
	}
}

// However many blocks are decoded at once, each gives what it gives alone.
func TestFewBlocks(t *testing.T) {
	for _, typ := range Types {
		k := &kinds[typ]
		b := blocks(typ)[1000*k.size:][:9*k.size]
		want := decode(typ, b)
		for n := range 9 {
			if got := decode(typ, b[:n*k.size]); !bytes.Equal(raw(got), raw(want[:n*k.elements])) {
				t.Errorf("%v: %d blocks alone differ", typ, n)
			}
		}
	}
}

// A scale that is not finite is refused, in whichever block; decoded it spoils that block alone.
func TestScalesThatAreNotFinite(t *testing.T) {
	for _, typ := range Types {
		k := &kinds[typ]
		all := blocks(typ)
		for _, at := range k.scales {
			for _, bad := range []uint16{0x7c00, 0xfc00, 0x7e00, 0xffff, 0x7c01} {
				b := bytes.Clone(all[1000*k.size:][:3*k.size])
				want := decode(typ, b)
				spoil(want[k.elements:][:k.elements])
				binary.LittleEndian.PutUint16(b[k.size+at:], bad)
				if err := typ.Check(b); err == nil || err.Error() != "a scale of block 1 is not finite: the weights are damaged, make or fetch them again" {
					t.Errorf("%v: scale %#x at byte %d: %v", typ, bad, at, err)
				}
				if !bytes.Equal(raw(decode(typ, b)), raw(want)) {
					t.Errorf("%v: scale %#x at byte %d changes other blocks, or leaves its own", typ, bad, at)
				}
			}
		}
		if len(k.scales) > 0 {
			continue
		}
		if err := typ.Check(bytes.Repeat([]byte{0xff}, 8*k.size)); err != nil {
			t.Errorf("%v: elements may be NaN: %v", typ, err)
		}
	}
}

// What Check passes is finite, and any bytes decode without a NaN but the canonical one.
func FuzzDecode(f *testing.F) {
	for _, typ := range Types {
		f.Add(uint8(typ), blocks(typ)[:2*kinds[typ].size])
	}
	f.Fuzz(func(t *testing.T, n uint8, b []byte) {
		typ, err := FromGGML(uint32(n))
		if err != nil {
			return
		}
		_, size := typ.Block()
		b = b[:len(b)/size*size]
		checked := typ.Check(b) == nil
		for i, v := range decode(typ, b) {
			if v != v && math.Float32bits(v) != 0x7fc00000 {
				t.Fatalf("%v: element %d is NaN %#x", typ, i, math.Float32bits(v))
			}
			if checked && len(kinds[typ].scales) > 0 && (v != v || math.IsInf(float64(v), 0)) {
				t.Fatalf("%v: element %d is %v, and Check passes", typ, i, v)
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	for _, typ := range Types {
		b.Run(typ.String(), func(b *testing.B) {
			elements, size := typ.Block()
			src := blocks(typ)[:1<<15/elements*size]
			dst := make([]float32, 1<<15)
			b.SetBytes(int64(4 * len(dst))) // of float32
			b.ReportAllocs()
			for b.Loop() {
				typ.Decode(dst, src)
			}
		})
	}
}
