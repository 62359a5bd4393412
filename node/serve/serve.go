// Package serve is a provider of language models: it serves consumers that have opened sessions with it, token by token, and is paid ahead.
//
// Make a [Server] by [New] and call [Server.Run]; it lists its models on the chain, and answers the protocols of package node/tabs.
//
// Invariants: nothing is computed that is not paid for. What a receipt is signed for is on the disk before, and defended until its session is over. Who leaves before the end of a reply is billed for what was made. A receipt is on the disk before
// it is sent. What vouchers claim is claimed on the chain before the session ends. The process can be killed at any moment.
//
// Source: docs/adr/0069-served-models.md.
package serve

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/session"
	"github.com/tally-network/tally/model/check"
	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/contest"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/node/tabs"
	"github.com/tally-network/tally/p2p"
)

// Model is one that is served.
type Model struct {
	Listing  session.Listing // whose model is the root of the manifest
	Manifest *files.Manifest
	Texts    files.Texts
	Weights  *lm.Model
	Replier  lm.Replier
	Checker  Checker
	Contest  contest.Model // for disputes about its replies
}

// Checker re-executes replies of one model.
type Checker interface {
	Check(ctx context.Context, r *lm.Request, reply []int32) (check.Verdict, error)
}

// Parts are what a server is made of.
type Parts struct {
	ChainID string
	Account string
	Key     ed25519.PrivateKey // of the peer
	Host    *p2p.Host
	Chain   tabs.Chain
	Dir     string // of the tabs
	Models  []*Model
	Log     *slog.Logger

	Disputes tabs.Disputes // Run's, if there is none; without it nothing is disputed
}

// Server serves models.
type Server struct {
	Parts
	tabs  *tabs.Store
	made  tabs.Made
	found found

	mu     sync.Mutex
	models map[canon.Hash]*Model    // Models, and those that are listed no more
	added  int                      // how often a model was added
	seen   map[canon.Hash]time.Time // when the chain was last asked for a session
	signed map[peer.ID][]int64      // when consumers got terms, in protocol time
	listed int64                    // when the models were listed last, in protocol time; 0: not since the start, or the last was added
	ctx    context.Context          // of what is computed: Run's
	stats  Stats
}

// Stats count what a server has done since it began.
type Stats struct {
	Replies int
	Checks  int
	Read    int // tokens
	Written int
	Earned  uint64 // utally, by receipts
}

// New returns a server. Its handlers are set by Run.
func New(p Parts) (*Server, error) {
	s := &Server{Parts: p, models: map[canon.Hash]*Model{}, seen: map[canon.Hash]time.Time{}, signed: map[peer.ID][]int64{}}
	for _, m := range p.Models {
		if m.Listing.Model = m.Manifest.Root(); s.models[m.Listing.Model] != nil {
			return nil, fmt.Errorf("%s is served twice", m.Listing.Name)
		}
		if err := m.Listing.Check(); err != nil {
			return nil, fmt.Errorf("%s: %w", m.Listing.Name, err)
		}
		s.models[m.Listing.Model] = m
	}
	s.made.Dir = filepath.Join(p.Dir, "made")
	var err error
	s.tabs, err = tabs.Open(p.Dir)
	return s, err
}

// maxServed bounds the models of a server, with those that are listed no more: what was sold is to be defended.
const maxServed = 8 * session.MaxListings

