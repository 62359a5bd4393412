package policy_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/x/policy"
	blockv1 "github.com/tally-network/tally/gen/tally/block/v1"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// neighbours are what the module needs, tested alone: nobody has power, so the founder votes all.
type neighbours struct {
	*chaintest.Bank
	broke bool   // the bank gives nothing back
	gas   uint64 // that each message takes
}

func (n *neighbours) SendCoinsFromModuleToAccount(ctx context.Context, from string, to sdk.AccAddress, coins sdk.Coins) error {
	if n.broke {
		return errors.New("the bank is closed")
	}
	return n.Bank.SendCoinsFromModuleToAccount(ctx, from, to, coins)
}

func (n *neighbours) Burn(context.Context, string, uint64) error { return nil }

func (n *neighbours) Mark(context.Context) (mark, total uint64, err error) { return 1, 0, nil }
func (n *neighbours) Unmark(context.Context, uint64) error                 { return nil }
func (n *neighbours) At(context.Context, sdk.AccAddress, uint64) (uint64, error) {
	return 0, nil
}

func (n *neighbours) Handler(sdk.Msg) func(sdk.Context, sdk.Msg) (*sdk.Result, error) {
	return func(ctx sdk.Context, _ sdk.Msg) (*sdk.Result, error) {
		ctx.GasMeter().ConsumeGas(n.gas, "test")
		return &sdk.Result{}, nil
	}
}

// passed returns, for a proposal for which the founder has voted, how it stands at the end of a block that many hours
// later.
func passed(t *testing.T, n *neighbours) func(hours int) policyv1.Proposal {
	t.Helper()
	ctx, svc, _ := chaintest.Store(t)
	enc, err := app.NewEncoding()
	if err != nil {
		t.Fatal(err)
	}
	n.Bank = chaintest.NewBank()
	n.Give(alice.Address, funds)
	k := policy.NewKeeper(enc.Codec, svc, policy.Needs{Bank: n, Burner: n, Power: n, Router: n}, &blockv1.MsgUpdateParams{})
	g := policy.DefaultGenesis()
	g.Params, g.Founders = rules(), []policyv1.Founder{{Account: founder.String(), Weight: 1}}
	if err := k.InitGenesis(ctx, g); err != nil {
		t.Fatal(err)
	}
	id, err := k.Propose(ctx, proposal(t, alice, 100, &blockv1.MsgUpdateParams{Authority: address.Policy().String()}))
	if err == nil {
		_, err = k.Vote(ctx, founder.Address, id, policyv1.OPTION_YES)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func(hours int) policyv1.Proposal {
		t.Helper()
		later := ctx.WithBlockTime(ctx.BlockTime().Add(time.Duration(hours) * time.Hour))
		if err := policy.NewModule(k).EndBlock(later); err != nil {
			t.Fatalf("the chain stops: %v", err)
		}
		if err := k.Invariant(later); err != nil {
			t.Fatal(err)
		}
		g, err := k.ExportGenesis(later)
		if err == nil {
			err = policy.ValidateGenesis(g)
		}
		if err != nil || len(g.Proposals) != 1 {
			t.Fatalf("%d proposals: %v", len(g.Proposals), err)
		}
		return g.Proposals[0]
	}
}

// A deposit that cannot be given back stays where it is, and is told of: the vote counts, and no block stops.
func TestDepositThatCannotBeGivenBack(t *testing.T) {
	end := passed(t, &neighbours{broke: true})
	x := end(1)
	if x.Status != policyv1.STATUS_PASSED || x.Deposit != 100 || !strings.Contains(x.Failure, "the bank is closed") {
		t.Fatalf("%+v", x)
	}
	if x = end(3); x.Status != policyv1.STATUS_EXECUTED || x.Deposit != 100 {
		t.Errorf("%+v", x)
	}
}

// Messages that take more gas than a block gives a proposal are not executed, and no block stops.
func TestExecutionIsBounded(t *testing.T) {
	n := &neighbours{}
	end := passed(t, n)
	n.gas = 10_000_001
	if x := end(1); x.Status != policyv1.STATUS_PASSED || x.Deposit != 0 {
		t.Fatalf("%+v", x)
	}
	if x := end(3); x.Status != policyv1.STATUS_FAILED || !strings.Contains(x.Failure, "out of gas") {
		t.Errorf("%+v", x)
	}
}
