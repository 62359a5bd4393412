package sessions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"cosmossdk.io/collections"

	sdk "github.com/cosmos/cosmos-sdk/types"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/session"
	sessionsv1 "github.com/tally-network/tally/gen/tally/sessions/v1"
)

// DefaultGenesis has no sessions.
func DefaultGenesis() *sessionsv1.GenesisState {
	return &sessionsv1.GenesisState{Params: DefaultParams()}
}

// ValidateGenesis checks a state before import.
func ValidateGenesis(g *sessionsv1.GenesisState) error {
	if err := errors.Join(CheckParams(g.Params), module.CheckAuthority(g.Authority), checkSessions(g.Sessions)); err != nil {
		return fmt.Errorf("sessions genesis: %w", err)
	}
	for i := range g.Offers {
		o := &g.Offers[i]
		if i > 0 && o.Provider <= g.Offers[i-1].Provider {
			return fmt.Errorf("sessions genesis: offer %d is of %.80q: want each provider once, by account", i, o.Provider)
		}
		if err := checkOffer(o); err != nil {
			return fmt.Errorf("sessions genesis: offer %d: %w", i, err)
		}
	}
	for i, r := range g.Records {
		if _, err := address.Parse(r.Provider); err != nil || i > 0 && r.Provider <= g.Records[i-1].Provider {
			return fmt.Errorf("sessions genesis: record %d is of %.80q: want each provider once, by account", i, r.Provider)
		}
	}
	return nil
}

// checkSessions returns an error unless encodings are those of sessions that can have come about, each once, by id.
func checkSessions(all [][]byte) error {
	var last canon.Hash
	var escrow uint64
	for i, b := range all {
		s, err := wire.SessionFromBytes(b)
		if err == nil {
			_, err = partiesOf(&s)
		}
		if err != nil {
			return fmt.Errorf("session %d: %w", i, err)
		}
		id := s.ID()
		if i > 0 && string(id[:]) <= string(last[:]) {
			return fmt.Errorf("session %d is %s: want each once, by id", i, id)
		}
		if s.Ledger.Escrow > coin.MaxSupply-escrow {
			return fmt.Errorf("more than %d utally are in escrow", coin.MaxSupply)
		}
		escrow, last = escrow+s.Ledger.Escrow, id
	}
	return nil
}

func checkOffer(o *sessionsv1.Offer) error {
	_, bad := address.Parse(o.Provider)
	_, err := wire.ListingsFromProto(o.Listings)
	if err := errors.Join(bad, err); err != nil {
		return err
	}
	if len(o.Listings) == 0 || o.UntilMs < 1 {
		return fmt.Errorf("%d listings until %d ms: want some, and a time", len(o.Listings), o.UntilMs)
	}
	return nil
}

// InitGenesis stores a state. The bank's genesis holds the escrow already, and the registry's the stakes.
func (k *Keeper) InitGenesis(ctx context.Context, g *sessionsv1.GenesisState) error {
	if err := k.rules.Init(ctx, g.Params, g.Authority); err != nil {
		return err
	}
	for _, b := range g.Sessions {
		s, err := wire.SessionFromBytes(b)
		if err != nil {
			return err
		}
		if err := k.begin(ctx, &s); err != nil {
			return err
		}
	}
	for _, o := range g.Offers {
		account, err := address.Parse(o.Provider)
		if err := errors.Join(err, k.offers.replace(ctx, account, o)); err != nil {
			return err
		}
	}
	for _, r := range g.Records {
		account, err := address.Parse(r.Provider)
		if err := errors.Join(err, k.records.Set(ctx, account, r)); err != nil {
			return err
		}
	}
	return k.Invariant(ctx)
}

// ExportGenesis is the inverse of InitGenesis. What is tried again is due at once where it goes on.
func (k *Keeper) ExportGenesis(ctx context.Context) (*sessionsv1.GenesisState, error) {
	params, err := k.rules.Get(ctx)
	if err != nil {
		return nil, err
	}
	g := &sessionsv1.GenesisState{Params: params}
	if g.Authority, err = k.rules.Authority(ctx); err != nil {
		return nil, err
	}
	offers, records := map[string]sessionsv1.Offer{}, map[string]sessionsv1.Record{}
	err = errors.Join(
		k.sessions.Walk(ctx, nil, func(_, b []byte) (bool, error) {
			g.Sessions = append(g.Sessions, b)
			return false, nil
		}),
		k.offers.all.Walk(ctx, nil, func(_ sdk.AccAddress, o sessionsv1.Offer) (bool, error) {
			offers[o.Provider] = o
			return false, nil
		}),
		k.records.Walk(ctx, nil, func(_ sdk.AccAddress, r sessionsv1.Record) (bool, error) {
			records[r.Provider] = r
			return false, nil
		}))
	g.Offers, g.Records = byAccount(offers), byAccount(records)
	return g, err
}

