package steps_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/model/steps"
)

func BenchmarkTable(b *testing.B) {
	path := os.Getenv("TALLY_GGUF")
	if path == "" {
		b.Skip("TALLY_GGUF names no file")
	}
	m, err := lm.OpenGGUF(path)
	if err != nil {
		b.Fatal(err)
	}
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprint(threads), func(b *testing.B) {
			for b.Loop() {
				t, err := steps.New(m, m.WeightRoots(threads), threads)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(t.Chunks), "chunks")
				b.ReportMetric(float64(t.Programs()), "programs")
			}
		})
	}
}
