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
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/money"
	"github.com/tally-network/tally/core/session"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/node/tabs"
	"github.com/tally-network/tally/p2p"
)

// settle takes the bill of an answer, and has it checked if chance wants that. It returns what the check costs at the dearest of those who may be asked.
func (h *hired) settle(ctx context.Context, q *tabs.Question, reply []int32, b *tabs.Signed, held *tabs.Held) (checking uint64, err error) {
	c := h.c
	r := Receipt{Proof: tabs.Proof{Terms: h.terms, TermsSignature: h.TermsSignature(), Signed: *b, Request: q.Request, Reply: reply}, At: time.Now().UTC()}
	if err := keepReceipt(c, &r); err != nil { // before it is owed, so that it can be checked after a crash
		return 0, err
	}
	if err := h.accept(ctx, q, reply, b, held); err != nil {
		return 0, err
	}
	price, err := b.Receipt.Price(&h.terms)
	if err != nil {
		return 0, err
	}
	c.count(func(s *Stats) {
		s.Replies++
		s.Read += len(q.Request.Prompt)
		s.Written += len(reply)
		s.Paid += price
	})
	if draw64()%money.Bps >= c.CheckBps {
		return 0, h.Approve(b.Receipt.Number)
	}
	if !c.SelfFirst {
		for _, l := range h.others(ctx, &r, nil) {
			checking = max(checking, tabs.PriceOf(session.OfCheck, l.Prices, len(q.Request.Prompt))(len(reply)))
		}
	}
	done := c.checking.add(b.Receipt.ID())
	c.working.Go(func() { // while the reply is read already
		defer c.changed()
		defer done()
		if err := h.check(c.ctx, &r); err != nil {
			c.Log.Warn("a reply was not checked", "receipt", r.Receipt.ID(), "error", err)
		}
	})
	return checking, nil
}

// accept takes the bill of an answer, and before it those of others that have not come yet.
func (h *hired) accept(ctx context.Context, q *tabs.Question, reply []int32, b *tabs.Signed, held *tabs.Held) error {
	c := h.c
	if err := tabs.Right(&b.Receipt, q, reply); err != nil {
		c.blame(h.terms.Provider.Account, fmt.Sprintf("its bill is wrong: %v", err), month)
		return err
	}
	defer c.lock(c.settling, pair{h.terms.Provider.Account, h.terms.Model})()
	if err := h.catchUp(ctx, b.Receipt.Number); err != nil {
		return err
	}
	if h.State().Served < b.Receipt.Number {
		h.abandon()
		return errors.New("the provider skips a receipt")
	}
	if err := h.Accept(b, held); err != nil {
		h.abandon()
		return err
	}
	return nil
}

