//go:build unix

package bounded

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pipe that nobody writes into held whoever opened it for ever, whatever key was pressed.
func TestPipesDevicesAndFoldersAreRefused(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{pipe, "/dev/null", dir} {
		f, _, err := Open(name)
		if f != nil || err == nil || !strings.Contains(err.Error(), "name a regular file") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := ReadFile(name, 10); err == nil {
			t.Errorf("%s was read", name)
		}
	}
	if _, _, err := OpenWithin([]string{dir}, pipe); err == nil || !strings.Contains(err.Error(), "name a regular file") {
		t.Error(err)
	}
}
