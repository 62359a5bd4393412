package wire

import (
	"bytes"
	"fmt"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/session"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	sessionsv1 "github.com/tally-network/tally/gen/tally/sessions/v1"
)

// Bounds on canonical encodings, in bytes: each field has its own limit, of which these are sums, rounded up.
const (
	maxSaid    = 1 << 10
	maxSession = 2 << 10
)

// OpenSession begins a session of terms that their provider has signed. The consumer of the terms sends it.
func OpenSession(t *session.Terms, signature []byte) *sessionsv1.MsgOpen {
	return &sessionsv1.MsgOpen{Consumer: t.Consumer.Account, Terms: SignedToProto(t, signature)}
}

// FundSession adds to the escrow of a session.
func FundSession(consumer string, id canon.Hash, amount uint64) *sessionsv1.MsgFund {
	return &sessionsv1.MsgFund{Consumer: consumer, Session: id[:], Amount: amount}
}

// RedeemVoucher posts a voucher of a consumer, whoever sends it.
func RedeemVoucher(by string, v *session.Voucher, signature []byte) *sessionsv1.MsgRedeem {
	return &sessionsv1.MsgRedeem{Sender: by, Voucher: SignedToProto(v, signature)}
}

// ReturnEscrow posts a release of a provider, whoever sends it.
func ReturnEscrow(by string, r *session.Release, signature []byte) *sessionsv1.MsgReturn {
	return &sessionsv1.MsgReturn{Sender: by, Release: SignedToProto(r, signature)}
}

// CloseSession ends a session by the will of one side.
func CloseSession(by string, id canon.Hash) *sessionsv1.MsgClose {
	return &sessionsv1.MsgClose{Sender: by, Session: id[:]}
}

// FinishSession settles a session at what the other side than the sender has signed.
func FinishSession(by string, f *session.Final, signature []byte) *sessionsv1.MsgFinish {
	return &sessionsv1.MsgFinish{Sender: by, Final: SignedToProto(f, signature)}
}

// ShowVouchers convicts a consumer.
func ShowVouchers(e *session.TwoVouchers) *sessionsv1.MsgTwoVouchers {
	return &sessionsv1.MsgTwoVouchers{Sender: e.By, First: SignedToProto(&e.Vouchers[0], e.Signatures[0]), Second: SignedToProto(&e.Vouchers[1], e.Signatures[1])}
}

// ShowReceipts convicts a provider.
func ShowReceipts(e *session.TwoReceipts) *sessionsv1.MsgTwoReceipts {
	return &sessionsv1.MsgTwoReceipts{Sender: e.By, First: SignedToProto(&e.Receipts[0], e.Signatures[0]), Second: SignedToProto(&e.Receipts[1], e.Signatures[1])}
}

// DisputeReply challenges the reply of a receipt.
func DisputeReply(challenger string, r *session.Receipt, signature []byte, m *dispute.Model) *disputev1.MsgOpenReply {
	return &disputev1.MsgOpenReply{Challenger: challenger, Receipt: SignedToProto(r, signature), Model: canon.Marshal(m)}
}

// ListModels replaces what a provider offers to serve. Listings are sorted by their models, of which each is named once.
func ListModels(provider string, listings []session.Listing) *sessionsv1.MsgList {
	return &sessionsv1.MsgList{Provider: provider, Listings: ListingsToProto(listings)}
}

// SignedToProto returns what a side of a session has said as transactions carry it.
func SignedToProto(statement canon.Coded, signature []byte) sessionsv1.Signed {
	return sessionsv1.Signed{Statement: canon.Marshal(statement), Signature: signature}
}

// SignedFromProto reads what a side has said: terms, a voucher, a receipt, a release or a final. Nobody has verified the signature.
func SignedFromProto[T any, P interface {
	*T
	canon.Coded
}](m *sessionsv1.Signed) (statement T, err error) {
	err = unmarshal(m.Statement, maxSaid, P(&statement))
	return statement, err
}

// ModelFromBytes reads what the root of a language model hashes.
func ModelFromBytes(b []byte) (m dispute.Model, err error) {
	if err = unmarshal(b, maxSaid, &m); err == nil {
		err = m.Check()
	}
	return m, err
}

// SessionToProto returns a session as queries show it.
func SessionToProto(s *session.Session) sessionsv1.Session {
	t := &s.Terms
	return sessionsv1.Session{
		Id: s.ID().String(), Consumer: t.Consumer.Account, Provider: t.Provider.Account, Model: bytes.Clone(t.Model[:]),
		Phase: PhaseToProto(s.Phase), BegunMs: s.BegunAt, DueMs: s.Due, Reserved: s.Reserved(),
		Ledger: sessionsv1.Ledger(s.Ledger), State: canon.Marshal(s), Disputes: uint32(s.Disputes),
	}
}

// SessionFromProto reads a session that a query has shown, out of its state alone.
func SessionFromProto(m *sessionsv1.Session) (session.Session, error) {
	s, err := SessionFromBytes(m.State)
	if err == nil && s.ID().String() != m.Id {
		err = fmt.Errorf("session %.80s has the state of session %s", m.Id, s.ID())
	}
	return s, err
}

// SessionFromBytes reads the canonical encoding of a session, and checks it.
func SessionFromBytes(b []byte) (s session.Session, err error) {
	if err = unmarshal(b, maxSession, &s); err == nil {
		err = s.Check()
	}
	return s, err
}

// PhaseToProto returns a phase as queries and events show it.
func PhaseToProto(p session.Phase) sessionsv1.Phase {
	return sessionsv1.Phase(p) + sessionsv1.PHASE_OPEN
}

// SessionRulesToProto returns the rules of sessions as genesis files and queries carry them.
func SessionRulesToProto(r session.Rules) sessionsv1.Params {
	return sessionsv1.Params{BurnBps: r.BurnBps, RewardBps: r.RewardBps, ChallengeMs: r.Challenge, MaxLengthMs: r.MaxLength, DisputeBond: r.DisputeBond}
}

// SessionRulesFromProto is the inverse of SessionRulesToProto.
func SessionRulesFromProto(m sessionsv1.Params) session.Rules {
	return session.Rules{BurnBps: m.BurnBps, RewardBps: m.RewardBps, Challenge: m.ChallengeMs, MaxLength: m.MaxLengthMs, DisputeBond: m.DisputeBond}
}