// catchUp takes the receipts before a number that have not come.
func (h *hired) catchUp(ctx context.Context, number uint64) error {
	c := h.c
	for h.State().Served < number {
		q := tabs.Standing{From: h.State().Served}
		h.attach(&q.Payment)
		a, err := tabs.Accounts.Call(ctx, c.Host, h.peer, q)
		if err != nil || len(a.Receipts) == 0 || a.Receipts[0].Receipt.Number != q.From {
			return err
		}
		for _, s := range a.Receipts {
			if s.Receipt.Number >= number {
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
	return nil
}

// live counts what goes on, by what it is about.
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

// For how long a provider is not dealt with: what others say may be a lie, what was seen here is none.
const (
	hour  = time.Hour
	month = 30 * 24 * time.Hour
)

// blame does not deal with a provider for a while.
func (c *Consumer) blame(provider, why string, lasts time.Duration) {
	c.Log.Warn("a provider is blamed", "provider", provider, "why", why)
	c.count(func(s *Stats) { s.Wrong++ })
	if err := c.blamed.add(provider, why, lasts); err != nil {
		c.Log.Error("who is to blame could not be written down", "error", err)
	}
}

// Checked returns the receipt of a reply once its check has ended. It has no check if nobody was to check it.
func (c *Consumer) Checked(ctx context.Context, id canon.Hash) (*Receipt, error) {
	for {
		c.mu.Lock()
		changed := c.approved
		c.mu.Unlock()
		if !c.checking.has(id) {
			return ReadReceipt(ReceiptPath(c.Dir, id.String()))
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("receipt %s was not checked yet: %w", id, ctx.Err())
		}
	}
}

// checkRetries is how often a check that could not be had is tried again.
const checkRetries = 3

// check has a reply re-executed, and approves its receipt if it is right.
func (h *hired) check(ctx context.Context, r *Receipt) error {
	c := h.c
	v, err := h.verdict(ctx, r)
	for i := 0; err != nil && !errors.Is(err, errUnproved) && i < checkRetries; i++ { // checkers may come and go
		select {
		case <-time.After(c.Patience / 4):
			v, err = h.verdict(ctx, r)
		case <-ctx.Done():
			i = checkRetries
		}
	}
	if err != nil {
		if ctx.Err() == nil { // what is not checked is not settled, so nothing after it would be
			h.abandon()
		}
		r.Check = &Check{Wrong: -1, Error: err.Error()}
		return errors.Join(err, keepReceipt(c, r))
	}
	r.Check = v
	c.count(func(s *Stats) { s.Checked++ })
	if v.wrong() {
		lasts := hour
		if v.Here {
			lasts = month
		}
		h.abandon()
		c.blame(h.terms.Provider.Account, fmt.Sprintf("receipt %s: %s, says %s", r.Receipt.ID(), v.Says(), v.By), lasts)
		h.accuse(ctx, r)
		return keepReceipt(c, r)
	}
	return errors.Join(h.Approve(r.Receipt.Number), keepReceipt(c, r))
}

// Votes that decide where this machine cannot: a reply is right when so many providers say so, and wrong when so many do.
const (
	votesRight = 2
	votesWrong = 3
)

// verdict finds out whether a reply is right. What one provider disputes is decided here if the weights are, and by others otherwise.
func (h *hired) verdict(ctx context.Context, r *Receipt) (*Check, error) {
	c := h.c
	mine := c.Self != nil && c.Self.Has(h.terms.Model)
	if c.SelfFirst || mine && len(h.others(ctx, r, nil)) == 0 {
		return h.byMyself(ctx, r)
	}
	var votes [2][]*Check // right, wrong
	asked := []string{h.terms.Provider.Account}
	for {
		v, err := h.byAnother(ctx, r, &asked)
		switch {
		case err != nil && mine && !errors.Is(err, errUnproved):
			return h.byMyself(ctx, r)
		case err != nil && len(votes[1]) > len(votes[0]) && !errors.Is(err, errUnproved):
			return accused(votes[1]), nil // nobody contradicts
		case err != nil:
			return nil, err
		}
		side := 0
		if v.wrong() {
			side = 1
		}
		if votes[side] = append(votes[side], v); side == 1 && mine {
			return h.overrule(ctx, r, votes[1])
		}
		if len(votes[1]) == 0 || len(votes[0]) == votesRight || len(votes[1]) == votesWrong {
			for _, lost := range votes[1-side] {
				c.blame(lost.By, fmt.Sprintf("receipt %s: others say otherwise of it", r.Receipt.ID()), hour)
			}
			if side == 1 {
				v = accused(votes[1])
			}
			return v, nil
		}
	}
}

// overrule decides here what others have found wrong.
func (h *hired) overrule(ctx context.Context, r *Receipt, found []*Check) (*Check, error) {
	v, err := h.byMyself(ctx, r)
	if err == nil && !v.wrong() {
		for _, x := range found {
			h.c.blame(x.By, fmt.Sprintf("receipt %s: it has found fault with what is right", r.Receipt.ID()), month)
		}
	}
	if err == nil && v.wrong() {
		v.accusers = accused(found).accusers
	}
	return v, err
}

// byMyself re-executes a reply here.
func (h *hired) byMyself(ctx context.Context, r *Receipt) (*Check, error) {
	c := h.c
	if c.Self == nil || !c.Self.Has(h.terms.Model) {
		return nil, errors.New("the model is not on this machine: tally pull brings it")
	}
	v, err := c.Self.Check(ctx, h.terms.Model, &r.Request, r.Reply)
	if err != nil {
		return nil, err
	}
	return &Check{By: c.Account, Wrong: v.Wrong, Pages: v.Wrong < 0 && dispute.SaltedPages(v.Pages, h.terms.Provider.Key) != r.Receipt.Pages, Here: true}, nil
}

// others returns who could check a reply and was not asked.
func (h *hired) others(ctx context.Context, r *Receipt, asked []string) (out []*wire.Listed) {
	all, err := h.c.Offers(ctx)
	if err != nil {
		return nil
	}
	for i := range all {
		if l := &all[i]; fits(l, h.terms.Model, &r.Request, append(asked, h.terms.Provider.Account)) && uint64(len(r.Request.Prompt)+len(r.Reply)) <= l.Context {
			out = append(out, l)
		}
	}
	return out
}

// byAnother has a provider check that was not asked yet, drawn by chance.
func (h *hired) byAnother(ctx context.Context, r *Receipt, asked *[]string) (*Check, error) {
	var last error
	for range attempts {
		all := h.others(ctx, r, *asked)
		if len(all) == 0 {
			return nil, errors.Join(errors.New("nobody else can check it"), last)
		}
		l := drawChecker(all)
		*asked = append(*asked, l.Provider)
		v, err := h.checkBy(ctx, l, r)
		if err == nil {
			return v, nil
		}
		h.c.router.avoid(l.Provider)
		h.c.offers.forget()
		if errors.Is(err, errUnproved) || ctx.Err() != nil {
			return nil, err
		}
		last = fmt.Errorf("checker %s: %w", l.Provider, err)
	}
	return nil, last
}

// checkUnsigned finds out whether what a provider gave before it broke off was right. Others go on meanwhile.
func (c *Consumer) checkUnsigned(l *wire.Listed, request *lm.Request, made []int32) {
	if c.CheckBps == 0 {
		return
	}
	q := *request
	q.Prompt, q.MaxTokens = slices.Clone(request.Prompt), len(made)
	made = slices.Clone(made)
	c.working.Go(func() {
		h := &hired{c: c, terms: session.Terms{Model: l.Model, Provider: session.Party{Account: l.Provider, Key: l.PeerKey}}}
		r := &Receipt{Proof: tabs.Proof{Terms: h.terms, Request: q, Reply: made}}
		if c.Self != nil && c.Self.Has(l.Model) {
			if v, err := c.Self.Check(c.ctx, l.Model, &q, made); err == nil && v.Wrong >= 0 {
				c.blame(l.Provider, fmt.Sprintf("it broke off after tokens of which %d is wrong", v.Wrong), month)
			}
			return
		}
		wrong, asked := 0, []string(nil)
		for _, by := range []int{1, 2} { // two must say so
			all := h.others(c.ctx, r, asked)
			if len(all) == 0 {
				return
			}
			l := drawChecker(all)
			asked = append(asked, l.Provider)
			x, err := c.hire(c.ctx, l, session.OfCheck, tabs.PriceOf(session.OfCheck, l.Prices, len(q.Prompt))(len(made)))
			if err != nil {
				continue
			}
			if at, _, err := x.examine(c.ctx, &q, made); err == nil && at >= 0 {
				wrong++
			}
			if wrong < by {
				return
			}
		}
		c.blame(l.Provider, "it broke off after tokens that are wrong", hour)
	})
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

// checkBy has a provider check another's reply. Now and then it is also asked about one with an error, which it must find.
func (h *hired) checkBy(ctx context.Context, l *wire.Listed, r *Receipt) (*Check, error) {
	c := h.c
	by, err := c.hire(ctx, l, session.OfCheck, tabs.PriceOf(session.OfCheck, l.Prices, len(r.Request.Prompt))(len(r.Reply)))
	if err != nil {
		return nil, err
	}
	at, bad := c.forced(&r.Request, r.Reply)
	said, wrong, bill := -1, -1, (*tabs.Signed)(nil)
	ask := []func() error{func() (err error) {
		wrong, bill, err = by.examine(ctx, &r.Request, r.Reply)
		return err
	}}
	if at >= 0 {
		ask = slices.Insert(ask, int(draw64()%2), func() (err error) { // so that nobody knows which is which
			said, _, err = by.examine(ctx, &r.Request, bad)
			return err
		})
	}
	for _, do := range ask {
		if err := do(); err != nil {
			return nil, err
		}
	}
	// Up to the forced error both replies are the same, so what it says of them must be.
	if at >= 0 && said != at && (said < 0 || said > at || said != wrong) {
		c.blame(l.Provider, fmt.Sprintf("it was asked about a reply whose token %d is wrong, and says %d", at, said), hour)
		return nil, errors.New("it does not check")
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
	v.Pages = dispute.SaltedPages(pages, h.terms.Provider.Key) != r.Receipt.Pages || dispute.SaltedPages(pages, by.terms.Provider.Key) != bill.Receipt.Pages
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

// checkToken is how long a checker may take for a token, beside waiting.
const checkToken = 100 * time.Millisecond

// examine asks a provider about a reply. It returns the first wrong token, −1 for none, and the bill, which is paid.
func (h *hired) examine(ctx context.Context, r *lm.Request, reply []int32) (wrong int, bill *tabs.Signed, err error) {
	c := h.c
	q := tabs.Question{Request: *r, Reply: reply}
	price := tabs.PriceOf(session.OfCheck, h.terms.Prices, len(r.Prompt))(len(reply))
	n, held, err := h.afford(ctx, 1, func(int) uint64 { return price })
	if err != nil || n < 1 {
		return 0, nil, errors.Join(err, tabs.ErrUnpaid)
	}
	defer held.Free()
	h.attach(&q.Payment)
	id := q.ID()
	if err := h.Ask(id, price); err != nil {
		return 0, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*c.Patience+time.Duration(len(r.Prompt)+len(reply))*checkToken)
	defer cancel()
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
