package reply

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/tally-network/tally/model/lm"
)

// Event is what is new of a reply. Some of it may be empty, not all.
type Event struct {
	Choice int // which reply
	Text   string
	Calls  []Call
	Tokens []Token // with their likelihoods, if these are asked for
	End    *End    // on the last event of a reply
}

// End says how a reply ended.
type End struct {
	Reason Reason
	Stop   string // the stop string that ended it
	Tokens int    // written, with those that are not in the text
}

// Reason is why a reply ended.
type Reason string

const (
	Stop   Reason = "stop"   // the model ended it, or a stop string did
	Length Reason = "length" // it has as many tokens as it may have
	Calls  Reason = "calls"  // the model called tools
)

// Report is what a reply follows from, beside the request: the tally object of replies.
type Report struct {
	Request string `json:"request,omitempty"` // its id
	Seed    uint64 `json:"seed"`
	Model   string `json:"model,omitempty"` // the digest of its files
	Date    string `json:"date"`
	Cost    uint64 `json:"cost_utally,omitempty"` // of what others have computed
	Checks  uint64 `json:"check_utally,omitempty"`
	Bills   []Bill `json:"bills,omitempty"`
}

// Bill is what a part of a reply has cost that was not computed here.
type Bill struct {
	Provider string `json:"provider"`
	Receipt  string `json:"receipt"` // its id, by which it can be verified
	Session  string `json:"session"`
	Tokens   int    `json:"tokens"`
	Price    uint64 `json:"price_utally"`
	Checking uint64 `json:"check_utally,omitempty"` // for which somebody else checks it, at most
}

// Report returns what all replies of the run follow from, and what they have cost so far.
func (r *Run) Report() Report {
	x := Report{Request: r.id, Seed: r.Seed, Model: r.Model.Digest, Date: r.Date.Format(time.DateOnly), Bills: r.bills.all()}
	for _, b := range x.Bills {
		x.Cost += b.Price
		x.Checks += b.Checking
	}
	return x
}

// bills collects those of a run.
type bills struct {
	mu   sync.Mutex
	list []Bill
}

func (b *bills) all() []Bill {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.list)
}

type billsKey struct{}

// AddBill adds a bill to the run that a replier's context is of.
func AddBill(ctx context.Context, b Bill) {
	if to, ok := ctx.Value(billsKey{}).(*bills); ok {
		to.mu.Lock()
		defer to.mu.Unlock()
		to.list = append(to.list, b)
	}
}

// Written returns how many tokens all replies have. It is called after the last event.
func (r *Run) Written() int { return r.tokens }

// Replies returns how many replies there will be.
func (r *Run) Replies() int { return len(r.asks) }

// Close gives back the room, and the budget that was not used.
func (r *Run) Close() {
	if n := r.reserved.Swap(0); n > 0 {
		r.account.Return(int(n))
	}
	if r.leave != nil {
		r.leave()
	}
	r.leave = nil
}

var errUnfinished = errors.New("the reply broke off without a reason")

// Events gives all replies, as they come. An error is the last that it gives. It can be ranged over once.
func (r *Run) Events() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		begun := time.Now()
		all := r.one(r.ctx, 0)
		if len(r.asks) > 1 {
			all = r.several()
		}
		for e, err := range all {
			if r.Times.Read == 0 {
				r.Times.Read = time.Since(begun)
			}
			if err == nil && e.End != nil {
				r.tokens += e.End.Tokens
				r.Times.Write = time.Since(begun) - r.Times.Read
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

type result struct {
	event Event
	err   error
}

// several computes the replies at the same time.
func (r *Run) several() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, cancel := context.WithCancel(r.ctx)
		all := make(chan result)
		var group sync.WaitGroup
		for i := range r.asks {
			group.Go(func() {
				send := func(n result) bool {
					select {
					case all <- n:
						return true
					case <-ctx.Done():
						return false
					}
				}
				defer func() {
					if p := recover(); p != nil { // it shall end this request, not the process
						send(result{err: fmt.Errorf("panic: %v\n%s", p, debug.Stack())})
					}
				}()
				for e, err := range r.one(ctx, i) {
					if !send(result{e, err}) {
						return
					}
				}
			})
		}
		defer group.Wait()
		defer cancel()
		for left := len(r.asks); left > 0; {
			select {
			case n := <-all:
				if !yield(n.event, n.err) || n.err != nil {
					return
				}
				if n.event.End != nil {
					left--
				}
			case <-ctx.Done():
				yield(Event{}, ctx.Err())
				return
			}
		}
	}
}

// one computes a reply.
func (r *Run) one(ctx context.Context, choice int) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		w := newWriter(r, choice)
		for t, err := range r.Model.Replier.Reply(ctx, &r.asks[choice]) {
			if err != nil {
				yield(Event{}, err)
				return
			}
			r.account.Count(r.Model.Name, 0, 1)
			r.reserved.Add(-1)
			if t.Reason == "" {
				if r.account.Reserve(1) == nil {
					r.reserved.Add(1)
				} else {
					t.Reason = lm.Length // the budget is used up
				}
			}
			e, err := w.push(t)
			if err != nil {
				yield(Event{}, err)
				return
			}
			if !e.empty() && !yield(e, nil) || e.End != nil {
				return
			}
		}
		err := ctx.Err()
		if err == nil {
			err = errUnfinished
		}
		yield(Event{}, err)
	}
}

func (e *Event) empty() bool {
	return e.Text == "" && len(e.Calls) == 0 && len(e.Tokens) == 0 && e.End == nil
}

// Choice is a whole reply.
type Choice struct {
	Text   string
	Calls  []Call
	Tokens []Token
	End    End
}

// Collect waits for all replies.
func (r *Run) Collect() ([]Choice, error) {
	all := make([]Choice, len(r.asks))
	texts := make([][]byte, len(r.asks))
	for e, err := range r.Events() {
		if err != nil {
			return nil, err
		}
		c := &all[e.Choice]
		texts[e.Choice] = append(texts[e.Choice], e.Text...)
		c.Calls = append(c.Calls, e.Calls...)
		c.Tokens = append(c.Tokens, e.Tokens...)
		if e.End != nil {
			c.End = *e.End
		}
	}
	for i := range all {
		all[i].Text = string(texts[i])
	}
	return all, nil
}
