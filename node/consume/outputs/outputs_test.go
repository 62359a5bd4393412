package outputs_test

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/node/consume/outputs"
)

// Numbers keep their bits in JSON; what JSON has none for is text.
func TestLinesOfResults(t *testing.T) {
	inf := float32(math.Inf(1))
	out := map[string]*tensor.Tensor{
		"f": tensor.Must(tensor.From(tensor.Shape{2, 2}, []float32{0.1, -0, inf, 1e-45})),
		"n": tensor.Must(tensor.From(tensor.Shape{2}, []int64{-3, 1 << 60})),
	}
	files, err := outputs.Write(t.TempDir(), "jsonl", out, 2)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(files["f"])
	if want := "{\"f\":[0.1,0],\"n\":-3}\n{\"f\":[\"+Inf\",1e-45],\"n\":1152921504606846976}\n"; err != nil || string(b) != want {
		t.Errorf("%s, want %s, %v", b, want, err)
	}
}

// What is no format, or has no records to make lines of, is refused.
func TestWhatCannotBeWritten(t *testing.T) {
	out := map[string]*tensor.Tensor{"of runs": tensor.Must(tensor.From(tensor.Shape{3}, []float32{1, 2, 3}))}
	for format, want := range map[string]string{"jsonl": "no axis of records", "csv": "one of [npy safetensors jsonl]"} {
		if files, err := outputs.Write(t.TempDir(), format, out, 10); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", format, files, err)
		}
	}
}
