package session

import (
	"fmt"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/money"
)

// Rules are what a chain says of all sessions. A session keeps those that it began with.
type Rules struct {
	BurnBps   uint64 // of all that a session pays, burnt
	RewardBps uint64 // of what a convict loses, to who has shown it; below one half, so that convicting oneself costs
	Challenge int64  // ms for which vouchers and convictions still count after one side has closed
	MaxLength int64  // ms that a session may last

	DisputeBond uint64 // utally that who disputes a reply locks at least
}

// Bounds of rules.
const (
	maxBurn      = money.Bps / 2
	minChallenge = 60_000
	maxLength    = 90 * 24 * 3600 * 1000

	minDisputeBond, maxDisputeBond = 10_000, 10_000_000_000
)

// DefaultRules burn as much of a payment as leases do, and leave a day to answer.
var DefaultRules = Rules{BurnBps: 200, RewardBps: 4000, Challenge: 24 * 3600 * 1000, MaxLength: 30 * 24 * 3600 * 1000, DisputeBond: 1_000_000}

// Check returns an error that says, with its numbers, what is wrong with rules.
func (r Rules) Check() error {
	switch {
	case r.BurnBps > maxBurn:
		return fmt.Errorf("burn_bps = %d: want at most %d, half of a payment", r.BurnBps, uint64(maxBurn))
	case r.RewardBps*2 >= money.Bps || r.RewardBps > money.Bps:
		return fmt.Errorf("convicting oneself would pay: reward_bps = %d, want less than %d", r.RewardBps, uint64(money.Bps/2))
	case r.Challenge < minChallenge || r.Challenge > maxLength:
		return fmt.Errorf("challenge_ms = %d: want %d, in which somebody who is there can answer, to %d", r.Challenge, int64(minChallenge), int64(maxLength))
	case r.MaxLength < minChallenge || r.MaxLength > maxLength:
		return fmt.Errorf("max_length_ms = %d: want %d to %d", r.MaxLength, int64(minChallenge), int64(maxLength))
	case r.DisputeBond < minDisputeBond || r.DisputeBond > maxDisputeBond:
		return fmt.Errorf("dispute_bond = %d: want %d, so that false disputes cost, to %d, which honest people have", r.DisputeBond, uint64(minDisputeBond), uint64(maxDisputeBond))
	}
	return nil
}

// Phase is where a session stands.
type Phase uint8

// The phases of a session.
const (
	Open    Phase = iota // its provider serves
	Closing              // one side has closed it, or its time is over: the other may still answer
	Ended                // all is paid
	phases
)

// String names the phase.
func (p Phase) String() string {
	if p >= phases {
		return fmt.Sprintf("phase %d", uint8(p))
	}
	return [...]string{"open", "closing", "over"}[p]
}

// Session is what the chain knows of a session.
type Session struct {
	Terms       Terms
	Rules       Rules
	Phase       Phase
	BegunAt     int64
	Due         int64   // when the clock changes the phase
	Until       int64   // of one that is closing: when the time to answer is over
	Voucher     Voucher // the one that claims most of those that were posted
	Releases    uint64  // number of the last
	Ledger      Ledger
	Convictions Convictions
	Disputes    int // games about its replies that are not over: until then it is not settled, unless its provider is convicted
}

// Ledger is where the consumer's money is, in utally.
type Ledger struct {
	Locked   uint64 // by the consumer, in all
	Escrow   uint64 // of that, still there
	Paid     uint64 // to the provider
	Burnt    uint64
	Refunded uint64 // to the consumer
	Forfeit  uint64 // by a consumer that was convicted
}

// Convictions name who has convicted a side. They are empty where nobody has.
type Convictions struct{ OfConsumer, OfProvider string }

