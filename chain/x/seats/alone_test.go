package seats_test

import (
	"context"
	"strings"
	"testing"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/event"
	"github.com/tally-network/tally/chain/x/seats"
	"github.com/tally-network/tally/core/beacon"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/power"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// chance is a beacon that has a fresh value in each block.
type chance struct {
	seats.Beacon
	first  uint64 // epoch
	length int64
}

// Value implements seats.Beacon.
func (chance) Value(context.Context) (canon.Hash, bool, error) { return canon.Hash{1}, true, nil }

// Calendar implements seats.Beacon.
func (c chance) Calendar(context.Context) (beacon.Calendar, error) {
	return beacon.Calendar{Epoch: c.first, Height: 1, Length: c.length}, nil
}

// powers gives each account a power of its own.
type powers struct {
	of     func(sdk.AccAddress) *power.Record
	broken bool
}

// Of implements seats.Power.
func (p *powers) Of(_ context.Context, a sdk.AccAddress) (*power.Record, error) {
	if p.of == nil {
		return &power.Record{}, nil
	}
	return p.of(a), nil
}

// Hour implements seats.Power.
func (p *powers) Hour(context.Context) (power.Hour, error) {
	if p.broken {
		panic("no hour")
	}
	return 1, nil
}

// Forfeit implements seats.Power.
func (*powers) Forfeit(context.Context, sdk.AccAddress) error { return nil }

// nobody is founders whose base is small.
type nobody struct{}

// Founder implements seats.Founders.
func (nobody) Founder(context.Context, sdk.AccAddress) (own, all uint64, err error) { return 0, 0, nil }

// Base implements seats.Founders.
func (nobody) Base(context.Context) (uint64, error) { return 1_000_000, nil }

// What breaks a draw stops no block. The set stays, the epoch has had its draw, and the next is drawn.
func TestABrokenDrawStopsNoBlock(t *testing.T) {
	ctx, svc, cdc := chaintest.Store(t)
	p := &powers{broken: true}
	k := seats.NewKeeper(cdc, svc, seats.Needs{Bank: chaintest.NewBank(), Power: p, Founders: nobody{}}, "insurance")
	k.Follow(chance{length: 10})
	g := genesis()
	g.Unbonding, g.LastDrawEpoch = nil, 0
	if err := k.InitGenesis(ctx, g); err != nil {
		t.Fatal(err)
	}
	said := map[uint64]int{}
	for h := int64(1); h <= 40; h++ {
		c := ctx.WithBlockHeight(h).WithEventManager(sdk.NewEventManager())
		if h == 31 {
			p.broken = false
		}
		updates, err := k.EndBlock(c)
		if err != nil || len(updates) > 0 {
			t.Fatalf("height %d: %v (%v)", h, updates, err)
		}
		told, err := event.Of[*seatsv1.EventDrawAbandoned](c.EventManager().ABCIEvents())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range told {
			if said[e.Epoch]++; h < 31 != strings.Contains(e.Reason, "no hour") {
				t.Errorf("height %d: %v", h, e)
			}
		}
	}
	for e := uint64(1); e < 4; e++ {
		if said[e] != 1 {
			t.Errorf("epoch %d is kept %d times", e, said[e])
		}
	}
}
