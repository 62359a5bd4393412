package consume

import (
	"archive/zip"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/npy"
	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/format/safetensors"
)

// addTable adds a table [n, 2] of floats and whole numbers [n, 2].
func addTable() *graph.Graph {
	b := graph.NewBuilder("add")
	x, k := b.Input("x", tensor.Float32, tensor.Shape{1, 2}), b.Input("k", tensor.Int64, tensor.Shape{1, 2})
	b.Output(b.Op("Add", x, b.With(graph.Int("to", 1)).Op("Cast", k)), tensor.Float32, tensor.Shape{1, 2})
	return b.Graph()
}

// All formats give the same records to the bit.
func TestFormatsOfRecords(t *testing.T) {
	x := tensor.Must(tensor.From(tensor.Shape{3, 2}, []float32{0.1, -2, 3.5, 1e-45, 5, 6}))
	k := tensor.Must(tensor.From(tensor.Shape{3, 2}, []int64{1, -2, 9007199254740993, 4, 5, 6}))
	var archive, tensors bytes.Buffer
	z := zip.NewWriter(&archive)
	for name, a := range map[string]*tensor.Tensor{"x": x, "k": k} {
		w, err := z.Create(name + ".npy")
		if err == nil {
			err = npy.Write(w, a)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := safetensors.Write(&tensors, map[string]*tensor.Tensor{"x": x, "k": k}, nil); err != nil {
		t.Fatal(err)
	}
	files := map[string]any{
		"m.onnx": addTable(), "x.npy": x, "k.npy": k, "all.npz": archive.String(), "all.safetensors": tensors.String(),
		"all.jsonl": "{\"x\": [0.1, -2], \"k\": [1, -2]}\n{\"x\": [3.5, 1e-45], \"k\": [9007199254740993, 4]}\n{\"k\": [5, 6], \"x\": [5, 6]}\n",
		"x.csv":     "a,b\n0.1,-2\n3.5,1e-45\n5,6\n", "k.CSV": "1,-2\n9007199254740993,4\n5,6\n",
	}
	var want *Draft
	for _, records := range []string{
		"{x: x.npy, k: k.npy}", "all.npz", "all.safetensors", "all.jsonl", "{x: x.csv, k: k.CSV}", "{x: all.jsonl, k: all.npz}", "{x: all.jsonl, k: all.jsonl}",
	} {
		files["order.yaml"] = order + "  records: " + records + "\n"
		d, err := drafted(t, folder(t, files))
		if err != nil {
			t.Errorf("%s: %v", records, err)
			continue
		}
		if want == nil {
			want = d
		}
		if p := &d.Problem; p.Start != want.Problem.Start || p.Records != 3 {
			t.Errorf("%s: %d records with root %v, want 3 with %v", records, p.Records, p.Start, want.Problem.Start)
		}
	}
	// Columns that no input takes may hold anything, and separators are found out.
	files["order.yaml"] = order + "  records: {x: all.jsonl, k: k.csv}\n"
	files["all.jsonl"] = "{\"x\": [0.1, -2], \"note\": \"a\"}\n{\"x\": [3.5, 1e-45]}\n{\"x\": [5, 6], \"note\": null}\n"
	files["k.csv"] = "a;b\n1;-2\n9007199254740993;4\n5;6\n"
	if d, err := drafted(t, folder(t, files)); err != nil || d.Problem.Start != want.Problem.Start {
		t.Errorf("beside other columns: %v", err)
	}
	// A named column is one number of each record.
	d, err := drafted(t, folder(t, map[string]any{"m.onnx": twice(2), "t.csv": "x\n1\n2\n3\n4\n", "order.yaml": order + "  batch: 2\n  records: t.csv\n"}))
	if err != nil || d.Problem.Records != 4 {
		t.Errorf("a column: %v", err)
	}
}

func TestFilesOfRecordsAreRefused(t *testing.T) {
	for want, files := range map[string]map[string]any{
		"read from files called":        {"order.yaml": order + "  records: {x: x.txt}\n"},
		"it names no inputs":            {"order.yaml": order + "  records: x.npy\n", "x.npy": counted(3, 2)},
		`has no "x", but ["k"]`:         {"order.yaml": order + "  records: {x: x.jsonl}\n", "x.jsonl": `{"k": 1}`},
		"names a file, or one for":      {"order.yaml": order + "  records: [x.npy]\n"},
		"turn it into numbers first":    {"order.yaml": order + "  records: x.jsonl\n", "x.jsonl": `{"x": ["a", "b"], "k": [1, 2]}`},
		"write records: {INPUT: x.csv}": {"order.yaml": order + "  records: x.csv\n", "x.csv": "a,b\n1,2\n"},
		"no value in 1 of 2 records":    {"order.yaml": order + "  records: {x: x.csv, k: x.csv}\n", "x.csv": "a,b\n1,2\n3,\n"},
		"is text, and no number":        {"order.yaml": order + "  records: {x: x.csv, k: x.csv}\n", "x.csv": "a,b\n1,x\n3,y\n"},
		"0.5 is no int64":               {"order.yaml": order + "  records: x.jsonl\n", "x.jsonl": `{"x": [1, 2], "k": [1, 0.5]}`},
	} {
		files["m.onnx"] = addTable()
		if _, err := drafted(t, folder(t, files)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error about %q, got %v", want, err)
		}
	}
}

// outside moves the elements of a model's initializers to a file of a name, which it returns.
func outside(t *testing.T, g *graph.Graph, location string) (model, data []byte) {
	t.Helper()
	whole, err := onnx.Write(g)
	if err != nil {
		t.Fatal(err)
	}
	const modelGraph, graphConst, tensorRaw, tensorFiles, tensorLocation = 7, 5, 9, 13, 14
	rewrite := func(b []byte, num protowire.Number, do func([]byte) []byte) (out []byte) {
		for len(b) > 0 {
			n, typ, size := protowire.ConsumeField(b)
			if size < 0 {
				t.Fatal(protowire.ParseError(size))
			}
			if n != num || typ != protowire.BytesType {
				out = append(out, b[:size]...)
			} else {
				_, _, tag := protowire.ConsumeTag(b)
				v, _ := protowire.ConsumeBytes(b[tag:])
				out = append(out, do(v)...)
			}
			b = b[size:]
		}
		return out
	}
	field := func(n protowire.Number, b []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, n, protowire.BytesType), b)
	}
	entry := func(k, v string) []byte {
		return field(tensorFiles, append(field(1, []byte(k)), field(2, []byte(v))...))
	}
	model = rewrite(whole, modelGraph, func(g []byte) []byte {
		return field(modelGraph, rewrite(g, graphConst, func(c []byte) []byte {
			c = rewrite(c, tensorRaw, func(raw []byte) []byte { data = append(data, raw...); return nil })
			c = append(c, entry("location", location)...)
			return field(graphConst, protowire.AppendVarint(protowire.AppendTag(c, tensorLocation, protowire.VarintType), 1))
		}))
	})
	return model, data
}

