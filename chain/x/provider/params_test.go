package provider_test

import (
	"strings"
	"testing"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/x/provider"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// Rules are changed by the authority alone; peers below a new minimum keep their
// stake, and get no new work.
func TestUpdateParams(t *testing.T) {
	c := chaintest.New(t,
		chaintest.Fund(2_000*tally, alice.Name, bob.Name),
		chaintest.Validator(lead.Name, 1_000*tally),
		chaintest.Authority(bob.Name),
	)
	q := providerv1.NewQueryClient(c)
	before, err := q.Params(t.Context(), &providerv1.QueryParamsRequest{})
	if err != nil || before.Authority != bob.String() || before.Params.String() != provider.DefaultGenesis().Params.String() {
		t.Fatalf("%+v, %v", before, err)
	}
	update := func(p, v, w uint64) *providerv1.MsgUpdateParams {
		return &providerv1.MsgUpdateParams{Authority: bob.String(), Params: providerv1.Params{MinProviderStake: p, MinValidatorStake: v, MinChallengerStake: w, UnbondingMs: 3_600_000, LeadFactor: 1}}
	}
	for why, m := range map[string]*providerv1.MsgUpdateParams{
		"min_provider_stake = 0":                           update(0, 1, 1),
		"min_challenger_stake = 0":                         update(1, 1, 0),
		"min_validator_stake = 1 < min_provider_stake = 2": update(2, 1, 1),
		"min_validator_stake = 18446744073709551615 >":     update(2, 1<<64-1, 1),
	} {
		if text := c.Refuse(module.ErrRules, bob, m); !strings.Contains(text, why) {
			t.Errorf("refused with %q, want %q", text, why)
		}
	}
	borrowed := update(1, 1, 1)
	borrowed.Params.UnbondingMs = 0
	if text := c.Refuse(module.ErrRules, bob, borrowed); !strings.Contains(text, "for a block") {
		t.Errorf("stake for a block: %q", text)
	}
	bold := update(1, 1, 1)
	bold.Params.LeadFactor = 1_001
	if text := c.Refuse(module.ErrRules, bob, bold); !strings.Contains(text, "1001 times its stake") {
		t.Errorf("a lead without a bound: %q", text)
	}
	foreign := update(tally, tally, tally)
	foreign.Authority = alice.String()
	c.Refuse(module.ErrAuthority, alice, foreign)

	c.Deliver(alice, alice.Register(providerv1.ROLE_PROVIDER, 150*tally, listing))
	active := func() bool {
		yes, err := c.Provider.Active(c.Ctx(), get(t, c, alice))
		if err != nil {
			t.Fatal(err)
		}
		return yes
	}
	if !active() {
		t.Fatal("the peer gets no work")
	}
	good := update(150*tally+1, 1_000*tally, tally)
	c.Deliver(bob, good)
	if active() || get(t, c, alice).Stake != 150*tally {
		t.Error("a peer below the new minimum gets work, or has lost its stake")
	}
	c.Deliver(alice, &providerv1.MsgDeposit{Account: alice.String(), Amount: 1})
	if !active() {
		t.Error("the peer gets no work with what is asked for")
	}
	g, err := c.Provider.ExportGenesis(c.Ctx())
	if err != nil || g.Authority != bob.String() || g.Params.String() != good.Params.String() || provider.ValidateGenesis(g) != nil {
		t.Errorf("exported %+v, %v", g, err)
	}
	for why, bend := range map[string]func(*providerv1.GenesisState){
		"authority":           func(g *providerv1.GenesisState) { g.Authority = "nobody" },
		"min_validator_stake": func(g *providerv1.GenesisState) { g.Params.MinValidatorStake = 0 },
	} {
		bent := *g
		bend(&bent)
		if err := provider.ValidateGenesis(&bent); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("got %v, want an error about %s", err, why)
		}
	}
}

// Where genesis names no authority, rules are the policy's, which has no key.
func TestNobodyChangesRulesByAKey(t *testing.T) {
	c := newChain(t)
	m := &providerv1.MsgUpdateParams{Authority: alice.String(), Params: provider.DefaultGenesis().Params}
	if text := c.Refuse(module.ErrAuthority, alice, m); !strings.Contains(text, address.Policy().String()) {
		t.Errorf("refused with %q", text)
	}
}
