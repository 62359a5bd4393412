// Package founding puts a new chain's genesis together, out of what its founders' homes tell.
//
// Call [NewFile] for a home's file, and [Add] with all founders' files on a draft (chain/app). [NewView] tells what a chain
// would begin with, and [FounderOf] whether a home is among the founders.
//
// Invariant: keys enter a genesis only for the account and chain for which they signed, with what that account signed.
package founding

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/home"
)

// Grant is what a genesis gives each founder that is added, in utally.
type Grant struct {
	Votes                uint64 // in consensus, and about rules
	Bond, Stake, Balance uint64
}

// DefaultGrant is the grant of a founder of whom nothing else is said: its bond stands behind a thousand seats, and its stake is
// twice the least with which it may lead.
var DefaultGrant = Grant{Votes: 100, Bond: 10_000_000_000, Stake: 2_000_000_000, Balance: 100_000_000}

// Add adds founders' files and ADDRESS=AMOUNT to a draft, and returns the nodes of those founders, as id@host:port.
func Add(d *app.Draft, g Grant, args []string) (nodes []string, err error) {
	for _, arg := range args {
		if account, amount, ok := strings.Cut(arg, "="); ok {
			n, err := consume.ParseAmount(amount)
			if err == nil {
				err = d.AddBalances(app.Account{Address: account, Balance: uint64(n)})
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", arg, err)
			}
			continue
		}
		f, err := readFile(arg)
		if err != nil {
			return nil, err
		}
		founder, err := f.founder(d.ChainID(), g)
		if err == nil {
			err = d.AddFounder(founder)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", arg, err)
		}
		nodes = append(nodes, f.Node)
	}
	return nodes, nil
}

// SetRules sets rules, as MODULE.RULE=VALUE.
func SetRules(d *app.Draft, rules []string) error {
	for _, rule := range rules {
		name, value, ok := strings.Cut(rule, "=")
		module, name, dotted := strings.Cut(name, ".")
		if !ok || !dotted {
			return fmt.Errorf("--set %s: write MODULE.RULE=VALUE, as block.gas_price=200", rule)
		}
		if err := d.SetRule(module, name, value); err != nil {
			return err
		}
	}
	return nil
}

// View is a genesis file as people look at it.
type View struct {
	File string `json:"file"`
	Hash string `json:"sha256"`
	app.Summary
	Mine  string   `json:"mine,omitempty"`  // the founder whose keys the home has
	Nodes []string `json:"nodes,omitempty"` // of the founders that were added
}

// NewView returns the view of a file.
func NewView(file string, d *app.Draft, text []byte) (*View, error) {
	b, err := d.Summary()
	sum := sha256.Sum256(text)
	return &View{File: file, Hash: hex.EncodeToString(sum[:]), Summary: b}, err
}

// FounderOf returns the account of a home if its keys are a founder's, or what is wrong. Another process may have the home.
func FounderOf(dir string, b *app.Summary) (string, error) {
	h, err := home.Peek(dir)
	if err != nil {
		return "", err
	}
	account, err := address.Parse(h.Address)
	if err != nil {
		return "", err
	}
	p, err := home.ProvePossession(dir, b.ChainID, account)
	if err != nil {
		return "", err
	}
	for _, f := range b.Founders {
		if f.Account != h.Address {
			continue
		}
		for _, key := range []struct {
			name     string
			is, want []byte
		}{
			{"consensus", f.ConsensusKey, p.ConsensusKey}, {"beacon", f.BeaconKey, p.BeaconKey}, {"peer", f.PeerKey, h.PeerKey()}, {"VRF", f.VRFKey, h.VRFKey()},
		} {
			if !bytes.Equal(key.is, key.want) {
				return "", fmt.Errorf("%s has %s with another %s key than its home %s: send its file anew", b.ChainID, h.Address, key.name, dir)
			}
		}
		if !slices.Equal(f.Addrs, h.Settings.Addrs()) {
			return "", fmt.Errorf("%s has %s at %q, and its home %s says %q (listen, announce): send its file anew", b.ChainID, h.Address, f.Addrs, dir, h.Settings.Addrs())
		}
		return h.Address, nil
	}
	return "", fmt.Errorf("%s, of the home %s, is no founder of this genesis", h.Address, dir)
}
