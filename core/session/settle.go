package session

import (
	"github.com/tally-network/tally/core/money"
)

// EffectKind says what the chain must do.
type EffectKind uint8

// The kinds of effects: those that move escrow, then those that move stake.
const (
	Lock         EffectKind = iota // an amount of an account's balance into escrow
	Pay                            // an amount of the escrow to an account
	Refund                         // likewise, to the consumer
	Burn                           // an amount of the escrow
	Insure                         // an amount of the escrow to the insurance fund
	ReserveStake                   // an amount of an account's free stake
	FreeStake                      // an amount of an account's reserved stake
	SlashStake                     // likewise, for the shares; what they leave is the insurance fund's
)

// Effect is what the chain must do with escrow or stake.
type Effect struct {
	Kind    EffectKind
	Account string
	Amount  uint64 // utally
	Shares  []Share
}

// Share is what an account gets of a slash.
type Share struct {
	Account string
	Amount  uint64 // utally
}

// effects leaves out those that move nothing.
func effects(all ...Effect) (out []Effect) {
	for _, e := range all {
		if e.Amount > 0 {
			out = append(out, e)
		}
	}
	return out
}

// settle ends a session: the rest of the escrow goes back, and the stake is free. A convict loses a part of either.
func (s *Session) settle(now int64) ([]Effect, error) {
	reserve, err := s.Terms.Reserve()
	if err != nil {
		return nil, err
	}
	fine, err := s.fine()
	if err != nil {
		return nil, err
	}
	stake, err := s.answer(reserve)
	if err != nil {
		return nil, err
	}
	l := &s.Ledger
	rest := l.Escrow
	l.Escrow, l.Refunded = 0, l.Refunded+rest
	s.Phase, s.Due = Ended, now
	return append(fine, effects(Effect{Kind: Refund, Account: s.Terms.Consumer.Account, Amount: rest}, stake)...), nil
}

// fine takes from a consumer that was convicted as much of the escrow as an instalment can be.
func (s *Session) fine() ([]Effect, error) {
	if s.Convictions.OfConsumer == "" {
		return nil, nil
	}
	l := &s.Ledger
	lost := min(s.Terms.Credit.Cap, l.Escrow)
	reward, err := money.ScaleDown(lost, s.Rules.RewardBps, money.Bps)
	if err != nil {
		return nil, err
	}
	l.Escrow, l.Forfeit = l.Escrow-lost, lost
	return effects(Effect{Kind: Pay, Account: s.Convictions.OfConsumer, Amount: reward}, Effect{Kind: Insure, Amount: lost - reward}), nil
}

// answer returns what becomes of the reserved stake. That of a convict gives the consumer back what it has paid, at most what can have been
// unsettled; then it rewards who has convicted it. At least three tenths are left to the insurance fund.
func (s *Session) answer(reserve uint64) (Effect, error) {
	provider := s.Terms.Provider.Account
	if s.Convictions.OfProvider == "" {
		return Effect{Kind: FreeStake, Account: provider, Amount: reserve}, nil
	}
	back := min(s.Claimed(), s.Terms.Credit.Cap) // at most half of the reserve
	reward, err := money.ScaleDown(reserve-back, s.Rules.RewardBps, money.Bps)
	if err != nil {
		return Effect{}, err
	}
	e := Effect{Kind: SlashStake, Account: provider, Amount: reserve}
	for _, x := range []Share{{s.Terms.Consumer.Account, back}, {s.Convictions.OfProvider, reward}} {
		if x.Amount > 0 {
			e.Shares = append(e.Shares, x)
		}
	}
	return e, nil
}
