// Package hire is a consumer of language models on the network: it holds sessions with several providers, asks them, and has their replies checked.
//
// Make a [Consumer] by [New], let [Consumer.Run] keep its sessions, and ask by [Consumer.Reply]. [Consumer.Offers] lists what there is, and
// [Consumer.Model] gets what a client needs of a model without its weights.
//
// Invariants: at most one instalment of each session is paid and not served. A receipt is settled only once it was checked, if a draw that its provider
// cannot foresee asks for that. A reply goes on with another provider where one breaks off, with the same tokens. The process can be killed at any moment: what was
// asked and paid is on the disk.
//
// Source: docs/adr/0069-served-models.md.
package hire

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/session"
	"github.com/tally-network/tally/model/check"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/node/tabs"
	"github.com/tally-network/tally/p2p"
)

// Checker re-executes replies here, of the models that it has.
type Checker interface {
	Has(model canon.Hash) bool
	Check(ctx context.Context, model canon.Hash, r *lm.Request, reply []int32) (check.Verdict, error)
}

// Options are what a consumer may choose. Zero values have defaults.
type Options struct {
	CheckBps  uint64         // odds that a reply is checked
	Self      Checker        // nil if this machine has no weights
	SelfFirst bool           // check here; otherwise others do, and what they dispute is decided here
	MaxPrices session.Prices // above which no provider is asked; 0: any
	MaxFirst  uint64         // utally that a stranger may ask for ahead; DefaultMaxFirst
	MaxCap    uint64         // utally that anybody may; DefaultMaxCap
	Escrow    uint64         // utally that a session locks, or the cap if that is more; ten times what a stranger asks for
	Lasts     time.Duration  // of a session, in protocol time; a day
	Forced    uint64         // odds, in basis points, that a checker is also asked about an error
	Patience  time.Duration  // until the next token of a provider; a minute

	Disputes tabs.Disputes // of replies that this machine has found wrong; nil: others must dispute them
}

// Disputed are the replies that a consumer with a folder disputes itself.
func Disputed(dir string) tabs.Made { return tabs.Made{Dir: filepath.Join(dir, "disputed")} }

// Parts are what a consumer is made of.
type Parts struct {
	ChainID string
	Account string
	Key     ed25519.PrivateKey // of the peer
	Host    *p2p.Host
	Chain   tabs.Chain
	Dir     string // of tabs, receipts and models
	Log     *slog.Logger
	Options
}

// Consumer asks providers.
type Consumer struct {
	Parts
	tabs     *tabs.Store
	blamed   blames
	offers   offers
	models   cache
	live     live // questions whose answers are still read
	checking live // receipts

	mu       sync.Mutex
	opening  map[pair]*sync.Mutex // held while a session is opened
	settling map[pair]*sync.Mutex // held while receipts are taken, in their order
	router   router
	stats    Stats
	ctx      context.Context // ends with Close
	stop     context.CancelFunc
	working  sync.WaitGroup
	approved chan struct{} // closed and replaced whenever a receipt was checked
}

// pair is a provider and a model.
type pair struct {
	provider string
	model    canon.Hash
}

// Stats count what a consumer has done since it began.
type Stats struct {
	Replies, Checked, Wrong, Broken int    // replies; of these checked, and found wrong; providers that broke off
	Read, Written                   int    // tokens
	Paid, PaidChecks                uint64 // utally by receipts of replies, and of checks
}

// New returns a consumer with the sessions that it had.
func New(p Parts) (*Consumer, error) {
	if p.Lasts == 0 {
		p.Lasts = 24 * time.Hour
	}
	if p.Patience == 0 {
		p.Patience = time.Minute
	}
	if p.MaxFirst == 0 {
		p.MaxFirst = DefaultMaxFirst
	}
	if p.MaxCap == 0 {
		p.MaxCap = DefaultMaxCap
	}
	c := &Consumer{Parts: p, opening: map[pair]*sync.Mutex{}, settling: map[pair]*sync.Mutex{}, approved: make(chan struct{})}
	c.ctx, c.stop = context.WithCancel(context.Background())
	var err error
	if c.tabs, err = tabs.Open(filepath.Join(p.Dir, "tabs")); err != nil {
		return nil, err
	}
	c.models = cache{dir: filepath.Join(p.Dir, "models")}
	return c, c.blamed.open(filepath.Join(p.Dir, "blamed.json"))
}

