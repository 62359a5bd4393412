package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"cosmossdk.io/collections"
	errorsmod "cosmossdk.io/errors"

	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
)

// Bounds on a proposal.
const (
	maxTitle    = 140      // bytes
	maxSummary  = 4 << 10  // bytes
	maxMessages = 16       // one for the rules of each module, and more
	maxBytes    = 16 << 10 // of all messages

	maxKept = 256 // proposals that are kept
)

// Propose begins a vote.
func (k *Keeper) Propose(ctx context.Context, m *policyv1.MsgPropose) (uint64, error) {
	proposer, err := address.Parse(m.Proposer)
	if err != nil {
		return 0, err
	}
	if err := checkText(m.Title, m.Summary); err != nil {
		return 0, errorsmod.Wrap(ErrProposal, err.Error())
	}
	if err := k.checkMessages(m.Messages); err != nil {
		return 0, errorsmod.Wrap(ErrMessage, err.Error())
	}
	p, err := k.rules.Get(ctx)
	if err != nil {
		return 0, err
	}
	open, err := module.First(ctx, k.open, nil, int(p.MaxOpen))
	if err != nil {
		return 0, err
	}
	if len(open) >= int(p.MaxOpen) {
		return 0, errorsmod.Wrapf(ErrFull, "%d are voted on: propose once one is decided", len(open))
	}
	if least := rulesOf(p).DepositOf(len(open)); m.Deposit < least || m.Deposit > coin.MaxSupply {
		return 0, errorsmod.Wrapf(ErrDeposit, "%d utally: while %d proposals are open another deposits at least %d", m.Deposit, len(open), least)
	}
	// What would be refused now is told its proposer, and not those who would vote for it.
	trial, _ := sdk.UnwrapSDKContext(ctx).CacheContext()
	if err := k.perform(trial, m.Messages); err != nil {
		return 0, errorsmod.Wrapf(ErrMessage, "it would be refused now: %s", err)
	}
	if err := k.bank.SendCoinsFromAccountToModule(ctx, proposer, Name, coin.Of(m.Deposit)); err != nil {
		return 0, errorsmod.Wrapf(err, "deposit %d utally", m.Deposit)
	}
	return k.begin(ctx, m, p)
}

// begin stores a proposal that was checked.
func (k *Keeper) begin(ctx context.Context, m *policyv1.MsgPropose, p policyv1.Params) (uint64, error) {
	mark, total, err := k.power.Mark(ctx)
	if err != nil {
		return 0, err
	}
	id, err := k.next.Next(ctx)
	if err != nil {
		return 0, err
	}
	now := module.Now(ctx)
	x := policyv1.Proposal{
		Id: id, Proposer: m.Proposer, Title: m.Title, Summary: m.Summary, Messages: m.Messages, Deposit: m.Deposit,
		Status: policyv1.STATUS_VOTING, StartMs: now, EndMs: now + p.VotingMs,
		Mark: mark, Missing: rulesOf(p).Missing(total), Params: p,
	}
	return id, errors.Join(
		k.proposals.Set(ctx, id, x), k.open.Set(ctx, id), k.due.Set(ctx, collections.Join(x.EndMs, id)),
		k.forget(ctx, id),
		module.Emit(ctx, &policyv1.EventProposed{Proposal: id, Proposer: m.Proposer, Deposit: m.Deposit}))
}

// forget removes proposals that are over for long, the oldest first: at most two for a new one.
func (k *Keeper) forget(ctx context.Context, newest uint64) error {
	var gone []uint64
	err := k.proposals.Walk(ctx, nil, func(id uint64, x policyv1.Proposal) (bool, error) {
		if id+maxKept > newest || !over(x.Status) {
			return true, nil
		}
		if x.Deposit > 0 { // it could not be given back
			return false, nil
		}
		gone = append(gone, id)
		return len(gone) == 2, nil
	})
	for _, id := range gone {
		err = errors.Join(err, k.proposals.Remove(ctx, id))
	}
	return err
}

// over reports whether nothing happens to a proposal any more.
func over(s policyv1.Status) bool { return s != policyv1.STATUS_VOTING && s != policyv1.STATUS_PASSED }

func checkText(title, summary string) error {
	for _, x := range []struct {
		name, text string
		most       int
	}{{"title", title, maxTitle}, {"summary", summary, maxSummary}} {
		switch {
		case len(x.text) == 0 || len(x.text) > x.most:
			return fmt.Errorf("%s of %d bytes: want between 1 and %d", x.name, len(x.text), x.most)
		case !utf8.ValidString(x.text):
			return fmt.Errorf("%s is not UTF-8", x.name)
		case strings.ContainsFunc(x.text, func(r rune) bool { return !unicode.IsPrint(r) && (r != '\n' || x.name == "title") }):
			return fmt.Errorf("%s has characters that cannot be printed", x.name)
		}
	}
	return nil
}

// checkMessages returns an error unless each message is of a type that may be voted on, and the policy's
// account alone signs it.
func (k *Keeper) checkMessages(all []*codectypes.Any) error {
	if len(all) == 0 || len(all) > maxMessages {
		return fmt.Errorf("%d messages: want between 1 and %d", len(all), maxMessages)
	}
	size := 0
	for i, m := range all {
		if m == nil {
			return fmt.Errorf("message %d is none", i)
		}
		if size += m.Size(); size > maxBytes {
			return fmt.Errorf("the messages have more than %d bytes", maxBytes)
		}
		if !k.allowed[m.TypeUrl] {
			return fmt.Errorf("message %d: a vote cannot execute %.80q: tally query policy params lists what it can", i, m.TypeUrl)
		}
		signers, _, err := k.codec.GetMsgAnySigners(m)
		if err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
		if len(signers) != 1 || !address.Policy().Equals(sdk.AccAddress(signers[0])) {
			return fmt.Errorf("message %d: its authority must be %s", i, address.Policy())
		}
	}
	return nil
}

// perform executes messages, all or none if ctx is a branch.
func (k *Keeper) perform(ctx context.Context, all []*codectypes.Any) error {
	c := sdk.UnwrapSDKContext(ctx)
	for i, packed := range all {
		var m sdk.Msg
		if err := k.codec.InterfaceRegistry().UnpackAny(&codectypes.Any{TypeUrl: packed.TypeUrl, Value: packed.Value}, &m); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
		do := k.router.Handler(m)
		if do == nil {
			return fmt.Errorf("message %d: no module takes %s", i, packed.TypeUrl)
		}
		result, err := do(c, m)
		if err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
		c.EventManager().EmitEvents(result.GetEvents())
	}
	return nil
}
