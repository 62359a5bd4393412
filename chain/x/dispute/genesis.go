package dispute

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"

	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
)

// DefaultParams are the rules of a new chain.
func DefaultParams() disputev1.Params {
	return wire.RulesToProto(dispute.DefaultRules)
}

// DefaultGenesis has no disputes.
func DefaultGenesis() *disputev1.GenesisState {
	return &disputev1.GenesisState{Params: DefaultParams(), Next: 1}
}

// ValidateGenesis checks a state before import.
func ValidateGenesis(g *disputev1.GenesisState) error {
	if err := wire.RulesFromProto(g.Params).Check(); err != nil {
		return fmt.Errorf("dispute genesis: %w", err)
	}
	if err := module.CheckAuthority(g.Authority); err != nil {
		return fmt.Errorf("dispute genesis: %w", err)
	}
	var total uint64
	for i, d := range g.Disputes {
		if i > 0 && d.Id <= g.Disputes[i-1].Id || d.Id >= g.Next {
			return fmt.Errorf("dispute genesis: dispute %d: want each once, in order, below %d", d.Id, g.Next)
		}
		game, err := readGame(d)
		if err != nil {
			return fmt.Errorf("dispute genesis: dispute %d: %w", d.Id, err)
		}
		if game.Stage == dispute.Over {
			if d.Dropped != "" {
				return fmt.Errorf("dispute genesis: dispute %d is over, and shall end", d.Id)
			}
			continue
		}
		for _, b := range bonds(d.Parties) {
			if b.purse < disputev1.PURSE_BALANCE || b.purse > disputev1.PURSE_VERDICT {
				return fmt.Errorf("dispute genesis: dispute %d: a bond in purse %d", d.Id, b.purse)
			}
		}
		// The limit on one bond keeps the sum of three from overflowing.
		if d.Parties.Bond > coin.MaxSupply || locked(d.Parties) > coin.MaxSupply-total {
			return fmt.Errorf("dispute genesis: more than %d utally in bonds", coin.MaxSupply)
		}
		total += locked(d.Parties)
	}
	return nil
}

func readGame(d disputev1.GenesisDispute) (g dispute.Game, err error) {
	if err := canon.Unmarshal(d.Game, &g); err != nil {
		return g, err
	}
	if _, err := canon.ParseHash(d.Parties.Order); err != nil {
		return g, err
	}
	if r := d.Parties.Reply; (r != nil) != (g.Claim.Sequence != nil) || r != nil && len(r.Receipt) != canon.HashSize {
		return g, fmt.Errorf("a game about %+v names the reply %v", g.Claim, r)
	}
	for _, account := range append(substitutes(d.Parties), d.Parties.Defender, d.Parties.Challenger) {
		if _, err := address.Parse(account); err != nil {
			return g, err
		}
	}
	return g, g.Rules.Check()
}

// InitGenesis stores a state. The bank's genesis holds the bonds already.
func (k *Keeper) InitGenesis(ctx context.Context, g *disputev1.GenesisState) error {
	if err := k.rules.Init(ctx, g.Params, g.Authority); err != nil {
		return err
	}
	if err := k.next.Set(ctx, g.Next); err != nil {
		return err
	}
	for _, d := range g.Disputes {
		game, err := readGame(d)
		if err != nil {
			return err
		}
		if err := k.enter(ctx, d.Id, d.Parties); err != nil {
			return err
		}
		if err := k.put(ctx, d.Id, d.Parties, d.Parties, nil, &game); err != nil {
			return err
		}
		if d.Dropped != "" {
			if err := k.Drop(ctx, d.Id, d.Dropped); err != nil {
				return err
			}
		}
		if game.Stage != dispute.Over && game.Waiting { // its turn may have come
			if err := k.freed.Set(ctx, d.Parties.Defender); err != nil {
				return err
			}
		}
	}
	return k.Invariant(ctx)
}

