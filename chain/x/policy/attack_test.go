package policy_test

import (
	"testing"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/x/policy"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// The founders, who decide everything at first, cannot vote that they always will; nor that a handful does.
func TestNobodyRulesForGood(t *testing.T) {
	c := chaintest.New(t, chaintest.Fund(10_000*1_000_000, "alice"))
	p := policy.DefaultGenesis().Params
	deposit := p.Deposit
	for base, quorum := range map[uint64]uint64{1 << 62: 1 << 61, 1_000_000_000_000_001: 1 << 48, 2: 1, 9_999_999_999_999: 4_000_000_000_000} {
		p.Base, p.Quorum = base, quorum
		c.Refuse(policy.ErrMessage, alice, proposal(t, alice, deposit, &policyv1.MsgUpdateParams{Authority: address.Policy().String(), Params: p}))
	}
	p.Base, p.Quorum = 1_000_000_000_000_000, 400_000_000_000_000
	c.Deliver(alice, proposal(t, alice, deposit, &policyv1.MsgUpdateParams{Authority: address.Policy().String(), Params: p}))
}
