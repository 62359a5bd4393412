package app

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	cmttypes "github.com/cometbft/cometbft/types"
	"github.com/cosmos/gogoproto/proto"

	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/x/auction"
	"github.com/tally-network/tally/chain/x/beacon"
	"github.com/tally-network/tally/chain/x/block"
	"github.com/tally-network/tally/chain/x/dispute"
	"github.com/tally-network/tally/chain/x/drilling"
	"github.com/tally-network/tally/chain/x/policy"
	"github.com/tally-network/tally/chain/x/provider"
	"github.com/tally-network/tally/chain/x/reserve"
	"github.com/tally-network/tally/chain/x/seats"
	"github.com/tally-network/tally/chain/x/sessions"
	"github.com/tally-network/tally/chain/x/work"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	beaconv1 "github.com/tally-network/tally/gen/tally/beacon/v1"
	blockv1 "github.com/tally-network/tally/gen/tally/block/v1"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	drillingv1 "github.com/tally-network/tally/gen/tally/drilling/v1"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	reservev1 "github.com/tally-network/tally/gen/tally/reserve/v1"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	sessionsv1 "github.com/tally-network/tally/gen/tally/sessions/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// Limits on a block.
const (
	maxBlockBytes = 4 << 20
	maxBlockGas   = 100_000_000 // a transaction of 64 KiB costs about 700 000
)

// Genesis describes the start of a chain.
type Genesis struct {
	ChainID    string
	Time       time.Time         // of the first block
	Accounts   []Account         // free balances
	Validators []Validator       // the set that runs consensus
	Keys       []beaconv1.Key    // with which they prove the beacon's values
	Epoch      int64             // blocks of an epoch; 0: the default
	Peers      []providerv1.Peer // registered peers; stakes come on top of Accounts
	Block      blockv1.Params    // rules of blocks; zero: the defaults
	Params     providerv1.Params // rules of the registry; zero: the defaults
	Work       workv1.Params     // rules for leases; zero: the defaults
	Dispute    disputev1.Params  // rules of disputes; zero: the defaults
	Policy     policyv1.Params   // rules of votes; zero: the defaults
	Auction    auctionv1.Params  // rules of auctions; zero: the defaults
	Reserve    uint64            // utally that rewards are paid out of
	Rewards    Rewards           // zero: the defaults
	Drilling   drillingv1.Params // rules of drilling; zero: the defaults
	Sessions   sessionsv1.Params // rules of sessions; zero: the defaults
	Seats      Seats             // zero: the default rules, and nobody's power counts for another
	Authority  string            // account that may change these rules; empty: that of the policy, for which votes of power speak
}

// Account is a balance at genesis.
type Account struct {
	Address string // bech32
	Balance uint64 // utally
}

// Validator is one of the set that begins, and a founder by its votes. Its bond comes on top of Accounts.
type Validator struct {
	Account      string // bech32
	ConsensusKey []byte // ed25519 public key
	Votes        int64
	Bond         uint64 // utally; 0: others may take its seats, and it gets none
}

// Seats are how a chain gives seats in consensus.
type Seats struct {
	Params      seatsv1.Params       // zero: the defaults
	Delegations []seatsv1.Delegation // besides those of validators to themselves
}

// Rewards are how a chain pays out of its reserve.
type Rewards struct {
	Params  reservev1.Params // zero: the defaults
	EpochMs int64            // 0: an hour
}

// Doc returns the genesis as CometBFT reads it. Equal descriptions give equal
// bytes.
func (g Genesis) Doc() (*cmttypes.GenesisDoc, error) {
	d, err := g.Draft()
	if err != nil {
		return nil, err
	}
	if err := d.app.checkGenesis(d.state); err != nil {
		return nil, err
	}
	if d.doc.AppState, err = json.Marshal(d.state); err != nil {
		return nil, err
	}
	return d.doc, d.doc.ValidateAndComplete()
}

// header returns the genesis without the state.
func (g Genesis) header() *cmttypes.GenesisDoc {
	doc := &cmttypes.GenesisDoc{
		ChainID:         g.ChainID,
		GenesisTime:     g.Time.UTC().Truncate(time.Millisecond),
		ConsensusParams: cmttypes.DefaultConsensusParams(),
		InitialHeight:   1,
	}
	doc.ConsensusParams.Block.MaxBytes = maxBlockBytes
	doc.ConsensusParams.Block.MaxGas = maxBlockGas
	return doc
}

// parts returns the state of each module.
func (g Genesis) parts(a *App) (map[string]json.RawMessage, error) {
	g.Authority = cmp.Or(g.Authority, address.Policy().String())
	auth, bank, err := g.ledger()
	if err != nil {
		return nil, err
	}
	state, standard := map[string]json.RawMessage{}, a.DefaultGenesis()
	for _, name := range initOrder {
		state[name] = standard[name]
	}
	// order: each part is written to its own place
	for name, part := range map[string]proto.Message{
		authtypes.ModuleName: auth,
		banktypes.ModuleName: bank,
		block.Name:           g.blocks(),
		beacon.Name:          g.chance(),
		seats.Name:           g.members(),
		provider.Name:        g.registry(),
		work.Name:            g.leases(),
		dispute.Name:         g.disputes(),
		policy.Name:          g.votes(),
		auction.Name:         g.auctions(),
		reserve.Name:         g.rewards(),
		drilling.Name:        g.projects(),
		sessions.Name:        g.sessions(),
	} {
		if state[name], err = a.Codec.MarshalJSON(part); err != nil {
			return nil, fmt.Errorf("write genesis of %s: %w", name, err)
		}
	}
	return state, nil
}

