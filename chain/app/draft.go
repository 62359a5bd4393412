package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"
	cmtjson "github.com/cometbft/cometbft/libs/json"
	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"
	cmttypes "github.com/cometbft/cometbft/types"
	dbm "github.com/cosmos/cosmos-db"
	"github.com/cosmos/gogoproto/proto"

	"cosmossdk.io/log/v2"

	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/beacon"
	"github.com/tally-network/tally/chain/x/block"
	"github.com/tally-network/tally/chain/x/policy"
	"github.com/tally-network/tally/chain/x/provider"
	"github.com/tally-network/tally/chain/x/reserve"
	"github.com/tally-network/tally/chain/x/seats"
	beaconv1 "github.com/tally-network/tally/gen/tally/beacon/v1"
	blockv1 "github.com/tally-network/tally/gen/tally/block/v1"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
)

// Draft is a genesis that founders and accounts are added to, and of which rules are changed.
type Draft struct {
	doc   *cmttypes.GenesisDoc
	app   *App
	state map[string]json.RawMessage // by module
}

// Founder is a validator of the set that begins, and a peer that may lead. Its bond and stake come on top of its balance.
type Founder struct {
	Validator
	BeaconKey []byte // ECVRF public key
	Peer      providerv1.Peer
	Balance   uint64 // utally
}

func newDraft(doc *cmttypes.GenesisDoc) (*Draft, error) {
	if err := wire.CheckChainID(doc.ChainID); err != nil {
		return nil, err
	}
	a, err := New(log.NewNopLogger(), dbm.NewMemDB(), doc.ChainID)
	return &Draft{doc: doc, app: a}, err
}

// Draft returns a draft of the described genesis. It may lack founders: [Draft.AddFounder] adds them.
func (g Genesis) Draft() (*Draft, error) {
	d, err := newDraft(g.header())
	if err != nil {
		return nil, err
	}
	d.state, err = g.parts(d.app)
	return d, err
}

// ChainID returns the chain's.
func (d *Draft) ChainID() string { return d.doc.ChainID }

// maxInitialHeight bounds the first block: CometBFT spins without end once heights overflow.
const maxInitialHeight = 1_000_000_000_000

// ReadDraft reads a genesis file. What each machine would complete by itself must be there.
func ReadDraft(text []byte) (*Draft, error) {
	doc := &cmttypes.GenesisDoc{}
	if err := cmtjson.Unmarshal(text, doc); err != nil {
		return nil, fmt.Errorf("read genesis: %w", err)
	}
	if doc.InitialHeight > maxInitialHeight {
		return nil, fmt.Errorf("read genesis: initial_height %d: want %d at most", doc.InitialHeight, int64(maxInitialHeight))
	}
	if doc.GenesisTime.IsZero() {
		return nil, errors.New("read genesis: genesis_time is missing: give it, or each machine takes its own")
	}
	if len(doc.Validators) > 0 {
		return nil, errors.New("read genesis: it has validators beside app_state: take them out, for app_state.seats says who begins")
	}
	d, err := newDraft(doc)
	if err == nil {
		err = doc.ValidateAndComplete()
	}
	if err != nil {
		return nil, fmt.Errorf("read genesis: %w", err)
	}
	if err := json.Unmarshal(doc.AppState, &d.state); err != nil {
		return nil, fmt.Errorf("read genesis: app_state: %w", err)
	}
	return d, d.app.checkGenesis(d.state)
}

// read reads the part of a module into m.
func (d *Draft) read(module string, m proto.Message) error {
	if err := d.app.Codec.UnmarshalJSON(d.state[module], m); err != nil {
		return fmt.Errorf("genesis of %s: %w", module, err)
	}
	return nil
}

// write makes m the part of a module.
func (d *Draft) write(module string, m proto.Message) error {
	text, err := d.app.Codec.MarshalJSON(m)
	if err != nil {
		return fmt.Errorf("genesis of %s: %w", module, err)
	}
	d.state[module] = text
	return nil
}

// edit changes the part of a module, which is read into m.
func (d *Draft) edit(module string, m proto.Message, change func()) error {
	if err := d.read(module, m); err != nil {
		return err
	}
	change()
	return d.write(module, m)
}

