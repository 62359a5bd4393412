package hire

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/session"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/node/tabs"
)

// Bill says what a part of a reply has cost, and who made it.
type Bill struct {
	Receipt  canon.Hash
	Session  canon.Hash
	Provider string
	Price    uint64 // utally
	Checking uint64 // utally, for which another provider checks it, at most; 0 if none does
	Tokens   int
}

// billKey is where a context has who wants bills.
type billKey struct{}

// WithBills returns a context in which replies tell their bills, before their last token where they can.
func WithBills(ctx context.Context, tell func(Bill)) context.Context {
	return context.WithValue(ctx, billKey{}, tell)
}

// attempts bounds how many providers are tried for one reply.
const attempts = 8

// Reply has a provider reply to a request, and others go on where it breaks off. Tokens come as they are made.
func (c *Consumer) Reply(ctx context.Context, model canon.Hash, r *lm.Request) iter.Seq2[lm.Token, error] {
	return func(yield func(lm.Token, error) bool) {
		rest, failed := *r, []string(nil)
		if err := errors.Join(c.fit(ctx, model, &rest), c.checkable(ctx, model)); err != nil {
			yield(lm.Token{}, err)
			return
		}
		rest.Prompt, rest.Owner, rest.Pages, rest.Enough = slices.Clone(r.Prompt), "", false, nil
		var last error
		for range attempts {
			l, err := c.choose(ctx, model, &rest, failed)
			if err != nil {
				yield(lm.Token{}, errors.Join(err, last))
				return
			}
			made, over, err := c.ask(ctx, l, &rest, yield)
			switch {
			case over:
				return
			case ctx.Err() != nil:
				yield(lm.Token{}, ctx.Err())
				return
			case err != nil:
				last = fmt.Errorf("provider %s: %w", l.Provider, err)
				c.Log.Info("a provider broke off, and another goes on", "provider", l.Provider, "tokens", len(made), "error", err)
				c.count(func(s *Stats) { s.Broken++ })
				c.router.avoid(l.Provider)
				c.offers.forget()
				failed = append(failed, l.Provider)
				if len(made) > 0 { // nobody has signed them
					c.checkUnsigned(l, &rest, made)
				}
			case len(made) == 0:
				failed = append(failed, l.Provider)
			}
			rest.Prompt, rest.Made, rest.MaxTokens = append(rest.Prompt, made...), rest.Made+len(made), rest.MaxTokens-len(made)
		}
		yield(lm.Token{}, errors.Join(errors.New("no provider got to the end of the reply"), last))
	}
}

// fit bounds a reply by the longest context that is offered.
func (c *Consumer) fit(ctx context.Context, model canon.Hash, r *lm.Request) error {
	all, err := c.Offers(ctx)
	if err != nil {
		return err
	}
	longest := uint64(0)
	for _, l := range all {
		if l.Model == model {
			longest = max(longest, l.Context)
		}
	}
	left := int(longest) - len(r.Prompt)
	switch {
	case longest == 0:
		return ErrNobody
	case left < 1:
		return fmt.Errorf("%w: it has %d tokens, and no provider takes more than %d with the reply", ErrTooLong, len(r.Prompt), longest)
	}
	r.MaxTokens = min(r.MaxTokens, left)
	return nil
}

// choose returns the best listing for a request: of those that have not failed it, the one with the least price, and of equals the one that was fastest.
func (c *Consumer) choose(ctx context.Context, model canon.Hash, r *lm.Request, failed []string) (*wire.Listed, error) {
	all, err := c.Offers(ctx)
	if err != nil {
		return nil, err
	}
	var best *wire.Listed
	least := math.Inf(1)
	for i := range all {
		l := &all[i]
		if !fits(l, model, r, failed) {
			continue
		}
		if cost := c.router.cost(l, r); cost < least {
			best, least = l, cost
		}
	}
	if best == nil && len(failed) == 0 {
		return nil, ErrNobody
	} else if best == nil {
		return nil, errors.New("no other provider of the model is left")
	}
	return best, nil
}

func fits(l *wire.Listed, model canon.Hash, r *lm.Request, failed []string) bool {
	return l.Model == model && !slices.Contains(failed, l.Provider) && uint64(len(r.Prompt)+1) <= l.Context
}

// ErrUncheckable says that a reply could not be checked.
var ErrUncheckable = errors.New("nobody but its provider serves this model, so nobody can check its replies: pull the model, or ask for no checks")

// checkable returns an error if replies are to be checked and nobody can.
func (c *Consumer) checkable(ctx context.Context, model canon.Hash) error {
	if c.CheckBps == 0 || c.Self != nil && c.Self.Has(model) {
		return nil
	}
	all, err := c.Offers(ctx)
	if err != nil {
		return err
	}
	n := 0
	for i := range all {
		if all[i].Model == model {
			n++
		}
	}
	if n == 1 {
		return ErrUncheckable
	}
	return nil
}

// router remembers how providers were to wait for. Its zero value knows none.
type router struct {
	mu      sync.Mutex
	speed   map[string]float64   // seconds to the first token, a mean of late
	avoided map[string]time.Time // who is asked last until then
}

