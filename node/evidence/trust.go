package evidence

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/node/light"
)

// trustFile is where who made a bundle leaves the trust root beside it. It anchors
// nothing by itself: who invents a chain writes it too. A verifier reads it when it
// is named as what to trust.
const trustFile = "trust.json"

type trustNote struct {
	Chain         string   `json:"chain"`
	ValidatorSets []string `json:"validator_sets"` // their hashes, hexadecimal
}

// WriteTrust notes in a directory the validator sets of a chain that signed the bundles there. Bundles of
// several orders may have been signed by several, since a set changes.
func WriteTrust(dir, chain string, sets ...Trust) error {
	n := trustNote{Chain: chain}
	for _, t := range sets {
		n.ValidatorSets = append(n.ValidatorSets, t.String())
	}
	b, err := json.MarshalIndent(n, "", "  ")
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

// Roots are what a user trusts, and so what anchors bundles for them.
type Roots struct {
	Named    func(Trust) bool                // validator sets that the user has named; then nothing else counts. nil: none
	By       string                          // what named them
	Home     string                          // which has noted sets, and pinned blocks; "": none
	Now      func() time.Time                // nil: the clock of this machine
	Progress func(headers int, height int64) // sees what is fetched; may be nil
}

// NewRoots returns what the owner of a home trusts, who has named a validator set by its hash, or sets by the
// file that notes them, or nothing, as "". by is where they have.
func NewRoots(home, text, by string, progress func(headers int, height int64)) (*Roots, error) {
	r := &Roots{By: by, Home: home, Progress: progress}
	if text == "" {
		return r, nil
	}
	t, err := ParseTrust(text) // 64 digits are never a file, whatever has that name
	sets := []Trust{t}
	if err != nil {
		if sets, err = ReadTrust(text); errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("trust root %.80q is neither a hash of 64 hexadecimal digits nor a file", text)
		}
		r.By = text
	}
	r.Named = func(t Trust) bool { return slices.Contains(sets, t) }
	return r, err
}

func (r *Roots) now() time.Time {
	if r.Now == nil {
		return time.Now()
	}
	return r.Now()
}

// Anchors returns what a block is trusted by, "" if by nothing. A set that signed a pinned block is
// trusted for as long as the chain may be followed from that; the pinned block itself always.
func (r *Roots) Anchors(b light.TrustedBlock) (by string, err error) {
	switch {
	case r.Named != nil && r.Named(Trust(b.Validators)):
		return r.By, nil
	case r.Named != nil:
		return "", nil
	case Seen(r.Home, Trust(b.Validators)):
		return r.Home, nil
	}
	pin, err := r.pinned(b.Chain)
	if err != nil || pin.Height == 0 {
		return "", err
	}
	if pin == b || pin.CheckAge(r.now()) == nil && (b.Validators == pin.Validators || b.Validators == pin.NextValidators) {
		return r.pinnedBy(pin), nil
	}
	return "", nil
}

// pinned returns the block that the home has pinned of a chain, of height 0 if there is none.
func (r *Roots) pinned(chain string) (light.TrustedBlock, error) {
	pin, err := light.Pinned(r.Home, chain)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return pin, err
}

func (r *Roots) pinnedBy(pin light.TrustedBlock) string {
	return fmt.Sprintf("block %d, pinned in %s", pin.Height, r.Home)
}

// seenDir holds an empty file for each validator set, called by its hash.
const seenDir = "validator-sets"

// ReadTrust reads the validator sets that WriteTrust noted.
func ReadTrust(file string) ([]Trust, error) {
	text, err := bounded.ReadFile(file, maxTrust)
	if err != nil {
		return nil, err
	}
	var n trustNote
	if err := json.Unmarshal(text, &n); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(n.ValidatorSets) == 0 {
		return nil, fmt.Errorf("%s names no validator_sets", file)
	}
	var sets []Trust
	for _, s := range n.ValidatorSets {
		t, err := ParseTrust(s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		sets = append(sets, t)
	}
	return sets, nil
}

const maxTrust = 1 << 20 // bytes
