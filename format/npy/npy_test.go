package npy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tally-network/tally/core/tensor"
)

// file has the given version, header and elements.
func file(version byte, header string, data ...byte) []byte {
	b := append([]byte(magic), version, 0)
	if version == 1 {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(header)))
	} else {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(header)))
	}
	return append(append(b, header...), data...)
}

func readAll(b []byte) (*tensor.Tensor, error) { return Read(bytes.NewReader(b), int64(len(b)), nil) }

func written(t testing.TB, x *tensor.Tensor) []byte {
	var b bytes.Buffer
	if err := Write(&b, x); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReadingBackChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom(tensor.DTypes).Draw(t, "type")
		shape := rapid.SliceOfN(rapid.IntRange(0, 12), 0, tensor.MaxRank).Draw(t, "shape")
		for i := range shape[min(3, len(shape)):] {
			shape[3+i] = min(1, shape[3+i])
		}
		x := tensor.Must(tensor.New(typ, shape))
		for i := range min(x.Len(), 20) {
			x.Set(i, rapid.Uint64Max(1).Draw(t, "v"))
		}
		var b bytes.Buffer
		if err := Write(&b, x); err != nil {
			t.Fatal(err)
		}
		if (b.Len()-len(x.Bytes()))%64 != 0 {
			t.Fatalf("elements start at byte %d", b.Len()-len(x.Bytes()))
		}
		got, err := readAll(b.Bytes())
		if err != nil || !got.Equal(x) {
			t.Fatalf("wrote %v%v, read %v (%v)", x.Type, x.Shape, got, err)
		}
	})
}

func TestReadTakesOtherWriters(t *testing.T) {
	want := tensor.Must(tensor.From(tensor.Shape{2}, []int16{1, -2}))
	data := []byte{1, 0, 0xfe, 0xff}
	for name, b := range map[string][]byte{
		"version 2":               file(2, "{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }\n", data...),
		"version 3":               file(3, "{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }\n", data...),
		"tight":                   file(1, "{'shape':(2,),'descr':'<i2','fortran_order':False}", data...),
		"wide":                    file(1, "{ \"shape\" : ( 2 , ) , \"descr\" : \"<i2\" , \"fortran_order\" : False , }  \n\n", data...),
		"Python 2":                file(1, "{'descr': '<i2', 'fortran_order': False, 'shape': (2L,), }\n", data...),
		"(2), no tuple of Python": file(1, "{'descr': '<i2', 'fortran_order': False, 'shape': (2), }\n", data...),
	} {
		if got, err := readAll(b); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v (%v)", name, got, err)
		}
	}
	// numpy writes the columns of a table so.
	columns := file(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 2), }\n", 0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11)
	if got, err := readAll(columns); err != nil || !slices.Equal(got.Bytes(), []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}) || !got.Shape.Equal(tensor.Shape{2, 3, 2}) {
		t.Errorf("in Fortran's order: %v (%v)", got, err)
	}
	if got, err := readAll(file(1, "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 2), }\n", 1, 0, 3, 0, 2, 0, 4, 0)); err != nil || !slices.Equal(tensor.Of[int16](got), []int16{1, 2, 3, 4}) {
		t.Errorf("in Fortran's order: %v (%v)", got, err)
	}
	// One element has the same place in every order.
	if got, err := readAll(file(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (1, 1), }\n", 7)); err != nil || got.At(0) != 7 {
		t.Errorf("%v (%v)", got, err)
	}
	if got, err := readAll(file(1, "{'descr': '<f2', 'fortran_order': False, 'shape': (), }\n", 0xff, 0xff)); err != nil || got.At(0) != 0x7e00 {
		t.Errorf("a NaN that is not canonical: %v (%v)", got, err)
	}
}

