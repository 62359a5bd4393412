package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
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

// Draft returns a draft of the described genesis. It may lack founders: [Draft.AddFounder] adds them.
func (g Genesis) Draft() (*Draft, error) {
	a, err := New(log.NewNopLogger(), dbm.NewMemDB(), g.ChainID)
	if err != nil {
		return nil, err
	}
	state, err := g.parts(a)
	return &Draft{doc: g.header(), app: a, state: state}, err
}

// ChainID returns the chain's.
func (d *Draft) ChainID() string { return d.doc.ChainID }

// ReadDraft reads a genesis file.
func ReadDraft(text []byte) (*Draft, error) {
	doc, err := cmttypes.GenesisDocFromJSON(text)
	if err != nil {
		return nil, fmt.Errorf("read genesis: %w", err)
	}
	d := &Draft{doc: doc}
	if err := json.Unmarshal(doc.AppState, &d.state); err != nil {
		return nil, fmt.Errorf("read genesis: app_state: %w", err)
	}
	if d.app, err = New(log.NewNopLogger(), dbm.NewMemDB(), doc.ChainID); err != nil {
		return nil, err
	}
	return d, d.app.checkGenesis(d.state)
}

// edit changes the part of a module, which is read into m.
func edit[M proto.Message](d *Draft, module string, m M, change func() error) error {
	if err := d.app.Codec.UnmarshalJSON(d.state[module], m); err != nil {
		return fmt.Errorf("genesis of %s: %w", module, err)
	}
	if err := change(); err != nil {
		return err
	}
	text, err := d.app.Codec.MarshalJSON(m)
	if err != nil {
		return fmt.Errorf("genesis of %s: %w", module, err)
	}
	d.state[module] = text
	return nil
}

// pay changes the ledger.
func (d *Draft) pay(change func(l *ledger) error) error {
	auth, bank := &authtypes.GenesisState{}, &banktypes.GenesisState{}
	return edit(d, authtypes.ModuleName, auth, func() error {
		return edit(d, banktypes.ModuleName, bank, func() error {
			l, err := ledgerOf(auth, bank)
			if err != nil {
				return err
			}
			if err := change(l); err != nil {
				return err
			}
			a, b, err := l.states()
			if err != nil {
				return err
			}
			*auth, *bank = *a, *b
			return nil
		})
	})
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
	return errors.Join(
		edit(d, seats.Name, s, func() error {
			s.Members, s.Delegations = append(s.Members, members.Members...), append(s.Delegations, members.Delegations...)
			return nil
		}),
		edit(d, policy.Name, p, func() error { p.Founders = append(p.Founders, votes.Founders...); return nil }),
		edit(d, provider.Name, r, func() error { r.Peers = append(r.Peers, f.Peer); return nil }),
		edit(d, beacon.Name, b, func() error {
			b.Keys = append(b.Keys, beaconv1.Key{Account: f.Account, Key: f.BeaconKey})
			return nil
		}),
	)
}

// SetRule sets a rule of a module. The check of the genesis tells whether it may have that value.
func (d *Draft) SetRule(module, rule, value string) error {
	var part struct {
		Params map[string]json.RawMessage `json:"params"`
	}
	fields := map[string]json.RawMessage{}
	if err := errors.Join(json.Unmarshal(d.state[module], &part), json.Unmarshal(d.state[module], &fields)); err != nil || part.Params == nil {
		return fmt.Errorf("%q is no module with rules: docs/spec/rules.md lists them, as block.gas_price", module)
	}
	was, ok := part.Params[rule]
	if !ok {
		return fmt.Errorf("%s has no rule %q, only %s", module, rule, strings.Join(slices.Sorted(maps.Keys(part.Params)), ", "))
	}
	if part.Params[rule] = json.RawMessage(value); bytes.HasPrefix(was, []byte(`"`)) { // 64 bits are text in JSON
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		part.Params[rule] = text
	}
	params, err := json.Marshal(part.Params)
	if err != nil {
		return fmt.Errorf("%s.%s=%s: want a number, or true or false", module, rule, value)
	}
	fields["params"] = params
	d.state[module], err = json.Marshal(fields)
	return err
}

// Doc returns the genesis. It first begins a chain with it in memory, and checks all invariants.
func (d *Draft) Doc() (*cmttypes.GenesisDoc, error) {
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
	Account      string `json:"account"`
	ConsensusKey []byte `json:"consensus_key"`
	BeaconKey    []byte `json:"beacon_key"`
	Votes        int64  `json:"votes"`
	Bond         uint64 `json:"bond_utally"`
	Stake        uint64 `json:"stake_utally"`
}

