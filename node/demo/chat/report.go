package chat

import (
	"context"
	"fmt"

	supplyv1 "github.com/tally-network/tally/gen/tally/supply/v1"
	"github.com/tally-network/tally/node/role"
)

// Report is the outcome of a demo. Amounts are in utally.
type Report struct {
	Model      string   `json:"model"`
	Root       string   `json:"root"`
	URL        string   `json:"url"`
	Curl       string   `json:"curl"`
	Answers    []Answer `json:"answers"`
	Blamed     []Blamed `json:"blamed"`
	Dispute    *Dispute `json:"dispute"`
	Providers  []Earned `json:"providers"`
	Paid       uint64   `json:"paid_utally"` // by the consumer
	PaidChecks uint64   `json:"paid_checks_utally"`
	Burnt      uint64   `json:"burnt_utally"`
	SupplyOK   bool     `json:"supply_ok"`
	Seconds    float64  `json:"seconds"`

	Names map[string]string `json:"-"` // roles by account
}

// Answer is a question with its reply.
type Answer struct {
	Question string  `json:"question"`
	Reply    string  `json:"reply"`
	Parts    []Part  `json:"parts"`
	Seconds  float64 `json:"seconds"`
}

// Part is what one provider has made of a reply.
type Part struct {
	Provider  string `json:"provider"`
	Receipt   string `json:"receipt"`
	Tokens    int    `json:"tokens"`
	Price     uint64 `json:"price_utally"`
	CheckedBy string `json:"checked_by"`
	Right     bool   `json:"right"`
	Wrong     int    `json:"wrong"` // the first token that is wrong; −1: none
}

// Blamed is a provider that was found to cheat.
type Blamed struct {
	Account string `json:"account"`
	Name    string `json:"name"`
	Why     string `json:"why"`
}

// Dispute is how the chain has decided about a wrong reply.
type Dispute struct {
	ID         uint64 `json:"id"`
	Moves      int    `json:"moves"`
	Challenger string `json:"challenger"`
	Loser      string `json:"loser"`
	Reason     string `json:"reason"`
	Stake      uint64 `json:"stake_utally"` // that the loser loses
}

// Earned is what a provider has done, and has for it.
type Earned struct {
	Name    string `json:"name"`
	Replies int    `json:"replies"`
	Checks  int    `json:"checks"`
	Settled uint64 `json:"settled_utally"` // paid by the chain
	Ahead   uint64 `json:"ahead_utally"`   // by vouchers, in a session that is not settled
}

// Name returns what people call an account: its role in the demo's network.
func (r *Report) Name(account string) string {
	if n := r.Names[account]; n != "" {
		return n
	}
	return account
}

func (r *Report) blames(account string) bool {
	for _, b := range r.Blamed {
		if b.Account == account {
			return true
		}
	}
	return false
}

// supply asks the chain whether every ledger adds up.
func (r *Report) supply(ctx context.Context, env *role.Env) error {
	q, err := supplyv1.NewQueryClient(env.Chain.Conn).Check(ctx, &supplyv1.QueryCheckRequest{})
	if err != nil {
		return fmt.Errorf("supply: %w", err)
	}
	r.SupplyOK = q.Ok
	return nil
}

// tellMoney tells what everybody has in the end.
func (d *demo) tellMoney() {
	r := d.report
	d.say("settled after %.0f s, by one transaction a session", r.Seconds)
	for _, p := range r.Providers {
		earned := fmt.Sprintf("earned %d utally", p.Settled)
		if p.Ahead > 0 {
			earned = fmt.Sprintf("has vouchers for %d utally, and gets no more; the rest of its session's escrow comes back", p.Ahead)
		}
		d.say("  %-11s %s; replies: %d, checks of others': %d", p.Name, earned, p.Replies, p.Checks)
	}
	d.say("  %-11s paid %d utally: of that %d are for checks, %d were burnt", "consumer", r.Paid, r.PaidChecks, r.Burnt)
	ok := "every ledger adds up"
	if !r.SupplyOK {
		ok = "a ledger does not add up"
	}
	d.say("  %-11s %s", "supply", ok)
}
