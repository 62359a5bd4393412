package gguf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tally-network/tally/core/quant"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/internal/testkit/memory"
)

func open(b []byte) (*File, error) { return Read(bytes.NewReader(b), int64(len(b))) }

// one is a weight as tests write it.
type one struct {
	name   string
	typ    quant.Type
	shape  tensor.Shape
	blocks []byte
}

func encoded(t testing.TB, metadata []Pair, weights ...one) []byte {
	t.Helper()
	var list []Weight
	for _, w := range weights {
		list = append(list, Weight{w.name, w.typ, w.shape, bytes.NewReader(w.blocks)})
	}
	var b bytes.Buffer
	if err := Write(&b, metadata, list); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func nested(t testing.TB, arrays ...Value) Value {
	t.Helper()
	v, err := Nested(arrays...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func sampleMetadata(t testing.TB) []Pair {
	return []Pair{
		{"general.architecture", Of("llama")}, {"block_count", Of(uint32(3))}, {"theta", Of(float32(1e4))}, {"eps", Of(1e-5)},
		{"add_bos", Of(true)}, {"least", Of(int8(-7))}, {"most", Of(uint64(math.MaxUint64))},
		{"tokens", ArrayOf("a", "", "é", "\xff")}, {"scores", ArrayOf[float32](0.5, -1)}, {"types", ArrayOf[int32](1, -2, 3)},
		{"bytes", ArrayOf[uint8](0, 255)}, {"large", ArrayOf[uint64](1 << 63)}, {"flags", ArrayOf(true, false)},
		{"none", ArrayOf[string]()}, {"deep", nested(t, ArrayOf[int16](1), nested(t, ArrayOf("x"), ArrayOf[bool]()))},
	}
}

func sampleWeights() []one {
	q := make([]byte, 4*34)
	for i := range q {
		q[i] = byte(7 * i)
	}
	for i := 1; i < len(q); i += 34 {
		q[i] = 0x2c // scales of 2⁻⁴ and a bit
	}
	return []one{
		{"norm", quant.F32, tensor.Shape{3}, []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x80, 1, 0, 0xc0, 0xff}},
		{"w", quant.Q8_0, tensor.Shape{2, 64}, q},
		{"half", quant.F16, tensor.Shape{1, 2, 1}, []byte{0, 0x3c, 0, 0xc0}},
		{"nothing", quant.Q4_K, tensor.Shape{3, 0}, nil},
		{"scalar", quant.BF16, tensor.Shape{}, []byte{0x80, 0x3f}},
	}
}

func sample(t testing.TB) []byte { return encoded(t, sampleMetadata(t), sampleWeights()...) }

func TestCanonicalFile(t *testing.T) {
	got := encoded(t, []Pair{{"k", Of("é")}, {"n", ArrayOf[uint16](1, 2)}}, one{"w", quant.F16, tensor.Shape{2, 3}, []byte("abcdefghijkl")}, one{"b", quant.F32, tensor.Shape{1}, []byte("mnop")})
	want := "GGUF\x03\x00\x00\x00" + "\x02\x00\x00\x00\x00\x00\x00\x00" + "\x02\x00\x00\x00\x00\x00\x00\x00" +
		"\x01\x00\x00\x00\x00\x00\x00\x00k" + "\x08\x00\x00\x00" + "\x02\x00\x00\x00\x00\x00\x00\x00é" +
		"\x01\x00\x00\x00\x00\x00\x00\x00n" + "\x09\x00\x00\x00" + "\x02\x00\x00\x00" + "\x02\x00\x00\x00\x00\x00\x00\x00" + "\x01\x00\x02\x00" +
		"\x01\x00\x00\x00\x00\x00\x00\x00w" + "\x02\x00\x00\x00" + "\x03\x00\x00\x00\x00\x00\x00\x00" + "\x02\x00\x00\x00\x00\x00\x00\x00" + "\x01\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x00" +
		"\x01\x00\x00\x00\x00\x00\x00\x00b" + "\x01\x00\x00\x00" + "\x01\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00" + "\x20\x00\x00\x00\x00\x00\x00\x00"
	want += strings.Repeat("\x00", (32-len(want)%32)%32)
	want += "abcdefghijkl" + strings.Repeat("\x00", 20) + "mnop" + strings.Repeat("\x00", 28)
	if string(got) != want {
		t.Fatalf("got %q\nwant %q", got, want)
	}
}

func TestValues(t *testing.T) {
	f, err := open(sample(t))
	if err != nil {
		t.Fatal(err)
	}
	check := func(got, want any, err error) {
		t.Helper()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, want %v (%v)", got, want, err)
		}
	}
	text, err := f.Text("general.architecture")
	check(text, "llama", err)
	n, err := f.Uint("block_count")
	check(n, uint64(3), err)
	n, err = f.Uint("most")
	check(n, uint64(math.MaxUint64), err)
	x, err := f.Float("theta")
	check(x, 1e4, err)
	x, err = f.Float("eps")
	check(x, 1e-5, err)
	is, err := f.Bool("add_bos")
	check(is, true, err)
	texts, err := f.Texts("tokens")
	check(texts, []string{"a", "", "é", "\xff"}, err)
	texts, err = f.Texts("none")
	check(texts, []string{}, err)
	floats, err := f.Floats("scores")
	check(floats, []float64{0.5, -1}, err)
	ints, err := f.Ints("types")
	check(ints, []int64{1, -2, 3}, err)
	ints, err = f.Ints("bytes")
	check(ints, []int64{0, 255}, err)
	check(f.Has("tokens"), true, nil)
	check(f.Has("Tokens"), false, nil)
	check(fmt.Sprint(f.Metadata[7].Data, f.Metadata[1].Data, f.Metadata[14].Data), "array of 4 × string uint32 array of 2 × array", nil)

	for _, ask := range []struct {
		key, want string
		get       func(string) error
	}{
		{"none", "is of type array of 0 × string where an array of integers is wanted", func(k string) error { _, err := f.Ints(k); return err }},
		{"large", "where an array of integers is wanted", func(k string) error { _, err := f.Ints(k); return err }},
		{"flags", "array of 2 × bool where an array of integers", func(k string) error { _, err := f.Ints(k); return err }},
		{"types", "where an array of floats is wanted", func(k string) error { _, err := f.Floats(k); return err }},
		{"types", "where an array of strings is wanted", func(k string) error { _, err := f.Texts(k); return err }},
		{"eps", "float64 where an array of strings is wanted", func(k string) error { _, err := f.Texts(k); return err }},
		{"tokens", "where a string is wanted", func(k string) error { _, err := f.Text(k); return err }},
		{"least", "int8 where an integer from 0 on is wanted", func(k string) error { _, err := f.Uint(k); return err }},
		{"add_bos", "bool where an integer", func(k string) error { _, err := f.Uint(k); return err }},
		{"block_count", "uint32 where a float is wanted", func(k string) error { _, err := f.Float(k); return err }},
		{"block_count", "uint32 where a bool is wanted", func(k string) error { _, err := f.Bool(k); return err }},
	} {
		if err := ask.get(ask.key); err == nil || !strings.Contains(err.Error(), ask.want) || !strings.Contains(err.Error(), ask.key) {
			t.Errorf("%s: %v, want %q", ask.key, err, ask.want)
		}
		if err := ask.get("missing"); !errors.Is(err, ErrNoKey) {
			t.Errorf("a missing key: %v", err)
		}
	}
	if _, err := Nested(ArrayOf[int8](), Of("x")); err == nil || !strings.Contains(err.Error(), "element 1 is a string, no array") {
		t.Errorf("a string in arrays: %v", err)
	}
}

func TestWeights(t *testing.T) {
	f, err := open(sample(t))
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range sampleWeights() {
		x, ok := f.Find(w.name)
		if !ok || x.Name != f.Tensors[i].Name || x.Type != w.typ || !x.Shape.Equal(w.shape) || x.At%32 != 0 {
			t.Errorf("%s: %+v", w.name, x)
		}
		if b, err := f.Packed(x); err != nil || !bytes.Equal(b, w.blocks) {
			t.Errorf("%s: %x (%v)", w.name, b, err)
		}
		got, err := f.Float32(x)
		if err != nil || got.Type != tensor.Float32 || !got.Shape.Equal(w.shape) {
			t.Fatalf("%s: %v (%v)", w.name, got, err)
		}
		want := make([]float32, w.shape.Elements())
		w.typ.Decode(want, w.blocks)
		if !got.Equal(tensor.Must(tensor.From(w.shape, want))) {
			t.Errorf("%s: %v, want %v", w.name, tensor.Of[float32](got), want)
		}
	}
	if _, ok := f.Find("W"); ok {
		t.Error("a name that is not there is found")
	}
	w, _ := f.Find("w")
	for _, bend := range []func(*Tensor){
		func(x *Tensor) { x.Bytes *= 2 }, func(x *Tensor) { x.At += 32 }, func(x *Tensor) { x.Name = "norm" },
		func(x *Tensor) { x.Shape = tensor.Shape{128} }, func(x *Tensor) { x.Type = quant.Q4_0 }, func(x *Tensor) { *x = Tensor{} },
	} {
		x := w
		bend(&x)
		if _, err := f.Packed(x); err == nil || !strings.Contains(err.Error(), "none of this file") {
			t.Errorf("%+v: %v", x, err)
		}
		if _, err := f.Float32(x); err == nil {
			t.Errorf("%+v is decoded", x)
		}
	}
}

// A scale that is not finite is told by its block, however many pieces the weight is decoded in.
func TestDamagedWeights(t *testing.T) {
	blocks := make([]byte, 3*pieceBytes/18*18)
	bad := 2 * (pieceBytes / 18)
	blocks[18*bad+18+1] = 0x7c
	b := encoded(t, nil, one{"w", quant.Q4_0, tensor.Shape{len(blocks) / 18 * 32}, blocks})
	f, err := open(b)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Float32(f.Tensors[0])
	if want := fmt.Sprintf(`tensor "w", from block %d on: a scale of block 1 is not finite`, bad); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	if got, err := f.Packed(f.Tensors[0]); err != nil || !bytes.Equal(got, blocks) {
		t.Errorf("its blocks: %v", err)
	}
}

var types = quant.Types

// drawPlain draws a value, or an array, of a type.
func drawPlain[T Plain](t *rapid.T, g *rapid.Generator[T]) Value {
	if rapid.Bool().Draw(t, "array") {
		return ArrayOf(rapid.SliceOfN(g, 0, 5).Draw(t, "elements")...)
	}
	return Of(g.Draw(t, "value"))
}

func drawValue(t *rapid.T, depth int) Value {
	switch rapid.IntRange(0, 12).Draw(t, "type") {
	case 0:
		return drawPlain(t, rapid.Uint8())
	case 1:
		return drawPlain(t, rapid.Int8())
	case 2:
		return drawPlain(t, rapid.Uint16())
	case 3:
		return drawPlain(t, rapid.Int16())
	case 4:
		return drawPlain(t, rapid.Uint32())
	case 5:
		return drawPlain(t, rapid.Int32())
	case 6:
		return drawPlain(t, rapid.Uint64())
	case 7:
		return drawPlain(t, rapid.Int64())
	case 8:
		return drawPlain(t, rapid.Float32())
	case 9:
		return drawPlain(t, rapid.Float64())
	case 10:
		return drawPlain(t, rapid.Bool())
	case 11:
		if depth == MaxDepth-1 {
			return ArrayOf[int8]()
		}
		var arrays []Value
		for range rapid.IntRange(0, 3).Draw(t, "arrays") {
			if v := drawValue(t, depth+1); v.typ == typeArray {
				arrays = append(arrays, v)
			}
		}
		v, err := Nested(arrays...)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	return drawPlain(t, rapid.StringN(0, 12, 40))
}

func TestReadingBackChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var metadata []Pair
		for _, key := range rapid.SliceOfNDistinct(rapid.StringN(1, 12, 40), 0, 6, rapid.ID).Draw(t, "keys") {
			metadata = append(metadata, Pair{key, drawValue(t, 0)})
		}
		if rapid.Bool().Draw(t, "aligned") {
			metadata = append(metadata, Pair{alignKey, Of(uint32(1) << rapid.IntRange(0, 8).Draw(t, "align"))})
		}
		var weights []Weight
		var blocks [][]byte
		for _, name := range rapid.SliceOfNDistinct(rapid.StringN(1, 12, MaxName), 0, 6, rapid.ID).Draw(t, "names") {
			typ := rapid.SampledFrom(types).Draw(t, "type")
			shape := tensor.Shape(rapid.SliceOfN(rapid.IntRange(0, 3), 0, MaxRank).Draw(t, "shape"))
			if n, _ := typ.Block(); len(shape) > 0 {
				shape[len(shape)-1] *= n
			} else if n > 1 {
				shape = tensor.Shape{n}
			}
			size, err := typ.Size(shape)
			if err != nil {
				t.Fatal(err)
			}
			b := bytes.Repeat([]byte{rapid.Byte().Draw(t, "byte")}, int(size))
			blocks, weights = append(blocks, b), append(weights, Weight{name, typ, shape, bytes.NewReader(b)})
		}
		var b bytes.Buffer
		if err := Write(&b, metadata, weights); err != nil {
			t.Fatal(err)
		}
		f, err := open(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(f.Metadata, metadata) || len(f.Tensors) != len(weights) {
			t.Fatalf("wrote %v, read %v", metadata, f.Metadata)
		}
		for i, w := range weights {
			got := f.Tensors[i]
			packed, err := f.Packed(got)
			if err != nil || got.Name != w.Name || got.Type != w.Type || !got.Shape.Equal(w.Shape) || !bytes.Equal(packed, blocks[i]) || got.At%f.Align != 0 {
				t.Fatalf("wrote %+v, read %+v (%v)", w, got, err)
			}
		}
		if again := rewritten(t, f); !bytes.Equal(again, b.Bytes()) {
			t.Fatal("what was read is written in other bytes")
		}
	})
}

