//go:build unix

package weights_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tally-network/tally/engine/cpu/weights"
)

// A pipe in the place of a file makes nobody wait for a writer.
func TestPipe(t *testing.T) {
	var p packer
	o := weights.Options{Bytes: 1 << 20, Dir: t.TempDir(), DirBytes: 1 << 20}
	p.get(t, open(t, o), 1)
	all, err := filepath.Glob(filepath.Join(o.Dir, "*"))
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	if err := os.Remove(all[0]); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(all[0], 0o600); err != nil {
		t.Skip(err)
	}
	p.get(t, open(t, o), 1)
	p.wantTimes(t, 1, 2)
	if i, err := os.Lstat(all[0]); err != nil || !i.Mode().IsRegular() {
		t.Errorf("the file was not made again: %v", err)
	}
}
