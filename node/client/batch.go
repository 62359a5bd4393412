package client

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cosmos/gogoproto/proto"

	errorsmod "cosmossdk.io/errors"

	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"

	"github.com/tally-network/tally/chain/app"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
)

// What is sent while an account is busy signing waits in a line, and shares a transaction.
// A transaction is executed whole or not at all. So one whose messages were refused, and for certain
// were not executed, is cut in two, until only what is at fault is refused.

// sending is what one Send hands over: executed whole, or not at all.
type sending struct {
	ctx    context.Context
	msgs   []sdk.Msg
	size   int  // bytes
	move   bool // of that class
	alone  bool // shares no transaction
	done   chan struct{}
	result Result // once done is closed, and err
	err    error
}

// line is what waits to be signed, first come, first served.
type line struct {
	mu      sync.Mutex
	waiting []*sending
	served  bool // somebody takes batches from it
}

// join puts s at the end, and reports whether the caller must serve the line.
func (l *line) join(s *sending) (serve bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, s)
	serve, l.served = !l.served, true
	return serve
}

// leave takes s out, and reports whether it still stood in the line.
func (l *line) leave(s *sending) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.waiting)
	l.waiting = slices.DeleteFunc(l.waiting, func(x *sending) bool { return x == s })
	return len(l.waiting) < n
}

// take takes what may share a transaction of so many messages out of the line: what stands
// first, and what fits beside it. Nobody serves the line any more once it is empty.
func (l *line) take(most int) (batch []*sending) {
	l.mu.Lock()
	defer l.mu.Unlock()
	messages, bytes := most, maxShared
	l.waiting = slices.DeleteFunc(l.waiting, func(s *sending) bool {
		fits := len(batch) == 0 || !s.alone && !batch[0].alone && s.move == batch[0].move && len(s.msgs) <= messages && s.size <= bytes
		if fits {
			batch, messages, bytes = append(batch, s), messages-len(s.msgs), bytes-s.size
		}
		return fits
	})
	l.served = len(batch) > 0
	return batch
}

func (s *sending) end(r Result, err error) {
	s.result, s.err = r, err
	close(s.done)
}

// newSending says how messages may be sent. A move in a game goes alone: a stranger's counts as one
// of a party only so, and no other message shall keep it out.
func newSending(ctx context.Context, msgs []sdk.Msg) *sending {
	game := func(m sdk.Msg) bool { _, is := m.(*disputev1.MsgMove); return is }
	s := &sending{ctx: ctx, msgs: msgs, move: app.AreMoves(msgs), alone: slices.ContainsFunc(msgs, game), done: make(chan struct{})}
	for _, m := range msgs {
		s.size += proto.Size(m)
	}
	return s
}

// maxShared bounds what messages may have in bytes that share a transaction.
const maxShared = app.MaxTx / 2

// serve sends what stands in the line until it is empty.
func (a *Account) serve() {
	for {
		a.slots <- struct{}{} // freed when what is under way is in a block, or given up
		batch := a.line.take(a.most())
		if len(batch) == 0 {
			<-a.slots
			return
		}
		begun := make(chan struct{})
		go func() {
			defer func() { <-a.slots }()
			a.deliver(batch, sync.OnceFunc(func() { close(begun) }))
		}()
		<-begun
	}
}

// most is how many messages share a transaction.
func (a *Account) most() int {
	if a.Messages > 0 {
		return min(a.Messages, app.MaxMessages)
	}
	return app.MaxMessages
}

// deliver sends a batch and tells its senders what became of it. It says when the first
// transaction has been handed to a node, or cannot be.
func (a *Account) deliver(batch []*sending, begun func()) {
	ctx, cancel := whileAnyWaits(batch)
	defer cancel()
	var msgs []sdk.Msg
	for _, s := range batch {
		msgs = append(msgs, s.msgs...)
	}
	r, err := a.execute(ctx, msgs, len(batch) > 1, begun)
	begun()
	if n := len(batch); n > 1 && divides(err) {
		a.deliver(batch[:n/2], begun)
		a.deliver(batch[n/2:], begun)
		return
	}
	for _, s := range batch {
		s.end(r, err)
	}
}

// whileAnyWaits returns a context that ends once no sender of a batch waits any more.
func whileAnyWaits(batch []*sending) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(batch[0].ctx))
	var gone atomic.Int64
	var stops []func() bool
	for _, s := range batch {
		stops = append(stops, context.AfterFunc(s.ctx, func() {
			if int(gone.Add(1)) == len(batch) {
				cancel()
			}
		}))
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel()
	}
}

// divides reports whether messages that shared a transaction are to be sent apart, after an
// error that says for certain that none was executed, nor will be. Where the node has no room, or
// something else has the sequence, smaller transactions would fare no better.
func divides(err error) bool {
	var refusal *errorsmod.Error
	return errors.As(err, &refusal) && !errors.Is(err, errUncertain) &&
		!errors.Is(err, sdkerrors.ErrMempoolIsFull) && !errors.Is(err, sdkerrors.ErrWrongSequence)
}
