// Package policy changes rules by a vote of computing power. Whoever deposits something proposes messages
// that the module's own account signs, such as new rules of a module. Power votes. What has passed waits, so that
// people can leave, and is then executed at the end of a block.
//
// Call [NewKeeper] and [NewModule]. [Keeper.Convicted] takes back the votes of an account whose power is gone.
//
// Invariants: no key controls the module's account. A proposal's tally is the sum of its votes. The module's
// account holds the deposits of proposals that are voted on, and what could not be given back. What a block does
// is bounded, whatever was proposed, and no block stops for it.
//
// Source: docs/spec/policy.md.
package policy

import (
	"fmt"

	"cosmossdk.io/collections"
	"cosmossdk.io/core/store"

	"github.com/cosmos/cosmos-sdk/codec"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/policy"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
)

// Name is the module's name, and that of its account, which is the authority of rules.
const Name = address.PolicyName

// Keeper holds proposals and votes.
type Keeper struct {
	rules     module.Rules[policyv1.Params]
	founders  collections.Map[sdk.AccAddress, uint64] // weights
	all       collections.Item[uint64]                // of the founders together
	next      collections.Sequence
	proposals collections.Map[uint64, policyv1.Proposal]
	open      collections.KeySet[uint64]                          // proposals that are voted on
	due       collections.KeySet[collections.Pair[int64, uint64]] // those that something happens to, by its protocol time
	votes     collections.Map[collections.Pair[uint64, sdk.AccAddress], policyv1.Vote]
	decided   collections.KeySet[uint64] // proposals whose votes are still to be removed

	codec   codec.Codec
	bank    Bank
	burner  Burner
	power   Power
	router  Router
	allowed map[string]bool // types of messages, by URL
}

// NewKeeper returns a keeper over the given store. Proposals may hold messages of the allowed types.
func NewKeeper(cdc codec.Codec, svc store.KVStoreService, n Needs, allowed ...sdk.Msg) *Keeper {
	sb := collections.NewSchemaBuilder(svc)
	k := &Keeper{
		codec: cdc, bank: n.Bank, burner: n.Burner, power: n.Power, router: n.Router, allowed: map[string]bool{},
		rules:    module.RulesOf(sb, 0, 1, codec.CollValue[policyv1.Params](cdc), mayReplace),
		founders: collections.NewMap(sb, collections.NewPrefix(2), "founders", sdk.AccAddressKey, collections.Uint64Value),
		all:      collections.NewItem(sb, collections.NewPrefix(3), "all", collections.Uint64Value),
		next:     collections.NewSequence(sb, collections.NewPrefix(4), "next"),
		proposals: collections.NewMap(sb, collections.NewPrefix(5), "proposals", collections.Uint64Key,
			codec.CollValue[policyv1.Proposal](cdc)),
		open: collections.NewKeySet(sb, collections.NewPrefix(6), "open", collections.Uint64Key),
		due: collections.NewKeySet(sb, collections.NewPrefix(7), "due",
			collections.PairKeyCodec(collections.Int64Key, collections.Uint64Key)),
		votes: collections.NewMap(sb, collections.NewPrefix(8), "votes",
			collections.PairKeyCodec(collections.Uint64Key, sdk.AccAddressKey), codec.CollValue[policyv1.Vote](cdc)),
		decided: collections.NewKeySet(sb, collections.NewPrefix(9), "decided", collections.Uint64Key),
	}
	for _, m := range allowed {
		k.allowed[sdk.MsgTypeURL(m)] = true
	}
	module.Seal(sb)
	return k
}

func rulesOf(p policyv1.Params) policy.Rules {
	return policy.Rules{
		Base: p.Base, Quorum: p.Quorum, ThresholdBps: p.ThresholdBps, VetoBps: p.VetoBps,
		Deposit: p.Deposit, MaxOpen: p.MaxOpen, VotingMs: p.VotingMs, DelayMs: p.DelayMs,
	}
}

// CheckParams returns an error that shows what is wrong with rules of votes.
func CheckParams(p policyv1.Params) error { return rulesOf(p).Check() }

// Bounds of what a vote may set: within them another vote can take it back.
const (
	maxDeposit = 100_000 * tally
	minBase    = 10_000_000 * ut    // else few decide, as soon as a vote has lowered it
	maxBase    = 1_000_000_000 * ut // else founders have back for good what power has taken from them
	minTime    = day                // ms of a vote, and of the delay
	maxTime    = 30 * day           // ms of either
)

// mayReplace returns an error unless rules may take the place of others.
func mayReplace(old, p policyv1.Params) error {
	if err := CheckParams(p); err != nil {
		return err
	}
	if (p.Quorum != old.Quorum || p.Base != old.Base) && (p.Quorum < p.Base/10 || p.Quorum > p.Base/2) {
		return fmt.Errorf("few could decide, or stop all decisions: quorum = %d, want between a tenth and half of base = %d", p.Quorum, p.Base)
	}
	return module.Within(
		module.Bound{Name: "base", Old: old.Base, New: p.Base, Least: minBase, Most: maxBase},
		module.Bound{Name: "threshold_bps", Old: uint64(old.ThresholdBps), New: uint64(p.ThresholdBps), Least: 5_000, Most: 7_500},
		module.Bound{Name: "veto_bps", Old: uint64(old.VetoBps), New: uint64(p.VetoBps), Least: 2_500, Most: 5_000},
		module.Bound{Name: "deposit", Old: old.Deposit, New: p.Deposit, Least: tally, Most: maxDeposit},
		module.Bound{Name: "max_open", Old: uint64(old.MaxOpen), New: uint64(p.MaxOpen), Least: 1, Most: policy.MaxOpen},
		module.Signed("voting_ms", old.VotingMs, p.VotingMs, minTime, maxTime),
		module.Signed("delay_ms", old.DelayMs, p.DelayMs, minTime, maxTime))
}

func tallyOf(t policyv1.Tally) policy.Tally {
	return policy.Tally{Yes: t.Yes, No: t.No, Veto: t.Veto, Abstain: t.Abstain}
}

func tallyToProto(t policy.Tally) policyv1.Tally {
	return policyv1.Tally{Yes: t.Yes, No: t.No, Veto: t.Veto, Abstain: t.Abstain}
}
