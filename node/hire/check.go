package hire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/money"
	"github.com/tally-network/tally/core/session"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/node/tabs"
	"github.com/tally-network/tally/p2p"
)

func protocolOf(q *tabs.Question) p2p.Streaming {
	if q.Kind() == session.OfCheck {
		return tabs.Checks
	}
	return tabs.Answers
}

// settle takes the bill of an answer, and has it checked if chance wants that.
func (h *hired) settle(ctx context.Context, q *tabs.Question, reply []int32, b *tabs.Signed, held *tabs.Held) error {
	c := h.c
	r := Receipt{Terms: h.terms, TermsSignature: h.TermsSignature(), Receipt: b.Receipt, Signature: b.Signature, Request: q.Request, Reply: reply, At: time.Now().UTC()}
	if err := c.keepReceipt(&r); err != nil { // before it is owed, so that it can be checked after a crash
		return err
	}
	if err := h.accept(ctx, q, reply, b, held); err != nil {
		return err
	}
	price, err := b.Receipt.Price(&h.terms)
	if err != nil {
		return err
	}
	c.count(func(s *Stats) {
		s.Replies++
		s.Read += len(q.Request.Prompt)
		s.Written += len(reply)
		s.Paid += price
	})
	if draw64()%money.Bps >= c.CheckBps {
		return h.Approve(b.Receipt.Number)
	}
	c.working.Go(func() { // while the reply is read already
		defer c.changed()
		if err := h.check(c.ctx, &r); err != nil {
			c.Log.Warn("a reply was not checked", "receipt", r.Receipt.ID(), "error", err)
		}
	})
	return nil
}

// right returns an error unless a receipt is of a question and its reply.
func right(r *session.Receipt, q *tabs.Question, reply []int32) error {
	tokens := slices.Concat(q.Request.Prompt, reply)
	switch {
	case r.Kind != q.Kind() || r.Request != q.ID():
		return errors.New("the receipt is of another question")
	case len(reply) == 0:
		return errors.New("the receipt is of no reply")
	case r.Prompt != uint64(len(q.Request.Prompt)) || r.Reply != uint64(len(reply)) || r.Tokens != lm.TokensRoot(tokens):
		return errors.New("the receipt is of other tokens")
	}
	return nil
}

// accept takes the bill of an answer, and before it those of others that have not come yet.
func (h *hired) accept(ctx context.Context, q *tabs.Question, reply []int32, b *tabs.Signed, held *tabs.Held) error {
	c := h.c
	if err := right(&b.Receipt, q, reply); err != nil {
		c.blame(h.terms.Provider.Account, fmt.Sprintf("its bill is wrong: %v", err))
		return err
	}
	defer c.lock(c.settling, pair{h.terms.Provider.Account, h.terms.Model})()
	for h.State().Served < b.Receipt.Number {
		q := tabs.Standing{From: h.State().Served}
		h.attach(&q.Payment)
		a, err := tabs.Accounts.Call(ctx, c.Host, h.peer, q)
		if err != nil {
			return err
		}
		if len(a.Receipts) == 0 || a.Receipts[0].Receipt.Number != q.From {
			h.abandon()
			return errors.New("the provider skips a receipt")
		}
		for _, s := range a.Receipts {
			if s.Receipt.Number >= b.Receipt.Number {
				break
			}
			take := func() error { return h.Accept(&s, nil) }
			if !c.live.has(s.Receipt.Request) {
				take = func() error { return h.AcceptLost(&s) }
			}
			if err := take(); err != nil {
				h.abandon()
				return err
			}
		}
	}
	if err := h.Accept(b, held); err != nil {
		h.abandon()
		return err
	}
	return nil
}

// live counts questions whose answers are still read.
type live struct {
	mu sync.Mutex
	by map[canon.Hash]int
}

func (l *live) add(id canon.Hash) (done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by == nil {
		l.by = map[canon.Hash]int{}
	}
	l.by[id]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.by[id]--; l.by[id] == 0 {
			delete(l.by, id)
		}
	}
}

func (l *live) has(id canon.Hash) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.by[id] > 0
}

