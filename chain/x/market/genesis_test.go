package market_test

import (
	"testing"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/event"
	"github.com/tally-network/tally/chain/x/market"
	"github.com/tally-network/tally/core/canon"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

func TestValidateGenesis(t *testing.T) {
	c := newChain(t)
	worktest.Begin(t, c, worktest.Order())
	o := worktest.Order()
	o.Nonce = 2
	o.Conditions.MinProviders = 9
	c.Deliver(consumer, worktest.Post(o))
	whole, err := c.Market.ExportGenesis(c.Ctx())
	if err != nil || market.ValidateGenesis(whole) != nil || len(whole.Orders) != 2 || len(whole.Offers) != 1 {
		t.Fatalf("%v, %v", err, market.ValidateGenesis(whole))
	}
	for name, bend := range map[string]func(*marketv1.GenesisState){
		"offer twice": func(g *marketv1.GenesisState) { g.Offers = append(g.Offers, g.Offers[0]) },
		"bad offer":   func(g *marketv1.GenesisState) { g.Offers[0].MaxLeases = 0 },
		"no offerer":  func(g *marketv1.GenesisState) { g.Offers[0].Validator = "" },
		"order twice": func(g *marketv1.GenesisState) { g.Orders = append(g.Orders, g.Orders[1]) },
		"order":       func(g *marketv1.GenesisState) { g.Orders[0].Order = []byte{1} },
		"number":      func(g *marketv1.GenesisState) { g.Orders[1].Posting.Number = 1 },
		"next":        func(g *marketv1.GenesisState) { g.Next = 2 },
		"leased":      func(g *marketv1.GenesisState) { g.Orders[0].Posting.Escrow++ },
		"open":        func(g *marketv1.GenesisState) { g.Orders[1].Posting.Escrow-- },
		"ended":       func(g *marketv1.GenesisState) { g.Orders[1].Posting.Status = marketv1.STATUS_EXPIRED },
		"status":      func(g *marketv1.GenesisState) { g.Orders[1].Posting.Status = 9 },
		"riches": func(g *marketv1.GenesisState) {
			o := worktest.Order()
			o.Conditions.MaxPrice = coin.MaxSupply
			g.Orders[1] = marketv1.GenesisOrder{Order: canon.Marshal(&o), Posting: g.Orders[1].Posting}
			g.Orders[1].Posting.Escrow = coin.MaxSupply
		},
	} {
		g := *whole
		g.Offers = append([]marketv1.Offer(nil), whole.Offers...)
		g.Orders = append([]marketv1.GenesisOrder(nil), whole.Orders...)
		if bend(&g); market.ValidateGenesis(&g) == nil {
			t.Errorf("%s: a bent genesis was taken", name)
		}
	}
}

// An order that cannot be refunded does not stop the chain; it stays open and is
// tried again.
func TestOrderThatCannotBeRefunded(t *testing.T) {
	ctx, svc, cdc := chaintest.Store(t)
	bank := chaintest.NewBank()
	k := market.NewKeeper(cdc, svc, bank, nil, noTasks{})
	o := worktest.Order()
	bank.Give(consumer.Address, o.Conditions.MaxPrice+5)
	id, err := k.PostOrder(ctx, &o, 5)
	if err != nil {
		t.Fatal(err)
	}
	lost := bank.Balances[string(escrowAccount)]
	bank.Balances[string(escrowAccount)] = 0
	for found := range 2 {
		if found == 1 {
			bank.Balances[string(escrowAccount)] = lost
		}
		later := ctx.WithBlockTime(ctx.BlockTime().Add(time.Hour)).WithEventManager(sdk.NewEventManager())
		if err := market.NewModule(k, nil, &leases{}, nil, nil).EndBlock(later); err != nil {
			t.Fatal(err)
		}
		obstacles, err := event.Of[*marketv1.EventObstacle](later.EventManager().ABCIEvents())
		if err != nil || len(obstacles) != 1-found {
			t.Fatalf("%v, %v", obstacles, err)
		}
		_, p, err := k.Order(ctx, id)
		if err != nil || (p.Status == marketv1.STATUS_EXPIRED) != (found == 1) {
			t.Fatalf("%+v, %v", p, err)
		}
	}
}
