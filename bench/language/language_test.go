package language

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMeasure(t *testing.T) {
	path := os.Getenv("TALLY_GGUF")
	if path == "" {
		t.Skip("TALLY_GGUF names no file")
	}
	f, err := Measure(t.Context(), path, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", f)
	for name, x := range map[string]float64{"prefill": f.Prefill, "decode": f.Decode, "batch": f.Batch, "weights": f.Read, "reading": f.Stream} {
		if x <= 0 {
			t.Errorf("%s: %v", name, x)
		}
	}
}

func TestMeasureRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "no.gguf")
	if _, err := Measure(t.Context(), path, 1); err == nil {
		t.Error("a file that is not there is measured")
	}
	if err := os.WriteFile(path, []byte("GGUF"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Measure(t.Context(), path, 1); err == nil {
		t.Error("a file that is cut off is measured")
	}
}

// Every word is read once, by however many threads.
func TestReading(t *testing.T) {
	for threads := 1; threads < 4; threads++ {
		s := reading(8*8*12, threads)
		s.read()
		sum := uint64(0)
		for _, x := range s.sums {
			sum += x
		}
		if want := uint64(95 * 96 / 2); sum != want {
			t.Errorf("%d threads: the sum is %d, want %d", threads, sum, want)
		}
	}
}
