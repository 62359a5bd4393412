package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// nested is field num of a message, with the given content.
func nested(num protowire.Number, parts ...[]byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), bytes.Join(parts, nil))
}

func letters(num protowire.Number, s string) []byte { return nested(num, []byte(s)) }

func number(num protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.VarintType), v)
}

// adding is the ONNX model y = x + w of two float32 elements, whose w lies in a file
// beside it. Numbers of fields are those of onnx.proto.
func adding(location string) []byte {
	entry := func(key, value string) []byte { return nested(13, letters(1, key), letters(2, value)) }
	value := func(num protowire.Number, name string) []byte {
		return nested(num, letters(1, name), nested(2, nested(1, number(1, 1), nested(2, nested(1, number(1, 2))))))
	}
	return bytes.Join([][]byte{
		number(1, 8), nested(8, number(2, 17)),
		nested(7,
			nested(1, letters(1, "x"), letters(1, "w"), letters(2, "y"), letters(4, "Add")),
			letters(2, "adding"),
			nested(5, number(1, 2), number(2, 1), letters(8, "w"), number(14, 1), entry("location", location), entry("length", "8")),
			value(11, "x"), value(12, "y"),
		),
	}, nil)
}

// Models are run whose weights lie in their own folder, and no others.
func TestModelsWithExternalData(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("secret", make([]byte, 8))
	write("models/w", make([]byte, 8))
	write("models/short", make([]byte, 4))
	for location, want := range map[string]string{
		"w":         "",
		"short":     "has 4 bytes, 8 are wanted",
		"missing":   "no such file",
		"../secret": "must lie below the model's directory",
	} {
		rows, err := engineRows(t.Context(), Options{Tell: t.Logf, Only: "infer/adding/t1", Models: filepath.Dir(write("models/adding.onnx", adding(location)))})
		if want == "" && (err != nil || len(rows) == 0 || rows[0].Name != "infer/adding/t1") {
			t.Errorf("%s: %v, %v", location, rows, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", location, err, want)
		}
	}
}

// BenchmarkModels runs the models in the folder that TALLY_MODELS names, as
// `tally bench engine --models` does, so that they can be profiled one by one.
func BenchmarkModels(b *testing.B) {
	works, err := inferences(os.Getenv("TALLY_MODELS"))
	if err != nil {
		b.Skipf("TALLY_MODELS: %v", err)
	}
	for _, w := range works {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/t%d", w.name, threads), func(b *testing.B) {
				do, _, err := w.prepare(context.Background(), threads)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				for b.Loop() {
					if err := do(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
