package session

import (
	"errors"
	"fmt"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/money"
)

const (
	maxDisputes = 64
	disputeWait = 60_000 // ms after which a session that is due looks again whether its disputes are over
)

// OpenDispute tells that a game has begun about a reply, which its receipt alone names. The challenger's bond is the caller's to lock.
type OpenDispute struct {
	Receipt   Receipt
	Signature []byte // of the provider
}

func (e OpenDispute) apply(s *Session, now int64) ([]Effect, error) {
	if err := e.Receipt.Verify(&s.Terms, e.Signature); err != nil {
		return nil, err
	}
	switch {
	case e.Receipt.Kind != OfReply:
		return nil, fmt.Errorf("receipt %d is of a check, and says nothing that a game could decide", e.Receipt.Number)
	case s.Phase == Ended || s.Phase == Closing && now >= s.Until:
		return nil, errors.New("its time to answer is over")
	case s.Convictions.OfProvider != "":
		return nil, errors.New("its provider is convicted already")
	case s.Disputes == maxDisputes:
		return nil, fmt.Errorf("%d of its replies are disputed already", s.Disputes)
	}
	s.Disputes++
	return nil, nil
}

// CloseDispute tells that a game about a reply is over. A provider that has lost is convicted, unless it is already.
type CloseDispute struct {
	Lost bool   // by the provider
	By   string // who has shown that
}

func (e CloseDispute) apply(s *Session, now int64) ([]Effect, error) {
	if s.Disputes == 0 {
		return nil, errors.New("none of its replies is disputed")
	}
	s.Disputes--
	if !e.Lost || s.Convictions.OfProvider != "" {
		return nil, nil
	}
	return nil, s.convict(&s.Convictions.OfProvider, e.By, now)
}

// Contested is a reply that a game is about.
type Contested struct {
	dispute.Claim
	Defender string
	Bond     uint64 // utally that a challenger locks
}

// Contest returns what a game about a receipt of the session, of the model that it names, is about.
func (s *Session) Contest(r *Receipt, m dispute.Model) (c Contested, err error) {
	if c.Claim, err = r.Claim(&s.Terms, m); err != nil {
		return c, err
	}
	c.Defender = s.Terms.Provider.Account
	c.Bond, err = s.Bond(r)
	return c, err
}

// Claim returns what a game about a receipt under terms is about, of the model that it names.
func (r *Receipt) Claim(t *Terms, m dispute.Model) (dispute.Claim, error) {
	if got := m.Root(); got != r.Model {
		return dispute.Claim{}, fmt.Errorf("the receipt is of model %s, not of %s", r.Model, got)
	}
	q := &dispute.Sequence{
		Model: m, Request: r.Request, Prompt: int(min(r.Prompt, MaxTokens)), Reply: int(min(r.Reply, MaxTokens)), Tokens: r.Tokens, Pages: r.Pages,
		Key: canon.Hash(t.Provider.Key), // of 32 bytes, by Terms.Check
	}
	if err := q.Check(); err != nil {
		return dispute.Claim{}, err
	}
	return dispute.Claim{Sequence: q}, nil
}

// Bond returns what a challenger of a receipt locks, in utally: twice what the reply costs, but no more than the provider can lose. Half of it goes to
// who defends a true one, for which that is enough to compute it again.
func (s *Session) Bond(r *Receipt) (uint64, error) {
	price, err := r.Price(&s.Terms)
	if err != nil {
		return 0, err
	}
	reserve, err := s.Terms.Reserve()
	if err != nil {
		return 0, err
	}
	twice, err := money.Times(price, 2)
	return max(s.Rules.DisputeBond, min(twice, reserve)), err
}