func TestReadRefuses(t *testing.T) {
	good := func(change ...string) []byte {
		h := strings.NewReplacer(change...).Replace("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n")
		return file(1, h, make([]byte, 8)...)
	}
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"empty":            {nil, "no .npy file"},
		"other file":       {[]byte("PK\x03\x04 and so on, long enough"), "no .npy file"},
		"version 4":        {file(4, "{}"), "version 4"},
		"long header":      {file(2, strings.Repeat(" ", MaxHeader+1)), "limit 65536"},
		"header too long":  {append([]byte(magic), 1, 0, 0xff, 0xff, 0, 0), "the header has 65535 bytes"},
		"no dictionary":    {good("{", "["), `'{' is wanted at byte 0`},
		"no shape":         {good(", 'shape': (2,)", ""), "are wanted"},
		"key twice":        {good("fortran_order': False", "descr': '<f4'"), `"descr" is given twice`},
		"unknown key":      {good("descr", "dtype"), `unknown key "dtype"`},
		"trailing":         {good("}", "} x"), "only spaces may follow"},
		"big-endian":       {good("<f4", ">f4"), "not little-endian"},
		"native":           {good("<f4", "=f4"), "not little-endian"},
		"objects":          {good("<f4", "|O"), `element type "|O" is not supported`},
		"complex":          {good("<f4", "<c8"), `element type "<c8" is not supported`},
		"structured":       {good("'<f4'", "[('a', '<f4')]"), `is wanted at byte`},
		"no truth":         {good("False", "0"), "True or False, is wanted"},
		"negative":         {good("(2,", "(-2,"), "no extent"},
		"huge":             {good("(2,", "(9999999999999999999,"), "no extent"},
		"overflow":         {good("(2,", "(1099511627776, 1099511627776,"), "more than 2^40"},
		"more than it has": {good("(2,", "(1000000000,"), "takes 4000000000 bytes of elements, the file has 8"},
		"fewer":            {good("(2,", "(1,"), "takes 4 bytes of elements, the file has 8"},
		"axes":             {good("(2,", "("+strings.Repeat("1,", 9)), "more than 8 axes"},
		"escape":           {good("<f4", `<f\x34`), "no plain text"},
		"boolean 2":        {file(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (1,), }", 2), "not 0 or 1"},
	} {
		if got, err := readAll(c.file); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v (%v), wanted %s", name, got, err, c.want)
		}
	}
	b := good()
	for n := range b {
		if _, err := readAll(b[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes are read", n, len(b))
		}
	}
	if _, err := Read(bytes.NewReader(b), int64(len(b))+8, nil); err == nil {
		t.Error("a file shorter than its size was read")
	}
}

// TestNumPy exchanges files with NumPy, where that is installed.
func TestNumPy(t *testing.T) {
	if err := exec.Command("python3", "-c", "import numpy").Run(); err != nil {
		t.Skip("python3 with the numpy package is not installed")
	}
	dir := t.TempDir()
	for i, shape := range []tensor.Shape{{}, {5}, {2, 3}, {0, 4}, {1, 1, 2, 1, 2, 1, 1, 1}} {
		for _, typ := range tensor.DTypes {
			if typ == tensor.BFloat16 {
				continue
			}
			x := tensor.Must(tensor.New(typ, shape))
			for i := range x.Len() {
				x.Set(i, tensor.Word(i%2))
			}
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%v-%d.npy", typ, i)), written(t, x), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	out, err := exec.Command("python3", "-c", `
import glob, io, sys, numpy
files = glob.glob(sys.argv[1] + "/*.npy")
for f in files:
    x = numpy.load(f)
    assert f.split("/")[-1].startswith(str(x.dtype) + "-"), (f, x.dtype)
    b = io.BytesIO()
    numpy.save(b, x)
    assert b.getvalue() == open(f, "rb").read(), (f, b.getvalue(), open(f, "rb").read())
print(len(files))
`, dir).CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "60" {
		t.Fatalf("%v\n%s", err, out)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(written(f, tensor.Scalar(float32(1))))
	f.Add(written(f, tensor.Must(tensor.From(tensor.Shape{2, 1}, []int64{1, 2}))))
	f.Add(file(2, "{'descr': '|V2', 'fortran_order': True, 'shape': (1, 1), }\n", 1, 2))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := readAll(b)
		if err != nil {
			return
		}
		if len(x.Bytes()) > len(b) {
			t.Fatalf("%d bytes are read as %v%v", len(b), x.Type, x.Shape)
		}
		if again, err := readAll(written(t, x)); err != nil || !again.Equal(x) {
			t.Fatalf("%v%v is read back as %v (%v)", x.Type, x.Shape, again, err)
		}
	})
}

func TestFileNames(t *testing.T) {
	got := FileNames([]string{"y", "Y", "../y", "a/b", "a_b", "y-2"})
	if want := []string{"y.npy", "Y-2.npy", ".._y.npy", "a_b.npy", "a_b-2.npy", "y-2-2.npy"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
