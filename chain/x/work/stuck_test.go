package work_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"cosmossdk.io/core/store"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/event"
	"github.com/tally-network/tally/chain/x/work"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// neighbours stand in for the modules around x/work; escrow may refuse.
type neighbours struct {
	err     error
	settled int
}

func (n *neighbours) Escrow(context.Context, canon.Hash) (uint64, error) { return 0, nil }

func (n *neighbours) Pay(context.Context, canon.Hash, string, uint64) error { return nil }

func (n *neighbours) Burn(context.Context, canon.Hash, uint64) error { return nil }

func (n *neighbours) Forget(context.Context, canon.Hash) error { return n.err }

func (n *neighbours) Settle(context.Context, canon.Hash, uint64) error {
	if n.err == nil {
		n.settled++
	}
	return n.err
}

func (n *neighbours) Get(context.Context, sdk.AccAddress) (p providerv1.Peer, err error) {
	return p, nil
}

func (n *neighbours) WithRole(context.Context, providerv1.Role) ([]providerv1.Peer, error) {
	return nil, nil
}

func (n *neighbours) Active(context.Context, providerv1.Peer) (bool, error) { return true, nil }

func (n *neighbours) Reserve(context.Context, sdk.AccAddress, uint64) error { return nil }

func (n *neighbours) Release(context.Context, sdk.AccAddress, uint64) error { return nil }

func (n *neighbours) Insure(context.Context, sdk.AccAddress, uint64) error { return nil }
func (n *neighbours) Slash(context.Context, sdk.AccAddress, uint64, uint64, []providerv1.Payout) error {
	return nil
}

func (n *neighbours) Jail(context.Context, sdk.AccAddress, int64) error             { return nil }
func (n *neighbours) Exclude(context.Context, sdk.AccAddress, sdk.AccAddress) error { return nil }
func (n *neighbours) Falter(context.Context, sdk.AccAddress) error                  { return nil }
func (n *neighbours) Mend(context.Context, sdk.AccAddress, uint64) error            { return nil }

func (n *neighbours) Means(context.Context, sdk.AccAddress) (uint64, error) { return 1 << 40, nil }

func (n *neighbours) Affords(context.Context, sdk.AccAddress, uint64) (bool, error) { return true, nil }

func (n *neighbours) Vouch(context.Context, sdk.AccAddress, uint64) error        { return nil }
func (n *neighbours) Time(context.Context, sdk.AccAddress, uint64, uint64) error { return nil }

func (n *neighbours) Discredit(context.Context, sdk.AccAddress) error { return nil }

func (n *neighbours) Suspend(context.Context, sdk.AccAddress) error { return nil }

func (n *neighbours) Resume(context.Context, sdk.AccAddress) error { return nil }

func (n *neighbours) Credit(context.Context, canon.Hash, sdk.AccAddress, uint64) error { return nil }

func (n *neighbours) Forfeit(context.Context, sdk.AccAddress) error { return nil }

func (n *neighbours) Value(context.Context) (canon.Hash, bool, error) { return canon.Hash{}, true, nil }

func (n *neighbours) Tax(context.Context, canon.Hash, string, uint64) error { return n.err }

func (n *neighbours) GetBalance(context.Context, sdk.AccAddress, string) sdk.Coin {
	return sdk.NewInt64Coin(coin.Denom, 0)
}

func (n *neighbours) SendCoinsFromAccountToModule(context.Context, sdk.AccAddress, string, sdk.Coins) error {
	return nil
}

func (n *neighbours) SendCoinsFromModuleToAccount(context.Context, string, sdk.AccAddress, sdk.Coins) error {
	return nil
}

func party(name string, rate uint64) job.Party {
	a := chaintest.Named(name)
	return job.Party{Account: a.String(), Key: a.PeerKey(), VRF: a.VRFKey(), Weight: 1, Rates: job.Rates{GFLOP: rate}}
}

// alone returns a keeper among such neighbours, with rules by which the files of an order
// are asked of one draw of custodians.
func alone(t *testing.T, n *neighbours) (*work.Keeper, job.Params, sdk.Context, store.KVStoreService) {
	t.Helper()
	ctx, svc, cdc := chaintest.Store(t)
	k := work.NewKeeper(cdc, svc, n, n, n, n)
	k.Tell(quiet{}, unheard)
	if err := k.InitGenesis(ctx, work.DefaultGenesis()); err != nil {
		t.Fatal(err)
	}
	rules, err := k.Rules(ctx)
	if err != nil {
		t.Fatal(err)
	}
	rules.MaxLate = 0
	return k, rules, ctx, svc
}