// ledger reads accounts and balances.
func (d *Draft) ledger() (*ledger, error) {
	auth, bank := &authtypes.GenesisState{}, &banktypes.GenesisState{}
	if err := errors.Join(d.read(authtypes.ModuleName, auth), d.read(banktypes.ModuleName, bank)); err != nil {
		return nil, err
	}
	return ledgerOf(auth, bank)
}

// pay changes accounts and balances.
func (d *Draft) pay(change func(l *ledger) error) error {
	l, err := d.ledger()
	if err != nil {
		return err
	}
	if err := change(l); err != nil {
		return err
	}
	auth, bank, err := l.states()
	if err != nil {
		return err
	}
	return errors.Join(d.write(authtypes.ModuleName, auth), d.write(banktypes.ModuleName, bank))
}

// AddBalances gives accounts what they have at first, on top of what they have in the draft.
func (d *Draft) AddBalances(accounts ...Account) error {
	return d.pay(func(l *ledger) error {
		for _, a := range accounts {
			if err := l.add(a.Address, a.Balance); err != nil {
				return err
			}
		}
		return nil
	})
}

// AddFounder adds a founder.
func (d *Draft) AddFounder(f Founder) error {
	of := Genesis{Validators: []Validator{f.Validator}}
	members, votes := of.members(), of.votes()
	err := d.pay(func(l *ledger) error {
		return errors.Join(l.add(f.Account, f.Balance), l.hold(seats.Name, f.Bond), l.hold(provider.Name, f.Peer.Stake))
	})
	if err != nil {
		return err
	}
	s, p, r, b := &seatsv1.GenesisState{}, &policyv1.GenesisState{}, &providerv1.GenesisState{}, &beaconv1.GenesisState{}
	known := false
	err = errors.Join(
		d.edit(seats.Name, s, func() {
			known = slices.ContainsFunc(s.Members, func(m seatsv1.Member) bool { return m.Account == f.Account })
			s.Members, s.Delegations = append(s.Members, members.Members...), append(s.Delegations, members.Delegations...)
		}),
		d.edit(policy.Name, p, func() { p.Founders = append(p.Founders, votes.Founders...) }),
		d.edit(provider.Name, r, func() { r.Peers = append(r.Peers, f.Peer) }),
		d.edit(beacon.Name, b, func() { b.Keys = append(b.Keys, beaconv1.Key{Account: f.Account, Key: f.BeaconKey}) }),
	)
	if known {
		return fmt.Errorf("%s is a founder of this genesis already", f.Account)
	}
	return err
}

// SetRule sets a rule of a module. The check of the genesis tells whether it may have that value.
func (d *Draft) SetRule(module, rule, value string) error {
	part := fields(d.state[module])
	rules := fields(part["params"])
	if len(rules) == 0 {
		return fmt.Errorf("%q is no module with rules: docs/spec/rules.md lists them, as block.gas_price", module)
	}
	was, ok := rules[rule]
	if !ok {
		return fmt.Errorf("%s has no rule %q, only %s", module, rule, strings.Join(slices.Sorted(maps.Keys(rules)), ", "))
	}
	if rules[rule] = json.RawMessage(value); bytes.HasPrefix(was, []byte(`"`)) { // 64 bits are text in JSON
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		rules[rule] = text
	}
	params, err := json.Marshal(rules)
	if err != nil {
		return fmt.Errorf("%s.%s=%s: want a number, or true or false", module, rule, value)
	}
	part["params"] = params
	d.state[module], err = json.Marshal(part)
	return err
}

// Verify begins a chain with the draft in memory, checks all invariants, and returns the genesis.
func (d *Draft) Verify() (*cmttypes.GenesisDoc, error) {
	state, err := json.Marshal(d.state)
	if err != nil {
		return nil, err
	}
	doc := *d.doc
	doc.AppState = state
	if err := doc.ValidateAndComplete(); err != nil {
		return nil, err
	}
	a, err := New(log.NewNopLogger(), dbm.NewMemDB(), doc.ChainID)
	if err != nil {
		return nil, err
	}
	params := doc.ConsensusParams.ToProto()
	if _, err := a.InitChain(&abci.RequestInitChain{
		ChainId: doc.ChainID, Time: doc.GenesisTime, InitialHeight: doc.InitialHeight, ConsensusParams: &params, AppStateBytes: doc.AppState,
	}); err != nil {
		return nil, err
	}
	if _, err := a.FinalizeBlock(&abci.RequestFinalizeBlock{Height: doc.InitialHeight, Time: doc.GenesisTime, Hash: make([]byte, 32)}); err != nil {
		return nil, err
	}
	if _, err := a.Commit(); err != nil {
		return nil, err
	}
	header := cmtproto.Header{ChainID: doc.ChainID, Height: doc.InitialHeight, Time: doc.GenesisTime}
	return &doc, a.CheckInvariants(a.NewNextBlockContext(header))
}

