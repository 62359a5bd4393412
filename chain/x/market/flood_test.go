package market_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/core/job"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// later is a context of the next block, some time after.
func later(ctx sdk.Context, d time.Duration) sdk.Context {
	return ctx.WithBlockHeight(ctx.BlockHeight() + 1).WithBlockTime(ctx.BlockTime().Add(d))
}

// New orders that take long to weigh used up each block, and those that wait were tried after them: never.
func TestNewOrdersDoNotStarveThoseThatWait(t *testing.T) {
	const validators, team, flood = 240, 8, 40
	var crowd []chaintest.Option
	for v := range validators {
		lead := fmt.Sprintf("w%d", v)
		crowd = append(crowd, chaintest.Validator(lead, 10_000*tally))
		for i := range team {
			crowd = append(crowd, chaintest.Provider(fmt.Sprintf("%s-%d", lead, i), lead, 1_000*tally, uint64(1_000+i)))
		}
	}
	c := newChain(t, crowd...)
	worktest.Offer(c, "v0")
	ctx := c.Ctx()
	l := &leases{Params: job.DefaultParams, refuse: map[string]bool{v0.String(): true}}
	for v := range validators {
		a := chaintest.Named(fmt.Sprintf("w%d", v)).String()
		l.refuse[a] = true
		if err := c.Market.PostOffer(ctx, marketv1.Offer{Validator: a, MaxLeases: 1}); err != nil {
			t.Fatal(err)
		}
	}
	waits := worktest.Order()
	waits.Conditions.Expires = (24 * time.Hour).Milliseconds()
	id, err := c.Market.PostOrder(ctx, &waits, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 7 { // all that is on offer is tried
		endBlock(t, c, ctx, l)
		ctx = later(ctx, time.Second)
	}
	l.refuse = nil // from now on anybody would take it
	for nonce := uint64(100); len(l.begun) == 0; ctx = later(ctx, time.Second) {
		for range flood {
			o := worktest.Order()
			o.Nonce, nonce = nonce, nonce+1
			o.Conditions.MaxPrice, o.Conditions.Replicas, o.Conditions.Auditors, o.Conditions.AuditSegments = 100_000, 2, 0, 0 // nobody meets it
			if _, err := c.Market.PostOrder(ctx, &o, 0); err != nil {
				t.Fatal(err)
			}
		}
		if endBlock(t, c, ctx, l); nonce > 100+20*flood {
			t.Fatal("an order that waits was not tried in twenty blocks")
		}
	}
	if l.begun[0].Order.ID() != id {
		t.Error("another order began")
	}
}

// Improved clusters were looked at in account order: whoever had 64 accounts that come before an honest
// offer's kept it from being seen.
func TestImprovedClustersHaveTheirTurn(t *testing.T) {
	var names []chaintest.Account
	for i := 0; len(names) < 65; i++ {
		if a := chaintest.Named(fmt.Sprintf("z%d", i)); bytes.Compare(a.Address, v0.Address) < 0 {
			names = append(names, a)
		}
	}
	var crowd []chaintest.Option
	for _, a := range names {
		crowd = append(crowd, chaintest.Validator(a.Name, 0)) // they have taken their stake back
	}
	c := newChain(t, crowd...)
	ctx, l := c.Ctx(), &leases{Params: job.DefaultParams}
	o := worktest.Order()
	o.Conditions.Expires = (24 * time.Hour).Milliseconds()
	if _, err := c.Market.PostOrder(ctx, &o, 0); err != nil {
		t.Fatal(err)
	}
	post := func(a chaintest.Account) {
		if err := c.Market.PostOffer(ctx, marketv1.Offer{Validator: a.String(), MaxLeases: 1}); err != nil {
			t.Fatal(err)
		}
		if err := c.Provider.MarkImproved(ctx, a.Address); err != nil {
			t.Fatal(err)
		}
	}
	for range 8 { // until it is tried again after a long time only
		ctx = later(ctx, 10*time.Minute)
		endBlock(t, c, ctx, l)
	}
	post(v0)
	for blocks := 0; len(l.begun) == 0; blocks++ {
		ctx = later(ctx, time.Second)
		for _, a := range names {
			post(a)
		}
		if endBlock(t, c, ctx, l); blocks > 30 {
			t.Fatal("an offer was not looked at in thirty blocks")
		}
	}
}
