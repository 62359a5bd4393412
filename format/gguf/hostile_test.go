package gguf

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/quant"
	"github.com/tally-network/tally/core/tensor"
)

// file spells out any file: numbers of 32 bits (uint32) and 64 (uint64 and int), strings with their
// length, bytes as they are.
func file(parts ...any) (b []byte) {
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			b = binary.LittleEndian.AppendUint64(b, uint64(p))
		case []byte:
			b = append(b, p...)
		default:
			b = appendPlain(b, p)
		}
	}
	return b
}

// headed is a file of version 3 that announces so many tensors and metadata.
func headed(tensors, pairs int, parts ...any) []byte {
	return append(file([]byte(magic), uint32(3), tensors, pairs), file(parts...)...)
}

// weighed is a file of the given weights without metadata, with so many bytes for them.
func weighed(data int, infos ...[]byte) []byte {
	b := headed(len(infos), 0)
	for _, x := range infos {
		b = append(b, x...)
	}
	return append(b, make([]byte, int(aligned(int64(len(b)), defaultAlign))-len(b)+data)...)
}

// told is what a header says of a weight, with axes as files have them.
func told(name string, typ uint32, offset int, axes ...any) []byte {
	return append(file(name, uint32(len(axes))), append(file(axes...), file(typ, offset)...)...)
}