// Summary is what a chain begins with.
type Summary struct {
	ChainID  string           `json:"chain_id"`
	Time     time.Time        `json:"time"`
	Supply   uint64           `json:"supply_utally"`
	Reserve  uint64           `json:"reserve_utally"`
	Locked   uint64           `json:"locked_utally"` // bonds and stakes
	Accounts int              `json:"accounts"`
	GasPrice uint64           `json:"gas_price"` // utally for 10⁶ gas
	Founders []FounderSummary `json:"founders"`
	Rules    []string         `json:"rules"`  // that are not the default, as MODULE.RULE=VALUE
	Others   []string         `json:"others"` // parts of the genesis that differ from the default and are not told above
}

// FounderSummary is a founder as a genesis has it.
type FounderSummary struct {
	Account      string   `json:"account"`
	ConsensusKey []byte   `json:"consensus_key"`
	BeaconKey    []byte   `json:"beacon_key"`
	PeerKey      []byte   `json:"peer_key"` // of its peer, as what follows; missing if it has none
	VRFKey       []byte   `json:"vrf_key"`
	Addrs        []string `json:"addrs"`
	Votes        int64    `json:"votes"`
	Bond         uint64   `json:"bond_utally"`
	Stake        uint64   `json:"stake_utally"`
}

// Peer returns the peer with which a founder begins: a validator, of which nothing is known but its keys and addresses.
func (f *FounderSummary) Peer() providerv1.Peer {
	return providerv1.Peer{
		Account: f.Account, Roles: []providerv1.Role{providerv1.ROLE_VALIDATOR}, PeerKey: f.PeerKey, VrfKey: f.VRFKey,
		Listing: providerv1.Listing{Addrs: f.Addrs}, Stake: f.Stake,
	}
}

// Summary returns what a chain would begin with.
func (d *Draft) Summary() (b Summary, err error) {
	b = Summary{ChainID: d.doc.ChainID, Time: d.doc.GenesisTime, Rules: d.rules()}
	l, err := d.ledger()
	if err != nil {
		return b, err
	}
	b.Supply, b.Accounts, b.Reserve = l.total, len(l.accounts), l.held(reserve.Name)
	b.Locked = l.held(seats.Name) + l.held(provider.Name) // less than the supply
	x := &blockv1.GenesisState{}
	if err := d.read(block.Name, x); err != nil {
		return b, err
	}
	b.GasPrice = x.Params.GasPrice
	if b.Founders, err = d.founders(); err != nil {
		return b, err
	}
	b.Others, err = d.others(b.Founders)
	return b, err
}

// founders returns the members, with their keys and peers.
func (d *Draft) founders() (out []FounderSummary, err error) {
	s, r, k := &seatsv1.GenesisState{}, &providerv1.GenesisState{}, &beaconv1.GenesisState{}
	if err := errors.Join(d.read(seats.Name, s), d.read(provider.Name, r), d.read(beacon.Name, k)); err != nil {
		return nil, err
	}
	peers, keys := map[string]providerv1.Peer{}, map[string][]byte{}
	for _, p := range r.Peers {
		peers[p.Account] = p
	}
	for _, key := range k.Keys {
		keys[key.Account] = key.Key
	}
	for _, m := range s.Members {
		p := peers[m.Account]
		out = append(out, FounderSummary{
			Account: m.Account, ConsensusKey: m.ConsensusKey, BeaconKey: keys[m.Account], PeerKey: p.PeerKey, VRFKey: p.VrfKey, Addrs: p.Listing.Addrs,
			Votes: m.Votes, Bond: m.Bond, Stake: p.Stake,
		})
	}
	return out, nil
}

