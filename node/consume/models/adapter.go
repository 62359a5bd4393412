package models

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tally-network/tally/format/peft"
	"github.com/tally-network/tally/internal/replace"
)

// AdapterFolder is the folder of the adapters that an order has trained, in that of its delivery.
const AdapterFolder = "adapter"

// WriteAdapter writes the files of adapters into the folder of a delivery, and returns where they are: "" if there are none. Those of an earlier delivery are gone then.
func WriteAdapter(dir string, files map[string][]byte) (string, error) {
	to := filepath.Join(dir, AdapterFolder)
	if len(files) == 0 {
		for _, name := range []string{peft.Config, peft.Weights} {
			if err := os.Remove(filepath.Join(to, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return "", err
			}
		}
		return "", nil
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return "", err
	}
	for name, b := range files { // each alone
		if err := replace.File(filepath.Join(to, name), b); err != nil {
			return "", err
		}
	}
	return to, nil
}
