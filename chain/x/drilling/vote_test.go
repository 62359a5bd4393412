package drilling_test

import (
	"testing"
	"time"

	"github.com/cosmos/gogoproto/proto"

	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/x/drilling"
	drillingv1 "github.com/tally-network/tally/gen/tally/drilling/v1"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// Where genesis names no authority, a vote of power admits a project, and may end it. Nobody else admits.
func TestAVoteDecidesOnProjects(t *testing.T) {
	voted := func(g *app.Genesis) {
		g.Policy = policyv1.Params{
			Base: 1000, Quorum: 400, ThresholdBps: 5000, VetoBps: 3334, Deposit: 100, MaxOpen: 3,
			VotingMs: time.Hour.Milliseconds(), DelayMs: time.Hour.Milliseconds(),
		}
	}
	c := chaintest.New(t, worktest.Network(voted, chaintest.Fund(worktest.Tally, "producer"))...)
	founder, policy := chaintest.Named("producer"), address.Policy().String()
	n := proposed(t, c, 100)
	c.Refuse(module.ErrAuthority, partner, &drillingv1.MsgAdmitProject{Authority: partner.String(), Project: n})
	id := uint64(0)
	vote := func(m sdk.Msg) {
		t.Helper()
		packed, err := codectypes.NewAnyWithValue(m)
		if err != nil {
			t.Fatal(err)
		}
		c.Deliver(partner, &policyv1.MsgPropose{Proposer: partner.String(), Title: "Fold proteins", Summary: "Shapes.", Deposit: 100, Messages: []*codectypes.Any{packed}})
		c.Deliver(founder, &policyv1.MsgVote{Voter: founder.String(), Proposal: id, Option: policyv1.OPTION_YES})
		id++
		c.NextBlock(time.Hour)
		c.NextBlock(time.Hour)
	}
	vote(&drillingv1.MsgAdmitProject{Authority: policy, Project: n})
	if x := get(t, c, n); x.Status != drillingv1.STATUS_ADMITTED {
		t.Fatalf("after the vote: %+v", x)
	}
	c.Deliver(partner, worktest.Post(task(n)))
	vote(&drillingv1.MsgEndProject{Sender: policy, Project: n})
	if x := get(t, c, n); x.Status != drillingv1.STATUS_ENDED || x.Deposit != 0 {
		t.Fatalf("after the second vote: %+v", x)
	}
}

// Whatever a message holds and whoever signs it, the module's ledger adds up.
func FuzzMessages(f *testing.F) {
	c := network(f)
	n := admitted(f, c, 100)
	c.Deliver(partner, worktest.Post(task(n)))
	all := []sdk.Msg{
		&drillingv1.MsgRegisterProject{Partner: partner.String(), Name: "folding", Summary: "shapes", BudgetUt: 1},
		&drillingv1.MsgAdmitProject{Authority: senate.String(), Project: proposed(f, c, 1)},
		&drillingv1.MsgEndProject{Sender: partner.String(), Project: n},
		&drillingv1.MsgUpdateParams{Authority: senate.String(), Params: drilling.DefaultGenesis().Params},
	}
	for i, m := range all {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), b)
	}
	f.Fuzz(func(t *testing.T, kind uint8, b []byte) {
		m := proto.Clone(all[int(kind)%len(all)])
		m.Reset()
		if proto.Unmarshal(b, m) != nil {
			return
		}
		ctx := c.Ctx()
		if _, err := c.MsgServiceRouter().Handler(m)(ctx, m); err != nil {
			return
		}
		if err := c.CheckInvariants(ctx); err != nil {
			t.Fatalf("after %v: %v", m, err)
		}
	})
}