// blame deals no more with a provider.
func (c *Consumer) blame(provider, why string) {
	c.Log.Warn("a provider is blamed", "provider", provider, "why", why)
	c.count(func(s *Stats) { s.Wrong++ })
	if err := c.blamed.add(provider, why); err != nil {
		c.Log.Error("who is to blame could not be written down", "error", err)
	}
}

// check has a reply re-executed, and approves its receipt if it is right.
func (h *hired) check(ctx context.Context, r *Receipt) error {
	c := h.c
	v, err := h.verdict(ctx, r)
	if err != nil {
		if ctx.Err() == nil { // what is not checked is not settled, so nothing after it would be
			h.abandon()
		}
		r.Check = &Check{Wrong: -1, Error: err.Error()}
		return errors.Join(err, c.keepReceipt(r))
	}
	r.Check = v
	c.count(func(s *Stats) { s.Checked++ })
	if v.wrong() {
		c.blame(h.terms.Provider.Account, fmt.Sprintf("receipt %s: %s, says %s", r.Receipt.ID(), v.says(), v.By))
		return c.keepReceipt(r)
	}
	return errors.Join(h.Approve(r.Receipt.Number), c.keepReceipt(r))
}

// verdict finds out whether a reply is right. What another provider disputes, a third one decides, or this machine if it has the weights.
func (h *hired) verdict(ctx context.Context, r *Receipt) (*Check, error) {
	c := h.c
	if c.SelfFirst {
		return h.byMyself(ctx, r)
	}
	asked := []string{h.terms.Provider.Account}
	first, err := h.byAnother(ctx, r, &asked)
	switch {
	case errors.Is(err, errUnproved):
		return nil, err
	case err != nil && c.Self != nil:
		return h.byMyself(ctx, r)
	case err != nil || !first.wrong():
		return first, err
	}
	second, err := h.byMyself(ctx, r)
	if err != nil {
		second, err = h.byAnother(ctx, r, &asked)
	}
	switch {
	case err != nil:
		why := fmt.Sprintf("receipt %s: %s and %s contradict each other, and nobody is there to decide: tally session verify does, where the model is", r.Receipt.ID(), h.terms.Provider.Account, first.By)
		c.blame(first.By, why)
		return first, nil
	case !second.wrong():
		c.blame(first.By, fmt.Sprintf("receipt %s: it has found fault with what is right, says %s", r.Receipt.ID(), second.By))
	}
	return second, nil
}

// byMyself re-executes a reply here.
func (h *hired) byMyself(ctx context.Context, r *Receipt) (*Check, error) {
	c := h.c
	if c.Self == nil {
		return nil, errors.New("the model is not on this machine: tally pull brings it")
	}
	wrong, pages, err := c.Self(ctx, h.terms.Model, &r.Request, r.Reply)
	if err != nil {
		return nil, err
	}
	return &Check{By: c.Account, Wrong: wrong, Pages: wrong < 0 && lm.SaltedPages(pages, h.terms.Provider.Key) != r.Receipt.Pages}, nil
}

// byAnother has the best provider check that was not asked yet.
func (h *hired) byAnother(ctx context.Context, r *Receipt, asked *[]string) (*Check, error) {
	c := h.c
	var last error
	for range attempts {
		l, err := c.choose(ctx, h.terms.Model, &r.Request, *asked)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("nobody else can check it: %w", err), last)
		}
		*asked = append(*asked, l.Provider)
		v, err := h.checkBy(ctx, l, r)
		if err == nil {
			return v, nil
		}
		if errors.Is(err, errUnproved) {
			return nil, err
		}
		last = fmt.Errorf("checker %s: %w", l.Provider, err)
	}
	return nil, last
}

// errUnproved says that the provider of a reply does not tell what it has computed.
var errUnproved = errors.New("its provider does not tell the root of pages")

// root asks the provider of a reply for the root that it has salted.
func (h *hired) root(ctx context.Context, number uint64) (root canon.Hash, err error) {
	for range 3 {
		var a tabs.Root
		if a, err = tabs.Roots.Call(ctx, h.c.Host, h.peer, tabs.Numbered{Session: h.ID(), Number: number}); err == nil {
			return a.Pages, nil
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return root, ctx.Err()
		}
	}
	return root, fmt.Errorf("%w: %w", errUnproved, err)
}

