package session

import (
	"errors"
	"fmt"

	"github.com/tally-network/tally/core/money"
)

// Event is something that happens to a session.
type Event interface {
	apply(s *Session, now int64) ([]Effect, error)
}

// ErrEnded is returned for an event after a session is over.
var ErrEnded = errors.New("the session is over")

// Apply lets an event happen at protocol time now. On an error nothing has happened.
func Apply(s Session, e Event, now int64) (Session, []Effect, error) {
	if _, closes := e.(CloseDispute); s.Phase == Ended && !closes {
		return s, nil, ErrEnded
	}
	next := s
	effects, err := e.apply(&next, now)
	if err != nil {
		return s, nil, err
	}
	return next, effects, nil
}

// Redeem posts a voucher, whoever does: it pays what it claims and nobody has claimed yet, as far as the escrow goes.
type Redeem struct {
	Voucher   Voucher
	Signature []byte // of the consumer
}

func (e Redeem) apply(s *Session, _ int64) ([]Effect, error) {
	v := &e.Voucher
	if err := said(s.ID(), s.Terms.Consumer, v, e.Signature); err != nil {
		return nil, err
	}
	due := min(v.Amount-min(v.Amount, s.Claimed()), s.Ledger.Escrow)
	if due == 0 {
		return nil, fmt.Errorf("%s pays nothing more: it is for %d utally, %d are claimed, %d in escrow", v.name(), v.Amount, s.Claimed(), s.Ledger.Escrow)
	}
	s.Voucher = *v
	return s.claim(due)
}

// claim moves some of the escrow to the provider, and burns a part of all that was claimed, rounded up.
func (s *Session) claim(due uint64) ([]Effect, error) {
	l := &s.Ledger
	burnt, err := money.Scale(s.Claimed()+due, s.Rules.BurnBps, money.Bps)
	if err != nil {
		return nil, err
	}
	burn := burnt - l.Burnt // at most due, for the rate is below 1
	l.Escrow, l.Paid, l.Burnt = l.Escrow-due, l.Paid+due-burn, burnt
	return effects(Effect{Kind: Pay, Account: s.Terms.Provider.Account, Amount: due - burn}, Effect{Kind: Burn, Amount: burn}), nil
}

// Fund adds to the escrow of an open session.
type Fund struct{ Amount uint64 }

func (e Fund) apply(s *Session, _ int64) ([]Effect, error) {
	if s.Phase != Open {
		return nil, fmt.Errorf("the session is %v: open another instead", s.Phase)
	}
	if e.Amount == 0 {
		return nil, errors.New("nothing is added: want at least 1 utally")
	}
	locked, err := money.Sum(s.Ledger.Locked, e.Amount)
	if err != nil {
		return nil, err
	}
	s.Ledger.Locked, s.Ledger.Escrow = locked, s.Ledger.Escrow+e.Amount
	return effects(Effect{Kind: Lock, Account: s.Terms.Consumer.Account, Amount: e.Amount}), nil
}

// Return gives some of the escrow back to the consumer, as the provider has signed.
type Return struct {
	Release   Release
	Signature []byte // of the provider
}

func (e Return) apply(s *Session, _ int64) ([]Effect, error) {
	r := &e.Release
	if err := said(s.ID(), s.Terms.Provider, r, e.Signature); err != nil {
		return nil, err
	}
	switch {
	case r.Number <= s.Releases:
		return nil, fmt.Errorf("%s comes after release %d", r.name(), s.Releases)
	case r.Claimed > s.Claimed():
		return nil, fmt.Errorf("%s is for after %d utally were claimed, %d are: post the voucher with it", r.name(), r.Claimed, s.Claimed())
	case r.Amount == 0 || r.Amount > s.Ledger.Escrow:
		return nil, fmt.Errorf("%s gives %d utally back, %d are in escrow", r.name(), r.Amount, s.Ledger.Escrow)
	}
	s.Releases = r.Number
	s.Ledger.Escrow, s.Ledger.Refunded = s.Ledger.Escrow-r.Amount, s.Ledger.Refunded+r.Amount
	return effects(Effect{Kind: Refund, Account: s.Terms.Consumer.Account, Amount: r.Amount}), nil
}

// Close ends a session by the will of one side. The other may answer for a while.
type Close struct{ By string }

func (e Close) apply(s *Session, now int64) ([]Effect, error) {
	if !s.isParty(e.By) {
		return nil, fmt.Errorf("%s has no part in the session", e.By)
	}
	if s.Phase != Open {
		return nil, fmt.Errorf("the session is %v already", s.Phase)
	}
	s.close(now)
	return nil, nil
}

func (s *Session) close(now int64) {
	if s.Phase == Open {
		s.Phase, s.Due = Closing, now+s.Rules.Challenge
		s.Until = s.Due
	}
}

func (s *Session) isParty(account string) bool {
	return account == s.Terms.Consumer.Account || account == s.Terms.Provider.Account
}

// Finish settles a session at once, by the will of both sides.
type Finish struct {
	By        string // one side, which has sent it
	Final     Final
	Signature []byte // of the other
}

func (e Finish) apply(s *Session, now int64) ([]Effect, error) {
	other := s.Terms.Consumer
	switch e.By {
	case s.Terms.Consumer.Account:
		other = s.Terms.Provider
	case s.Terms.Provider.Account:
	default:
		return nil, fmt.Errorf("%s has no part in the session", e.By)
	}
	f := &e.Final
	if err := said(s.ID(), other, f, e.Signature); err != nil {
		return nil, err
	}
	switch {
	case s.Convictions != (Convictions{}):
		return nil, errors.New("a side was convicted: the session is settled when its time to answer is over")
	case s.Disputes > 0:
		return nil, fmt.Errorf("%d of its replies are disputed: it is settled after that", s.Disputes)
	case f.Amount < s.Claimed() || f.Amount-s.Claimed() > s.Ledger.Escrow:
		return nil, fmt.Errorf("the final is %d utally: want %d, which are claimed, to %d, which were in escrow", f.Amount, s.Claimed(), s.Claimed()+s.Ledger.Escrow)
	}
	paid, err := s.claim(f.Amount - s.Claimed())
	if err != nil {
		return nil, err
	}
	settled, err := s.settle(now)
	return append(paid, settled...), err
}

// Tick is the time that passes.
type Tick struct{}

func (Tick) apply(s *Session, now int64) ([]Effect, error) {
	switch {
	case now < s.Due:
		return nil, fmt.Errorf("nothing is due before %d, it is %d", s.Due, now)
	case s.Phase == Open:
		s.close(now)
		return nil, nil
	case s.Disputes > 0 && s.Convictions.OfProvider == "": // one conviction decides, whatever the others come to
		s.Due = now + disputeWait
		return nil, nil
	}
	return s.settle(now)
}