// rewritten writes what a file holds.
func rewritten(t rapid.TB, f *File) []byte {
	var weights []Weight
	for _, x := range f.Tensors {
		weights = append(weights, Weight{x.Name, x.Type, x.Shape, io.NewSectionReader(f.src, x.At, x.Bytes)})
	}
	var b bytes.Buffer
	if err := Write(&b, f.Metadata, weights); err != nil {
		t.Fatalf("what was read is not written: %v", err)
	}
	return b.Bytes()
}

// consistent reads a file, all its values and weights; what is read must survive being written.
func consistent(t testing.TB, b []byte) bool {
	f, err := open(b)
	if err != nil {
		return false
	}
	for _, p := range f.Metadata {
		for _, get := range []func(string) error{
			func(k string) error { _, err := f.Text(k); return err }, func(k string) error { _, err := f.Uint(k); return err },
			func(k string) error { _, err := f.Float(k); return err }, func(k string) error { _, err := f.Bool(k); return err },
			func(k string) error { _, err := f.Texts(k); return err }, func(k string) error { _, err := f.Ints(k); return err },
			func(k string) error { _, err := f.Floats(k); return err },
		} {
			if err := get(p.Key); errors.Is(err, errChanged) || errors.Is(err, ErrNoKey) {
				t.Fatalf("%q of %v: %v", p.Key, p.Data, err)
			}
		}
	}
	for _, x := range f.Tensors {
		packed, err := f.Packed(x)
		if err != nil {
			t.Fatal(err)
		}
		got, err := f.Float32(x)
		if (err == nil) != (x.Type.Check(packed) == nil) || err == nil && got.Len() != x.Shape.Elements() {
			t.Fatalf("%+v: %v", x, err)
		}
		stored, e := f.Stored(x)
		if (e == nil) != (err == nil) || e == nil && int64(len(stored.Bytes())) != x.Bytes {
			t.Fatalf("%+v: %v", x, e)
		}
	}
	again, err := open(rewritten(t, f))
	if err != nil || !slices.Equal(again.Metadata, f.Metadata) || len(again.Tensors) != len(f.Tensors) {
		t.Fatalf("%q: %v", b, err)
	}
	return true
}

