package models_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tally-network/tally/node/consume/models"
)

// Adapters get a folder of their own; where there are none, there is no folder.
func TestWriteAdapter(t *testing.T) {
	dir := t.TempDir()
	if to, err := models.WriteAdapter(dir, nil); err != nil || to != "" {
		t.Errorf("%q, %v", to, err)
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) > 0 {
		t.Errorf("%d files, %v", len(all), err)
	}
	to, err := models.WriteAdapter(dir, map[string][]byte{"adapter_config.json": []byte("{}")})
	if err != nil || to != filepath.Join(dir, models.AdapterFolder) {
		t.Fatalf("%q, %v", to, err)
	}
	if b, err := os.ReadFile(filepath.Join(to, "adapter_config.json")); err != nil || string(b) != "{}" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := models.WriteAdapter(filepath.Join(to, "adapter_config.json"), map[string][]byte{"x": nil}); err == nil {
		t.Error("a file was taken for a folder")
	}
}
