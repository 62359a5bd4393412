//go:build unix

package bench

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A pipe that is called like a model makes nobody wait for a writer.
func TestPipeForModel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe.onnx")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	if _, _, err := loadModel(path); err == nil {
		t.Error("a pipe was read as a model")
	}
}
