package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/onnx"
)

// An order for a batch is tried without a network, and each verb says which kind it takes.
func TestBatchOrderIsTried(t *testing.T) {
	dir := t.TempDir()
	b := graph.NewBuilder("square")
	x := b.Input("x", tensor.Float32, nil)
	b.Output(b.Op("Mul", x, x), tensor.Float32, nil)
	model, err := onnx.Write(b.Graph())
	if err != nil {
		t.Fatal(err)
	}
	order := filepath.Join(dir, "order.yaml")
	for name, text := range map[string]string{
		"square.onnx": string(model), "order.yaml": "kind: BatchOrder\nproblem:\n  model: square.onnx\n  grid: {x: [1, 2, 3]}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	home := filepath.Join(dir, "none")
	t.Setenv("TALLY_HOME", home)
	if code, out, errOut := run("order", "validate", order); code != 0 || !strings.Contains(out, "square.onnx can be applied\n  data      3 records") {
		t.Errorf("%d: %s%s", code, out, errOut)
	}
	if code, _, errOut := run("train", order, "--home", home); code == 0 || !strings.Contains(errOut, "post it by tally batch") {
		t.Errorf("%d: %s", code, errOut)
	}
	if code, _, errOut := run("batch", order, "--home", home, "--format", "csv"); code == 0 || !strings.Contains(errOut, "npy") {
		t.Errorf("%d: %s", code, errOut)
	}
}
