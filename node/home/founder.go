package home

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/vrf"
	"github.com/tally-network/tally/chain/wire"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/node/consensus"
)

// Founder is what a validator's home tells whoever puts a genesis together. Its keys sign for one chain and account, so
// nobody can found with those of another.
type Founder struct {
	Chain        string   `json:"chain_id"`
	Account      string   `json:"account"`
	ConsensusKey []byte   `json:"consensus_key"`
	Possession   []byte   `json:"consensus_signature"`
	BeaconKey    []byte   `json:"beacon_key"`
	VRFKey       []byte   `json:"vrf_key"` // of the peer
	PeerKey      []byte   `json:"peer_key"`
	Statement    []byte   `json:"peer_signature"`
	Addrs        []string `json:"addrs"` // libp2p, of the peer
	Node         string   `json:"node"`  // id@host:port of its consensus node, as others name it
}

// Found returns what a validator's home tells, and makes its consensus keys if it has none. Others reach its node at
// host:port; empty: where it listens.
func (h *Home) Found(reach string) (f Founder, err error) {
	v := h.Settings.Validator
	if v == nil {
		return f, fmt.Errorf("%s is the home of a %s: only validators found a chain", h.Dir, h.Settings.Role)
	}
	if reach == "" {
		reach = v.P2P
	}
	if _, _, err := net.SplitHostPort(reach); err != nil {
		return f, fmt.Errorf("where others reach the node: %w", err)
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
	p, err := Possess(h.Dir, h.Settings.Chain, account)
	if err != nil {
		return f, err
	}
	addrs := h.Settings.Announce
	if len(addrs) == 0 {
		addrs = h.Settings.Listen
	}
	return Founder{
		Chain: h.Settings.Chain, Account: h.Address, ConsensusKey: p.ConsensusKey, Possession: p.Signature, BeaconKey: p.BeaconKey, VRFKey: h.VRFKey(),
		PeerKey: h.PeerKey(), Statement: ed25519.Sign(h.Peer, wire.Statement(h.Settings.Chain, account)),
		Addrs: addrs, Node: id.NodeID + "@" + reach,
	}, nil
}

// Of returns the founder as a chain's genesis has it, with what the genesis gives it. Keys that did not sign are refused.
func (f *Founder) Of(chain string, votes int64, bond, stake, balance uint64) (app.Founder, error) {
	account, err := address.Parse(f.Account)
	switch {
	case err != nil:
		return app.Founder{}, err
	case f.Chain != chain:
		return app.Founder{}, fmt.Errorf("%s founds chain %q, and the genesis is of %q", f.Account, f.Chain, chain)
	case vrf.CheckKey(f.ConsensusKey) != nil || !ed25519.Verify(f.ConsensusKey, wire.Possession(chain, account), f.Possession):
		return app.Founder{}, fmt.Errorf("consensus key of %s: it did not sign for this account and chain", f.Account)
	case vrf.CheckKey(f.PeerKey) != nil || !ed25519.Verify(f.PeerKey, wire.Statement(chain, account), f.Statement):
		return app.Founder{}, fmt.Errorf("peer key of %s: it did not sign for this account and chain", f.Account)
	}
	if err := errors.Join(vrf.CheckKey(f.BeaconKey), vrf.CheckKey(f.VRFKey), consensus.CheckPeers([]string{f.Node})); err != nil {
		return app.Founder{}, fmt.Errorf("founder %s: %w", f.Account, err)
	}
	return app.Founder{
		Validator: app.Validator{Account: f.Account, ConsensusKey: f.ConsensusKey, Votes: votes, Bond: bond},
		BeaconKey: f.BeaconKey, Balance: balance,
		Peer: providerv1.Peer{
			Account: f.Account, Roles: []providerv1.Role{providerv1.ROLE_VALIDATOR}, PeerKey: f.PeerKey, VrfKey: f.VRFKey,
			Listing: providerv1.Listing{Addrs: f.Addrs}, Stake: stake,
		},
	}, nil
}
