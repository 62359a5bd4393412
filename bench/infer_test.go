package bench

import (
	"context"
	"fmt"
	"os"
	"testing"
)

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