// byAccount returns what is stored of accounts, in the order of their texts.
func byAccount[T any](all map[string]T) (out []T) {
	for _, account := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[account])
	}
	return out
}

// Invariant: the escrows add up to the module's balance, sessions keep to core/session and are indexed, and so are listings.
func (k *Keeper) Invariant(ctx context.Context) error {
	return errors.Join(k.checkLedger(ctx), k.checkOffers(ctx))
}

func (k *Keeper) checkLedger(ctx context.Context) error {
	late := map[canon.Hash]bool{}
	if err := k.late.Keys(ctx, func(id []byte) { late[canon.Hash(id)] = true }); err != nil {
		return err
	}
	var escrow uint64
	parties, due := 0, 0
	err := k.walk(ctx, func(s *session.Session) error {
		id := s.ID()
		if err := s.Check(); err != nil {
			return fmt.Errorf("session %s: %w", id, err)
		}
		escrow += s.Ledger.Escrow
		accounts, err := partiesOf(s)
		if err != nil {
			return err
		}
		for _, account := range accounts {
			parties++
			if is, err := k.byParty.Has(ctx, collections.Join(account, id[:])); err != nil || !is {
				return errors.Join(err, fmt.Errorf("session %s is not indexed by %s", id, account))
			}
		}
		is, err := k.due.Has(ctx, collections.Join(dueAt(s), id[:]))
		if is {
			due++
		}
		if err != nil || is == late[id] {
			return errors.Join(err, fmt.Errorf("session %s is due at %d: %t, and tried again: %t", id, dueAt(s), is, late[id]))
		}
		delete(late, id)
		return nil
	})
	if err != nil {
		return err
	}
	if len(late) > 0 {
		return fmt.Errorf("%d sessions are tried again, and do not exist", len(late))
	}
	if held := k.Bank.GetBalance(ctx, authtypes.NewModuleAddress(Name), coin.Denom).Amount.Uint64(); held != escrow {
		return fmt.Errorf("escrows add up to %d utally, but the account holds %d", escrow, held)
	}
	return errors.Join(counts(ctx, "sessions by account", k.byParty, parties), counts(ctx, "sessions that are due", k.due, due))
}

func (k *Keeper) checkOffers(ctx context.Context) error {
	models, ends, names := 0, 0, 0
	err := k.offers.all.Walk(ctx, nil, func(account sdk.AccAddress, o sessionsv1.Offer) (bool, error) {
		if err := checkOffer(&o); err != nil || o.Provider != account.String() {
			return true, errors.Join(err, fmt.Errorf("an offer of %s is stored as that of %s", o.Provider, account))
		}
		ends++
		is, err := k.lapses.Has(ctx, collections.Join(o.UntilMs, account))
		distinct := map[string]bool{}
		for _, l := range o.Listings {
			models++
			distinct[l.Name] = true
			byModel, bad := k.byModel.Has(ctx, collections.Join(l.Model, account))
			byName, worse := k.byName.Has(ctx, collections.Join(l.Name, account))
			is, err = is && byModel && byName, errors.Join(err, bad, worse)
		}
		names += len(distinct)
		if err != nil || !is {
			return true, errors.Join(err, fmt.Errorf("the offer of %s is not indexed", account))
		}
		return false, nil
	})
	return errors.Join(err, counts(ctx, "listings by model", k.byModel, models), counts(ctx, "listings by name", k.byName, names),
		counts(ctx, "offers that lapse", k.lapses, ends))
}

// counts returns an error unless an index has so many entries.
func counts[K any](ctx context.Context, what string, index collections.KeySet[K], want int) error {
	have := 0
	err := index.Walk(ctx, nil, func(K) (bool, error) {
		have++
		return false, nil
	})
	if err == nil && have != want {
		err = fmt.Errorf("%s: %d are indexed, there are %d", what, have, want)
	}
	return err
}