// Close ends what is under way, and waits for it.
func (c *Consumer) Close() {
	c.stop()
	c.working.Wait()
}

// OfEnv fills in what an env has.
func OfEnv(env *role.Env) Parts {
	return Parts{ChainID: env.Chain.ChainID, Account: env.Account.Address, Key: env.Keys.Peer, Host: env.Host, Chain: tabs.ChainOf(env), Log: env.Log}
}

// Stats returns what was done so far.
func (c *Consumer) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

func (c *Consumer) count(add func(*Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	add(&c.stats)
}

// Run keeps the sessions until ctx is done, which is no error.
func (c *Consumer) Run(ctx context.Context, env *role.Env) error {
	c.Resume()
	return env.EachBlock(ctx, c.Block)
}

// Resume has replies checked whose checks were cut off.
func (c *Consumer) Resume() {
	for _, t := range c.tabs.All() {
		for _, s := range t.Open() {
			done := c.checking.add(s.Receipt.ID())
			c.working.Go(func() {
				defer c.changed()
				defer done()
				if err := c.resume(t, &s.Receipt); err != nil {
					c.Log.Warn("a reply was not checked", "receipt", s.Receipt.ID(), "error", err)
				}
			})
		}
	}
}

func (c *Consumer) resume(t *tabs.Tab, r *session.Receipt) error {
	if r.Kind == session.OfCheck {
		return t.Approve(r.Number)
	}
	kept, err := ReadReceipt(ReceiptPath(c.Dir, r.ID().String()))
	if err != nil { // nobody can check it any more, so nothing after it would be settled
		return errors.Join(err, t.Leave())
	}
	terms := t.Terms()
	id, err := c.peerOf(c.ctx, &terms)
	if err != nil {
		return err
	}
	h := &hired{Tab: t, c: c, peer: id, terms: terms}
	return h.check(c.ctx, kept)
}

// offers remembers listings for a while.
type offers struct {
	mu   sync.Mutex
	at   time.Time
	list []wire.Listed
}

// fresh is for how long listings are not asked for again.
const fresh = 5 * time.Second

// forget has the chain asked again: somebody may have moved.
func (o *offers) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.at = time.Time{}
}

// Offers returns what providers list that are not blamed for anything, at prices that are not too high.
func (c *Consumer) Offers(ctx context.Context) ([]wire.Listed, error) {
	c.offers.mu.Lock()
	defer c.offers.mu.Unlock()
	if time.Since(c.offers.at) > fresh {
		all, err := c.Chain.Listings(ctx, canon.Hash{}, "")
		if err != nil {
			return nil, err
		}
		c.offers.list, c.offers.at = all, time.Now()
	}
	var out []wire.Listed
	for _, l := range c.offers.list {
		if l.Provider != c.Account && !c.blamed.is(l.Provider) && within(l.Prices, c.MaxPrices) && l.Credit.First <= c.MaxFirst && l.Credit.Cap <= c.MaxCap {
			out = append(out, l)
		}
	}
	return out, nil
}

func within(p, most session.Prices) bool {
	for _, x := range [][2]uint64{{p.Prompt, most.Prompt}, {p.Reply, most.Reply}, {p.Check, most.Check}} {
		if x[1] > 0 && x[0] > x[1] {
			return false
		}
	}
	return true
}

// reach returns the peer of a listing, ready to be called.
func (c *Consumer) reach(l *wire.Listed) (peer.ID, error) {
	id, err := p2p.PeerID(l.PeerKey)
	if err != nil {
		return "", err
	}
	return id, c.Host.SetAddrs(id, l.Addrs)
}

// What a consumer pays ahead at most that says nothing else, in utally.
const (
	DefaultMaxFirst = 100_000
	DefaultMaxCap   = 1_000_000
)

// DefaultForced are the odds of forced errors that a consumer has who names none.
const DefaultForced = 500

// ErrTooLong says that no provider takes a prompt of this length.
var ErrTooLong = errors.New("the prompt is too long")

// ErrNobody says that nobody serves what is asked for.
var ErrNobody = errors.New("no provider on the network serves this model now")