func TestTruncatedFilesAreRefused(t *testing.T) {
	b := sample(t)
	f, err := open(b)
	if err != nil {
		t.Fatal(err)
	}
	last := f.Tensors[len(f.Tensors)-1]
	for n := range last.At + last.Bytes { // what follows is padding
		if _, err := open(b[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes are read", n, len(b))
		}
	}
	if !consistent(t, b[:last.At+last.Bytes]) {
		t.Error("a file without padding at its end is refused")
	}
	if _, err := Read(bytes.NewReader(b[:100]), int64(len(b))); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a file shorter than its size: %v", err)
	}
}

func TestFlippedBitsAreRefusedOrReadConsistently(t *testing.T) {
	b := sample(t)
	for i := range 8 * len(b) {
		bent := bytes.Clone(b)
		bent[i/8] ^= 1 << (i % 8)
		consistent(t, bent)
	}
}

// shifting is a file of which every read after the first gives zeros or ones.
type shifting struct {
	b     []byte
	reads int
	then  byte
}

func (s *shifting) ReadAt(p []byte, at int64) (int, error) {
	n := copy(p, s.b[at:])
	if s.reads++; s.reads > 1 {
		for i := range p[:n] {
			p[i] = s.then
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// A file that changes while it is read gives errors, or values, but no panic.
func TestFilesThatChange(t *testing.T) {
	for _, then := range []byte{0, 1, 3, 9, 255} {
		b := sample(t)
		f, err := Read(&shifting{b: b, then: then}, int64(len(b)))
		if err != nil {
			continue
		}
		failed := 0
		for _, p := range f.Metadata {
			_ = p.Data.String()
			for _, get := range []func(string) error{
				func(k string) error { _, err := f.Text(k); return err }, func(k string) error { _, err := f.Texts(k); return err },
				func(k string) error { _, err := f.Ints(k); return err }, func(k string) error { _, err := f.Floats(k); return err },
			} {
				if errors.Is(get(p.Key), errChanged) {
					failed++
				}
			}
		}
		if failed == 0 && then == 255 {
			t.Errorf("zeros and ones for values: nothing fails")
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(sample(f))
	f.Add(encoded(f, nil))
	f.Add(encoded(f, []Pair{{alignKey, Of(uint32(8))}}, one{"w", quant.Q4_0, tensor.Shape{32}, make([]byte, 18)}))
	f.Fuzz(func(t *testing.T, b []byte) {
		got := memory.Allocated(func() { _, _ = open(b) })
		if got > int64(len(b))+memory.Slack {
			t.Fatalf("%d bytes took %d bytes of memory", len(b), got)
		}
		consistent(t, b)
	})
}

// TestMemory counts everything allocated, so the peak is below it.
func TestMemory(t *testing.T) {
	var pairs []Pair
	for i := range MaxPairs {
		pairs = append(pairs, Pair{fmt.Sprint(i), Of(uint8(1))})
	}
	var weights []one
	for i := range MaxTensors {
		weights = append(weights, one{fmt.Sprint(i), quant.F32, tensor.Shape{1, 1, 1, 0}, nil})
	}
	tokens := make([]string, 1<<18)
	for i := range tokens {
		tokens[i] = fmt.Sprintf("token %d", i)
	}
	large := strings.Repeat("x", MaxValue-8)
	most := []Pair{{"a", Of(large)}, {"b", Of(large)}, {"c", Of(large)}, {"d", ArrayOf(tokens...)}}
	cut := func(b []byte) []byte { return b[:len(b)/2] }
	for name, c := range map[string]struct {
		file []byte
		ok   bool
	}{
		"most metadata":       {encoded(t, pairs), true},
		"most tensors":        {encoded(t, nil, weights...), true},
		"a tokenizer":         {encoded(t, []Pair{{"tokens", ArrayOf(tokens...)}}), true},
		"largest values":      {encoded(t, most), true},
		"metadata, cut":       {cut(encoded(t, pairs)), false},
		"many empty elements": {encoded(t, []Pair{{"a", ArrayOf(make([]string, MaxElements-2)...)}})[:20<<10], false},
		"largest array":       {encoded(t, []Pair{{"a", ArrayOf(make([]uint64, MaxElements-2)...)}}), true},
	} {
		var f *File
		var err error
		got := memory.Allocated(func() { f, err = open(c.file) })
		t.Logf("%s: %.1f MiB file, %.1f MiB memory, %v", name, float64(len(c.file))/(1<<20), float64(got)/(1<<20), err)
		if got > int64(len(c.file))+memory.Slack || (err == nil) != c.ok {
			t.Errorf("%s: %d bytes of file took %d bytes of memory (%v)", name, len(c.file), got, err)
		}
		if name == "a tokenizer" {
			if back, err := f.Texts("tokens"); err != nil || !slices.Equal(back, tokens) {
				t.Errorf("tokens: %v", err)
			}
		}
	}
}

func BenchmarkRead(b *testing.B) {
	tokens := make([]string, 1<<18)
	for i := range tokens {
		tokens[i] = fmt.Sprintf("token %d", i)
	}
	file := encoded(b, []Pair{{"tokens", ArrayOf(tokens...)}})
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := open(file); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFloat32(b *testing.B) {
	blocks := make([]byte, 1<<20*18)
	f, err := open(encoded(b, nil, one{"w", quant.Q4_0, tensor.Shape{1 << 10, 1 << 15}, blocks}))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(4 * f.Tensors[0].Shape.Elements())) // of float32
	for b.Loop() {
		if _, err := f.Float32(f.Tensors[0]); err != nil {
			b.Fatal(err)
		}
	}
}
