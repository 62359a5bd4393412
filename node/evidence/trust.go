package evidence

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// trustFile is where who made a bundle leaves the trust root beside it. It is as
// good as the place that it was copied from.
const trustFile = "trust.json"

type trustNote struct {
	Chain      string `json:"chain"`
	Validators string `json:"validators"` // hash of the set, hexadecimal
}

// WriteTrust notes the trust root of a chain in a directory.
func WriteTrust(dir, chain string, t Trust) error {
	b, err := json.MarshalIndent(trustNote{chain, t.String()}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, trustFile), append(b, '\n'), 0o600)
}

// ReadTrust reads the trust root noted beside a bundle, and says where.
func ReadTrust(bundle string) (t Trust, file string, err error) {
	file = filepath.Join(filepath.Dir(bundle), trustFile)
	b, err := os.ReadFile(file)
	if err != nil {
		return t, file, err
	}
	var n trustNote
	if err := json.Unmarshal(b, &n); err != nil {
		return t, file, fmt.Errorf("%s: %w", file, err)
	}
	t, err = ParseTrust(n.Validators)
	return t, file, err
}
