package source_test

import (
	"bytes"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/npy"
	"github.com/tally-network/tally/format/safetensors"
	"github.com/tally-network/tally/format/source"
	"github.com/tally-network/tally/format/table"
)

// write puts files into a folder.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Every format gives the same columns of the same records.
func TestOpen(t *testing.T) {
	x := tensor.Must(tensor.From(tensor.Shape{2}, []int64{7, -1}))
	var array, tensors, picture bytes.Buffer
	if err := npy.Write(&array, x); err != nil {
		t.Fatal(err)
	}
	if err := safetensors.Write(&tensors, map[string]*tensor.Tensor{"x": x}, nil); err != nil {
		t.Fatal(err)
	}
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 3, 2))); err != nil {
		t.Fatal(err)
	}
	dir := write(t, map[string]string{
		"a.csv": "x\n7\n-1\n", "a.TSV": "x\n7\n-1\n", "a.jsonl": "{\"x\":7}\n{\"x\":-1}\n", "x.npy": array.String(), "a.safetensors": tensors.String(),
		"images-idx3-ubyte": "\x00\x00\x08\x03\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x03abcdef", "labels.idx1": "\x00\x00\x08\x01\x00\x00\x00\x01\x05",
		"pets/cat/1.png": picture.String(), "pets/dog/1.png": picture.String(), "a.bin": "x",
	})
	for _, name := range []string{"a.csv", "a.TSV", "a.jsonl", "x.npy", "a.safetensors"} {
		got, err := source.Open(filepath.Join(dir, name), source.Options{})
		if err != nil || len(got.Columns) != 1 || got.Columns[0].Name != "x" || !got.Columns[0].Values.Equal(x) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		got, err = source.Open(filepath.Join(dir, name), source.Options{Kinds: map[string]table.Kind{"x": table.Category}})
		if err != nil || got.Columns[0].Kind != table.Category || strings.Join(got.Columns[0].Categories, " ") != "-1 7" {
			t.Errorf("%s as a category: %v, %v", name, got, err)
		}
	}
	pixels, err := source.Open(filepath.Join(dir, "images-idx3-ubyte"), source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	labels, err := source.Open(filepath.Join(dir, "labels.idx1"), source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	both, err := table.Join(pixels, labels)
	if err != nil || both.Columns[0].Kind != table.Image || !both.Columns[0].Values.Shape.Equal(tensor.Shape{1, 2, 3, 1}) || both.Columns[1].Value(0) != "5" {
		t.Errorf("digits: %v, %v", both, err)
	}
	pets, err := source.Open(filepath.Join(dir, "pets"), source.Options{})
	if err != nil || pets.Records != 2 || strings.Join(pets.Columns[1].Categories, " ") != "cat dog" {
		t.Errorf("pets: %v, %v", pets, err)
	}
	for name, want := range map[string]string{"a.bin": "none of .csv, .jsonl", "none.csv": "no such file", "a.csv/x.csv": "not a directory"} {
		if _, err := source.Open(filepath.Join(dir, name), source.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if _, err := source.Open(filepath.Join(dir, "x.npy"), source.Options{Kinds: map[string]table.Kind{"y": table.Real}}); err == nil || !strings.Contains(err.Error(), `no column is called "y"`) {
		t.Errorf("a kind for no column: %v", err)
	}
}

// What pandas and NumPy wrote of one table is read as one table.
func TestFilesOfPython(t *testing.T) {
	want := map[string]string{
		"whole": "integer 1|9007199254740993|-5", "real": "real 0.1|–|1e-300", "text": "text é\"q|a/b\n|–", "truth": "boolean true|false|true",
	}
	files, err := filepath.Glob("testdata/*.*")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, file := range files {
		if strings.HasSuffix(file, ".py") {
			continue
		}
		got, err := source.Open(file, source.Options{})
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		for _, c := range got.Columns {
			var values []string
			for i := range c.Len() {
				if c.Lacks(i) {
					values = append(values, "–")
				} else {
					values = append(values, c.Value(i))
				}
			}
			if told := c.Kind.String() + " " + strings.Join(values, "|"); told != want[c.Name] {
				t.Errorf("%s: %s is %q, want %q", file, c.Name, told, want[c.Name])
			}
			read++
		}
	}
	if read < 27 {
		t.Errorf("only %d columns were read", read)
	}
}
