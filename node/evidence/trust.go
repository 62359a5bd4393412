package evidence

import (
	"encoding/json"
	"fmt"
	"io"
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
	return os.WriteFile(filepath.Join(dir, trustFile), append(b, '\n'), 0o644)
}

// TrustBeside names the file in which the trust root may be noted beside a
// bundle.
func TrustBeside(bundle string) string { return filepath.Join(filepath.Dir(bundle), trustFile) }

// ReadTrust reads a trust root that WriteTrust noted.
func ReadTrust(file string) (t Trust, err error) {
	f, err := os.Open(file)
	if err != nil {
		return t, err
	}
	defer f.Close()
	var n trustNote
	if err := json.NewDecoder(io.LimitReader(f, maxTrust)).Decode(&n); err != nil {
		return t, fmt.Errorf("%s: %w", file, err)
	}
	if t, err = ParseTrust(n.Validators); err != nil {
		return t, fmt.Errorf("%s: %w", file, err)
	}
	return t, nil
}

const maxTrust = 1 << 12 // bytes