// A model that leaves its weights to a file beside it makes the same order as one that holds
// them; no other file than one that the order may name is read for it.
func TestModelsWithExternalData(t *testing.T) {
	b := graph.NewBuilder("scale")
	x := b.Input("x", tensor.Float32, tensor.Shape{1, 64})
	b.Output(b.Op("Mul", x, b.Init("w", counted(1, 64))), tensor.Float32, tensor.Shape{1, 64})
	g := b.Graph()
	records := map[string]any{"x.npy": counted(5, 64), "order.yaml": order + "  records: {x: x.npy}\n"}
	in := func(location string) (dir string, data []byte) {
		model, data := outside(t, g, location)
		dir = folder(t, records)
		if err := os.WriteFile(filepath.Join(dir, "m.onnx"), model, 0o600); err != nil {
			t.Fatal(err)
		}
		return dir, data
	}
	records["m.onnx"] = g
	want, err := drafted(t, folder(t, records))
	if err != nil {
		t.Fatal(err)
	}
	delete(records, "m.onnx")
	dir, data := in("m.onnx.data")
	if _, err := drafted(t, dir); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("without the data: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "m.onnx.data"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := drafted(t, dir)
	if err != nil || got.Problem.Step != want.Problem.Step || !bytes.Equal(got.Files[0].Parts[0], want.Files[0].Parts[0]) {
		t.Errorf("with the data beside it the model is another: %v", err)
	}
	for location, c := range map[string]struct {
		make func(path string, data []byte) error
		want string
	}{
		"../secret": {func(path string, data []byte) error { return os.WriteFile(path, data, 0o600) }, "must lie below"},
		".secret":   {func(path string, data []byte) error { return os.WriteFile(path, data, 0o600) }, "would see it"},
		"link": {func(path string, data []byte) error {
			other := filepath.Join(t.TempDir(), "secret")
			return errors.Join(os.WriteFile(other, data, 0o600), os.Symlink(other, path))
		}, "would see it"},
		"pipe":  {func(path string, _ []byte) error { return syscall.Mkfifo(path, 0o600) }, "name a regular file"},
		"short": {func(path string, data []byte) error { return os.WriteFile(path, data[:8], 0o600) }, "are wanted from byte 0"},
	} {
		dir, data := in(location)
		if err := c.make(filepath.Join(dir, location), data); err != nil {
			t.Fatal(err)
		}
		if _, err := drafted(t, dir); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", location, err, c.want)
		}
	}
}
