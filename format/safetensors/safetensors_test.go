package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tally-network/tally/core/tensor"
)

// file spells out a file with any header.
func file(header string, data ...byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

func read(b []byte) (map[string]*tensor.Tensor, map[string]string, error) {
	return Read(bytes.NewReader(b), int64(len(b)), nil)
}

func write(t testing.TB, tensors map[string]*tensor.Tensor, metadata map[string]string) []byte {
	var b bytes.Buffer
	if err := Write(&b, tensors, metadata); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func sample() map[string]*tensor.Tensor {
	return map[string]*tensor.Tensor{
		"p/w":     tensor.Must(tensor.From(tensor.Shape{2, 2}, []float32{1, 2, 3, -4})),
		"p/<b>&":  tensor.Must(tensor.From(tensor.Shape{3}, []int32{1, -2, 3})),
		"step":    tensor.Scalar(int64(7)),
		"mask":    tensor.Must(tensor.Bools(tensor.Shape{3}, true, false, true)),
		"nothing": tensor.Must(tensor.New(tensor.Float32, tensor.Shape{0, 4})),
	}
}

// Every element type has a name, and its tensors come in the order in which the
// reference implementation writes them.
func TestEveryType(t *testing.T) {
	tensors := map[string]*tensor.Tensor{}
	for _, typ := range tensor.DTypes {
		x := tensor.Must(tensor.New(typ, tensor.Shape{2}))
		x.Set(1, 1)
		tensors[typ.String()] = x
	}
	b := write(t, tensors, nil)
	got, _, err := read(b)
	if err != nil || !maps.EqualFunc(got, tensors, (*tensor.Tensor).Equal) {
		t.Fatalf("got %v (%v)", got, err)
	}
	var order []string
	for _, m := range regexp.MustCompile(`"dtype":"(\w+)"`).FindAllSubmatch(b, -1) {
		order = append(order, string(m[1]))
	}
	if s := strings.Join(order, " "); s != "U64 I64 F64 F32 U32 I32 BF16 F16 U16 I16 I8 U8 BOOL" {
		t.Errorf("written as %s", s)
	}
	nan, _, err := read(file(`{"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}}`, 0xff, 0xff, 0, 0x3c))
	if err != nil || nan["a"].At(0) != 0x7e00 || nan["a"].At(1) != 0x3c00 {
		t.Errorf("a NaN that is not canonical: %v (%v)", nan["a"], err)
	}
}

func TestCanonicalFile(t *testing.T) {
	got := write(t, sample(), map[string]string{"z": "1", "a": "é"})
	header := `{"__metadata__":{"a":"é","z":"1"},` +
		`"step":{"dtype":"I64","shape":[],"data_offsets":[0,8]},` +
		`"nothing":{"dtype":"F32","shape":[0,4],"data_offsets":[8,8]},` +
		`"p/w":{"dtype":"F32","shape":[2,2],"data_offsets":[8,24]},` +
		`"p/<b>&":{"dtype":"I32","shape":[3],"data_offsets":[24,36]},` +
		`"mask":{"dtype":"BOOL","shape":[3],"data_offsets":[36,39]}}`
	header += strings.Repeat(" ", (8-len(header)%8)%8)
	if want := file(header); !bytes.HasPrefix(got, want) || len(got) != len(want)+39 {
		t.Fatalf("got %q\nwant %q", got, want)
	}
}

func TestReadingBackChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tensors := map[string]*tensor.Tensor{}
		for _, name := range rapid.SliceOfDistinct(rapid.StringN(0, 12, 40), rapid.ID).Draw(t, "names") {
			if name == metadataKey {
				continue
			}
			typ := rapid.SampledFrom(tensor.DTypes).Draw(t, "type")
			x := tensor.Must(tensor.New(typ, rapid.SliceOfN(rapid.IntRange(0, 4), 0, 4).Draw(t, "shape")))
			for i := range x.Len() {
				x.Set(i, rapid.Uint64Max(1).Draw(t, "v")<<rapid.SampledFrom([]int{0, 0, 22, 30}).Draw(t, "by")*tensor.Word(min(1, typ.Size()-1)))
			}
			tensors[name] = x
		}
		metadata := rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "metadata")
		var b bytes.Buffer
		if err := Write(&b, tensors, metadata); err != nil {
			t.Fatal(err)
		}
		got, meta, err := read(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if !maps.EqualFunc(got, tensors, (*tensor.Tensor).Equal) || !maps.Equal(meta, metadata) {
			t.Fatalf("wrote %v %v, read %v %v", tensors, metadata, got, meta)
		}
		var again bytes.Buffer
		if err := Write(&again, got, meta); err != nil || !bytes.Equal(again.Bytes(), b.Bytes()) {
			t.Fatalf("what was read is written in other bytes (%v)", err)
		}
		base := 8 + int(binary.LittleEndian.Uint64(b.Bytes()))
		if base%align != 0 {
			t.Fatalf("elements start at byte %d", base)
		}
	})
}

