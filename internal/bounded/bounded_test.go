package bounded

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tally-network/tally/internal/testkit/memory"
)

func TestReadFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "ten")
	if err := os.WriteFile(name, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := ReadFile(name, 10); err != nil || string(b) != "0123456789" {
		t.Errorf("%q, %v", b, err)
	}
	if b, err := ReadFile(name, 9); b != nil || err == nil || !strings.Contains(err.Error(), "longer than 9 bytes") {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := ReadFile(name+"1", 10); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// A device has no size and no end: 14 GB of one were read before.
func TestEndlessFileIsRefused(t *testing.T) {
	const endless, limit = "/dev/zero", 1 << 20
	if _, err := os.Stat(endless); err != nil {
		t.Skip(err)
	}
	var err error
	took := memory.Allocated(func() { _, err = ReadFile(endless, limit) })
	if err == nil || took > 8*limit {
		t.Errorf("%v, %d bytes", err, took)
	}
}