// hired is a session with a provider.
type hired struct {
	*tabs.Tab
	c     *Consumer
	peer  peer.ID
	terms session.Terms
}

// lock locks what is done one at a time for a pair.
func (c *Consumer) lock(of map[pair]*sync.Mutex, p pair) (unlock func()) {
	c.mu.Lock()
	m := of[p]
	if m == nil {
		m = &sync.Mutex{}
		of[p] = m
	}
	c.mu.Unlock()
	m.Lock()
	return m.Unlock
}

// Bounds of sessions, in ms of protocol time.
const (
	openWithin = 2 * 60 * 1000 // until a session begins
	leastLeft  = 30 * 1000     // that an open one must still last
)

// hire returns an open session with a provider that has room for a request, and opens one if there is none. Checks have sessions of their own: theirs are
// settled at once, and must not wait for replies that wait for checks.
func (c *Consumer) hire(ctx context.Context, l *wire.Listed, kind session.Kind, need uint64) (*hired, error) {
	defer c.lock(c.opening, pair{l.Provider, l.Model})()
	id, err := c.reach(l)
	if err != nil {
		return nil, err
	}
	now := c.Chain.Head().Time
	for _, t := range c.tabs.All() {
		terms, s := t.Terms(), t.State()
		if terms.Provider.Account == l.Provider && terms.Model == l.Model && s.Left { // or each new one would cost another instalment
			return nil, fmt.Errorf("session %s with it went wrong and is not over yet", t.ID())
		}
		if terms.Provider.Account == l.Provider && terms.Model == l.Model && s.Kind == kind && !s.Done && terms.End-now > leastLeft && s.Escrow-min(s.Escrow, s.Spent+s.Held) >= need {
			return &hired{Tab: t, c: c, peer: id, terms: terms}, nil
		}
	}
	return c.open(ctx, l, id, kind)
}

// abandon uses a session no more. The chain ends it, and until then there is no other with its provider.
func (h *hired) abandon() {
	if err := h.Leave(); err != nil {
		h.c.Log.Error("that a session went wrong could not be written down", "session", h.ID(), "error", err)
	}
}

// drop forgets a question that its provider says it has not answered. If it has only fallen silent, it may still bill what it did.
func (h *hired) drop(id canon.Hash, err error) error {
	if errors.Is(err, p2p.ErrRefused) || errors.Is(err, p2p.ErrBusy) || errors.Is(err, p2p.ErrSaid) {
		return h.Drop(id)
	}
	return nil
}

// open opens a session: the provider signs terms, and the chain locks escrow and stake.
func (c *Consumer) open(ctx context.Context, l *wire.Listed, id peer.ID, kind session.Kind) (*hired, error) {
	now := c.Chain.Head().Time
	terms := session.Terms{
		Chain: c.ChainID, Consumer: session.Party{Account: c.Account, Key: c.Key.Public().(ed25519.PublicKey)},
		Provider: session.Party{Account: l.Provider, Key: l.PeerKey}, Model: l.Model, Prices: l.Prices, CheckBps: max(c.CheckBps, l.MinCheckBps), Credit: l.Credit,
		Escrow: c.Escrow, OpenBy: now + openWithin, End: now + openWithin + c.Lasts.Milliseconds(), Nonce: draw64(),
	}
	if terms.Escrow == 0 {
		terms.Escrow = 10 * l.Credit.First
	}
	terms.Escrow = max(terms.Escrow, l.Credit.Cap)
	if err := terms.Check(); err != nil {
		return nil, err
	}
	a, err := tabs.Agreements.Call(ctx, c.Host, id, terms)
	if err != nil {
		return nil, err
	}
	if err := terms.Verify(a.Signature); err != nil {
		return nil, err
	}
	t, err := c.tabs.Begin(terms, a.Signature, kind) // before it is sent, for the money is locked then
	if err != nil {
		return nil, err
	}
	if err := c.Chain.Send(ctx, wire.OpenSession(&terms, a.Signature)); err != nil {
		if _, asked := c.Chain.Session(ctx, terms.ID()); client.NotFound(asked) && ctx.Err() == nil {
			err = errors.Join(err, c.tabs.Forget(terms.ID()))
		}
		return nil, fmt.Errorf("open a session with %s: %w", l.Provider, err)
	}
	return &hired{Tab: t, c: c, peer: id, terms: terms}, nil
}

