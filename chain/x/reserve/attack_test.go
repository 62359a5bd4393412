package reserve_test

import (
	"context"
	"errors"
	"testing"
	"time"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/x/provider"
	"github.com/tally-network/tally/chain/x/reserve"
	"github.com/tally-network/tally/core/power"
	reservev1 "github.com/tally-network/tally/gen/tally/reserve/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

func newKeeper(t *testing.T, n *neighbours) (*reserve.Keeper, sdk.Context) {
	t.Helper()
	ctx, svc, cdc := chaintest.Store(t)
	k := reserve.NewKeeper(cdc, svc, reserve.Needs{Bank: n, Seats: n, Beacon: n, Leases: n}, reserve.Pools{Jackpot: "jackpot", Insurance: "insurance"})
	n.Give(moduleAccount(), 1<<50)
	if err := k.InitGenesis(ctx, reserve.DefaultGenesis()); err != nil {
		t.Fatal(err)
	}
	return k, ctx
}

// Nobody sends tokens to the reserve, claims for others, nor claims twice.
func TestNobodyElseClaims(t *testing.T) {
	c := newChain(t, held(1_000_000*tally))
	c.Refuse(sdkerrors.ErrUnauthorized, carol, banktypes.NewMsgSend(carol.Address, moduleAccount(), coin.Of(1)))
	credit(t, c, alice, 100)
	c.NextBlock(time.Hour)
	c.Refuse(sdkerrors.ErrInvalidPubKey, bob, claim(alice))
	c.Deliver(alice, claim(alice))
	c.Refuse(reserve.ErrNothing, alice, claim(alice))
}

// Drilling has a share of its own, by drilling alone, and counts for all others.
func TestDrillingShare(t *testing.T) {
	c := newChain(t, held(1_000_000*tally))
	err := c.Do(func(ctx sdk.Context) error {
		const long = 1 << 40 // since neither is new
		return errors.Join(
			c.Reserve.Credited(ctx, alice.Address, true, 300*1_000_000, long), c.Reserve.Credited(ctx, bob.Address, true, 100*1_000_000, long),
			c.Reserve.Credited(ctx, carol.Address, false, 600*1_000_000, long))
	})
	if err != nil {
		t.Fatal(err)
	}
	c.NextBlock(time.Hour)
	for a, want := range map[*chaintest.Account]uint64{&alice: 800 * 300 * 3 / 10, &bob: 800 * 100 * 3 / 10, &carol: 0} {
		if got := account(t, c, *a).Due; got != want {
			t.Errorf("%s has earned %d utally, want %d", a.Name, got, want)
		}
	}
	c.Deliver(alice, claim(alice))
	c.Deliver(bob, claim(bob))
	s := status(t, c)
	if s.Totals != (reservev1.Totals{Claimed: 96_000, Jackpot: 80_000, Insurance: 80_000}) || s.Held != 1_000_000*tally-256_000 {
		t.Errorf("%+v", s)
	}
}

// Convicts who begin again under their old name are not new.
func TestConvictsDoNotJoinAgain(t *testing.T) {
	c := newChain(t, held(1_000_000*tally))
	credit(t, c, alice, 100)
	if err := c.Do(func(ctx sdk.Context) error { return c.Power.Forfeit(ctx, alice.Address) }); err != nil {
		t.Fatal(err)
	}
	credit(t, c, alice, 100)
	if got := account(t, c, alice).Weights.Joining; got != 100*1_000_000 {
		t.Errorf("%d µut are the first", got)
	}
}

// At the defaults, another name costs more than it earns: its stake is away for the time of unbonding, at an interest
// of 3 % a year.
func TestNamesCostMore(t *testing.T) {
	p, stakes := reserve.DefaultParams(), provider.DefaultGenesis().Params
	earns := p.JoiningUt * p.Cap * uint64(p.JoiningBps) / 10_000
	const year = 365 * 24 * 3_600_000
	costs := stakes.MinProviderStake * 3 / 100 * uint64(stakes.UnbondingMs) / year
	if earns == 0 || earns >= costs {
		t.Errorf("another name earns %d utally, and costs %d", earns, costs)
	}
}

// Work in crumbs under many names is paid nothing by which anybody could live: a crumb is less than a utally.
func TestCrumbs(t *testing.T) {
	c := newChain(t, held(1_000_000*tally))
	err := c.Do(func(ctx sdk.Context) (err error) {
		for i := range 500 {
			err = errors.Join(err, c.Power.Credit(ctx, who(i), power.MicroUT))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	c.NextBlock(time.Hour)
	for i := range 500 {
		if r, err := reservev1.NewQueryClient(c).Account(t.Context(), &reservev1.QueryAccountRequest{Account: who(i).String()}); err != nil || r.Due > 0 {
			t.Fatalf("%d: %+v, %v", i, r, err)
		}
	}
}

// Who settles with too little gas takes no rewards from others: it fails.
func TestTooLittleGas(t *testing.T) {
	n := &neighbours{Bank: chaintest.NewBank()}
	k, ctx := newKeeper(t, n)
	for gas := storetypes.Gas(0); ; gas += 500 {
		branch, _ := ctx.CacheContext()
		branch = branch.WithGasMeter(storetypes.NewGasMeter(gas))
		err := attempt(func() error { return k.Credited(branch, who(0), false, 1_000_000, 0) })
		g, e := k.ExportGenesis(branch.WithGasMeter(storetypes.NewInfiniteGasMeter()))
		if e != nil {
			t.Fatal(e)
		}
		if counted := g.Open.Credited > 0; counted != (err == nil) {
			t.Fatalf("with %d gas: %v, and %d µut are counted", gas, err, g.Open.Credited)
		} else if counted {
			if gas == 0 {
				t.Error("it took no gas")
			}
			return
		}
	}
}

// attempt turns a panic into an error, as whoever runs a transaction does.
func attempt(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("panic")
		}
	}()
	return f()
}

// broken is a bank that pays nobody.
type broken struct{ *neighbours }

func (broken) SendCoinsFromModuleToModule(context.Context, string, string, sdk.Coins) error {
	return errors.New("no")
}

// If an epoch cannot be closed, blocks go on.
func TestBlocksGoOn(t *testing.T) {
	n := &neighbours{Bank: chaintest.NewBank()}
	ctx, svc, cdc := chaintest.Store(t)
	n.Give(moduleAccount(), 1<<50)
	k := reserve.NewKeeper(cdc, svc, reserve.Needs{Bank: broken{n}, Seats: n, Beacon: n, Leases: n}, reserve.Pools{Jackpot: "jackpot", Insurance: "insurance"})
	if err := k.InitGenesis(ctx, reserve.DefaultGenesis()); err != nil {
		t.Fatal(err)
	}
	if err := k.Credited(ctx, who(0), false, 1_000_000_000, 0); err != nil {
		t.Fatal(err)
	}
	h := ctx.BlockHeader()
	h.ProposerAddress = []byte{1}
	late := ctx.WithBlockHeader(h).WithBlockTime(ctx.BlockTime().Add(time.Hour))
	if err := k.EndBlock(late); err != nil {
		t.Error(err)
	}
	if err := k.Credited(late, who(0), false, 1_000_000_000, 0); err != nil {
		t.Error(err)
	}
	if _, err := k.Claim(late, who(0)); err == nil {
		t.Error("a claim was paid of an epoch that is not closed")
	}
	if err := k.Invariant(late); err != nil {
		t.Error(err)
	}
}

// An epoch whose number would come again is no genesis: its pots would be written over.
func TestEpochsComeOnce(t *testing.T) {
	n := &neighbours{Bank: chaintest.NewBank()}
	ctx, svc, cdc := chaintest.Store(t)
	n.Give(moduleAccount(), 1<<50)
	k := reserve.NewKeeper(cdc, svc, reserve.Needs{Bank: n, Seats: n, Beacon: n, Leases: n}, reserve.Pools{Jackpot: "jackpot", Insurance: "insurance"})
	g := reserve.DefaultGenesis()
	g.Open.Number = 5
	for _, origin := range []int64{0, ctx.BlockTime().UnixMilli() - 5*g.EpochMs + 1, ctx.BlockTime().UnixMilli() + 2*g.EpochMs} {
		if g.OriginMs = origin; k.InitGenesis(ctx, g) == nil {
			t.Errorf("epoch 5 is under way, and the first began at %d", origin)
		}
	}
	g.OriginMs = ctx.BlockTime().UnixMilli() - 5*g.EpochMs
	if err := k.InitGenesis(ctx, g); err != nil {
		t.Error(err)
	}
}
