// Package home is the directory in which one role of the network lives:
//
//	tally.yaml     settings, written last: a home without them is half made
//	keyring-file/  the account's key (secp256k1, from a BIP-39 phrase), encrypted
//	passphrase     of the keyring, so that the role can start unattended
//	peer.pem       ed25519 key of the peer, registered on the chain
//	vrf.pem        ed25519 key for draws; validators and providers
//	beacon.pem     of a validator that has changed its key for the beacon
//	genesis.json   of the chain; validators only
//	chain/         the consensus node's; validators only
//	store/         blobs
//	notes/         what the role remembers of its work
//	lock           held by the process that uses the home
//
// Call [Create] once, and [Open] each time; [Home.Env] gives what a role works with.
//
// Invariants: [Create] may be killed at any moment and called again. An open home belongs to
// one process. Whoever can read the directory has its keys; files with secrets are readable
// by their owner alone.
package home

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	cryptotypes "github.com/cosmos/cosmos-sdk/crypto/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/node/statesync"
	"github.com/tally-network/tally/p2p"
)

const (
	settingsFile   = "tally.yaml"
	passphraseFile = "passphrase"
	peerFile       = "peer.pem"
	vrfFile        = "vrf.pem"
	beaconFile     = "beacon.pem"
	genesisFile    = "genesis.json"
	chainDir       = "chain"
	storeDir       = "store"
	notesDir       = "notes"
)

// ErrNone says that a directory is no home.
var ErrNone = errors.New("no home")

// Home is an open home.
type Home struct {
	Dir      string
	Settings Settings
	Address  string // of the account
	Peer     ed25519.PrivateKey
	VRF      ed25519.PrivateKey // validators and providers only
	beacon   ed25519.PrivateKey // of a validator that has changed its key for the beacon
	Metrics  *prometheus.Registry

	// StateSync is by whom a validator's node begins at a snapshot, if it has no block; nil: it begins at the genesis.
	StateSync *statesync.Source
	Tell      func(format string, args ...any) // what the start of a node waits for, for people; nil: nobody

	account cryptotypes.PrivKey
	lock    *Lock
	closers []func() error // in the order of opening
}

// Create makes what is missing of a home with the given settings, and leaves a
// finished one as it is. It returns the recovery phrase of the account if it
// made one: the only time that anybody can see it.
func Create(dir string, s Settings) (phrase string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("create home %s: %w", dir, err)
		}
	}()
	if Exists(dir) {
		return "", nil
	}
	if err := s.complete(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	lock, err := Acquire(dir)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	phrase, err = createAccount(dir)
	if err != nil {
		return "", err
	}
	keys := []string{peerFile}
	if s.Role.draws() {
		keys = append(keys, vrfFile)
	}
	for _, name := range keys {
		if err := createKey(filepath.Join(dir, name)); err != nil {
			return "", err
		}
	}
	return phrase, s.Save(dir)
}

// Exists reports whether dir is a finished home.
func Exists(dir string) bool { return exists(filepath.Join(dir, settingsFile)) }

// Open locks a home and reads its settings and keys.
func Open(dir string) (_ *Home, err error) {
	if !Exists(dir) {
		return nil, fmt.Errorf("%s: %w: %s is missing", dir, ErrNone, settingsFile)
	}
	lock, err := Acquire(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("open home %s: %w", dir, err), lock.Release())
		}
	}()
	h, err := Peek(dir)
	if err != nil {
		return nil, err
	}
	h.lock, h.Metrics = lock, prometheus.NewRegistry()
	return h, h.Metrics.Register(collectors.NewBuildInfoCollector())
}

// Peek returns a home's settings, address and keys, while another process has it. Nothing can be opened of it.
func Peek(dir string) (_ *Home, err error) {
	h := &Home{Dir: dir}
	if h.Settings, err = LoadSettings(dir); err != nil {
		return nil, err
	}
	if h.account, err = loadAccount(dir); err != nil {
		return nil, err
	}
	h.Address = sdk.AccAddress(h.account.PubKey().Address()).String()
	if h.Peer, err = p2p.LoadKey(filepath.Join(dir, peerFile)); err != nil {
		return nil, err
	}
	if h.Settings.Role.draws() {
		if h.VRF, err = p2p.LoadKey(filepath.Join(dir, vrfFile)); err != nil {
			return nil, fmt.Errorf("VRF key: %w", err)
		}
		h.beacon, err = p2p.LoadKey(filepath.Join(dir, beaconFile))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("key for the beacon: %w", err)
		}
	}
	return h, nil
}

// Held reports whether this process has the home, and may write its settings.
func (h *Home) Held() bool { return h.lock != nil }

// draws reports whether a home of a role has a VRF key: every peer's has.
func (r Role) draws() bool { return r != Consumer }

// PeerKey returns the public half of the peer key.
func (h *Home) PeerKey() ed25519.PublicKey { return h.Peer.Public().(ed25519.PublicKey) }

// Attest signs a statement with the account's key (secp256k1), whose public half it returns, too.
func (h *Home) Attest(statement []byte) (key, signature []byte, err error) {
	signature, err = h.account.Sign(statement)
	return h.account.PubKey().Bytes(), signature, err
}

// VRFKey returns the public half of the VRF key; nil if there is none.
func (h *Home) VRFKey() ed25519.PublicKey {
	if h.VRF == nil {
		return nil
	}
	return h.VRF.Public().(ed25519.PublicKey)
}

// provers are the keys with which a validator may prove the beacon's values.
func (h *Home) provers() []ed25519.PrivateKey {
	if h.beacon == nil {
		return []ed25519.PrivateKey{h.VRF}
	}
	return []ed25519.PrivateKey{h.VRF, h.beacon}
}

// Close closes what was opened of the home, and unlocks it.
func (h *Home) Close() error {
	var errs []error
	for i := len(h.closers) - 1; i >= 0; i-- {
		errs = append(errs, h.closers[i]())
	}
	h.closers = nil
	if h.Held() {
		errs = append(errs, h.lock.Release())
	}
	return errors.Join(errs...)
}

// createKey makes a key file, whole or not at all.
func createKey(path string) error {
	if exists(path) {
		return nil
	}
	tmp := path + ".tmp"
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := p2p.CreateKey(tmp); err != nil {
		return err
	}
	return rename(tmp, path)
}
