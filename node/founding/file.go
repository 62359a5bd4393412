package founding

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/vrf"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/node/consensus"
	"github.com/tally-network/tally/node/home"
)

// maxFile bounds a founder's file, in bytes.
const maxFile = 64 << 10

// File is what a validator's home tells whoever puts a genesis together. Its keys sign for one chain and account, so
// nobody can found with those of another; the account signs all of it.
type File struct {
	Chain        string   `json:"chain_id"`
	Account      string   `json:"account"`
	ConsensusKey []byte   `json:"consensus_key"`
	Possession   []byte   `json:"proof_of_possession"`
	BeaconKey    []byte   `json:"beacon_key"`
	VRFKey       []byte   `json:"vrf_key"` // of the peer
	PeerKey      []byte   `json:"peer_key"`
	Statement    []byte   `json:"peer_signature"`
	Addrs        []string `json:"addrs"` // libp2p, of the peer
	Node         string   `json:"node"`  // id@host:port of its consensus node, as others name it
	AccountKey   []byte   `json:"account_key"`
	Signature    []byte   `json:"account_signature"` // of what stands above
}

// NewFile returns what a validator's home tells, and makes its consensus keys if it has none. Others reach its node at
// the external address, as host:port; empty: where it listens.
func NewFile(h *home.Home, external string) (f File, err error) {
	v := h.Settings.Validator
	if v == nil {
		return f, fmt.Errorf("%s is the home of a %s: only validators found a chain", h.Dir, h.Settings.Role)
	}
	if external == "" {
		external = v.P2P
	}
	if _, _, err := net.SplitHostPort(external); err != nil {
		return f, fmt.Errorf("external address of the node: write host:port: %w", err)
	}
	if v.Signer != "" {
		return f, fmt.Errorf("the consensus key of %s is with the signer at %s: write the founder's file before you move it there", h.Dir, v.Signer)
	}
	id, err := h.Identity() // makes the keys
	if err != nil {
		return f, err
	}
	account, err := address.Parse(h.Address)
	if err != nil {
		return f, err
	}
	p, err := home.ProvePossession(h.Dir, h.Settings.Chain, account)
	if err != nil {
		return f, err
	}
	f = File{
		Chain: h.Settings.Chain, Account: h.Address, ConsensusKey: p.ConsensusKey, Possession: p.Signature, BeaconKey: p.BeaconKey, VRFKey: h.VRFKey(),
		PeerKey: h.PeerKey(), Statement: ed25519.Sign(h.Peer, wire.Statement(h.Settings.Chain, account)),
		Addrs: h.Settings.Addrs(), Node: id.NodeID + "@" + external,
	}
	if f.AccountKey, f.Signature, err = h.Attest(f.signed()); err != nil {
		return f, err
	}
	_, err = f.founder(f.Chain, Grant{}) // as those who read it will
	return f, err
}

// signed returns what the account signs.
func (f *File) signed() []byte {
	h := canon.Sum(canon.DomainFounder, canon.Encode(func(e *canon.Encoder) {
		e.String(f.Chain)
		e.String(f.Account)
		for _, b := range [][]byte{f.ConsensusKey, f.Possession, f.BeaconKey, f.VRFKey, f.PeerKey, f.Statement} {
			e.Blob(b)
		}
		e.Uint(uint64(len(f.Addrs)))
		for _, a := range f.Addrs {
			e.String(a)
		}
		e.String(f.Node)
	}))
	return h[:]
}

// readFile reads a founder's file, in which nothing may stand that is not understood.
func readFile(name string) (f File, err error) {
	text, err := bounded.ReadFile(name, maxFile)
	if err != nil {
		return f, err
	}
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	if err := in.Decode(&f); err != nil {
		return f, fmt.Errorf("%s is no founder's file: %w", name, err)
	}
	if _, err := in.Token(); err != io.EOF {
		return f, fmt.Errorf("%s is no founder's file: something follows it", name)
	}
	return f, nil
}

// founder returns the founder as a chain's genesis has it. Files that its account, or keys that it names, did not sign
// are refused.
func (f *File) founder(chain string, g Grant) (app.Founder, error) {
	account, err := address.Parse(f.Account)
	key := secp256k1.PubKey{Key: f.AccountKey}
	switch {
	case err != nil:
		return app.Founder{}, err
	case f.Chain != chain:
		return app.Founder{}, fmt.Errorf("%s founds chain %q, and the genesis is of %q", f.Account, f.Chain, chain)
	case len(key.Key) != secp256k1.PubKeySize || !bytes.Equal(key.Address(), account) || !key.VerifySignature(f.signed(), f.Signature):
		return app.Founder{}, fmt.Errorf("%s did not sign this file: have its owner write it anew", f.Account)
	case vrf.CheckKey(f.ConsensusKey) != nil || !ed25519.Verify(f.ConsensusKey, wire.ProofOfPossession(chain, account), f.Possession):
		return app.Founder{}, fmt.Errorf("consensus key of %s: it did not sign for this account and chain", f.Account)
	case vrf.CheckKey(f.PeerKey) != nil || !ed25519.Verify(f.PeerKey, wire.Statement(chain, account), f.Statement):
		return app.Founder{}, fmt.Errorf("peer key of %s: it did not sign for this account and chain", f.Account)
	}
	if err := errors.Join(vrf.CheckKey(f.BeaconKey), vrf.CheckKey(f.VRFKey), consensus.CheckPeers([]string{f.Node})); err != nil {
		return app.Founder{}, fmt.Errorf("founder %s: %w", f.Account, err)
	}
	return app.Founder{
		Validator: app.Validator{Account: f.Account, ConsensusKey: f.ConsensusKey, Votes: int64(g.Votes), Bond: g.Bond},
		BeaconKey: f.BeaconKey, Balance: g.Balance,
		Peer: (&app.FounderSummary{Account: f.Account, PeerKey: f.PeerKey, VRFKey: f.VRFKey, Addrs: f.Addrs, Stake: g.Stake}).Peer(),
	}, nil
}
