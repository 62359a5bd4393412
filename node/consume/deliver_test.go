package consume

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Whether a model can be written was found out once it had been paid for, and one that was
// there was lost.
func TestCanDeliver(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "result")
	if err := CanDeliver(dir, false); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(dir); err == nil {
		t.Error("an empty directory was left, for whoever is interrupted before there is a result")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if all, err := os.ReadDir(dir); CanDeliver(dir, false) != nil || err != nil || len(all) != 0 {
		t.Errorf("%d files were left (%v)", len(all), err)
	}
	old := filepath.Join(dir, "proof.bundle")
	if err := os.WriteFile(old, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := CanDeliver(dir, false); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("an old proof would be overwritten: %v", err)
	}
	if err := CanDeliver(dir, true); err != nil {
		t.Error(err)
	}
	if err := CanDeliver(old, true); err == nil {
		t.Error("a file was taken for a directory")
	}
}