func TestReadRefuses(t *testing.T) {
	array := uint32(typeArray)
	deep := []byte{}
	for range MaxDepth {
		deep = append(deep, file(array, 1)...)
	}
	text := uint32(typeString)
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"empty":                {nil, "no GGUF file"},
		"another format":       {[]byte("PK\x03\x04 and more"), "a model of another format has to be converted"},
		"only magic":           {[]byte(magic), "ends inside its header"},
		"big-endian":           {[]byte("GGUF\x00\x00\x00\x03\x00\x00\x00\x00"), "big-endian: convert it to little-endian"},
		"version 1":            {file([]byte(magic), uint32(1), 0, 0), "version 1 of GGUF: versions 2 and 3 are read"},
		"version 4":            {file([]byte(magic), uint32(4), 0, 0), "version 4"},
		"version 0":            {file([]byte(magic), uint32(0), 0, 0), "version 0"},
		"many tensors":         {headed(MaxTensors+1, 0), "65537 tensors"},
		"many metadata":        {headed(0, -1), "18446744073709551615 metadata"},
		"no pairs":             {headed(0, 1), "metadata 1 of 1"},
		"no infos":             {headed(1, 0), "tensor 1 of 1"},
		"no key":               {headed(0, 1, "", uint32(0), []byte{1}), "a name of 0 bytes"},
		"long key":             {headed(0, 1, strings.Repeat("k", MaxKey+1), uint32(0), []byte{1}), "a name of 257 bytes, which has 1 to 256"},
		"key of 2^64-1":        {headed(0, 1, -1), "a name of 18446744073709551615 bytes"},
		"key twice":            {headed(0, 2, "k", uint32(0), []byte{1}, "k", uint32(0), []byte{1}), `metadata "k" is given twice`},
		"unknown type":         {headed(0, 1, "k", uint32(13), []byte{1}), `metadata 1 of 1, "k": a value of the unknown type 13`},
		"type of 2^32-1":       {headed(0, 1, "k", ^uint32(0), []byte{1}), "unknown type 4294967295"},
		"bool of 2":            {headed(0, 1, "k", uint32(typeBool), []byte{2}), "a bool is 2"},
		"bool of 2 in array":   {headed(0, 1, "k", array, uint32(typeBool), 2, []byte{1, 2}), "a bool is 2"},
		"long text":            {headed(0, 1, "k", text, 100, []byte("x")), "ends inside its header"},
		"text of 2^64-1":       {headed(0, 1, "k", text, -1, []byte("x")), "ends inside its header"},
		"text over its limit":  {headed(0, 1, "k", text, MaxValue, make([]byte, MaxValue)), "a value of 16777224 bytes, limit 16777216"},
		"array past the end":   {headed(0, 1, "k", array, uint32(typeUint64), 2, 1), "ends inside its header"},
		"array of 2^61":        {headed(0, 1, "k", array, uint32(typeUint64), 1<<61, 1), "an array of 2305843009213693952 elements, limit 2097152"},
		"texts past the end":   {headed(0, 1, "k", array, text, 3, "a", "b"), "ends inside its header"},
		"array of unknown":     {headed(0, 1, "k", array, uint32(13), 0), "unknown type 13"},
		"deep arrays":          {headed(0, 1, "k", array, deep, array, 0), "more than 4 deep"},
		"alignment of int32":   {headed(0, 1, alignKey, uint32(typeInt32), uint32(32)), "general.alignment is of type int32, not uint32"},
		"alignment as text":    {headed(0, 1, alignKey, text, "32"), "is of type string"},
		"alignment of 0":       {headed(0, 1, alignKey, uint32(typeUint32), uint32(0)), "no power of two"},
		"alignment of 24":      {headed(0, 1, alignKey, uint32(typeUint32), uint32(24)), "is 24, no power of two"},
		"alignment of 2^31":    {headed(0, 1, alignKey, uint32(typeUint32), uint32(1)<<31), "up to 65536"},
		"no name":              {weighed(4, told("", 0, 0, 1)), "a name of 0 bytes"},
		"long name":            {weighed(4, told(strings.Repeat("n", MaxName+1), 0, 0, 1)), "a name of 65 bytes"},
		"name twice":           {weighed(64, told("w", 0, 0, 1), told("w", 0, 32, 1)), `tensor "w" is given twice`},
		"many axes":            {weighed(4, told("w", 0, 0, 1, 1, 1, 1, 1)), `tensor 1 of 1, "w": 5 axes, limit 4`},
		"axis of 2^63":         {weighed(4, told("w", 0, 0, -1<<63)), "an axis of 9223372036854775808 elements"},
		"product wraps":        {weighed(4, told("w", 0, 0, 1<<40, 1<<24)), "more than 2^40 elements"},
		"zero hides huge":      {weighed(4, told("w", 0, 0, 1<<40, 1<<40, 0)), "more than 2^40 elements"},
		"type that is no type": {weighed(4, told("w", 99, 0, 1)), `tensor 1 of 1, "w": weights of the unknown type 99`},
		"type of ggml":         {weighed(84, told("w", 10, 0, 256)), "weights of type Q2_K: convert them to one of"},
		"part of a block":      {weighed(36, told("w", 2, 0, 33)), `tensor "w": rows of 33 elements are no blocks of 32`},
		"blocks across rows":   {weighed(36, told("w", 2, 0, 16, 4)), "rows of 16 elements"},
		"short blocks":         {weighed(17, told("w", 2, 0, 32)), `its 18 bytes, 0 bytes after byte 64, reach beyond the file, which has 81`},
		"past the end":         {weighed(32, told("w", 0, 32, 1)), "reach beyond the file"},
		"place of 2^64-32":     {weighed(32, told("w", 0, -32, 1)), "reach beyond the file"},
		"nothing past the end": {weighed(31, told("w", 0, 32, 0)), "reach beyond the file"},
		"not aligned":          {weighed(64, told("w", 0, 16, 1)), "its place, 16, is no multiple of 32"},
		"overlap":              {weighed(96, told("a", 0, 0, 9), told("b", 0, 32, 1)), `tensors "a" and "b" share bytes`},
		"overlap, backwards":   {weighed(96, told("a", 0, 32, 1), told("b", 0, 0, 9)), `tensors "b" and "a" share bytes`},
		"same bytes":           {weighed(96, told("a", 0, 0, 1), told("b", 0, 0, 1)), `share bytes`},
	} {
		f, err := open(c.file)
		if err == nil {
			t.Errorf("%s: read %+v", name, f)
		} else if !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "read GGUF: ") {
			t.Errorf("%s: %v, wanted %q", name, err, c.want)
		}
	}
	if _, err := open(weighed(84, told("w", 10, 0, 256))); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a type of ggml: %v", err)
	}
	if _, err := Read(bytes.NewReader(nil), -1); err == nil {
		t.Error("a file of −1 bytes is read")
	}
}

func TestHeadersOverTheLimit(t *testing.T) {
	var parts []any
	for i := range MaxHeader/MaxValue + 1 {
		parts = append(parts, fmt.Sprint(i), uint32(typeString), MaxValue-8, make([]byte, MaxValue-8))
	}
	if _, err := open(headed(0, len(parts)/4, parts...)); err == nil || !strings.Contains(err.Error(), "the header takes more than 67108864 bytes") {
		t.Error(err)
	}
}