// Summary returns what a chain would begin with.
func (d *Draft) Summary() (b Summary, err error) {
	b = Summary{ChainID: d.doc.ChainID, Time: d.doc.GenesisTime, Rules: d.rules()}
	s, r, k, x := &seatsv1.GenesisState{}, &providerv1.GenesisState{}, &beaconv1.GenesisState{}, &blockv1.GenesisState{}
	err = errors.Join(
		d.pay(func(l *ledger) error {
			b.Supply, b.Accounts, b.Reserve = l.total, len(l.accounts), l.held(reserve.Name)
			b.Locked = l.held(seats.Name) + l.held(provider.Name) // less than the supply
			return nil
		}),
		d.app.Codec.UnmarshalJSON(d.state[seats.Name], s),
		d.app.Codec.UnmarshalJSON(d.state[provider.Name], r),
		d.app.Codec.UnmarshalJSON(d.state[beacon.Name], k),
		d.app.Codec.UnmarshalJSON(d.state[block.Name], x),
	)
	b.GasPrice = x.Params.GasPrice
	for _, m := range s.Members {
		f := FounderSummary{Account: m.Account, ConsensusKey: m.ConsensusKey, Votes: m.Votes, Bond: m.Bond}
		for _, p := range r.Peers {
			if p.Account == m.Account {
				f.Stake = p.Stake
			}
		}
		for _, key := range k.Keys {
			if key.Account == m.Account {
				f.BeaconKey = key.Key
			}
		}
		b.Founders = append(b.Founders, f)
	}
	if err != nil {
		return b, err
	}
	b.Others, err = d.others(&b)
	return b, err
}

// rules returns those that are not the default, module by module.
func (d *Draft) rules() []string {
	standard, out := d.app.DefaultGenesis(), []string{}
	for _, module := range slices.Sorted(maps.Keys(d.state)) {
		var is, was struct {
			Params map[string]json.RawMessage `json:"params"`
		}
		if json.Unmarshal(d.state[module], &is) != nil || json.Unmarshal(standard[module], &was) != nil {
			continue // the SDK's
		}
		for _, rule := range slices.Sorted(maps.Keys(is.Params)) {
			if value := compact(is.Params[rule]); value != compact(was.Params[rule]) {
				out = append(out, fmt.Sprintf("%s.%s=%s", module, rule, strings.Trim(value, `"`)))
			}
		}
	}
	return out
}

// told are the parts of modules that a Summary tells, besides rules.
var told = map[string][]string{
	authtypes.ModuleName: {"accounts"}, seats.Name: {"members"},
}

// others returns what differs from the default and is not told otherwise: a proposal that has passed, power, or delegations
// would begin with the chain, and nobody would see them.
func (d *Draft) others(b *Summary) (out []string, err error) {
	plain, err := Genesis{ChainID: d.doc.ChainID}.parts(d.app)
	if err != nil {
		return nil, err
	}
	for _, module := range slices.Sorted(maps.Keys(d.state)) {
		var is, was map[string]any
		if err := errors.Join(json.Unmarshal(d.state[module], &is), json.Unmarshal(plain[module], &was)); err != nil {
			return nil, fmt.Errorf("genesis of %s: %w", module, err)
		}
		for _, field := range slices.Sorted(maps.Keys(is)) {
			if (field != "params" || !slices.Contains(ours, module)) && !slices.Contains(told[module], field) && !d.foundersAlone(b, module, field) && !reflect.DeepEqual(is[field], was[field]) {
				out = append(out, module+"."+field)
			}
		}
	}
	if d.doc.InitialHeight != 1 {
		out = append(out, "initial_height")
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

// foundersAlone reports whether a part is of founders alone, who are told: their votes, keys and peers, and their power, which
// counts for themselves; or whether it is money, of which the sum is told, and no other currency.
func (d *Draft) foundersAlone(b *Summary, module, field string) bool {
	known := func(account string) bool {
		return slices.ContainsFunc(b.Founders, func(f FounderSummary) bool { return f.Account == account })
	}
	switch module + "." + field {
	case banktypes.ModuleName + ".balances":
		var r banktypes.GenesisState
		return d.app.Codec.UnmarshalJSON(d.state[module], &r) == nil && !slices.ContainsFunc(r.Balances, func(x banktypes.Balance) bool {
			return len(x.Coins) != 1 || x.Coins[0].Denom != coin.Denom
		})
	case policy.Name + ".founders":
		var r policyv1.GenesisState
		return d.app.Codec.UnmarshalJSON(d.state[module], &r) == nil && !slices.ContainsFunc(r.Founders, func(x policyv1.Founder) bool {
			return !slices.ContainsFunc(b.Founders, func(f FounderSummary) bool { return f.Account == x.Account && uint64(f.Votes) == x.Weight })
		})
	case beacon.Name + ".keys":
		var r beaconv1.GenesisState
		return d.app.Codec.UnmarshalJSON(d.state[module], &r) == nil && !slices.ContainsFunc(r.Keys, func(x beaconv1.Key) bool {
			return !known(x.Account) || len(x.Next) > 0 || x.Withheld > 0
		})
	case provider.Name + ".peers":
		var r providerv1.GenesisState
		return d.app.Codec.UnmarshalJSON(d.state[module], &r) == nil && !slices.ContainsFunc(r.Peers, func(p providerv1.Peer) bool {
			return !known(p.Account) || p.Reserved > 0 || p.Record > 0 || p.Owner != "" || p.JailedUntil != 0
		})
	case seats.Name + ".delegations":
		var r seatsv1.GenesisState
		return d.app.Codec.UnmarshalJSON(d.state[module], &r) == nil && !slices.ContainsFunc(r.Delegations, func(x seatsv1.Delegation) bool {
			return !known(x.Account) || x.Member != x.Account
		})
	}
	return false
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