// rules returns those that are not the default, module by module. One that a file leaves out is read as 0.
func (d *Draft) rules() []string {
	standard, out := d.app.DefaultGenesis(), []string{}
	for _, module := range slices.Sorted(maps.Keys(d.state)) {
		is, was := fields(fields(d.state[module])["params"]), fields(fields(standard[module])["params"])
		for _, rule := range names(is, was) {
			if value, ok := is[rule]; !ok {
				out = append(out, fmt.Sprintf("%s.%s= (missing, so 0)", module, rule))
			} else if text := compact(value); text != compact(was[rule]) {
				out = append(out, fmt.Sprintf("%s.%s=%s", module, rule, strings.Trim(text, `"`)))
			}
		}
	}
	return out
}

// others returns the parts that differ from what the founders alone would begin with, and are not told otherwise. A
// proposal that has passed, a member that is never drawn, or power would begin with the chain, and nobody would see it.
func (d *Draft) others(founders []FounderSummary) (out []string, err error) {
	alone := Genesis{ChainID: d.doc.ChainID}
	for _, f := range founders {
		alone.Validators = append(alone.Validators, Validator{Account: f.Account, ConsensusKey: f.ConsensusKey, Votes: f.Votes, Bond: f.Bond})
		alone.Keys = append(alone.Keys, beaconv1.Key{Account: f.Account, Key: f.BeaconKey})
		if len(f.PeerKey) > 0 {
			alone.Peers = append(alone.Peers, f.Peer())
		}
	}
	parts, err := alone.parts(d.app)
	if err != nil {
		return nil, err
	}
	for _, module := range names(d.state, parts) {
		is, want := fields(d.state[module]), fields(parts[module])
		for _, field := range names(is, want) {
			if !d.told(module, field) && !slices.Equal(elements(is[field]), elements(want[field])) {
				out = append(out, module+"."+field)
			}
		}
	}
	if d.doc.InitialHeight != 1 {
		out = append(out, "initial_height")
	}
	if len(d.doc.AppHash) > 0 {
		out = append(out, "app_hash")
	}
	is, e1 := cmtjson.Marshal(d.doc.ConsensusParams)
	was, e2 := cmtjson.Marshal(Genesis{}.header().ConsensusParams)
	if err := errors.Join(e1, e2); err != nil {
		return nil, err
	}
	if !bytes.Equal(is, was) {
		out = append(out, "consensus.params")
	}
	return out, nil
}

// told reports whether a [Summary] tells a part otherwise: our rules one by one, accounts by their number, and money by
// its sums, if all of it is of one currency.
func (d *Draft) told(module, field string) bool {
	switch module + "." + field {
	case authtypes.ModuleName + ".accounts":
		return true
	case banktypes.ModuleName + ".balances":
		var bank banktypes.GenesisState
		return d.read(module, &bank) == nil && !slices.ContainsFunc(bank.Balances, func(x banktypes.Balance) bool {
			return len(x.Coins) != 1 || x.Coins[0].Denom != coin.Denom
		})
	}
	return field == "params" && slices.Contains(ours, module)
}

// fields returns those of a JSON object, as the codec reads them: of two with one name the last.
func fields(text json.RawMessage) (out map[string]json.RawMessage) {
	if json.Unmarshal(text, &out) != nil {
		return nil
	}
	return out
}

// names returns those in either of two objects, sorted.
func names(a, b map[string]json.RawMessage) []string {
	return slices.Compact(slices.Sorted(slices.Values(append(slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b))...))))
}

// elements returns those of a JSON array, sorted and in one form. What is no array is one.
func elements(text json.RawMessage) (out []string) {
	var all []json.RawMessage
	if text == nil {
		return nil
	}
	if json.Unmarshal(text, &all) != nil || all == nil { // null
		all = []json.RawMessage{text}
	}
	for _, x := range all {
		var value any
		if json.Unmarshal(x, &value) == nil {
			x, _ = json.Marshal(value) // it was read from JSON
		}
		out = append(out, string(x))
	}
	slices.Sort(out)
	return out
}

// compact returns JSON without what a file has for its readers.
func compact(value json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, value) != nil {
		return string(value)
	}
	return b.String()
}

// Text returns a genesis as its file has it.
func Text(doc *cmttypes.GenesisDoc) ([]byte, error) {
	text, err := cmtjson.MarshalIndent(doc, "", "  ")
	return append(text, '\n'), err
}
