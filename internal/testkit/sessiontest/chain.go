// Package sessiontest has a chain of sessions with language models in memory, for tests of both sides.
//
// Make a [Chain] by [New], give it peers by [Chain.Join], and each side its view by [Chain.As].
//
// Invariant: the rules are those of core/session, and messages are read as the real chain reads them. Only consensus, fees and stakes are not there.
package sessiontest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/session"
	sessionsv1 "github.com/tally-network/tally/gen/tally/sessions/v1"
	"github.com/tally-network/tally/node/client"
)

// ID is the chain's.
const ID = "sessiontest-1"

// Chain has sessions, listings and balances.
type Chain struct {
	t testing.TB

	mu       sync.Mutex
	head     client.Block
	sessions map[canon.Hash]session.Session
	listed   map[string][]session.Listing
	peers    map[string]Peer
	balances map[string]int64 // utally, of what sessions have moved
	sent     int
	fail     error
}

// Peer is how a provider is reached.
type Peer struct {
	Key   []byte
	Addrs []string
}

// New returns a chain without sessions.
func New(t testing.TB) *Chain {
	return &Chain{
		t: t, head: client.Block{Height: 10, Time: 1_000_000}, sessions: map[canon.Hash]session.Session{}, listed: map[string][]session.Listing{},
		peers: map[string]Peer{}, balances: map[string]int64{},
	}
}

// Join registers a provider.
func (c *Chain) Join(account string, p Peer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.peers[account] = p
}

// Advance lets so many ms pass, and one block. What is due happens.
func (c *Chain) Advance(ms int64) client.Block {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.head.Height++
	c.head.Time += ms
	for id, s := range c.sessions { // each alone
		for s.Phase != session.Ended && s.Due <= c.head.Time {
			c.apply(id, session.Tick{})
			s = c.sessions[id]
		}
	}
	return c.head
}

// Fail has all messages fail from now on, or none if err is nil.
func (c *Chain) Fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail = err
}

// Balance returns what sessions have brought an account, less what they have cost it.
func (c *Chain) Balance(account string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.balances[account]
}

// Sent returns how many messages there were.
func (c *Chain) Sent() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent
}

// Sessions returns all sessions.
func (c *Chain) Sessions() (all []session.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sessions { // in any order
		all = append(all, s)
	}
	return all
}

// View is the chain as one account sees it.
type View struct {
	*Chain
	account string
}

// As returns the view of an account.
func (c *Chain) As(account string) View { return View{c, account} }

// Head returns the newest block.
func (c *Chain) Head() client.Block {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.head
}

// Session returns a session.
func (c *Chain) Session(_ context.Context, id canon.Hash) (session.Session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.sessions[id]
	if !ok {
		return s, status.Errorf(codes.NotFound, "no session %s", id)
	}
	return s, nil
}

// Listings returns what is listed of a model, or all.
func (c *Chain) Listings(_ context.Context, model canon.Hash, name string) (out []wire.Listed, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for account, all := range c.listed { // sorted below
		for _, l := range all {
			if (model.IsZero() || l.Model == model) && (name == "" || l.Name == name) {
				out = append(out, wire.Listed{Listing: l, Provider: account, PeerKey: c.peers[account].Key, Addrs: c.peers[account].Addrs, Until: c.head.Time + session.ListingLasts, Free: 1 << 40})
			}
		}
	}
	slices.SortFunc(out, func(a, b wire.Listed) int {
		return slices.Compare([]string{a.Provider, a.Name}, []string{b.Provider, b.Name})
	})
	return out, nil
}

// Send applies messages of the account.
func (v View) Send(_ context.Context, msgs ...sdk.Msg) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.fail != nil {
		return v.fail
	}
	for _, m := range msgs {
		v.sent++
		if err := v.deliver(m); err != nil {
			return err
		}
	}
	return nil
}

func (v View) deliver(m sdk.Msg) error {
	switch m := m.(type) {
	case *sessionsv1.MsgList:
		all, err := wire.ListingsFromProto(m.Listings)
		v.listed[v.account] = all
		return err
	case *sessionsv1.MsgOpen:
		t, err := wire.SignedFromProto[session.Terms](&m.Terms)
		if err != nil {
			return err
		}
		s, effects, err := session.Begin(t, m.Terms.Signature, session.DefaultRules, v.head.Time)
		if err != nil {
			return err
		}
		if _, twice := v.sessions[s.ID()]; twice || t.Consumer.Account != v.account {
			return fmt.Errorf("session %s is there, or another's", s.ID())
		}
		v.sessions[s.ID()] = s
		v.move(effects)
		return nil
	case *sessionsv1.MsgRedeem:
		voucher, err := wire.SignedFromProto[session.Voucher](&m.Voucher)
		if err != nil {
			return err
		}
		return v.apply(voucher.Session, session.Redeem{Voucher: voucher, Signature: m.Voucher.Signature})
	case *sessionsv1.MsgFinish:
		f, err := wire.SignedFromProto[session.Final](&m.Final)
		if err != nil {
			return err
		}
		return v.apply(f.Session, session.Finish{By: v.account, Final: f, Signature: m.Final.Signature})
	case *sessionsv1.MsgClose:
		id, err := canon.HashOf(m.Session)
		if err != nil {
			return err
		}
		return v.apply(id, session.Close{By: v.account})
	}
	return fmt.Errorf("a message of type %T", m)
}

// apply lets an event happen.
func (c *Chain) apply(id canon.Hash, e session.Event) error {
	s, ok := c.sessions[id]
	if !ok {
		return status.Errorf(codes.NotFound, "no session %s", id)
	}
	next, effects, err := session.Apply(s, e, c.head.Time)
	if err != nil {
		return err
	}
	if err := next.Check(); err != nil {
		c.t.Errorf("session %s cannot be: %v", id, err)
	}
	c.sessions[id] = next
	c.move(effects)
	return nil
}

// move moves the money of consumers and providers.
func (c *Chain) move(effects []session.Effect) {
	for _, e := range effects {
		switch e.Kind {
		case session.Lock:
			c.balances[e.Account] -= int64(e.Amount)
		case session.Pay, session.Refund:
			c.balances[e.Account] += int64(e.Amount)
		}
	}
}
