package home

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/node/consensus"
	"github.com/tally-network/tally/p2p"
)

// Possession is what a validator's home shows of its keys, to have a seat in consensus.
type Possession struct {
	ConsensusKey, Signature []byte // the signature is over wire.ProofOfPossession
	BeaconKey               ed25519.PublicKey
}

// ProvePossession has the keys of a validator's home speak for its account on a chain. Another process may have the home.
func ProvePossession(dir, chain string, account sdk.AccAddress) (p Possession, err error) {
	s, err := LoadSettings(dir)
	if err != nil {
		return p, err
	}
	if s.Validator == nil {
		return p, fmt.Errorf("%s is the home of a %s: a seat in consensus needs a node, which tally validator runs", dir, s.Role)
	}
	if s.Chain != chain {
		return p, fmt.Errorf("%s is the home of a node of chain %q, and not of %q", dir, s.Chain, chain)
	}
	if s.Validator.Signer != "" {
		return p, fmt.Errorf("the consensus key of %s is with the signer at %s: it signs votes alone, so join before you move it there", dir, s.Validator.Signer)
	}
	p.ConsensusKey, p.Signature, err = consensus.Sign(filepath.Join(dir, chainDir), [32]byte(wire.ProofOfPossession(chain, account)))
	if err != nil {
		return p, err
	}
	key, err := p2p.LoadKey(filepath.Join(dir, beaconFile))
	if errors.Is(err, os.ErrNotExist) {
		key, err = p2p.LoadKey(filepath.Join(dir, vrfFile))
	}
	if err != nil {
		return p, fmt.Errorf("key for the beacon: %w", err)
	}
	p.BeaconKey = key.Public().(ed25519.PublicKey)
	return p, nil
}