// avoidance is for how long a provider that broke off is asked last.
const avoidance = 10 * time.Minute

func (o *router) avoid(provider string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.avoided == nil {
		o.avoided = map[string]time.Time{}
	}
	o.avoided[provider] = time.Now().Add(avoidance)
}

// learn remembers how long a first token took.
func (o *router) learn(provider string, seconds float64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.speed == nil {
		o.speed = map[string]float64{}
	}
	if old, ok := o.speed[provider]; ok {
		seconds = 0.7*old + 0.3*seconds
	}
	o.speed[provider] = seconds
}

// cost weighs price against waiting: a second to the first token is worth a tenth of the price.
func (o *router) cost(l *wire.Listed, r *lm.Request) float64 {
	o.mu.Lock()
	wait := o.speed[l.Provider]
	if time.Now().Before(o.avoided[l.Provider]) {
		wait += math.MaxUint32
	}
	o.mu.Unlock()
	price := float64(l.Prices.Prompt)*float64(len(r.Prompt)) + float64(l.Prices.Reply)*float64(min(r.MaxTokens, typical))
	return (price + 1) * (1 + wait/10) * (1 + float64(l.Record.Convictions))
}

// typical is how many tokens a reply is taken to have where prices are compared.
const typical = 256

// draw64 is chance that nobody can foresee.
func draw64() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// pump reads an answer to its end, whether or not anybody listens.
type pump struct {
	tokens chan lm.Token // room for all; closed after the last
	done   chan struct{} // closed when what follows is known
	bill   *tabs.Signed
	checks uint64 // utally, at most
	err    error
}

// ask asks one provider, and gives its tokens as they come. It is over with the last token of the reply, and when nobody wants more.
func (c *Consumer) ask(ctx context.Context, l *wire.Listed, r *lm.Request, yield func(lm.Token, error) bool) (made []int32, over bool, err error) {
	price := tabs.PriceOf(session.OfReply, l.Prices, len(r.Prompt))
	h, err := c.hire(ctx, l, session.OfReply, price(1))
	if err != nil {
		return nil, false, err
	}
	q := tabs.Question{Request: *r}
	q.Request.MaxTokens = min(r.MaxTokens, int(l.Context)-len(r.Prompt))
	n, held, err := h.afford(ctx, q.Request.MaxTokens, price)
	if err != nil {
		return nil, false, err
	}
	q.Request.MaxTokens = n
	begun := time.Now()
	p, enough, err := h.send(ctx, &q, held)
	if err != nil {
		return nil, false, err
	}
	next := time.NewTimer(c.Patience)
	defer next.Stop()
	defer enough()
	cut := false
	for {
		var t lm.Token
		var on bool
		select {
		case t, on = <-p.tokens:
		case <-ctx.Done():
			return made, false, ctx.Err()
		case <-next.C:
			return made, false, fmt.Errorf("no token came within %s", c.Patience)
		}
		next.Reset(c.Patience)
		if !on {
			break
		}
		if len(made) == 0 {
			c.router.learn(l.Provider, time.Since(begun).Seconds())
		}
		made = append(made, t.ID)
		cut = t.Reason == lm.Cut || t.Reason == lm.Length && len(made) < r.MaxTokens
		if cut {
			t.Reason = "" // as far as it was paid for
		}
		if t.Reason != "" { // the bill comes before the end is told
			select {
			case <-p.done:
				if p.err != nil {
					return made[:len(made)-1], false, p.err // which nobody has heard yet
				}
				h.tellBill(ctx, p)
			case <-ctx.Done():
			}
			yield(t, nil)
			return made, true, nil
		}
		if !yield(t, nil) {
			return made, true, nil
		}
	}
	if <-p.done; p.err != nil || !cut || len(made) < n {
		return made, false, errors.Join(errors.New("the reply broke off before what was paid for"), p.err)
	}
	h.tellBill(ctx, p)
	return made, false, nil
}

func (h *hired) tellBill(ctx context.Context, p *pump) {
	tell, _ := ctx.Value(billKey{}).(func(Bill))
	if tell == nil || p.bill == nil {
		return
	}
	price, err := p.bill.Receipt.Price(&h.terms)
	if err == nil {
		tell(Bill{Receipt: p.bill.Receipt.ID(), Session: p.bill.Receipt.Session, Provider: h.terms.Provider.Account, Price: price, Checking: p.checks, Tokens: int(p.bill.Receipt.Reply)})
	}
}

// afford holds what a reply of n tokens costs, most at most, once there is room for one: it pays ahead, and waits while receipts are checked.
func (h *hired) afford(ctx context.Context, most int, price func(int) uint64) (n int, held *tabs.Held, err error) {
	c := h.c
	ctx, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	for {
		c.mu.Lock()
		approved := c.approved
		c.mu.Unlock()
		if _, _, err := h.Pay(h.State().Held+price(most), c.Key); err != nil {
			return 0, nil, err
		}
		n, held, err = h.HoldUpTo(most, price)
		if err == nil && n > 0 {
			return n, held, nil
		}
		held.Free()
		if h.State().Left {
			return 0, nil, errors.New("the session went wrong meanwhile")
		}
		if h.State().Pending == 0 && h.State().Held == 0 {
			return 0, nil, tabs.ErrUnpaid
		}
		select { // what is checked, and what is under way, makes room
		case <-approved:
		case <-ctx.Done():
			return 0, nil, tabs.ErrUnpaid
		}
	}
}

