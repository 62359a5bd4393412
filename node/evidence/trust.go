package evidence

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tally-network/tally/internal/bounded"
)

// trustFile is where who made a bundle leaves the trust root beside it. It anchors
// nothing by itself: who invents a chain writes it too. A verifier reads it when it
// is named as what to trust.
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

// Remember notes in a home that its own node showed this validator set, so that
// bundles which the set signed are anchored for whoever owns the home.
func Remember(home string, t Trust) error {
	dir := filepath.Join(home, seenDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, t.String()), nil, 0o600)
}

// Seen reports whether Remember noted a validator set in a home.
func Seen(home string, t Trust) bool {
	info, err := os.Stat(filepath.Join(home, seenDir, t.String()))
	return err == nil && info.Mode().IsRegular()
}

// seenDir holds an empty file for each validator set, called by its hash.
const seenDir = "validator-sets"

// ReadTrust reads a trust root that WriteTrust noted.
func ReadTrust(file string) (t Trust, err error) {
	text, err := bounded.ReadFile(file, maxTrust)
	if err != nil {
		return t, err
	}
	var n trustNote
	if err := json.Unmarshal(text, &n); err != nil {
		return t, fmt.Errorf("%s: %w", file, err)
	}
	if t, err = ParseTrust(n.Validators); err != nil {
		return t, fmt.Errorf("%s: %w", file, err)
	}
	return t, nil
}

const maxTrust = 1 << 12 // bytes
