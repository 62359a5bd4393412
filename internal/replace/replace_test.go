package replace_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/tally-network/tally/internal/replace"
)

func TestTasksWriteOneFileAtOnce(t *testing.T) {
	name := filepath.Join(t.TempDir(), "note")
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			for range 50 {
				if err := replace.File(name, bytes.Repeat([]byte{byte(i)}, 4096)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	b, err := os.ReadFile(name)
	if err != nil || len(b) != 4096 || len(slices.Compact(b)) != 1 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	if left, err := os.ReadDir(filepath.Dir(name)); err != nil || len(left) != 1 {
		t.Fatalf("%v, %v", left, err)
	}
}
