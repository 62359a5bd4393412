package job

import (
	"fmt"
	"math"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/proof"
)

// OfFiles stands for the order's files where a question to a keeper names a unit.
const OfFiles = -1

// Request is an open question to a keeper. What it must show is drawn from a
// block after the one in which it was asked.
type Request struct {
	By, Keeper string
	Unit       int        // or OfFiles
	Fee        uint64     // By's, for an answer in time
	At         int64      // protocol time of the request
	Seed       canon.Hash // what is asked follows from it, once Due is not 0
	Due        int64      // protocol time until which an answer is in time
}

// asked returns an error unless a question can be about the current attempt of a unit, or
// about the order's files, of which there are no attempts.
func (l *Lease) asked(unit, attempt int) error {
	if unit == OfFiles && attempt == 0 {
		return nil
	}
	_, err := l.current(unit, attempt, Received, Counted, Accepted)
	return err
}

// wordBond returns what stands behind a keeper's word about a unit, or that it has the
// order's files; nil if no such word stands.
func (l *Lease) wordBond(keeper string, unit int) *uint64 {
	if unit == OfFiles {
		if k := l.Files.keeper(keeper); k != nil && k.Says == Had {
			return &k.Bond
		}
		return nil
	}
	if a := l.Units[unit].attestation(keeper); a != nil {
		return &a.Bond
	}
	return nil
}

// Ask lets anybody ask a keeper to show that it keeps what it attested to. The
// fee is the caller's to take, and pays for the answer.
type Ask struct {
	By, Keeper    string
	Unit, Attempt int // or OfFiles and 0
}

func (e Ask) apply(l *Lease, now int64) ([]Effect, error) {
	if err := l.asked(e.Unit, e.Attempt); err != nil {
		return nil, err
	}
	switch {
	case l.Phase == Closing && now >= l.WindowEnd:
		return nil, fmt.Errorf("the lease's window closed at protocol time %d ms: nothing can be asked any more", l.WindowEnd)
	case l.wordBond(e.Keeper, e.Unit) == nil:
		return nil, fmt.Errorf("no attestation of %s to %s stands", e.Keeper, Kept(e.Unit))
	case e.By == e.Keeper:
		return nil, fmt.Errorf("%s cannot ask itself", e.By)
	case l.Request(e.Keeper, e.Unit) != nil:
		return nil, fmt.Errorf("%s is asked about %s already", e.Keeper, Kept(e.Unit))
	case l.full():
		return nil, fmt.Errorf("the lease has %d disputes and questions, open or paid for, and cannot record more", len(l.Disputes)+len(l.Requests)+len(l.Ledger.SlashPaid))
	case len(l.Requests) >= maxRequests:
		return nil, fmt.Errorf("%d questions are open, the most that a lease has: ask again once one is answered", len(l.Requests))
	case l.askedOf(e.Keeper) >= maxAsked:
		return nil, fmt.Errorf("%s is asked %d questions, the most at once: ask again once it has answered one", e.Keeper, maxAsked)
	}
	l.Requests = append(l.Requests, Request{By: e.By, Keeper: e.Keeper, Unit: e.Unit, Fee: l.Params.AskFee, At: now})
	return []Effect{{Lock, e.By, l.Params.AskFee, "ask"}, {Emit, e.Keeper, uint64(e.Unit), "asked"}}, nil
}

// Bounds on the questions that are open at once. Every event of a lease reads and writes
// them, so what a message costs grows with them: by a few hundred gas each.
const (
	maxRequests = 1024
	maxAsked    = 128 // of one keeper
)

// askedOf counts the open questions to a keeper.
func (l *Lease) askedOf(keeper string) (n int) {
	for i := range l.Requests {
		if l.Requests[i].Keeper == keeper {
			n++
		}
	}
	return n
}

// Kept names what a question to a keeper is about: a unit, or the order's files.
func Kept(unit int) string {
	if unit == OfFiles {
		return "the order's files"
	}
	return fmt.Sprintf("unit %d", unit)
}

// Request returns the open question to a keeper about a unit, or about the order's files,
// nil if there is none.
func (l *Lease) Request(keeper string, unit int) *Request {
	for i := range l.Requests {
		if r := &l.Requests[i]; r.Keeper == keeper && r.Unit == unit {
			return r
		}
	}
	return nil
}

// Question returns what a request asks for, once that is drawn.
func (l *Lease) Question(r *Request) (q proof.Question, drawn bool) {
	if r.Due == 0 {
		return q, false
	}
	records := l.Order.Problem.Data
	if r.Unit == OfFiles { // they hold the state that the order starts from, and the records
		return proof.Ask(r.Seed, []canon.Hash{l.Order.Problem.Start}, records), true
	}
	u := &l.Units[r.Unit]
	if p := u.attestation(r.Keeper).Piece; p != nil {
		return proof.AskPiece(r.Seed, p.Root, len(u.Receipt.Checkpoints)-1, records), true
	}
	return proof.Ask(r.Seed, u.Receipt.Checkpoints, records), true
}

// Answer shows what a keeper was asked for.
type Answer struct {
	By            string
	Unit, Attempt int // or OfFiles and 0
	Shown         proof.Shown
}

