package reserve

import (
	"context"
	"errors"
	"fmt"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/reserve"
	reservev1 "github.com/tally-network/tally/gen/tally/reserve/v1"
)

// An epoch lasts between a second and a day, an hour by default, in ms.
const (
	minEpoch     = 1_000
	maxEpoch     = 24 * DefaultEpoch
	DefaultEpoch = 3_600_000
)

// DefaultParams are the rules that docs/spec/rules.md gives reasons for.
func DefaultParams() reservev1.Params {
	return reservev1.Params{
		HalvingEpochs: 35_064, Cap: 800,
		SeatsBps: 4_000, DrillingBps: 3_000, JoiningBps: 1_000, JackpotBps: 1_000, InsuranceBps: 1_000, JoiningUt: 100,
	}
}

// DefaultGenesis owes nobody anything. What is held is in the bank's genesis.
func DefaultGenesis() *reservev1.GenesisState {
	return &reservev1.GenesisState{Params: DefaultParams(), EpochMs: DefaultEpoch}
}

// ValidateGenesis checks a state before import.
func ValidateGenesis(g *reservev1.GenesisState) error {
	err := errors.Join(CheckParams(g.Params), module.CheckAuthority(g.Authority), checkState(g))
	if err != nil {
		return fmt.Errorf("reserve genesis: %w", err)
	}
	return nil
}

func checkState(g *reservev1.GenesisState) error {
	if g.EpochMs < minEpoch || g.EpochMs > maxEpoch {
		return fmt.Errorf("an epoch of %d ms: want between %d and %d", g.EpochMs, minEpoch, maxEpoch)
	}
	if g.Open.Number < 0 || g.OriginMs < 0 {
		return fmt.Errorf("epoch %d, and the first began at %d", g.Open.Number, g.OriginMs)
	}
	if max(g.Totals.Owed, g.Totals.Claimed, g.Totals.Jackpot, g.Totals.Insurance) > coin.MaxSupply {
		return fmt.Errorf("totals of more than ever existed: %+v", g.Totals)
	}
	sum, last := ledger{}, int64(-1)
	for i := range g.Closed {
		c := &g.Closed[i]
		if c.Number <= last || c.Number >= g.Open.Number {
			return fmt.Errorf("epoch %d is closed after %d, and %d is under way", c.Number, last, g.Open.Number)
		}
		last = c.Number
		if err := sum.pots(c); err != nil {
			return err
		}
	}
	seen := map[string]bool{}
	for i := range g.Accounts {
		a := &g.Accounts[i]
		_, err := address.Parse(a.Account)
		if err == nil && seen[a.Account] {
			err = fmt.Errorf("account %s occurs twice", a.Account)
		}
		seen[a.Account] = true
		if err := errors.Join(err, sum.account(a, g.Open.Number)); err != nil {
			return err
		}
	}
	if err := sum.add(g.Totals.Rounding); err != nil {
		return err
	}
	return sum.check(&g.Open, g.Totals.Owed)
}

// ledger adds up what is owed, and by what pots are divided.
type ledger struct {
	owed    uint64
	weights map[int64][reserve.Kinds]uint64 // that accounts have, by epoch
	left    []reservev1.Closed
}

func (l *ledger) add(amount uint64) error {
	if amount > coin.MaxSupply-l.owed {
		return fmt.Errorf("more is owed than ever existed: %d utally and %d", l.owed, amount)
	}
	l.owed += amount
	return nil
}

func (l *ledger) pots(c *reservev1.Closed) error {
	p := payoutOf(c)
	for k := range p.Pots {
		if err := p.Pots[k].Check(); err != nil {
			return fmt.Errorf("epoch %d: %w", c.Number, err)
		}
		if err := l.add(p.Pots[k].LeftPay); err != nil {
			return err
		}
	}
	if !p.Left() {
		return fmt.Errorf("epoch %d owes nobody anything, and is kept", c.Number)
	}
	l.left = append(l.left, *c)
	return nil
}

func (l *ledger) account(a *reservev1.Account, now int64) error {
	if a.Epoch < 0 || a.Epoch > now {
		return fmt.Errorf("account %s has a part in epoch %d, and %d is under way", a.Account, a.Epoch, now)
	}
	if l.weights == nil {
		l.weights = map[int64][reserve.Kinds]uint64{}
	}
	sum := reserve.Epoch{Weights: l.weights[a.Epoch]}
	if err := sum.Count(0, weightsOf(a.Weights)); err != nil {
		return err
	}
	l.weights[a.Epoch] = sum.Weights
	return l.add(a.Due)
}