// Begin begins a session of terms that the consumer sends and the provider has signed.
func Begin(t Terms, signature []byte, r Rules, now int64) (Session, []Effect, error) {
	if err := t.Check(); err != nil {
		return Session{}, nil, err
	}
	switch {
	case now > t.OpenBy:
		return Session{}, nil, fmt.Errorf("the terms were for a session that begins by %d, it is %d: ask the provider for new ones", t.OpenBy, now)
	case t.End-now > r.MaxLength:
		return Session{}, nil, fmt.Errorf("it would last %d ms: want at most %d", t.End-now, r.MaxLength)
	}
	if err := t.Verify(signature); err != nil {
		return Session{}, nil, err
	}
	reserve, err := t.Reserve()
	if err != nil {
		return Session{}, nil, err
	}
	s := Session{
		Terms: t, Rules: r, BegunAt: now, Due: t.End, Voucher: Voucher{Session: t.ID(), Root: canon.Root(nil)},
		Ledger: Ledger{Locked: t.Escrow, Escrow: t.Escrow},
	}
	return s, []Effect{{Kind: Lock, Account: t.Consumer.Account, Amount: t.Escrow}, {Kind: ReserveStake, Account: t.Provider.Account, Amount: reserve}}, nil
}

// ID returns the identity of the session.
func (s *Session) ID() canon.Hash { return s.Voucher.Session }

// Claimed returns what vouchers have claimed of the escrow, in utally: what the provider got, and what was burnt of it.
func (s *Session) Claimed() uint64 { return s.Ledger.Paid + s.Ledger.Burnt }

// Reserved returns the provider's stake that the session reserves, in utally.
func (s *Session) Reserved() uint64 {
	if s.Phase == Ended {
		return 0
	}
	reserve, err := s.Terms.Reserve()
	if err != nil {
		return 0 // Begin has refused such terms
	}
	return reserve
}

// ForgetAt returns the protocol time in ms from which a session that is over can be forgotten: both have seen how it ended, and its
// terms can begin no other.
func (s *Session) ForgetAt() int64 { return max(s.Due+s.Rules.Challenge, s.Terms.OpenBy+1) }

// Check returns an error if a session cannot have come about.
func (s *Session) Check() error {
	l := &s.Ledger
	sum, err := money.Sum(l.Escrow, l.Paid, l.Burnt, l.Refunded, l.Forfeit)
	switch {
	case err != nil:
		return err
	case sum != l.Locked:
		return fmt.Errorf("%d utally were locked, but %+v", l.Locked, *l)
	case s.Phase >= phases || s.Phase == Ended && l.Escrow != 0:
		return fmt.Errorf("it is %v with %d utally in escrow", s.Phase, l.Escrow)
	case s.Disputes < 0 || s.Disputes > 0 && s.Phase == Ended && s.Convictions.OfProvider == "":
		return fmt.Errorf("it is %v while %d replies are disputed", s.Phase, s.Disputes)
	case s.Voucher.Session != s.Terms.ID() || s.Claimed() > s.Voucher.Amount && s.Phase != Ended:
		return fmt.Errorf("%d utally were claimed by a voucher of %d in session %s", s.Claimed(), s.Voucher.Amount, s.Voucher.Session)
	}
	if err := s.Rules.Check(); err != nil {
		return err
	}
	return s.Terms.Check()
}

// Code walks the fields of s.
func (s *Session) Code(w *canon.Codec) {
	s.Terms.Code(w)
	w.U64(&s.Rules.BurnBps)
	w.U64(&s.Rules.RewardBps)
	w.I64(&s.Rules.Challenge)
	w.I64(&s.Rules.MaxLength)
	w.U64(&s.Rules.DisputeBond)
	w.U8((*uint8)(&s.Phase))
	w.I64(&s.BegunAt)
	w.I64(&s.Due)
	w.I64(&s.Until)
	s.Voucher.Code(w)
	w.U64(&s.Releases)
	l := &s.Ledger
	for _, v := range []*uint64{&l.Locked, &l.Escrow, &l.Paid, &l.Burnt, &l.Refunded, &l.Forfeit} {
		w.U64(v)
	}
	w.String(&s.Convictions.OfConsumer, maxAccount)
	w.String(&s.Convictions.OfProvider, maxAccount)
	w.Int(&s.Disputes, maxDisputes)
}