// checkBy has a provider check another's reply. Now and then it is first asked about one with an error, which it must find.
func (h *hired) checkBy(ctx context.Context, l *wire.Listed, r *Receipt) (*Check, error) {
	c := h.c
	by, err := c.hire(ctx, l, priceOf(session.OfCheck, l.Prices, len(r.Request.Prompt))(len(r.Reply)))
	if err != nil {
		return nil, err
	}
	if at, bad := c.forced(&r.Request, r.Reply); at >= 0 {
		wrong, _, err := by.examine(ctx, &r.Request, bad)
		if err != nil {
			return nil, err
		}
		// An error before it may be the provider's own.
		if wrong < 0 || wrong > at {
			c.blame(l.Provider, fmt.Sprintf("it was asked about a reply whose token %d is wrong, and says %d", at, wrong))
			return nil, errors.New("it does not check")
		}
	}
	wrong, bill, err := by.examine(ctx, &r.Request, r.Reply)
	if err != nil {
		return nil, err
	}
	v := &Check{By: l.Provider, Wrong: wrong, Receipt: bill.Receipt.ID()}
	if wrong >= 0 {
		return v, nil
	}
	// Only now the provider tells the root that both have salted.
	pages, err := h.root(ctx, r.Receipt.Number)
	if err != nil {
		return nil, err
	}
	v.Pages = lm.SaltedPages(pages, h.terms.Provider.Key) != r.Receipt.Pages || lm.SaltedPages(pages, by.terms.Provider.Key) != bill.Receipt.Pages
	return v, nil
}

// forced returns a reply with a wrong token now and then, and where that is; −1: not this time.
func (c *Options) forced(r *lm.Request, reply []int32) (at int, bad []int32) {
	if draw64()%money.Bps >= c.Forced {
		return -1, nil
	}
	at = int(draw64() % uint64(len(reply)))
	bad = slices.Clone(reply)
	for _, id := range slices.Concat(r.Prompt, reply) { // a token that the model has, and that ends nothing
		if id != reply[at] && !slices.Contains(r.Ends, id) {
			bad[at] = id
			return at, bad
		}
	}
	return -1, nil
}

// examine asks a provider about a reply. It returns the first wrong token, −1 for none, and the bill, which is paid.
func (h *hired) examine(ctx context.Context, r *lm.Request, reply []int32) (wrong int, bill *tabs.Signed, err error) {
	c := h.c
	q := tabs.Question{Request: *r, Reply: reply}
	price := priceOf(session.OfCheck, h.terms.Prices, len(r.Prompt))(len(reply))
	n, held, err := h.afford(ctx, 1, func(int) uint64 { return price })
	if err != nil || n < 1 {
		return 0, nil, errors.Join(err, tabs.ErrUnpaid)
	}
	defer held.Free()
	h.attach(&q.Payment)
	id := q.ID()
	if err := h.Ask(id); err != nil {
		return 0, nil, err
	}
	defer c.live.add(id)()
	answer, err := tabs.Checks.Call(ctx, c.Host, h.peer, canon.Marshal(&q))
	if err == nil {
		defer answer.Close()
		wrong, bill, err = hear(answer, &q)
	}
	if err == nil {
		err = h.accept(ctx, &q, reply, bill, held)
	}
	if err != nil {
		return 0, nil, errors.Join(err, h.drop(id, err))
	}
	c.count(func(s *Stats) { s.PaidChecks += price })
	return wrong, bill, h.Approve(bill.Receipt.Number)
}

// hear waits for the bill of a check.
func hear(answer *p2p.Replies, q *tabs.Question) (wrong int, bill *tabs.Signed, err error) {
	for {
		b, err := answer.Next()
		if errors.Is(err, io.EOF) {
			return 0, nil, errors.New("there is no bill")
		} else if err != nil {
			return 0, nil, err
		}
		var piece tabs.Piece
		if err := canon.UnmarshalWithin(b, &piece, 64<<20); err != nil {
			return 0, nil, err
		}
		if piece.Bill == nil {
			continue
		}
		if piece.Wrong > len(q.Reply) {
			return 0, nil, fmt.Errorf("token %d of %d would be wrong", piece.Wrong, len(q.Reply))
		}
		return piece.Wrong - 1, piece.Bill, nil
	}
}