// blocks returns the rules of blocks.
func (g Genesis) blocks() *blockv1.GenesisState {
	out := block.DefaultGenesis()
	out.Authority, out.Params = g.Authority, cmp.Or(g.Block, out.Params)
	return out
}

// chance returns who proves the beacon's values, and how long epochs are.
func (g Genesis) chance() *beaconv1.GenesisState {
	out := beacon.DefaultGenesis()
	out.Keys = g.Keys
	out.EpochBlocks = cmp.Or(g.Epoch, out.EpochBlocks)
	return out
}

// registry returns the peers, and the rules for them.
func (g Genesis) registry() *providerv1.GenesisState {
	out := provider.DefaultGenesis()
	out.Peers, out.Authority = g.Peers, g.Authority
	if g.Params.Size() > 0 {
		out.Params = g.Params
	}
	return out
}

// leases returns the rules of leases, of which there are none.
func (g Genesis) leases() *workv1.GenesisState {
	out := work.DefaultGenesis()
	out.Authority, out.Params = g.Authority, cmp.Or(g.Work, out.Params)
	return out
}

// disputes returns the rules of disputes, of which there are none.
func (g Genesis) disputes() *disputev1.GenesisState {
	out := dispute.DefaultGenesis()
	out.Authority, out.Params = g.Authority, cmp.Or(g.Dispute, out.Params)
	return out
}

// auctions returns the rules of auctions, at which nothing is on sale.
func (g Genesis) auctions() *auctionv1.GenesisState {
	out := auction.DefaultGenesis()
	out.Authority, out.Params = g.Authority, cmp.Or(g.Auction, out.Params)
	return out
}

// rewards returns the rules of rewards.
func (g Genesis) rewards() *reservev1.GenesisState {
	out := reserve.DefaultGenesis()
	out.Authority, out.Params = g.Authority, cmp.Or(g.Rewards.Params, out.Params)
	out.EpochMs = cmp.Or(g.Rewards.EpochMs, out.EpochMs)
	return out
}

// votes returns the rules of votes, and who votes until power suffices: the validators.
func (g Genesis) votes() *policyv1.GenesisState {
	out := policy.DefaultGenesis()
	out.Authority, out.Params = g.Authority, cmp.Or(g.Policy, out.Params)
	for _, v := range g.Validators {
		if v.Votes > 0 { // the check of seats refuses others below 0
			out.Founders = append(out.Founders, policyv1.Founder{Account: v.Account, Weight: uint64(v.Votes)})
		}
	}
	return out
}

// members returns who runs consensus, and for whom power counts: for each validator its own.
func (g Genesis) members() *seatsv1.GenesisState {
	out := seats.DefaultGenesis()
	out.Authority, out.Params = g.Authority, cmp.Or(g.Seats.Params, out.Params)
	for _, v := range g.Validators {
		out.Members = append(out.Members, seatsv1.Member{
			Account: v.Account, ConsensusKey: v.ConsensusKey, Votes: v.Votes, Bond: v.Bond, Status: seatsv1.STATUS_ACTIVE,
		})
		out.Delegations = append(out.Delegations, seatsv1.Delegation{Account: v.Account, Member: v.Account})
	}
	out.Delegations = append(out.Delegations, g.Seats.Delegations...)
	return out
}

// projects returns the state of drilling: its rules, and no project.
func (g Genesis) projects() *drillingv1.GenesisState {
	out := drilling.DefaultGenesis()
	out.Authority, out.Params = g.Authority, cmp.Or(g.Drilling, out.Params)
	return out
}

// sessions returns the rules of sessions, of which there are none.
func (g Genesis) sessions() *sessionsv1.GenesisState {
	out := sessions.DefaultGenesis()
	out.Authority, out.Params = g.Authority, cmp.Or(g.Sessions, out.Params)
	return out
}

// ledger returns the accounts and balances: those described, an account for
// each peer and operator, and the stakes in the account of the registry.
func (g Genesis) ledger() (*authtypes.GenesisState, *banktypes.GenesisState, error) {
	l := newLedger()
	for _, a := range g.Accounts {
		if l.known[a.Address] {
			return nil, nil, fmt.Errorf("genesis: account %s occurs twice", a.Address)
		}
		if err := l.add(a.Address, a.Balance); err != nil {
			return nil, nil, err
		}
	}
	stakes, bonds := uint64(0), uint64(0)
	for _, v := range g.Validators {
		if err := l.add(v.Account, 0); err != nil {
			return nil, nil, err
		}
		bonds += v.Bond // bounded by the check of the genesis of seats
	}
	for _, p := range g.Peers {
		if err := l.add(p.Account, 0); err != nil {
			return nil, nil, err
		}
		stakes += p.Stake // bounded by the check of the registry's genesis
	}
	for _, x := range []struct {
		module string
		holds  uint64
	}{{provider.Name, stakes}, {seats.Name, bonds}, {reserve.Name, g.Reserve}} {
		if err := l.hold(x.module, x.holds); err != nil {
			return nil, nil, err
		}
	}
	return l.states()
}
