package session

import (
	"crypto/ed25519"
	"fmt"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/money"
)

// Limits on what is signed. Products of prices and tokens stay below 2⁶³.
const (
	MaxTokens = 1 << 22           // of a prompt or a reply
	MaxPrice  = 1_000_000_000_000 // utally for a million tokens

	maxAccount = 128 // bytes
	maxChain   = 64  // bytes
)

// million is what prices are for.
const million = 1_000_000

// Terms are what a consumer and a provider agree on. Both sign them, and so consent to each other.
type Terms struct {
	Chain    string
	Consumer Party
	Provider Party
	Model    canon.Hash // root of what is served
	Prices   Prices
	CheckBps uint64 // odds that the consumer has a reply checked, in basis points; 0: it has none checked
	Credit   Credit
	Escrow   uint64 // utally that the consumer locks
	OpenBy   int64  // protocol time in ms: the session begins by then, or never
	End      int64  // protocol time in ms: nothing is served from then on
	Nonce    uint64 // tells two sessions of equal terms apart
}

// Party is an account, and the ed25519 key by which it signs what is said in a session.
type Party struct {
	Account string
	Key     []byte
}

// Prices are in utally for a million tokens.
type Prices struct {
	Prompt uint64 // that are read
	Reply  uint64 // that are made
	Check  uint64 // of somebody else's reply and its prompt
}

// ID returns the identity of the session, which all that is signed in it names.
func (t *Terms) ID() canon.Hash { return canon.Sum(canon.DomainSession, canon.Marshal(t)) }

// SignBytes returns what the provider's key signs.
func (t *Terms) SignBytes() []byte {
	id := t.ID()
	return id[:]
}

// Verify returns an error unless the provider has signed the terms.
func (t *Terms) Verify(signature []byte) error {
	return verify("the terms", t.Provider, t.SignBytes(), signature)
}

// Check returns an error that says what is wrong with terms, whatever the time.
func (t *Terms) Check() error {
	for _, p := range []Party{t.Consumer, t.Provider} {
		if p.Account == "" || len(p.Account) > maxAccount || len(p.Key) != ed25519.PublicKeySize {
			return fmt.Errorf("a party has an account of %d bytes and a key of %d: want 1 to %d, and %d", len(p.Account), len(p.Key), maxAccount, ed25519.PublicKeySize)
		}
	}
	switch {
	case t.Chain == "" || len(t.Chain) > maxChain:
		return fmt.Errorf("the chain's id has %d bytes: want 1 to %d", len(t.Chain), maxChain)
	case t.Consumer.Account == t.Provider.Account:
		return fmt.Errorf("%s would serve itself: want two accounts", t.Consumer.Account)
	case t.CheckBps > money.Bps:
		return fmt.Errorf("check_bps = %d: want at most %d, which is every reply", t.CheckBps, uint64(money.Bps))
	case t.Escrow == 0:
		return fmt.Errorf("nothing is locked: want an escrow of at least 1 utally")
	case t.OpenBy < 0 || t.End <= t.OpenBy:
		return fmt.Errorf("it begins by %d and ends at %d: want it to end later", t.OpenBy, t.End)
	}
	if err := t.Prices.check(); err != nil {
		return err
	}
	if err := t.Credit.Check(); err != nil {
		return err
	}
	_, err := t.Reserve()
	return err
}

// Reserve returns the stake, in utally, that the provider has reserved while the session lasts: 2·cap / check rate, rounded
// up, or 2·cap where nothing is checked. [Terms.Deterred] says what that deters.
func (t *Terms) Reserve() (uint64, error) {
	odds := t.CheckBps
	if odds == 0 {
		odds = money.Bps
	}
	twice, err := money.Times(t.Credit.Cap, 2)
	if err == nil {
		twice, err = money.Scale(twice, money.Bps, odds)
	}
	if err != nil {
		return 0, fmt.Errorf("the reserve for a cap of %d utally at %d basis points: %w", t.Credit.Cap, odds, err)
	}
	return twice, nil
}

// Deterred returns the most that a wrong reply may be worth to a provider, in utally, if it is to lose by it on average. A
// check finds it with the odds that the terms name, and takes the reserve; the reward for that may be its own, through a
// friend. It is 0 where nothing is checked.
//
//	p · R · (1 − reward) ≥ p · 2·cap/p · ½ = cap
//
// So it is never below the cap, which bounds what is paid and not yet settled.
func (t *Terms) Deterred(r Rules) uint64 {
	reserve, err := t.Reserve()
	if err != nil {
		return 0
	}
	odds := (money.Bps - min(r.RewardBps, money.Bps)) * min(t.CheckBps, money.Bps)
	return money.ScaleClamped(reserve, odds, money.Bps*money.Bps)
}

func (p Prices) check() error {
	if max(p.Prompt, p.Reply, p.Check) > MaxPrice {
		return fmt.Errorf("prices of %v: want at most %d utally for a million tokens", p, uint64(MaxPrice))
	}
	return nil
}

// price returns what tokens cost, rounded up.
func (p Prices) price(r *Receipt) (uint64, error) {
	var sum uint64
	for _, x := range []struct{ price, tokens uint64 }{{p.Prompt, r.Prompt}, {p.Reply, r.Reply}} {
		if r.Kind == OfCheck {
			x.price = p.Check
		}
		if x.price > MaxPrice || x.tokens > MaxTokens {
			return 0, money.ErrOverflow
		}
		sum += x.price * x.tokens // below 2⁶³ for both
	}
	return (sum + million - 1) / million, nil
}

func verify(what string, by Party, message, signature []byte) error {
	if len(by.Key) != ed25519.PublicKeySize || !ed25519.Verify(by.Key, message, signature) {
		return fmt.Errorf("%s: the signature is not by the key that %s has in this session", what, by.Account)
	}
	return nil
}

// Code walks the fields of t.
func (t *Terms) Code(w *canon.Codec) {
	w.String(&t.Chain, maxChain)
	t.Consumer.code(w)
	t.Provider.code(w)
	w.Hash(&t.Model)
	t.Prices.code(w)
	w.U64(&t.CheckBps)
	t.Credit.code(w)
	w.U64(&t.Escrow)
	w.I64(&t.OpenBy)
	w.I64(&t.End)
	w.U64(&t.Nonce)
}

func (p *Party) code(w *canon.Codec) {
	w.String(&p.Account, maxAccount)
	w.Blob(&p.Key, ed25519.PublicKeySize)
}

func (p *Prices) code(w *canon.Codec) {
	for _, v := range []*uint64{&p.Prompt, &p.Reply, &p.Check} {
		w.U64(v)
	}
}