func (e Answer) apply(l *Lease, now int64) ([]Effect, error) {
	if err := l.asked(e.Unit, e.Attempt); err != nil {
		return nil, err
	}
	r := l.Request(e.By, e.Unit)
	if r == nil {
		return nil, fmt.Errorf("nobody asks %s about %s", e.By, Kept(e.Unit))
	}
	q, drawn := l.Question(r)
	switch {
	case !drawn:
		return nil, fmt.Errorf("what is asked is drawn in the next block")
	case now > r.Due:
		return nil, fmt.Errorf("the answer is late: it was due at protocol time %d ms", r.Due)
	}
	if err := q.Check(&e.Shown); err != nil {
		return nil, err
	}
	fee := r.Fee
	l.Requests = slices.DeleteFunc(l.Requests, func(r Request) bool { return r.Keeper == e.By && r.Unit == e.Unit })
	return []Effect{{Unlock, e.By, fee, "answer"}, {Emit, e.By, uint64(e.Unit), "answered"}}, nil
}

// tickRequests draws what requests of earlier blocks ask for, and convicts keepers
// whose time has run out.
func (l *Lease) tickRequests(seed canon.Hash, now int64) (effects []Effect, err error) {
	var late []Request
	for i := range l.Requests {
		switch r := &l.Requests[i]; {
		case r.Due == 0 && now > r.At:
			r.Seed, r.Due = l.drawRequest(seed, r), now+l.answerTime(l.Requests[:i], r.Keeper)
		case r.Due != 0 && now > r.Due:
			late = append(late, *r)
		}
	}
	for _, r := range late {
		if l.Request(r.Keeper, r.Unit) == nil {
			continue // of a keeper of the files that was just convicted about a unit
		}
		more, err := l.failKeeper(r.Keeper, r.Unit, r.By, "unanswered", now)
		if err != nil {
			return nil, err
		}
		effects = append(effects, more...)
	}
	return effects, nil
}

// answerTime returns how long a keeper has for an answer with the given questions
// before it: so many asked together cannot make it late, and none can be asked to
// keep others from being asked.
func (l *Lease) answerTime(before []Request, keeper string) int64 {
	ahead := 0
	for _, r := range before {
		if r.Keeper == keeper {
			ahead++
		}
	}
	return l.Params.AnswerTime * int64(1+ahead/l.Params.AnswerLoad)
}

// drawRequest makes every request ask for something else.
func (l *Lease) drawRequest(seed canon.Hash, r *Request) canon.Hash {
	id := l.Order.ID()
	return canon.Sum(canon.DomainDraw, canon.Encode(func(e *canon.Encoder) {
		e.String("request")
		e.Hash(seed)
		e.Hash(id)
		e.Uint(uint64(r.Unit - OfFiles)) // 0: the files
		e.String(r.Keeper)
	}))
}

// dropRequests takes questions back, and returns their fees.
func (l *Lease) dropRequests(which func(r *Request) bool) (effects []Effect) {
	l.Requests = slices.DeleteFunc(l.Requests, func(r Request) bool {
		drop := which(&r)
		if drop {
			effects = append(effects, Effect{Unlock, r.By, r.Fee, "ask"})
		}
		return drop
	})
	return effects
}

// Locked returns the fees that the lease holds for answers.
func (l *Lease) Locked() (fees uint64) {
	for _, r := range l.Requests {
		fees += r.Fee
	}
	return fees
}

// wakeRequests returns the protocol time from which a request needs a Tick.
func (l *Lease) wakeRequests() int64 {
	wake := int64(Never)
	for _, r := range l.Requests {
		wake = min(wake, max(r.At, r.Due)+1)
	}
	return wake
}

// checkRequests: requests are about attestations that stand, each once.
func (l *Lease) checkRequests() error {
	for i, r := range l.Requests {
		switch {
		case l.Phase == Settled:
			return fmt.Errorf("settled, and %s is asked about %s", r.Keeper, Kept(r.Unit))
		case r.Unit >= len(l.Units) || l.wordBond(r.Keeper, r.Unit) == nil:
			return fmt.Errorf("%s is asked about %s, to which it has not attested", r.Keeper, Kept(r.Unit))
		case slices.ContainsFunc(l.Requests[:i], func(o Request) bool { return o.Keeper == r.Keeper && o.Unit == r.Unit }):
			return fmt.Errorf("%s is asked about %s twice", r.Keeper, Kept(r.Unit))
		case r.Fee != l.Params.AskFee:
			return fmt.Errorf("%s is asked for a fee of %d utally, not %d", r.Keeper, r.Fee, l.Params.AskFee)
		}
	}
	return nil
}

func codeRequest(w *canon.Codec, r *Request) {
	w.String(&r.By, maxAccount)
	w.String(&r.Keeper, maxAccount)
	of := r.Unit - OfFiles
	w.Int(&of, MaxUnits-OfFiles)
	r.Unit = of + OfFiles
	w.U64(&r.Fee)
	w.I64(&r.At)
	w.Hash(&r.Seed)
	w.I64(&r.Due)
}

// maxAskFee keeps the fees of all requests of a lease from overflowing.
const maxAskFee = math.MaxUint64 / maxRecords