// Files of other writers may have version 2, weights in any order, gaps, and no padding at the end.
func TestReadTakesOtherWriters(t *testing.T) {
	b := weighed(100, told("a", 0, 64, 3, 2), told("b", 1, 0, 1))
	b[4] = 2
	b[128+64] = 1
	f, err := open(b)
	if err != nil {
		t.Fatal(err)
	}
	if a := f.Tensors[0]; f.Version != 2 || a.Name != "a" || !a.Shape.Equal(tensor.Shape{2, 3}) || a.At != 192 || f.Align != 32 {
		t.Fatalf("read %+v", f)
	}
	if !consistent(t, b) {
		t.Error("it cannot be written")
	}
	if f, err := open(headed(0, 0)); err != nil || len(f.Tensors)+len(f.Metadata) > 0 {
		t.Errorf("an empty file: %+v (%v)", f, err)
	}
}

func TestWriteRefuses(t *testing.T) {
	weight := func(name string, typ quant.Type, shape tensor.Shape, blocks int) []Weight {
		return []Weight{{name, typ, shape, bytes.NewReader(make([]byte, blocks))}}
	}
	for name, c := range map[string]struct {
		metadata []Pair
		weights  []Weight
		want     string
	}{
		"no key":       {[]Pair{{"", Of(true)}}, nil, "a name of 0 bytes"},
		"key twice":    {[]Pair{{"k", Of(true)}, {"k", Of(true)}}, nil, "given twice"},
		"empty value":  {[]Pair{{"k", Value{}}, {"l", Of(uint32(1))}}, nil, ""},
		"one no value": {[]Pair{{"k", Value{}}}, weight("w", quant.F32, tensor.Shape{0}, 0), ""},
		"large value":  {[]Pair{{"k", Of(strings.Repeat("x", MaxValue))}}, nil, "limit 16777216"},
		"alignment":    {[]Pair{{alignKey, Of(uint32(3))}}, nil, "no power of two"},
		"no name":      {nil, weight("", quant.F32, nil, 4), "a name of 0 bytes"},
		"no type":      {nil, weight("w", 10, tensor.Shape{256}, 84), "Q2_K is no type of weights"},
		"no blocks":    {nil, weight("w", quant.Q8_0, tensor.Shape{31}, 34), "no blocks of 32"},
		"many axes":    {nil, weight("w", quant.F32, tensor.Shape{1, 1, 1, 1, 1}, 4), "5 axes"},
		"name twice":   {nil, append(weight("w", quant.F32, nil, 4), weight("w", quant.F32, nil, 4)...), "given twice"},
	} {
		var b bytes.Buffer
		if err := Write(&b, c.metadata, c.weights); err == nil || b.Len() > 0 || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v after %d bytes, want %q", name, err, b.Len(), c.want)
		}
	}
	for name, c := range map[string]struct {
		blocks int
		want   string
	}{"few bytes": {3, "3 bytes of blocks, F32[1] takes 4"}, "many bytes": {5, "more bytes of blocks than the 4"}} {
		if err := Write(&bytes.Buffer{}, nil, weight("w", quant.F32, tensor.Shape{1}, c.blocks)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestRealFile reads all that a file has, and tells it. Set TALLY_GGUF to the name of one.
func TestRealFile(t *testing.T) {
	name := os.Getenv("TALLY_GGUF")
	if name == "" {
		t.Skip("TALLY_GGUF names no .gguf file")
	}
	src, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	info, err := src.Stat()
	if err != nil {
		t.Fatal(err)
	}
	f, err := Read(src, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range f.Metadata {
		t.Logf("metadata %s: %v, %d bytes, %x", p.Key, p.Data, len(p.Data.raw), sha256.Sum256([]byte(p.Data.raw)))
	}
	for _, x := range f.Tensors {
		values, err := f.Float32(x)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("tensor %s: %v%v at %d, %d bytes, %x", x.Name, x.Type, x.Shape, x.At, x.Bytes, sha256.Sum256(values.Bytes()))
	}
	whole := make([]byte, info.Size())
	if _, err := src.ReadAt(whole, 0); err != nil {
		t.Fatal(err)
	}
	t.Logf("written again in the same bytes: %v", bytes.Equal(rewritten(t, f), whole))
}