// changed wakes those that wait for room.
func (c *Consumer) changed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.approved)
	c.approved = make(chan struct{})
}

// leaving is how long who wants no more waits for the bill.
const leaving = time.Minute

// send sends a question. What comes is read to its end, also after enough was called.
func (h *hired) send(asked context.Context, q *tabs.Question, held *tabs.Held) (_ *pump, enough func(), err error) {
	c := h.c
	h.attach(&q.Payment)
	follows, err := h.follow(asked, &q.Request)
	if err != nil {
		held.Free()
		return nil, nil, err
	}
	id := q.ID()
	if err := h.Ask(id, tabs.PriceOf(session.OfReply, h.terms.Prices, len(q.Request.Prompt))(q.Request.MaxTokens)); err != nil {
		held.Free()
		return nil, nil, err
	}
	settled := c.live.add(id)
	ctx, cancel := context.WithCancel(c.ctx)
	begun := context.AfterFunc(asked, cancel) // until it is sent, who left ends it
	answer, err := tabs.Answers.Call(ctx, c.Host, h.peer, canon.Marshal(q))
	if err != nil {
		cancel()
		held.Free()
		settled()
		return nil, nil, errors.Join(err, h.Drop(id))
	}
	begun()
	p := &pump{tokens: make(chan lm.Token, q.Request.MaxTokens), done: make(chan struct{})}
	left := make(chan struct{})
	c.working.Go(func() {
		select {
		case <-left:
			_ = answer.Enough()
			select {
			case <-time.After(leaving):
				cancel()
			case <-ctx.Done():
			}
		case <-ctx.Done():
		}
	})
	c.working.Go(func() {
		defer cancel()
		defer answer.Close()
		reply, err := p.read(answer, q, follows)
		close(p.tokens)
		if err == nil {
			p.checks, err = h.settle(ctx, q, reply, p.bill, held)
		}
		held.Free()
		settled()
		if err != nil {
			err = errors.Join(err, h.drop(id, err))
		}
		p.err = err
		close(p.done)
		c.changed()
	})
	gone := false
	return p, func() {
		if !gone {
			gone = true
			close(left)
		}
	}, nil
}

// attach puts the newest voucher to a question.
func (h *hired) attach(p *tabs.Payment) {
	v, signature := h.Newest()
	*p = tabs.Payment{Session: h.ID(), Voucher: v, Signature: signature}
}

// read reads pieces until the bill.
func (p *pump) read(answer interface{ Next() ([]byte, error) }, q *tabs.Question, follows *lm.Follower) (reply []int32, err error) {
	ended := false
	for {
		b, err := answer.Next()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("there is no bill")
		} else if err != nil {
			return nil, err
		}
		var piece tabs.Piece
		if err := canon.UnmarshalWithin(b, &piece, 64<<20); err != nil {
			return nil, err
		}
		for _, t := range piece.Tokens {
			if err := allowed(&t, len(reply)+1, ended, q, follows); err != nil {
				return nil, err
			}
			ended = t.Reason != ""
			reply = append(reply, t.ID)
			p.tokens <- t // there is room for all
		}
		if piece.Bill != nil && (!ended || len(reply) == 0) {
			return nil, errors.New("a bill comes before the end")
		} else if piece.Bill != nil {
			p.bill = piece.Bill
			return reply, nil
		}
	}
}

// follow returns what follows a reply. Where it is bound to a form, that needs the model's tokens.
func (h *hired) follow(ctx context.Context, r *lm.Request) (*lm.Follower, error) {
	if r.Form == nil {
		return (*lm.Forms)(nil).Follow(r)
	}
	p, err := h.c.Model(ctx, h.terms.Model)
	if err != nil {
		return nil, err
	}
	return p.Forms.Follow(r)
}

// allowed returns an error unless t may be the n-th token of a reply.
func allowed(t *lm.Token, n int, ended bool, q *tabs.Question, follows *lm.Follower) error {
	known := slices.Contains([]lm.Reason{"", lm.Stop, lm.Length, lm.Cut}, t.Reason)
	switch {
	case ended || n > q.Request.MaxTokens:
		return errors.New("the reply is too long")
	case !known:
		return fmt.Errorf("the reply ends for no reason that there is: %q", t.Reason)
	case t.Reason == lm.Length && n < q.Request.MaxTokens:
		return errors.New("the reply ends before its length")
	}
	over, err := follows.Take(t.ID)
	if err == nil && over != (t.Reason == lm.Stop) {
		err = fmt.Errorf("token %d ends the reply, or does not, as nobody asked", t.ID)
	}
	return err
}