// ExportGenesis is the inverse of InitGenesis, by id.
func (k *Keeper) ExportGenesis(ctx context.Context) (*disputev1.GenesisState, error) {
	params, err := k.rules.Get(ctx)
	if err != nil {
		return nil, err
	}
	g := &disputev1.GenesisState{Params: params}
	if g.Authority, err = k.rules.Authority(ctx); err != nil {
		return nil, err
	}
	err = k.parties.Walk(ctx, nil, func(id uint64, p disputev1.Parties) (bool, error) {
		b, err := k.games.Get(ctx, id)
		if err != nil {
			return true, err
		}
		why, err := k.dropped.Get(ctx, id)
		if errors.Is(err, collections.ErrNotFound) {
			err = nil
		}
		g.Disputes = append(g.Disputes, disputev1.GenesisDispute{Id: id, Parties: p, Game: b, Dropped: why})
		return false, err
	})
	if err != nil {
		return nil, err
	}
	g.Next, err = k.next.Peek(ctx)
	return g, err
}

// checkTurn: a game that is played is indexed by whose move is next, and by whether an answer is
// missed.
func checkTurn(ctx context.Context, k *Keeper, id uint64, p disputev1.Parties, g *dispute.Game) error {
	turn, err := k.turns.Has(ctx, collections.Join(player(p, g.Stage.Turn()), id))
	if err == nil && !turn {
		err = fmt.Errorf("whose turn it is in dispute %d is not indexed", id)
	}
	if err != nil {
		return err
	}
	missed, err := k.missed.Has(ctx, id)
	if err == nil && missed != g.Missed {
		err = fmt.Errorf("an answer is missed in dispute %d: %v, indexed as %v", id, g.Missed, missed)
	}
	return err
}

// Invariant: see the package.
func (k *Keeper) Invariant(ctx context.Context) error {
	var held uint64
	open, played := 0, 0
	late := map[uint64]bool{}
	if err := k.late.Keys(ctx, func(id uint64) { late[id] = true }); err != nil {
		return err
	}
	err := k.parties.Walk(ctx, nil, func(id uint64, _ disputev1.Parties) (bool, error) {
		g, p, err := k.Game(ctx, id)
		if err != nil || g.Stage == dispute.Over {
			return false, err
		}
		held += locked(p)
		in, err := k.queue.Has(ctx, collections.Join3(p.Defender, g.Waiting, id))
		if err == nil && !in && late[id] {
			return false, nil
		}
		open++
		if err == nil && !in {
			err = fmt.Errorf("dispute %d has no place in the queue", id)
		}
		if err != nil || g.Waiting {
			return err != nil, err
		}
		played++
		if err := checkTurn(ctx, k, id, p, &g); err != nil {
			return true, err
		}
		if in, err = k.wakes.Has(ctx, collections.Join(g.Wake(), id)); err == nil && !in {
			err = fmt.Errorf("the time of dispute %d is not indexed", id)
		}
		return err != nil, err
	})
	if err != nil {
		return err
	}
	if has := k.bank.GetBalance(ctx, authtypes.NewModuleAddress(Name), coin.Denom).Amount.Uint64(); has != held {
		return fmt.Errorf("bonds add up to %d utally, but the account holds %d", held, has)
	}
	playing := ""
	err = k.queue.Walk(ctx, nil, func(at place) (bool, error) {
		if open--; open < 0 {
			return true, fmt.Errorf("dispute %d has a place too many", at.K3())
		}
		if !at.K2() {
			playing = at.K1()
		}
		if freed, err := k.freed.Has(ctx, at.K1()); err != nil {
			return true, err
		} else if playing != at.K1() && !freed {
			return true, fmt.Errorf("dispute %d waits, and no other about the work of %s is played", at.K3(), at.K1())
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	return k.wakes.Walk(ctx, nil, func(at collections.Pair[int64, uint64]) (bool, error) {
		if played--; played < 0 {
			return true, fmt.Errorf("dispute %d has a time too many", at.K2())
		}
		return false, nil
	})
}