// Add serves one more model, and lists it with the next block. It replaces the listing of one that has the same name, whose sessions go on. Several goroutines
// may call it.
func (s *Server) Add(m *Model) error {
	m.Listing.Model = m.Manifest.Root()
	if err := m.Listing.Check(); err != nil {
		return fmt.Errorf("%s: %w", m.Listing.Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	listed := slices.DeleteFunc(slices.Clone(s.Models), func(x *Model) bool { return x.Listing.Name == m.Listing.Name })
	switch {
	case m.Contest == nil:
		return fmt.Errorf("%s: nothing could defend its replies: give it a contest.Model", m.Listing.Name)
	case slices.ContainsFunc(s.Models, func(x *Model) bool { return x.Listing.Model == m.Listing.Model }):
		return fmt.Errorf("%s is served already, as %s", m.Listing.Name, s.models[m.Listing.Model].Listing.Name)
	case len(listed) >= session.MaxListings:
		return fmt.Errorf("%s is one model too many: a provider lists %d at most", m.Listing.Name, session.MaxListings)
	case s.models[m.Listing.Model] != nil: // it was listed before, perhaps by another name
	case len(s.models) >= maxServed:
		return fmt.Errorf("%s: %d models were served since the start, as many as may be: start again", m.Listing.Name, maxServed)
	}
	s.models[m.Listing.Model] = m
	s.Models, s.listed = append(listed, m), 0
	s.added++
	return nil
}

// model returns a model that is served; nil: it is not.
func (s *Server) model(root canon.Hash) *Model {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.models[root]
}

// OfEnv fills in what an env has.
func OfEnv(env *role.Env) Parts {
	return Parts{ChainID: env.Chain.ChainID, Account: env.Account.Address, Key: env.Keys.Peer, Host: env.Host, Chain: tabs.ChainOf(env), Log: env.Log}
}

// Stats returns what was done so far.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// Run serves until ctx is done, which is no error.
func (s *Server) Run(ctx context.Context, env *role.Env) error {
	s.mu.Lock()
	models := s.Models
	s.mu.Unlock()
	for _, m := range models {
		if m.Contest == nil {
			return fmt.Errorf("%s: nothing could defend its replies: give it a contest.Model", m.Listing.Name)
		}
	}
	if s.Disputes == nil {
		b := contest.New(ctx, env, s.made, func(root canon.Hash) contest.Model {
			if m := s.model(root); m != nil {
				return m.Contest
			}
			return nil
		})
		defer b.Wait()
		s.Disputes = b
	}
	s.Handle(ctx)
	return env.EachBlock(ctx, s.Block)
}

// Handle answers the protocols of sessions. What is computed ends with ctx.
func (s *Server) Handle(ctx context.Context) {
	s.ctx = ctx
	tabs.Agreements.Handle(s.Host, s.agree)
	tabs.Answers.Handle(s.Host, s.answer(session.OfReply))
	tabs.Checks.Handle(s.Host, s.answer(session.OfCheck))
	tabs.Accounts.Handle(s.Host, s.account)
	tabs.Roots.Handle(s.Host, s.root)
	tabs.Endings.Handle(s.Host, s.end)
	tabs.Parts.Handle(s.Host, s.part)
	tabs.Proofs.Handle(s.Host, s.accuse)
}

// Limits of terms, in ms of protocol time.
const (
	maxWait   = 10 * 60 * 1000       // until a session begins whose terms are signed
	maxLength = 7 * 24 * 3600 * 1000 // of a session
)

// agree signs terms that keep to a listing.
func (s *Server) agree(_ context.Context, from peer.ID, t session.Terms) (a tabs.Signature, err error) {
	if err := t.Check(); err != nil {
		return a, err
	}
	m, now := s.model(t.Model), s.Chain.Head().Time
	switch key := s.Key.Public().(ed25519.PublicKey); {
	case m == nil:
		return a, fmt.Errorf("model %s is not served here", t.Model)
	case !speaksFor(from, t.Consumer):
		return a, p2p.ErrRefused
	case t.Chain != s.ChainID || t.Provider.Account != s.Account || !bytes.Equal(t.Provider.Key, key):
		return a, errors.New("the terms name another chain or provider")
	case t.OpenBy < now || t.OpenBy > now+maxWait || t.End > now+maxLength:
		return a, fmt.Errorf("a session begins within %d minutes and lasts %d days at most", maxWait/60_000, maxLength/86_400_000)
	case t.Escrow < m.Listing.Credit.Cap: // it reserves stake for the cap
		return a, fmt.Errorf("an escrow of %d utally: want at least the cap, %d", t.Escrow, m.Listing.Credit.Cap)
	case t.Credit.History != 0:
		return a, errors.New("no history is known here")
	}
	if err := m.Listing.Admits(&t); err != nil {
		return a, err
	}
	if err := s.agreed(from, now); err != nil {
		return a, err
	}
	return tabs.Signature{Signature: ed25519.Sign(s.Key, t.SignBytes())}, nil
}

// For how many sessions a consumer gets terms within maxWait, and how many consumers do.
const (
	maxAgreed    = 4
	maxConsumers = 1 << 12
)

// agreed counts terms that a consumer gets. It goes by the peer, for an account may be anybody's here.
func (s *Server) agreed(from peer.ID, now int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for a, times := range s.signed { // each alone
		if times = slices.DeleteFunc(times, func(at int64) bool { return at < now-maxWait }); len(times) > 0 {
			s.signed[a] = times
		} else {
			delete(s.signed, a)
		}
	}
	if len(s.signed[from]) >= maxAgreed || len(s.signed) >= maxConsumers {
		return fmt.Errorf("%d sessions of a consumer in %d minutes, and %d consumers: use those that are open, or come back later", maxAgreed, maxWait/60_000, maxConsumers)
	}
	s.signed[from] = append(s.signed[from], now)
	return nil
}

func speaksFor(id peer.ID, p session.Party) bool {
	key, err := p2p.PublicKey(id)
	return err == nil && bytes.Equal(key, p.Key)
}

// believed is for how long the chain is not asked again whether a session goes on.
const believed = 30 * time.Second

// tab returns the tab of an open session with the peer that asks.
func (s *Server) tab(ctx context.Context, id canon.Hash, from peer.ID) (*tabs.Tab, error) {
	t := s.tabs.Find(id)
	s.mu.Lock()
	fresh := time.Since(s.seen[id]) < believed
	s.mu.Unlock()
	if t == nil || !fresh {
		on, err := s.session(ctx, id)
		switch {
		case err != nil:
			return nil, fmt.Errorf("there is no session %s: %w", id, err)
		case on.Terms.Provider.Account != s.Account || !speaksFor(from, on.Terms.Consumer):
			return nil, p2p.ErrRefused
		case on.Phase != session.Open:
			return nil, fmt.Errorf("session %s is %s", id, on.Phase)
		}
		if t, err = s.tabs.Begin(on.Terms, nil, session.OfReply); err != nil {
			return nil, err
		}
		s.mu.Lock()
		s.seen[id] = time.Now()
		s.mu.Unlock()
		s.Host.SetConsumer("session "+id.String(), p2p.Peers{from: nil})
	}
	switch terms := t.Terms(); {
	case !speaksFor(from, terms.Consumer):
		return nil, p2p.ErrRefused
	case s.Chain.Head().Time >= terms.End:
		return nil, fmt.Errorf("session %s has ended", id)
	case s.model(terms.Model) == nil:
		return nil, fmt.Errorf("model %s is not served any more", terms.Model)
	}
	return t, nil
}

// session asks the chain for a session. That of this node may be a block behind the consumer's.
func (s *Server) session(ctx context.Context, id canon.Hash) (on session.Session, err error) {
	for range behind {
		if on, err = s.Chain.Session(ctx, id); !client.NotFound(err) {
			return on, err
		}
		select {
		case <-time.After(time.Second / 2):
		case <-ctx.Done():
			return on, ctx.Err()
		}
	}
	return on, err
}

// behind is how often a node is asked, twice a second, that may be behind.
const behind = 10

// pay takes the voucher that comes with a question.
func pay(t *tabs.Tab, p *tabs.Payment) error {
	if p.Voucher.Number == 0 {
		return nil
	}
	return t.Take(&p.Voucher, p.Signature)
}

// account takes a payment, and tells receipts that did not come.
func (s *Server) account(ctx context.Context, from peer.ID, q tabs.Standing) (a tabs.Bills, err error) {
	t, err := s.tab(ctx, q.Session, from)
	if err != nil {
		return a, err
	}
	if err := pay(t, &q.Payment); err != nil {
		return a, err
	}
	a.Receipts = t.Since(q.From, tabs.MaxBills)
	return a, nil
}

// root tells the root of pages behind a receipt.
func (s *Server) root(ctx context.Context, from peer.ID, q tabs.Numbered) (a tabs.Root, err error) {
	t, err := s.tab(ctx, q.Session, from)
	if err != nil {
		return a, err
	}
	var ok bool
	if a.Pages, ok = t.Pages(q.Number); !ok {
		return a, fmt.Errorf("receipt %d is settled, or was never given", q.Number)
	}
	return a, nil
}

// end signs what a session comes to. Nothing is served after it.
func (s *Server) end(ctx context.Context, from peer.ID, q tabs.Ending) (a tabs.Signature, err error) {
	t := s.tabs.Find(q.Final.Session)
	if t == nil {
		if t, err = s.tab(ctx, q.Final.Session, from); err != nil {
			return a, err
		}
	}
	terms, id := t.Terms(), q.Final.ID()
	if !speaksFor(from, terms.Consumer) || !ed25519.Verify(terms.Consumer.Key, id[:], q.Signature) {
		return a, p2p.ErrRefused
	}
	on, err := s.Chain.Session(ctx, q.Final.Session)
	if err != nil {
		return a, err
	}
	if _, err := t.Final(on.Claimed(), q.Final.Amount); err != nil {
		return a, err
	}
	return tabs.Signature{Signature: ed25519.Sign(s.Key, id[:])}, nil
}

// part hands over a part of a model's file.
func (s *Server) part(_ context.Context, _ peer.ID, q tabs.PartOf) (a tabs.Bytes, err error) {
	m := s.model(q.Model)
	if m == nil {
		return a, fmt.Errorf("model %s is not served here", q.Model)
	}
	text := []byte(nil)
	switch {
	case q.File == 0:
		text = canon.Marshal(m.Manifest)
	case q.File <= len(m.Manifest.Files):
		text = m.Texts[m.Manifest.Files[q.File-1].Name]
	default:
		return a, fmt.Errorf("the model has %d files", len(m.Manifest.Files))
	}
	if q.At > len(text) {
		return a, fmt.Errorf("the file has %d bytes", len(text))
	}
	a.Bytes = text[q.At:min(q.At+tabs.MaxPart, len(text))]
	return a, nil
}

// Block does what is due: listings stand, and what was earned is claimed in time.
func (s *Server) Block(ctx context.Context, b client.Block) error {
	err := errors.Join(s.list(ctx, b.Time), s.claim(ctx, b))
	if s.Disputes != nil {
		err = errors.Join(err, s.Disputes.Block(ctx))
	}
	return err
}

// list lists the models on the chain, unless they stand there for long enough.
func (s *Server) list(ctx context.Context, now int64) error {
	s.mu.Lock()
	models, added, listed := s.Models, s.added, s.listed
	s.mu.Unlock()
	if listed != 0 && now < listed+session.ListingLasts/2 {
		return nil // the chain may not show it, for want of free stake
	}
	stand := 0
	for _, m := range models {
		all, err := s.Chain.Listings(ctx, m.Listing.Model, "")
		if err != nil {
			return err
		}
		if slices.ContainsFunc(all, func(l wire.Listed) bool {
			return l.Provider == s.Account && l.Listing == m.Listing && l.Until > now+session.ListingLasts/2
		}) {
			stand++
		}
	}
	if stand < len(models) {
		var all []session.Listing
		for _, m := range models {
			all = append(all, m.Listing)
		}
		if err := s.Chain.Send(ctx, wire.ListModels(s.Account, all)); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.added == added {
		s.listed = now
	}
	return nil
}

// forgotten is how long after its end, in ms, a session that the node does not know is over: a node may lag behind.
const forgotten = 7 * 24 * 3600 * 1000

func (s *Server) forget(id canon.Hash) error {
	s.Host.SetConsumer("session "+id.String(), nil)
	s.mu.Lock()
	delete(s.seen, id)
	s.mu.Unlock()
	return errors.Join(s.tabs.Forget(id), s.made.Forget(id))
}

// each is how many blocks pass between two looks at all sessions.
const each = 10

// claim posts vouchers of sessions that end, or of which much is not claimed.
func (s *Server) claim(ctx context.Context, b client.Block) (failed error) {
	if b.Height%each != 0 {
		return nil
	}
	failed = s.made.Prune(ctx, s.Chain, func(id canon.Hash) bool { return s.tabs.Find(id) != nil })
	for _, t := range s.tabs.All() {
		on, err := s.Chain.Session(ctx, t.ID())
		terms := t.Terms()
		if client.NotFound(err) && b.Time > terms.End+forgotten || err == nil && on.Phase == session.Ended {
			failed = errors.Join(failed, s.forget(t.ID()))
			continue
		} else if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		v, signature := t.Newest()
		left := v.Amount - min(v.Amount, on.Claimed())
		due := on.Phase != session.Open || on.Terms.End-b.Time < (on.Terms.End-on.BegunAt)/8 || left > t.State().Escrow/2
		if left == 0 || !due {
			continue
		}
		failed = errors.Join(failed, s.Chain.Send(ctx, wire.RedeemVoucher(s.Account, &v, signature)))
	}
	return failed
}
