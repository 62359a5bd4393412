package consensus

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	cmtcfg "github.com/cometbft/cometbft/config"
	cmted25519 "github.com/cometbft/cometbft/crypto/ed25519"
	cmtjson "github.com/cometbft/cometbft/libs/json"
	"github.com/cometbft/cometbft/p2p"
	"github.com/cometbft/cometbft/privval"

	"github.com/tally-network/tally/internal/bounded"
)

// Identity is what others must know of a node before it starts.
type Identity struct {
	NodeID       string            // of the P2P key, in Config.Peers before the @
	ConsensusKey ed25519.PublicKey // in the genesis, if the node is a validator
}

// LoadIdentity returns the identity of the node in dir, and makes its keys if
// there are none.
func LoadIdentity(dir string) (Identity, error) {
	id, err := LoadNodeID(dir)
	if err != nil {
		return Identity{}, err
	}
	validator, err := loadValidator((&Config{Dir: dir}).comet())
	if err != nil {
		return Identity{}, err
	}
	return Identity{id, validator.Key.PubKey.Bytes()}, nil
}

// LoadNodeID returns the ID of the node in dir, and makes its P2P key if there is none.
func LoadNodeID(dir string) (string, error) {
	key, err := loadNodeKey((&Config{Dir: dir}).comet())
	if err != nil {
		return "", err
	}
	return string(key.ID()), nil
}

// loadNodeKey returns the P2P key, and makes it if there is none. CometBFT's own loaders end the
// process over a damaged or half-made file; here that is an error, and a file
// is there whole or not at all.
func loadNodeKey(conf *cmtcfg.Config) (*p2p.NodeKey, error) {
	if err := os.MkdirAll(filepath.Dir(conf.NodeKeyFile()), 0o700); err != nil {
		return nil, err
	}
	if !exists(conf.NodeKeyFile()) {
		key, err := cmtjson.Marshal(p2p.NodeKey{PrivKey: cmted25519.GenPrivKey()})
		if err != nil {
			return nil, err
		}
		if err := writeFile(conf.NodeKeyFile(), key); err != nil {
			return nil, fmt.Errorf("write node key: %w", err)
		}
	}
	key, err := p2p.LoadNodeKey(conf.NodeKeyFile())
	if err != nil {
		return nil, fmt.Errorf("read node key: %w", err)
	}
	return key, nil
}

// loadValidator returns the validator key with the record of what it signed last, and makes them if there are none.
func loadValidator(conf *cmtcfg.Config) (*privval.FilePV, error) {
	keyFile, stateFile := conf.PrivValidatorKeyFile(), conf.PrivValidatorStateFile()
	for _, file := range []string{keyFile, stateFile} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return nil, err
		}
	}
	if !exists(keyFile) {
		var last privval.FilePVLastSignState // of the key that is missing
		if err := readJSON(stateFile, &last); err != nil && !errors.Is(err, fs.ErrNotExist) || last.Height > 0 {
			return nil, errors.Join(fmt.Errorf("%s is missing, though its key may have signed blocks: put it back; or, to begin with another key, move %s away", keyFile, stateFile), err)
		}
		fresh := privval.GenFilePV(keyFile, stateFile)
		fresh.LastSignState.Save() // first: a key without its record must not be
		fresh.Key.Save()
	}
	if err := readJSON(keyFile, &privval.FilePVKey{}); err != nil {
		return nil, fmt.Errorf("read validator key: %w", err)
	}
	if err := readJSON(stateFile, &privval.FilePVLastSignState{}); err != nil {
		return nil, fmt.Errorf("read what the validator signed last, without which it might sign twice: %w", err)
	}
	return privval.LoadFilePV(keyFile, stateFile), nil
}

// Sign has the consensus key of the node in dir sign a statement, which no vote can be: it has 32 bytes. It makes no
// key.
func Sign(dir string, statement [32]byte) (key ed25519.PublicKey, signature []byte, err error) {
	file := (&Config{Dir: dir}).comet().PrivValidatorKeyFile()
	if !exists(file) {
		return nil, nil, fmt.Errorf("%s has no consensus key: start its node once", dir)
	}
	var k privval.FilePVKey
	if err := readJSON(file, &k); err != nil {
		return nil, nil, fmt.Errorf("read validator key: %w", err)
	}
	if k.PrivKey == nil || k.PubKey == nil {
		return nil, nil, fmt.Errorf("%s holds no key", file)
	}
	signature, err = k.PrivKey.Sign(statement[:])
	return k.PubKey.Bytes(), signature, err
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// maxKey bounds a key file, and what a validator signed last, in bytes.
const maxKey = 64 << 10

func readJSON(file string, into any) error {
	text, err := bounded.ReadFile(file, maxKey)
	if err != nil {
		return err
	}
	return cmtjson.Unmarshal(text, into)
}
