package light

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/internal/replace"
)

// TrustingPeriod is how long a block is trusted after its time. CometBFT takes evidence of two signatures for 48 hours,
// and bonds are held for longer (seats.unbonding_ms). Two thirds of it are left for a fraud to be shown and punished.
const TrustingPeriod = 16 * time.Hour

// TrustedBlock is what somebody trusts in a block: its header, and so who signed it and who signs next.
type TrustedBlock struct {
	Chain          string     `json:"chain"`
	Height         int64      `json:"height"`
	Header         canon.Hash `json:"header"`
	Validators     canon.Hash `json:"validators"`      // the set that signed the header
	NextValidators canon.Hash `json:"next_validators"` // the set that signs the next one
	Time           time.Time  `json:"time"`
}

// FromLightBlock returns what there is to trust in a block. That of one that is not well-formed, Check refuses.
func FromLightBlock(b *cmttypes.LightBlock) (t TrustedBlock) {
	if b == nil || b.SignedHeader == nil || b.Header == nil {
		return t
	}
	t = TrustedBlock{Chain: b.ChainID, Height: b.Height, Time: b.Time.UTC()}
	for _, h := range []struct {
		to   *canon.Hash
		from []byte
	}{{&t.Header, b.Hash()}, {&t.Validators, b.ValidatorsHash}, {&t.NextValidators, b.NextValidatorsHash}} {
		if len(h.from) == len(h.to) {
			*h.to = canon.Hash(h.from)
		}
	}
	return t
}

// Check returns an error unless t may be of a block.
func (t TrustedBlock) Check() error {
	if err := wire.CheckChainID(t.Chain); err != nil {
		return fmt.Errorf("trusted block: %w", err)
	}
	switch {
	case t.Height < 1:
		return fmt.Errorf("trusted block: block %d of %s: want a height of at least 1", t.Height, t.Chain)
	case t.Header.IsZero() || t.Validators.IsZero() || t.NextValidators.IsZero():
		return fmt.Errorf("trusted block %d of %s: want the hashes header, validators and next_validators", t.Height, t.Chain)
	case t.Time.IsZero():
		return fmt.Errorf("trusted block %d of %s: want its time", t.Height, t.Chain)
	}
	return nil
}

// ErrExpired says that a block is too old to be followed from.
var ErrExpired = errors.New("the validators that signed it may have taken their stakes out since: pin a newer block with tally trust pin, from a node or a file that you trust")

// CheckAge returns an error unless the chain may be followed from t at a time.
func (t TrustedBlock) CheckAge(now time.Time) error {
	if t.Time.After(now.Add(maxDrift)) {
		return fmt.Errorf("block %d of %s is from %s, which is to come: set this machine's clock, or pin another block", t.Height, t.Chain, t.Time.Format(time.RFC3339))
	}
	if now.Before(t.Time.Add(TrustingPeriod)) {
		return nil
	}
	return fmt.Errorf("block %d of %s is from %s, and may be followed from for %d hours: %w",
		t.Height, t.Chain, t.Time.Format(time.RFC3339), int(TrustingPeriod.Hours()), ErrExpired)
}

// String names the block, for people.
func (t TrustedBlock) String() string { return fmt.Sprintf("block %d of %s", t.Height, t.Chain) }

// Tell writes trusted blocks for people.
func Tell(w io.Writer, all ...TrustedBlock) {
	for _, t := range all {
		until := "until " + t.Time.Add(TrustingPeriod).Format(time.RFC3339)
		if t.CheckAge(time.Now()) != nil {
			until = "no longer: pin a newer one"
		}
		fmt.Fprintf(w, "%v, of %s\n  header      %v\n  validators  %v\n  followed    %s\n", t, t.Time.Format(time.RFC3339), t.Header, t.Validators, until)
	}
}

// Progress returns what tells every two seconds, on w, how far a chain was followed.
func Progress(w io.Writer) func(headers int, height int64) {
	told := time.Now()
	return func(headers int, height int64) {
		if time.Since(told) > 2*time.Second {
			told = time.Now()
			fmt.Fprintf(w, "%d headers fetched, the last of block %d\n", headers, height)
		}
	}
}

const (
	folder   = "trusted-blocks" // in a home, with a file for each chain
	suffix   = ".json"
	maxFile  = 4 << 10 // bytes of a trusted block
	maxFiles = 1000    // chains that a home lists
)

// Pin notes a trusted block in a home, in place of another of its chain. A reader finds one or the
// other, whenever the process ends.
func Pin(home string, t TrustedBlock) error {
	if err := t.Check(); err != nil {
		return err
	}
	b, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return err
	}
	dir := filepath.Join(home, folder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	err = replace.With(filepath.Join(dir, t.Chain+suffix), func(f *os.File) error {
		_, err := f.Write(append(b, '\n'))
		return errors.Join(err, f.Sync())
	})
	if err != nil {
		return fmt.Errorf("pin %v: %w", t, err)
	}
	return nil
}

// Pinned returns the trusted block of a chain in a home. Where there is none the error is fs.ErrNotExist.
func Pinned(home, chain string) (t TrustedBlock, err error) {
	if wire.CheckChainID(chain) != nil {
		return t, fmt.Errorf("chain %.60q: no block can be pinned of it: %w", chain, fs.ErrNotExist)
	}
	if t, err = Read(filepath.Join(home, folder, chain+suffix)); err == nil && t.Chain != chain {
		err = fmt.Errorf("the trusted block of %s is of chain %s: pin it again with tally trust pin", chain, t.Chain)
	}
	return t, err
}

// Read reads a trusted block from a file.
func Read(file string) (t TrustedBlock, err error) {
	text, err := bounded.ReadFile(file, maxFile)
	if err != nil {
		return t, err
	}
	if t, err = parse(text); err != nil {
		return t, fmt.Errorf("%s is no trusted block, as tally trust pin --json prints it: %w", file, err)
	}
	return t, nil
}

func parse(text []byte) (t TrustedBlock, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err = d.Decode(&t); err == nil {
		err = t.Check()
	}
	if _, end := d.Token(); err == nil && end != io.EOF {
		err = errors.New("something follows it")
	}
	if err != nil {
		return TrustedBlock{}, err
	}
	t.Time = t.Time.UTC() // so that equal blocks are equal
	return t, nil
}

// List returns the trusted blocks in a home, in order of their chains.
func List(home string) (out []TrustedBlock, err error) {
	files, err := os.ReadDir(filepath.Join(home, folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, f := range files {
		chain, ok := strings.CutSuffix(f.Name(), suffix)
		if !ok || len(out) == maxFiles {
			continue
		}
		t, err := Pinned(home, chain)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, err
}
