package chaintest

import (
	"crypto/ed25519"
	"crypto/sha256"
	"math"
	"time"

	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/wire"
	beaconv1 "github.com/tally-network/tally/gen/tally/beacon/v1"
	blockv1 "github.com/tally-network/tally/gen/tally/block/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// Account is a person or machine with the keys that it may need. Its name
// determines them all.
type Account struct {
	Name    string
	Key     *secp256k1.PrivKey
	Address sdk.AccAddress
	Peer    ed25519.PrivateKey
	VRF     ed25519.PrivateKey
}

// Named returns the account of a name.
func Named(name string) Account {
	key := secp256k1.GenPrivKeyFromSecret([]byte(name))
	return Account{
		Name: name, Key: key, Address: sdk.AccAddress(key.PubKey().Address()),
		Peer: edKey("peer of " + name), VRF: edKey("vrf of " + name),
	}
}

// String returns the account's address.
func (a Account) String() string { return a.Address.String() }

// PeerKey returns the public half of the network identity.
func (a Account) PeerKey() []byte { return a.Peer.Public().(ed25519.PublicKey) }

// VRFKey returns the public half of the VRF key.
func (a Account) VRFKey() []byte { return a.VRF.Public().(ed25519.PublicKey) }

// Register returns the signed message that registers the account.
func (a Account) Register(role providerv1.Role, stake uint64, l providerv1.Listing) *providerv1.MsgRegister {
	return &providerv1.MsgRegister{
		Account: a.String(), Roles: []providerv1.Role{role}, PeerKey: a.PeerKey(), VrfKey: a.VRFKey(), Stake: stake, Listing: l,
		Signature: ed25519.Sign(a.Peer, wire.Statement(ChainID, a.Address)),
	}
}

func edKey(name string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte(name))
	return ed25519.NewKeyFromSeed(seed[:])
}

// Option adds to a genesis.
type Option func(*app.Genesis)

// producer proposes all blocks.
var producer = Named("producer")

// NewGenesis describes a chain with one block producer, and what the options
// add.
func NewGenesis(options ...Option) app.Genesis {
	g := app.Genesis{
		ChainID: ChainID,
		Time:    time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		Block:   blockv1.Params{GasPrice: 100, MaxGapMs: math.MaxInt64}, // tests let time jump
		Validators: []app.Validator{{
			Account: producer.String(), ConsensusKey: edKey("consensus").Public().(ed25519.PublicKey), Votes: 10,
		}},
		Keys: []beaconv1.Key{{Account: producer.String(), Key: producer.VRFKey()}},
	}
	for _, o := range options {
		o(&g)
	}
	return g
}

// MaxGap bounds what a pause between two blocks counts.
func MaxGap(d time.Duration) Option {
	return func(g *app.Genesis) { g.Block.MaxGapMs = d.Milliseconds() }
}

// Fund gives each of the named accounts a balance in utally.
func Fund(balance uint64, names ...string) Option {
	return func(g *app.Genesis) {
		for _, n := range names {
			g.Accounts = append(g.Accounts, app.Account{Address: Named(n).String(), Balance: balance})
		}
	}
}

// Validator registers an account as validator with a stake.
func Validator(name string, stake uint64) Option {
	return peer(name, providerv1.ROLE_VALIDATOR, stake, providerv1.Listing{})
}

// Provider registers an account as provider under a validator, at a price in
// utally per GFLOP.
func Provider(name, validator string, stake, unitPrice uint64) Option {
	return peer(name, providerv1.ROLE_PROVIDER, stake,
		providerv1.Listing{Validator: Named(validator).String(), UnitPrice: unitPrice})
}

// Challenger registers an account as challenger.
func Challenger(name string, stake uint64) Option {
	return peer(name, providerv1.ROLE_CHALLENGER, stake, providerv1.Listing{})
}

// Authority names the account that may change the rules.
func Authority(name string) Option {
	return func(g *app.Genesis) { g.Authority = Named(name).String() }
}

func peer(name string, role providerv1.Role, stake uint64, l providerv1.Listing) Option {
	m := Named(name).Register(role, stake, l)
	return func(g *app.Genesis) {
		g.Peers = append(g.Peers, providerv1.Peer{
			Account: m.Account, Roles: []providerv1.Role{role}, PeerKey: m.PeerKey, VrfKey: m.VrfKey, Listing: l, Stake: stake,
		})
	}
}
