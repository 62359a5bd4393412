package bench

import (
	"archive/zip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/npy"
	"github.com/tally-network/tally/format/onnx"
	"github.com/tally-network/tally/model/zoo"
)

// Models are trained on what bench/peers/digits.py writes, and compared with what it says of PyTorch.
func TestDigitsBesidePyTorch(t *testing.T) {
	dir := t.TempDir()
	measure := func() ([]Row, error) {
		return formatRows(t.Context(), Options{Tell: t.Logf, Only: "digits", Models: dir})
	}
	if _, err := measure(); err == nil || !strings.Contains(err.Error(), "bench/peers/digits.py") {
		t.Errorf("without files: %v", err)
	}
	terms := filepath.Join(dir, "digits.json")
	if err := os.WriteFile(terms, []byte(`{"batch": 4, "steps": 60, "rate": 0.02, "accuracy": {"mlp": [90, 80]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := measure(); err == nil || !strings.Contains(err.Error(), "digits-mlp-1.onnx") {
		t.Errorf("without models: %v", err)
	}
	for seed := range uint64(2) {
		a, err := zoo.Find("mlp")
		if err != nil {
			t.Fatal(err)
		}
		m, err := a.New(map[string]string{"inputs": "2", "width": "8", "batch": "4", "classes": "2"}, seed+1)
		if err != nil {
			t.Fatal(err)
		}
		b, err := onnx.Write(m.Graph)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, fmt.Sprintf("digits-mlp-%d.onnx", seed+1)), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	writeDigits(t, filepath.Join(dir, "digits.npz"))
	rows, err := measure()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 2 || rows[0].Value != 100 || rows[1].Value != 15 || rows[1].Met == nil || !*rows[1].Met || *rows[1].Target != -1 {
		t.Errorf("%+v", rows)
	}
}

// writeDigits writes records of two kinds that anybody tells apart, of which some are held out.
func writeDigits(t *testing.T, name string) {
	t.Helper()
	const n = 40
	x, y, part := make([]float32, 2*n), make([]int32, n), make([]int32, n)
	for i := range n {
		y[i] = int32(i % 2)
		x[2*i+i%2] = 1 + float32(i)/n
		if i%4 > 1 {
			part[i] = 1
		}
	}
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for _, a := range []struct {
		name string
		v    *tensor.Tensor
	}{
		{"features", tensor.Must(tensor.From(tensor.Shape{n, 2}, x))},
		{"digit", tensor.Must(tensor.From(tensor.Shape{n}, y))}, {"part", tensor.Must(tensor.From(tensor.Shape{n}, part))},
	} {
		w, err := z.Create(a.name + ".npy")
		if err == nil {
			err = npy.Write(w, a.v)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