// Block ends sessions whose time or escrow is used up, and lets go of those that are over.
func (c *Consumer) Block(ctx context.Context, b client.Block) (failed error) {
	if c.Disputes != nil {
		failed = c.Disputes.Block(ctx)
	}
	if b.Height%each != 0 {
		return failed
	}
	failed = errors.Join(failed, Disputed(c.Dir).Prune(ctx, c.Chain, func(canon.Hash) bool { return false }))
	for _, t := range c.tabs.All() {
		terms, s := t.Terms(), t.State()
		on, err := c.Chain.Session(ctx, t.ID())
		switch {
		case client.NotFound(err):
			if b.Time > terms.OpenBy {
				failed = errors.Join(failed, c.tabs.Forget(t.ID()))
			}
			continue
		case err != nil:
			failed = errors.Join(failed, err)
			continue
		case on.Phase == session.Ended:
			failed = errors.Join(failed, c.tabs.Forget(t.ID()))
			continue
		case on.Phase != session.Open || s.Held > 0:
			continue
		}
		if s.Left {
			failed = errors.Join(failed, c.Chain.Send(ctx, wire.CloseSession(c.Account, t.ID())))
			continue
		}
		if over := terms.End-b.Time < leastLeft || s.Escrow-min(s.Escrow, s.Spent) < terms.Credit.First; (over || s.Done) && len(t.Open()) == 0 {
			if err := c.finish(ctx, t, on.Claimed()); err != nil {
				c.Log.Info("a session was not settled by both sides: its time will end it", "session", t.ID(), "error", err)
			}
		}
	}
	return failed
}

// each is how many blocks pass between two looks at all sessions.
const each = 5

// Finish settles a session that nothing is under way in, and forgets it: what was paid ahead and not served comes back. Its receipts stay.
func (c *Consumer) Finish(ctx context.Context, id canon.Hash) error {
	c.offers.forget()
	t := c.tabs.Find(id)
	if t == nil {
		return fmt.Errorf("there is no session %s", id)
	}
	on, err := c.Chain.Session(ctx, id)
	if err != nil {
		return err
	}
	if on.Phase != session.Ended {
		if err := c.finish(ctx, t, on.Claimed()); err != nil {
			return err
		}
	}
	return c.tabs.Forget(id)
}

func (c *Consumer) finish(ctx context.Context, t *tabs.Tab, claimed uint64) error {
	terms := t.Terms()
	if c.blamed.is(terms.Provider.Account) {
		return errors.New("its provider is blamed for a wrong reply, and gets no more than what was paid ahead")
	}
	if n := len(t.Open()); n > 0 || t.State().Left {
		return fmt.Errorf("%d of its receipts are not checked, or it went wrong: its time will end it", n)
	}
	id, err := c.peerOf(ctx, &terms)
	if err != nil {
		return err
	}
	h := &hired{Tab: t, c: c, peer: id, terms: terms}
	unlock := c.lock(c.settling, pair{terms.Provider.Account, terms.Model})
	err = h.catchUp(ctx, math.MaxUint64)
	unlock()
	if err != nil {
		return err
	}
	f, err := t.Final(claimed, math.MaxUint64)
	if err != nil {
		return err
	}
	fid := f.ID()
	a, err := tabs.Endings.Call(ctx, c.Host, id, tabs.Ending{Final: f, Signature: ed25519.Sign(c.Key, fid[:])})
	if err != nil {
		return err
	}
	if !ed25519.Verify(terms.Provider.Key, fid[:], a.Signature) {
		return errors.New("the provider has signed something else")
	}
	return c.Chain.Send(ctx, wire.FinishSession(c.Account, &f, a.Signature))
}

// peerOf returns the peer of a session's provider, ready to be called where it listens now.
func (c *Consumer) peerOf(ctx context.Context, terms *session.Terms) (peer.ID, error) {
	all, err := c.Offers(ctx)
	if err != nil {
		return "", err
	}
	for i := range all {
		if all[i].Provider == terms.Provider.Account {
			return c.reach(&all[i])
		}
	}
	return p2p.PeerID(terms.Provider.Key)
}

// Sessions returns how all sessions stand, by when they end.
func (c *Consumer) Sessions() []*tabs.Tab { return c.tabs.All() }
