package dispute_test

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/event"
	"github.com/tally-network/tally/chain/x/dispute"
	"github.com/tally-network/tally/core/canon"
	game "github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// leases stand in for x/work and the registry: whatever a game says is done.
type leases struct{ ended map[uint64]bool }

func (l *leases) Claim(context.Context, canon.Hash, job.Target, int, int) (c game.Claim, bond uint64, err error) {
	return c, 0, nil
}

func (l *leases) OpenDispute(context.Context, canon.Hash, job.OpenDispute) (string, bool, error) {
	return "", false, nil
}

func (l *leases) CloseDispute(_ context.Context, _ canon.Hash, id uint64, loser game.Side, _ bool) (game.Side, error) {
	l.ended[id] = true
	return loser, nil
}

func (l *leases) MissAnswer(context.Context, canon.Hash, uint64, bool) error { return nil }

func (l *leases) Substitute(context.Context, canon.Hash, uint64, string) error { return nil }

func (l *leases) Affords(context.Context, sdk.AccAddress, uint64) (bool, error) { return false, nil }

func (l *leases) Reserve(context.Context, sdk.AccAddress, uint64) error { return nil }

func (l *leases) Release(context.Context, sdk.AccAddress, uint64) error { return nil }

func (l *leases) Slash(context.Context, sdk.AccAddress, uint64, uint64, []providerv1.Payout) error {
	return nil
}

// However many games wait and cannot begin, a block passes through a bounded number of them, and
// the one behind them is played in the end.
func TestBlockPassesThroughFewGamesThatCannotBegin(t *testing.T) {
	const broken = 200
	ctx, svc, cdc := chaintest.Store(t)
	l := &leases{map[uint64]bool{}}
	k := dispute.NewKeeper(cdc, svc, chaintest.NewBank(), l, l, nil)
	g := dispute.DefaultGenesis()
	for range broken + 1 {
		played, err := game.Open(game.Claim{Inputs: []canon.Hash{canon.Sum("from")}, Steps: 1, End: canon.Sum("to")}, game.DefaultRules, game.Opening{}, ctx.BlockTime().UnixMilli())
		if err != nil {
			t.Fatal(err)
		}
		played = game.Wait(played)
		g.Disputes = append(g.Disputes, disputev1.GenesisDispute{Id: g.Next, Game: canon.Marshal(&played), Parties: disputev1.Parties{
			Order: canon.Sum("order").String(), Bond: 1, ChallengerPurse: disputev1.PURSE_STAKE,
			Defender: chaintest.Named("first").String(), Challenger: chaintest.Named("challenger").String(),
		}})
		g.Next++
	}
	if err := k.InitGenesis(ctx, g); err != nil {
		t.Fatal(err)
	}
	for id := range uint64(broken) {
		key := binary.BigEndian.AppendUint64([]byte{3}, g.Disputes[id].Id)
		if err := svc.OpenKVStore(ctx).Set(key, []byte{0xff}); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []int{64, 64, 64, 8, 0} {
		ctx = ctx.WithEventManager(sdk.NewEventManager())
		if err := k.EndBlock(ctx); err != nil {
			t.Fatal(err)
		}
		stuck, err := event.Of[*disputev1.EventStuck](ctx.EventManager().ABCIEvents())
		if err != nil || len(stuck) != want {
			t.Fatalf("a block finds %d games that cannot begin, want %d: %v", len(stuck), want, err)
		}
	}
	last, _, err := k.Game(ctx, g.Disputes[broken].Id)
	if err != nil || last.Waiting {
		t.Fatalf("the game behind them still waits: %v", err)
	}
}

// Games for which time cannot pass, however many, hold up no other, of their own defender
// neither: they are tried again after a while, ever more seldom, and end once they can.
func TestUnreadableGamesHoldUpNobody(t *testing.T) {
	const broken = 150 // a block lets time pass for 64
	ctx, svc, cdc := chaintest.Store(t)
	l := &leases{map[uint64]bool{}}
	k := dispute.NewKeeper(cdc, svc, chaintest.NewBank(), l, l, nil)
	g := dispute.DefaultGenesis()
	add := func(defender string, waits bool) uint64 {
		played, err := game.Open(game.Claim{Inputs: []canon.Hash{canon.Sum("from")}, Steps: 1, End: canon.Sum("to")}, game.DefaultRules, game.Opening{}, ctx.BlockTime().UnixMilli())
		if err != nil {
			t.Fatal(err)
		}
		if waits {
			played = game.Wait(played)
		}
		id := g.Next
		g.Disputes = append(g.Disputes, disputev1.GenesisDispute{Id: id, Game: canon.Marshal(&played), Parties: disputev1.Parties{
			Order: canon.Sum("order").String(), Bond: 1, ChallengerPurse: disputev1.PURSE_STAKE,
			Defender: chaintest.Named(defender).String(), Challenger: chaintest.Named("challenger").String(),
		}})
		g.Next++
		return id
	}
	unread := map[uint64][]byte{}
	for range broken {
		unread[add("first", false)] = nil
	}
	unread[add("first", true)] = nil
	waiting := add("first", true)
	healthy := add("second", false)
	if err := k.InitGenesis(ctx, g); err != nil {
		t.Fatal(err)
	}
	store := svc.OpenKVStore(ctx)
	key := func(id uint64) []byte { return binary.BigEndian.AppendUint64([]byte{3}, id) }
	for id := range unread { // order: any
		var err error
		if unread[id], err = store.Get(key(id)); err != nil || len(unread[id]) == 0 {
			t.Fatal(unread[id], err)
		}
		if err := store.Set(key(id), []byte{0xff}); err != nil {
			t.Fatal(err)
		}
	}
	block := func(after time.Duration) (stuck int) {
		t.Helper()
		ctx = ctx.WithBlockTime(ctx.BlockTime().Add(after)).WithEventManager(sdk.NewEventManager())
		if err := k.EndBlock(ctx); err != nil {
			t.Fatal(err)
		}
		all, err := event.Of[*disputev1.EventStuck](ctx.EventManager().ABCIEvents())
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	seen := block(24 * time.Hour)
	for range 2 {
		seen += block(time.Second)
	}
	if !l.ended[healthy] || seen != broken+1 {
		t.Fatalf("after three blocks the healthy game has ended: %v; %d others are stuck", l.ended[healthy], seen)
	}
	if again := block(time.Second); again != 0 {
		t.Fatalf("%d were tried again at once", again)
	}
	if again := block(time.Minute); again != 16 {
		t.Fatalf("a block tried %d again, want 16", again)
	}
	for block(24 * time.Hour); !l.ended[waiting]; block(time.Second) {
		if ctx.BlockTime().Year() > 2026 || block(24*time.Hour) > 16 {
			t.Fatal("a game that waits behind them is never played")
		}
	}
	for id, b := range unread { // order: any
		if err := store.Set(key(id), b); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 * broken {
		if again := block(24 * time.Hour); again != 0 {
			t.Fatalf("still %d stuck", again)
		}
	}
	for id := range unread { // order: any
		if !l.ended[id] {
			t.Fatalf("game %d can be read again, and does not end", id)
		}
	}
	if err := k.Invariant(ctx); err != nil {
		t.Fatal(err)
	}
}
