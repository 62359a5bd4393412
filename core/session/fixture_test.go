package session_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/session"
)

// The times at which sessions of tests begin and end, in ms.
const (
	begin = 1_000
	end   = 10_000_000
)

var rules = session.Rules{BurnBps: 200, RewardBps: 4000, Challenge: 60_000, MaxLength: 24 * 3600 * 1000, DisputeBond: 1_000_000}

func keyOf(name string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte(name))
	return ed25519.NewKeyFromSeed(seed[:])
}

func partyOf(name string) session.Party {
	return session.Party{Account: name, Key: keyOf(name).Public().(ed25519.PublicKey)}
}

func hashOf(name string) canon.Hash { return canon.Sum("test", []byte(name)) }

// termsOf returns terms between two people.
func termsOf(consumer, provider string, edit ...func(*session.Terms)) session.Terms {
	t := session.Terms{
		Chain: "tally-test", Consumer: partyOf(consumer), Provider: partyOf(provider), Model: hashOf("model"),
		Prices:   session.Prices{Prompt: 100_000, Reply: 400_000, Check: 50_000},
		CheckBps: 2_500,
		Credit:   session.Credit{First: 500, GrowthBps: 2_000, Cap: 2_000},
		Escrow:   20_000, OpenBy: begin + 1_000, End: end,
	}
	for _, e := range edit {
		e(&t)
	}
	return t
}

// sign signs the identity of something.
func sign(name string, id canon.Hash) []byte { return ed25519.Sign(keyOf(name), id[:]) }

// receiptOf returns a receipt of a session.
func receiptOf(t *session.Terms, number, prompt, reply uint64) session.Receipt {
	return session.Receipt{
		Session: t.ID(), Number: number, Request: hashOf("request"), Model: t.Model,
		Prompt: prompt, Reply: reply, Tokens: hashOf("tokens"), Pages: hashOf("pages"),
	}
}

// disputed tells that a game about a reply has begun.
func disputed(t *session.Terms) session.OpenDispute {
	r := receiptOf(t, 7, 10, 20)
	return session.OpenDispute{Receipt: r, Signature: sign(t.Provider.Account, r.ID())}
}

// beginOf begins a session, whose terms its provider has signed.
func beginOf(t *testing.T, terms session.Terms) session.Session {
	t.Helper()
	s, _, err := session.Begin(terms, sign(terms.Provider.Account, terms.ID()), rules, begin)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