func TestReadTakesOtherWriters(t *testing.T) {
	// Any order of keys and tensors, spaces anywhere, unaligned elements.
	b := file(`{ "b" : {"shape":[1],"data_offsets":[1,5],"dtype":"F32"}, "a":{"data_offsets":[0,1],"dtype":"BOOL","shape":[]} }  `, 1, 1, 0, 0xc0, 0xff)
	got, meta, err := read(b)
	if err != nil {
		t.Fatal(err)
	}
	nan := tensor.Must(tensor.From(tensor.Shape{1}, []float32{tensor.AsF32(0x7fc00000)}))
	if !got["b"].Equal(nan) || !got["a"].Equal(tensor.Must(tensor.Bools(nil, true))) || meta != nil {
		t.Fatalf("got %v %v", got, meta)
	}
	if got, _, err := read(file(`{}`)); err != nil || len(got) != 0 {
		t.Fatalf("no tensors: %v %v", got, err)
	}
}

func TestReadRefuses(t *testing.T) {
	one := func(dtype, shape, offsets string) string {
		return fmt.Sprintf(`{"a":{"dtype":%s,"shape":%s,"data_offsets":%s}}`, dtype, shape, offsets)
	}
	f32 := `"dtype":"F32"`
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"empty":              {nil, "0 bytes hold no header"},
		"short":              {[]byte{2, 0, 0, 0, 0, 0, 0}, "hold no header"},
		"header past end":    {binary.LittleEndian.AppendUint64(nil, 100), "the header has 100 bytes"},
		"header of 2^63":     {binary.LittleEndian.AppendUint64(nil, 1<<63), "limit 16777216"},
		"header of 2^64-1":   {binary.LittleEndian.AppendUint64(nil, 1<<64-1), "limit 16777216"},
		"no object":          {file(`[]`), "not a JSON object"},
		"space first":        {file(` {}`), "not a JSON object"},
		"not UTF-8":          {file("{\"\xff\":{}}"), "in UTF-8"},
		"not JSON":           {file(`{"a"`), "header"},
		"cut":                {file(`{`), `the header ends`},
		"two objects":        {file(`{}{}`), "only spaces"},
		"other padding":      {file("{}\n"), "only spaces"},
		"no comma":           {file(`{"a":{} "b":{}}`), "header"},
		"nested":             {file(`{"a":` + strings.Repeat(`[`, 100000) + `}`), `'[' at byte 5 where '{' is wanted`},
		"no fields":          {file(`{"a":{}}`), "are wanted"},
		"no offsets":         {file(`{"a":{` + f32 + `,"shape":[]}}`), "are wanted"},
		"field twice":        {file(`{"a":{` + f32 + `,` + f32 + `}}`), `"dtype": given twice`},
		"unknown field":      {file(`{"a":{"x":1}}`), "unknown key"},
		"null":               {file(`{"a":null}`), `'{' is wanted`},
		"tensor twice":       {file(`{"a":{` + f32 + `,"shape":[0],"data_offsets":[0,0]},"\u0061":{}}`), `"a": given twice`},
		"other type":         {file(one(`"F4"`, `[1]`, `[0,8]`), make([]byte, 8)...), `element type "F4", convert it`},
		"type is no text":    {file(one(`1`, `[1]`, `[0,4]`), make([]byte, 4)...), `'"' is wanted`},
		"negative extent":    {file(one(`"F32"`, `[-1]`, `[0,4]`), make([]byte, 4)...), `no whole number`},
		"fraction":           {file(one(`"F32"`, `[1.0]`, `[0,4]`), make([]byte, 4)...), `']' is wanted`},
		"exponent":           {file(one(`"F32"`, `[1e0]`, `[0,4]`), make([]byte, 4)...), `']' is wanted`},
		"extent is text":     {file(one(`"F32"`, `["1"]`, `[0,4]`), make([]byte, 4)...), `no whole number`},
		"extent 2^63":        {file(one(`"F32"`, `[9223372036854775808]`, `[0,4]`), make([]byte, 4)...), `is above 1099511627776`},
		"product wraps":      {file(one(`"F32"`, `[1099511627776,16777216]`, `[0,0]`)), "more than 2^40"},
		"zero hides huge":    {file(one(`"F32"`, `[0,1099511627776,1099511627776]`, `[0,0]`)), "more than 2^40"},
		"many axes":          {file(one(`"F32"`, `[1,1,1,1,1,1,1,1,1]`, `[0,4]`), make([]byte, 4)...), "more than 8"},
		"trailing comma":     {file(one(`"F32"`, `[1,]`, `[0,4]`), make([]byte, 4)...), "header"},
		"NUL":                {file(one(`"F32"`, "[\x001]", `[0,4]`), make([]byte, 4)...), "no whole number"},
		"leading zero":       {file(one(`"F32"`, `[01]`, `[0,4]`), make([]byte, 4)...), "no whole number"},
		"control character":  {file("{\"a\nb\":{}}"), "control character 0x0a"},
		"bad escape":         {file(`{"\x":{}}`), "header"},
		"open text":          {file(`{"a\`), "ends inside a text"},
		"short elements":     {file(one(`"F32"`, `[2]`, `[0,4]`), make([]byte, 4)...), "takes 8 bytes, data_offsets give 4"},
		"long elements":      {file(one(`"BOOL"`, `[]`, `[0,2]`), make([]byte, 2)...), "takes 1 bytes, data_offsets give 2"},
		"one offset":         {file(one(`"F32"`, `[1]`, `[4]`), make([]byte, 4)...), "no range"},
		"three offsets":      {file(one(`"F32"`, `[1]`, `[0,2,4]`), make([]byte, 4)...), "more than 2 numbers"},
		"backwards":          {file(one(`"F32"`, `[1]`, `[4,0]`), make([]byte, 4)...), "no range"},
		"past the end":       {file(one(`"F32"`, `[1]`, `[4,8]`), make([]byte, 4)...), `is above 4`},
		"offset 2^64":        {file(one(`"F32"`, `[1]`, `[0,18446744073709551616]`), make([]byte, 4)...), `is above 4`},
		"bytes left over":    {file(one(`"F32"`, `[1]`, `[0,4]`), make([]byte, 5)...), `tensors end at byte 66 and the file at 67`},
		"only bytes":         {file(`{}`, 1), `tensors end at byte 10 and the file at 11`},
		"starts late":        {file(one(`"F32"`, `[1]`, `[1,5]`), make([]byte, 5)...), `start at byte 63, the ones before end at 62`},
		"gap":                {file(`{"a":{`+f32+`,"shape":[1],"data_offsets":[0,4]},"b":{`+f32+`,"shape":[1],"data_offsets":[5,9]}}`, make([]byte, 9)...), `tensor "b": elements start at byte 120, the ones before end at 119`},
		"overlap":            {file(`{"a":{`+f32+`,"shape":[2],"data_offsets":[0,8]},"b":{`+f32+`,"shape":[1],"data_offsets":[4,8]}}`, make([]byte, 8)...), `start at byte 119, the ones before end at 123`},
		"same bytes":         {file(`{"a":{`+f32+`,"shape":[1],"data_offsets":[0,4]},"b":{`+f32+`,"shape":[1],"data_offsets":[0,4]}}`, make([]byte, 4)...), `start at byte 115, the ones before end at 119`},
		"boolean 2":          {file(one(`"BOOL"`, `[1]`, `[0,1]`), 2), `tensor "a": boolean element 0 is 2`},
		"metadata number":    {file(`{"__metadata__":{"a":1}}`), `'"' is wanted`},
		"metadata text":      {file(`{"__metadata__":"a"}`), `'{' is wanted`},
		"metadata twice":     {file(`{"__metadata__":{},"__metadata__":{}}`), "given twice"},
		"metadata key twice": {file(`{"__metadata__":{"a":"1","a":"2"}}`), "given twice"},
	} {
		if got, _, err := read(c.file); err == nil {
			t.Errorf("%s: read %v", name, got)
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, wanted %q", name, err, c.want)
		}
	}
	if _, _, err := read(file(one(`"F8_E5M2"`, `[1]`, `[0,1]`), 0)); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a type of the format: %v", err)
	}
	if _, _, err := Read(bytes.NewReader(write(t, sample(), nil)), 1<<40, nil); err == nil {
		t.Error("a file shorter than its size was read")
	}
}

func TestWriteRefuses(t *testing.T) {
	one := tensor.Scalar(float32(1))
	many := map[string]string{}
	for i := range MaxMetadata + 1 {
		many[fmt.Sprint(i)] = ""
	}
	for name, c := range map[string]struct {
		tensors  map[string]*tensor.Tensor
		metadata map[string]string
	}{
		"reserved name":  {map[string]*tensor.Tensor{"__metadata__": one}, nil},
		"name not UTF-8": {map[string]*tensor.Tensor{"\xff": one}, nil},
		"no tensor":      {map[string]*tensor.Tensor{"a": nil}, nil},
		"metadata":       {nil, map[string]string{"a": "\xff"}},
		"much metadata":  {nil, many},
		"large header":   {nil, map[string]string{"a": strings.Repeat("a", MaxHeader)}},
	} {
		var b bytes.Buffer
		if err := Write(&b, c.tensors, c.metadata); err == nil || b.Len() > 0 {
			t.Errorf("%s: %v after %d bytes", name, err, b.Len())
		}
	}
}

func TestTruncatedFilesAreRefused(t *testing.T) {
	b := write(t, sample(), map[string]string{"k": "v"})
	for n := range b {
		if got, _, err := read(b[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes are read as %v", n, len(b), got)
		}
	}
}

// consistent reads a file; what is read must survive being written.
func consistent(t *testing.T, b []byte) bool {
	tensors, metadata, err := read(b)
	if err != nil {
		return false
	}
	again, meta, err := read(write(t, tensors, metadata))
	if err != nil || !maps.EqualFunc(tensors, again, (*tensor.Tensor).Equal) || !maps.Equal(metadata, meta) {
		t.Fatalf("%q: %v", b, err)
	}
	return true
}

func TestFlippedBitsAreRefusedOrReadConsistently(t *testing.T) {
	b := write(t, sample(), map[string]string{"k": "v"})
	for i := range 8 * len(b) {
		bent := bytes.Clone(b)
		bent[i/8] ^= 1 << (i % 8)
		consistent(t, bent)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(write(f, sample(), map[string]string{"k": "v"}))
	f.Add(file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 0, 0, 0xc0, 0xff))
	f.Add(file(`{}`))
	f.Fuzz(func(t *testing.T, b []byte) { consistent(t, b) })
}

// TestMemory counts everything allocated, so the peak is below it.
func TestMemory(t *testing.T) {
	const MiB = 1 << 20
	var tensors, metadata strings.Builder
	for i := range MaxTensors {
		fmt.Fprintf(&tensors, `,"%d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}`, i)
	}
	for i := range MaxHeader/8 - 100 {
		fmt.Fprintf(&metadata, `,"%x":""`, i)
	}
	for name, c := range map[string]struct {
		file []byte
		ok   bool
	}{
		"most tensors":      {file("{" + tensors.String()[1:] + "}"), true},
		"too many tensors":  {file("{" + tensors.String()[1:] + `,"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}`), false},
		"too much metadata": {file(`{"__metadata__":{` + metadata.String()[1:MaxHeader-1000]), false},
		"long text":         {file(`{"__metadata__":{"a":"` + strings.Repeat("a", MaxHeader-100) + `"}}`), true},
		"long number":       {file(`{"a":{"shape":[` + strings.Repeat("1", MaxHeader-100) + `]}}`), false},
		"many numbers":      {file(`{"a":{"shape":[0` + strings.Repeat(",0", MaxHeader/2-100) + `]}}`), false},
		"elements":          {file(fmt.Sprintf(`{"a":{"dtype":"F32","shape":[%d],"data_offsets":[0,%d]}}`, 8*MiB, 32*MiB), make([]byte, 32*MiB)...), true},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := read(c.file)
		runtime.ReadMemStats(&after)
		got := int64(after.TotalAlloc - before.TotalAlloc)
		t.Logf("%s: %.1f MiB file, %.1f MiB memory, %.80v", name, float64(len(c.file))/MiB, float64(got)/MiB, err)
		if got > int64(len(c.file))+64*MiB || (err == nil) != c.ok {
			t.Errorf("%s: %d bytes of file took %d bytes of memory (%v)", name, len(c.file), got, err)
		}
	}
}

// TestPythonReadsWhatIsWritten exchanges files with the safetensors package,
// where that is installed.
func TestPythonReadsWhatIsWritten(t *testing.T) {
	if err := exec.Command("python3", "-c", "import safetensors, numpy").Run(); err != nil {
		t.Skip("python3 with the safetensors and numpy packages is not installed")
	}
	dir := t.TempDir()
	ours, theirs := filepath.Join(dir, "ours"), filepath.Join(dir, "theirs")
	if err := os.WriteFile(ours, write(t, sample(), map[string]string{"k": "v"}), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("python3", "-c", `
import sys
from safetensors import safe_open
from safetensors.numpy import save_file
with safe_open(sys.argv[1], "numpy") as f:
    tensors = {k: f.get_tensor(k) for k in f.keys()}
    assert f.metadata() == {"k": "v"}, f.metadata()
assert tensors["p/w"].tolist() == [[1, 2], [3, -4]], tensors["p/w"]
assert tensors["step"].tolist() == 7 and tensors["mask"].tolist() == [True, False, True]
save_file(tensors, sys.argv[2], metadata={"k": "v"})
`, ours, theirs).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b, err := os.ReadFile(theirs)
	if err != nil {
		t.Fatal(err)
	}
	tensors, metadata, err := read(b)
	if err != nil || !maps.EqualFunc(tensors, sample(), (*tensor.Tensor).Equal) || metadata["k"] != "v" {
		t.Fatalf("got %v %v (%v)", tensors, metadata, err)
	}
	if mine := write(t, sample(), metadata); !bytes.Equal(b, mine) {
		t.Errorf("the same tensors in other bytes:\n%q\n%q", b, mine)
	}
}

func large() map[string]*tensor.Tensor {
	tensors := map[string]*tensor.Tensor{}
	for i := range 64 {
		t := tensor.Must(tensor.New(tensor.Float32, tensor.Shape{256, 1024}))
		for j := range t.Len() {
			t.Set(j, tensor.F32(float32(j)))
		}
		tensors[fmt.Sprintf("p/block.%d.weight", i)] = t
	}
	return tensors
}

func BenchmarkWrite(b *testing.B) {
	tensors := large()
	buf := bytes.NewBuffer(write(b, tensors, nil))
	b.SetBytes(int64(buf.Len()))
	b.ReportAllocs()
	for b.Loop() {
		buf.Reset()
		if err := Write(buf, tensors, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	file := write(b, large(), nil)
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := read(file); err != nil {
			b.Fatal(err)
		}
	}
}