// A lease that cannot be moved on does not stop the chain; it stays as it is and
// is tried again.
func TestLeaseThatCannotSettle(t *testing.T) {
	n := &neighbours{err: errors.New("it rains")}
	k, rules, ctx, _ := alone(t, n)
	m := job.Match{
		Order: worktest.Order(), Lead: chaintest.Named("v0").String(), Params: rules,
		Providers:  pool(party("p0", 10), party("p1", 20)),
		Validators: pool(party("v1", 0), party("v2", 0), party("v3", 0)),
	}
	if _, err := k.Begin(ctx, m); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Begin(ctx, m); !errors.Is(err, work.ErrRefused) {
		t.Fatalf("one order began two leases: %v", err)
	}
	end := func() []*workv1.EventStuck {
		t.Helper()
		ctx = ctx.WithBlockTime(ctx.BlockTime().Add(24 * time.Hour))
		later := ctx.WithEventManager(sdk.NewEventManager())
		if err := work.NewModule(k, nil, &neighbours{}).EndBlock(later); err != nil {
			t.Fatal(err)
		}
		stuck, err := event.Of[*workv1.EventStuck](later.EventManager().ABCIEvents())
		if err != nil {
			t.Fatal(err)
		}
		return stuck
	}
	for range 2 { // custodians are drawn, who say nothing: then nobody has its files, and it closes
		if stuck := end(); len(stuck) != 0 || n.settled != 0 {
			t.Fatalf("%v, %d leases settled", stuck, n.settled)
		}
	}
	for wet := range 2 {
		if wet == 1 {
			n.err = nil
		}
		if stuck := end(); len(stuck) != 1-wet || n.settled != wet {
			t.Fatalf("%v, %d leases settled", stuck, n.settled)
		}
	}
}

// Leases whose time cannot pass, however many, hold up no other: they are tried again
// after a while, ever more seldom, and go on once they can.
func TestUnreadableLeasesHoldUpNobody(t *testing.T) {
	k, rules, ctx, svc := alone(t, &neighbours{})
	begin := func(nonce uint64) canon.Hash {
		o := worktest.Order()
		o.Nonce = nonce
		m := job.Match{
			Order: o, Lead: chaintest.Named("v0").String(), Params: rules, Providers: pool(party("p0", 10), party("p1", 20)),
			Validators: pool(party("v1", 0), party("v2", 0), party("v3", 0)),
		}
		if _, err := k.Begin(ctx, m); err != nil {
			t.Fatal(err)
		}
		return o.ID()
	}
	store, mutable := svc.OpenKVStore(ctx), byte(2)
	broken := map[canon.Hash][]byte{}
	for i := range uint64(300) {
		id := begin(i)
		key := append([]byte{mutable}, id[:]...)
		var err error
		if broken[id], err = store.Get(key); err != nil || len(broken[id]) == 0 {
			t.Fatal(broken[id], err)
		}
		if err := store.Set(key, []byte{0xff}); err != nil {
			t.Fatal(err)
		}
	}
	ctx = ctx.WithBlockTime(ctx.BlockTime().Add(time.Second))
	healthy := begin(1_000)
	moved := map[string]bool{} // leases that went on
	block := func(after time.Duration) []*workv1.EventStuck {
		t.Helper()
		ctx = ctx.WithBlockTime(ctx.BlockTime().Add(after)).WithEventManager(sdk.NewEventManager())
		if err := work.NewModule(k, nil, &neighbours{}).EndBlock(ctx); err != nil {
			t.Fatal(err)
		}
		stuck, err := event.Of[*workv1.EventStuck](ctx.EventManager().ABCIEvents())
		if err != nil {
			t.Fatal(err)
		}
		went, err := event.Of[*workv1.EventProgress](ctx.EventManager().ABCIEvents())
		for _, e := range went {
			moved[e.Order] = true
		}
		if err != nil {
			t.Fatal(err)
		}
		return stuck
	}
	seen := len(block(24*time.Hour)) + len(block(time.Second))
	if !moved[healthy.String()] || seen != 300 {
		t.Fatalf("after two blocks the healthy lease has gone on: %v; %d others are stuck", moved[healthy.String()], seen)
	}
	if again := len(block(time.Second)); again != 0 {
		t.Fatalf("%d were tried again at once", again)
	}
	for _, most := range []int{16, 16} {
		if again := len(block(time.Minute)); again != most {
			t.Fatalf("a block tried %d again, want %d", again, most)
		}
	}
	for id, b := range broken { // order: any
		if err := store.Set(append([]byte{mutable}, id[:]...), b); err != nil {
			t.Fatal(err)
		}
	}
	for range 300/16 + 1 {
		if again := block(time.Hour); len(again) != 0 {
			t.Fatalf("still stuck: %v", again)
		}
	}
	for id := range broken { // order: any
		if !moved[id.String()] {
			t.Fatalf("lease %s can be read again, and does not go on", id)
		}
	}
}

// pool returns parties in account order.
func pool(all ...job.Party) job.Pool {
	slices.SortFunc(all, func(a, b job.Party) int { return strings.Compare(a.Account, b.Account) })
	return all
}
