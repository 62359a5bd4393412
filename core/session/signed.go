package session

import (
	"fmt"

	"github.com/tally-network/tally/core/canon"
)

// Kind is what a receipt is for.
type Kind uint8

// The kinds of receipts.
const (
	OfReply Kind = iota // to a prompt
	OfCheck             // of a reply that somebody else has given
	kinds
)

// Receipt is a provider's signed word of what it has computed. Two of one number in one session convict it.
type Receipt struct {
	Session canon.Hash
	Number  uint64 // of the session's receipts, from 0
	Kind    Kind
	Request canon.Hash // of all that was asked
	Model   canon.Hash
	Prompt  uint64     // tokens
	Reply   uint64     // tokens
	Tokens  canon.Hash // root of both
	Pages   canon.Hash // root of the pages of keys and values; of a check, its salted digest
}

// Voucher is a consumer's signed word of what it has paid so far. Two of one number in one session convict it.
type Voucher struct {
	Session  canon.Hash
	Number   uint64     // of the session's vouchers, from 1
	Amount   uint64     // utally for all of the session until now
	Receipts uint64     // that the consumer has settled: it has nothing against them
	Root     canon.Hash // Merkle root over their identities, in order
}

// Release is a provider's signed word that the consumer may take some of the escrow back.
type Release struct {
	Session canon.Hash
	Number  uint64 // of the session's releases, from 1; each counts once, and none before another
	Claimed uint64 // utally that must have been claimed by vouchers before
	Amount  uint64 // utally
}

// Final is how much a session comes to, as both sides have signed. Nothing is served after it.
type Final struct {
	Session canon.Hash
	Amount  uint64 // utally for all of the session: what was served, rather than what was paid ahead
}

// ID returns the identity of the receipt, over which vouchers have their root.
func (r *Receipt) ID() canon.Hash { return canon.Sum(canon.DomainServed, canon.Marshal(r)) }

// ID returns the identity of the voucher.
func (v *Voucher) ID() canon.Hash { return canon.Sum(canon.DomainVoucher, canon.Marshal(v)) }

// ID returns the identity of the release.
func (r *Release) ID() canon.Hash { return canon.Sum(canon.DomainRelease, canon.Marshal(r)) }

// ID returns the identity of the final.
func (f *Final) ID() canon.Hash { return canon.Sum(canon.DomainFinal, canon.Marshal(f)) }

// signed is what a party says in a session. Its key signs the 32 bytes of the identity.
type signed interface {
	ID() canon.Hash
	in() canon.Hash
	name() string
}

func (r *Receipt) in() canon.Hash { return r.Session }
func (v *Voucher) in() canon.Hash { return v.Session }
func (r *Release) in() canon.Hash { return r.Session }
func (f *Final) in() canon.Hash   { return f.Session }

func (r *Receipt) name() string { return fmt.Sprintf("receipt %d", r.Number) }
func (v *Voucher) name() string { return fmt.Sprintf("voucher %d", v.Number) }
func (r *Release) name() string { return fmt.Sprintf("release %d", r.Number) }
func (f *Final) name() string   { return "the final" }

// said returns an error unless a party has said something in a session.
func said(id canon.Hash, by Party, s signed, signature []byte) error {
	if s.in() != id {
		return fmt.Errorf("%s is of session %s, not %s", s.name(), s.in(), id)
	}
	message := s.ID()
	return verify(s.name(), by, message[:], signature)
}

// Verify returns an error unless the provider has signed r in the session of these terms.
func (r *Receipt) Verify(t *Terms, signature []byte) error {
	if err := r.check(t); err != nil {
		return err
	}
	return said(t.ID(), t.Provider, r, signature)
}

// check returns an error unless r keeps to terms.
func (r *Receipt) check(t *Terms) error {
	switch {
	case r.Kind >= kinds:
		return fmt.Errorf("receipt %d is of kind %d, which there is not", r.Number, r.Kind)
	case r.Model != t.Model:
		return fmt.Errorf("receipt %d is of model %s, the session of %s", r.Number, r.Model, t.Model)
	case max(r.Prompt, r.Reply) > MaxTokens:
		return fmt.Errorf("receipt %d is of %d and %d tokens: want at most %d each", r.Number, r.Prompt, r.Reply, MaxTokens)
	}
	return nil
}

// Price returns what a receipt costs under terms, in utally.
func (r *Receipt) Price(t *Terms) (uint64, error) { return t.Prices.price(r) }

// Verify returns an error unless the consumer has signed v in the session of these terms.
func (v *Voucher) Verify(t *Terms, signature []byte) error {
	return said(t.ID(), t.Consumer, v, signature)
}

// Code walks the fields of r.
func (r *Receipt) Code(w *canon.Codec) {
	w.Hash(&r.Session)
	w.U64(&r.Number)
	w.U8((*uint8)(&r.Kind))
	w.Hash(&r.Request)
	w.Hash(&r.Model)
	w.U64(&r.Prompt)
	w.U64(&r.Reply)
	w.Hash(&r.Tokens)
	w.Hash(&r.Pages)
}

// Code walks the fields of v.
func (v *Voucher) Code(w *canon.Codec) {
	w.Hash(&v.Session)
	w.U64(&v.Number)
	w.U64(&v.Amount)
	w.U64(&v.Receipts)
	w.Hash(&v.Root)
}

// Code walks the fields of r.
func (r *Release) Code(w *canon.Codec) {
	w.Hash(&r.Session)
	w.U64(&r.Number)
	w.U64(&r.Claimed)
	w.U64(&r.Amount)
}

// Code walks the fields of f.
func (f *Final) Code(w *canon.Codec) {
	w.Hash(&f.Session)
	w.U64(&f.Amount)
}
