package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tally-network/tally/core/job"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/node/blobs"
	"github.com/tally-network/tally/node/events"
	"github.com/tally-network/tally/node/replay"
)

// Custodians of an order's files say whether they can be had before anything is given out.
// Each order has a task of its own, so that one whose files come slowly, or never, makes
// nobody late with another's.

// first keeps an order's files where this validator was drawn to, and says whether it
// could have them.
func (a *auditor) first(ctx context.Context, l *job.Lease, now int64) {
	me := a.env.Account.Address
	at := slices.IndexFunc(l.Files.Custodians, func(k job.FileCustodian) bool { return k.Account == me })
	if at < 0 {
		return
	}
	name := fmt.Sprintf("files %s %d", l.Order.ID().Short(), l.Files.Draws)
	switch {
	case l.Phase == job.Active && l.Files.Owes(me):
		a.order.Start(ctx, name, func(ctx context.Context) error { return a.attestFiles(ctx, l, now) })
	case l.Files.Custodians[at].Says == job.Had:
		a.order.Start(ctx, name, func(ctx context.Context) error { return a.files(ctx, l) })
	}
}

// leastTime is how long files are tried for at least, however late it is.
const leastTime = time.Second

// attestFiles fetches the order's files, and says that it keeps them. It says that they are
// missing if they do not make up the order, or could not be had when a quarter of the time for
// an answer is left. A consumer that hands them over at a crawl must not make us late. By then
// any other custodian that has them has given them to us. If this machine is what fails, it says
// that it cannot keep them: too little memory or disk is not the consumer's fault.
func (a *auditor) attestFiles(ctx context.Context, l *job.Lease, now int64) error {
	left := time.Duration(l.Files.Due-l.Params.AnswerTime/4-now) * time.Millisecond
	if l.Files.Due == 0 { // a quorum has spoken: there is time
		left = time.Duration(l.Params.AnswerTime) * time.Millisecond
	}
	fetch, cancel := context.WithTimeout(ctx, max(left, leastTime))
	defer cancel()
	err := a.files(fetch, l)
	if err == nil {
		err = a.env.Jobs.CheckUnread(fetch, l)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	says := wordFor(err)
	if err != nil {
		var away *blobs.FetchError
		if left > leastTime && fetch.Err() == nil && errors.As(err, &away) || l.Files.Due == 0 {
			return err
		}
		a.env.Log.Warn("the order's files are not kept here", "order", l.Order.ID(), "says", says, "error", err)
	}
	err = a.env.Send(ctx, &workv1.MsgAttestFiles{
		Custodian: a.env.Account.Address, Order: l.Order.ID().String(), Draw: uint32(l.Files.Draws), Says: says,
	})
	if err != nil {
		return fmt.Errorf("say whether the order's files can be had: %w", err)
	}
	if says == workv1.WORD_HAD {
		a.env.Emit(events.Event{Kind: events.Attested, Order: l.Order.ID(), Unit: -1, Text: "the order's files"})
	}
	return nil
}

// wordFor returns what a custodian says of files that it could not keep for the given reason,
// or that it keeps.
func wordFor(err error) workv1.Word {
	var away *blobs.FetchError
	var unfit *replay.UnfitError
	switch {
	case err == nil:
		return workv1.WORD_HAD
	case errors.As(err, &away), errors.As(err, &unfit):
		return workv1.WORD_MISSING
	}
	return workv1.WORD_CANNOT
}