// check returns an error unless pots and accounts agree, and add up.
func (l *ledger) check(open *reservev1.Epoch, owed uint64) error {
	if l.weights[open.Number] != weightsOf(open.Weights) {
		return fmt.Errorf("accounts have %v in epoch %d, which counts %v", l.weights[open.Number], open.Number, open.Weights)
	}
	for i := range l.left {
		p := payoutOf(&l.left[i])
		for k, w := range l.weights[l.left[i].Number] {
			if w != p.Pots[k].LeftWeight && p.Pots[k].Weight > 0 {
				return fmt.Errorf("accounts have %d in a pot of epoch %d that has %d left", w, l.left[i].Number, p.Pots[k].LeftWeight)
			}
		}
	}
	if l.owed != owed {
		return fmt.Errorf("pots and accounts are owed %d utally, not %d", l.owed, owed)
	}
	return nil
}

// InitGenesis stores a state. The bank's genesis holds the reserve already.
func (k *Keeper) InitGenesis(ctx context.Context, g *reservev1.GenesisState) error {
	origin := g.OriginMs
	if origin == 0 {
		origin = module.Now(ctx)
	}
	err := errors.Join(k.rules.Init(ctx, g.Params, g.Authority), k.origin.Set(ctx, origin), k.length.Set(ctx, g.EpochMs),
		k.open.Set(ctx, g.Open), k.totals.Set(ctx, g.Totals))
	for _, c := range g.Closed {
		err = errors.Join(err, k.closed.Set(ctx, c.Number, c))
	}
	for _, a := range g.Accounts {
		account, e := address.Parse(a.Account)
		if err = errors.Join(err, e); err != nil {
			return err
		}
		err = k.accounts.Set(ctx, account, a)
	}
	if err != nil {
		return err
	}
	number, _, err := k.now(ctx)
	if err == nil && number < g.Open.Number { // its number would come again, and what is owed of it would be lost
		err = fmt.Errorf("epoch %d is under way, and by origin_ms it is %d", g.Open.Number, number)
	}
	if err := errors.Join(err, k.dearer(ctx)); err != nil {
		return err
	}
	return k.Invariant(ctx)
}

// dearer returns an error if there is a reserve, and credit could burn less than it earns. Votes keep burn_ut
// above all caps.
func (k *Keeper) dearer(ctx context.Context) error {
	rules, err := k.Rules(ctx)
	if err == nil && k.balance(ctx) > 0 && rules.BurnUT <= reserve.MaxCap {
		err = fmt.Errorf("who orders from itself could earn more than that burns: burn_ut = %d, want more than %d where there is a reserve", rules.BurnUT, reserve.MaxCap)
	}
	return err
}

// ExportGenesis is the inverse of InitGenesis.
func (k *Keeper) ExportGenesis(ctx context.Context) (g *reservev1.GenesisState, err error) {
	g = &reservev1.GenesisState{}
	get := func(e error) { err = errors.Join(err, e) }
	var e error
	g.Params, e = k.rules.Get(ctx)
	get(e)
	g.Authority, e = k.rules.Authority(ctx)
	get(e)
	g.OriginMs, e = k.origin.Get(ctx)
	get(e)
	g.EpochMs, e = k.length.Get(ctx)
	get(e)
	g.Open, e = k.open.Get(ctx)
	get(e)
	g.Totals, e = k.totals.Get(ctx)
	get(e)
	get(k.closed.Walk(ctx, nil, func(_ int64, c reservev1.Closed) (bool, error) {
		g.Closed = append(g.Closed, c)
		return false, nil
	}))
	get(k.accounts.Walk(ctx, nil, func(_ sdk.AccAddress, a reservev1.Account) (bool, error) {
		g.Accounts = append(g.Accounts, a)
		return false, nil
	}))
	return g, err
}

// Invariant: what is owed adds up and is there, and pots wait for exactly the accounts that have a part in them.
func (k *Keeper) Invariant(ctx context.Context) error {
	g, err := k.ExportGenesis(ctx)
	if err != nil {
		return err
	}
	if held := k.balance(ctx); held < g.Totals.Owed {
		return fmt.Errorf("%d utally are owed, and %d are held", g.Totals.Owed, held)
	}
	return checkState(g)
}
