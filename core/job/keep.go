package job

import (
	"fmt"
	"math"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/proof"
)

// Attestation is a keeper of a unit, and its word that it holds the data of the
// receipt. Its bond is reserved when it is drawn, and stands until the lease ends or
// the unit is void; who has not attested when the unit is accepted is let go.
type Attestation struct {
	Keeper string
	Bond   uint64
	Done   bool   // it has attested
	Failed bool   // it did not show what it was asked for, or keeps what is wrong: its word counts no more
	Piece  *Piece // nil if each keeper keeps all
}

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

// keepBond is what a keeper reserves for each unit that it is drawn for.
func (l *Lease) keepBond() (uint64, error) {
	worth, err := sum(l.Quote.Unit, l.Quote.Keep)
	if err != nil {
		return 0, err
	}
	return times(worth, int(l.Params.KeepFactor))
}

// Attest is a keeper's word that it holds the data of a receipt.
type Attest struct {
	By            string
	Unit, Attempt int
	Piece         *Piece // if the checkpoints are cut among the keepers
}

func (e Attest) apply(l *Lease, now int64) ([]Effect, error) {
	u, err := l.current(e.Unit, e.Attempt, Received, Counted, Accepted)
	if err != nil {
		return nil, err
	}
	a := u.keeper(e.By)
	switch {
	case u.Status == Accepted && !l.open(u):
		return nil, fmt.Errorf("unit %d is accepted: only a piece of it that nobody keeps can still be attested to, while units are computed", e.Unit)
	case a == nil || a.Failed:
		return nil, fmt.Errorf("%s is not a keeper of unit %d", e.By, e.Unit)
	case !l.trusts(e.By):
		return nil, fmt.Errorf("%s was convicted in this lease: another is drawn to keep unit %d in its place", e.By, e.Unit)
	case a.Done:
		return nil, fmt.Errorf("%s has attested already", e.By)
	}
	if err := l.checkPiece(u, e.Piece); err != nil {
		return nil, err
	}
	a.Done, a.Piece = true, e.Piece
	if u.Status != Received || l.keepers(u) < l.Order.Conditions.Quorum() {
		return nil, nil
	}
	u.Status = Counted
	u.WindowEnd = now + l.Order.Conditions.UnitWindow
	if !u.audited() { // nobody but the provider had to show them the data before
		u.Due = max(u.Due, now+l.Order.Conditions.UnitTimeout)
	}
	if u.owed("") { // nobody could dispute it before
		u.HeldUntil = max(u.HeldUntil, now+l.Order.Conditions.UnitTimeout)
	}
	l.askLot(u, now)
	return []Effect{{Emit, u.Provider, uint64(e.Unit), "counted"}}, nil
}

// keeper returns what a keeper was drawn for, nil if it was not.
func (u *Unit) keeper(account string) *Attestation {
	for i := range u.Attested {
		if a := &u.Attested[i]; a.Keeper == account {
			return a
		}
	}
	return nil
}

// standing counts the keepers of a unit whose word counts, or may still be given.
func (l *Lease) standing(u *Unit) (n int) {
	for i := range u.Attested {
		if a := &u.Attested[i]; l.counts(u, a) || !a.Done && !a.Failed && l.trusts(a.Keeper) {
			n++
		}
	}
	return n
}

// trusts reports whether an account was convicted of nothing in this lease, and has not
// said that it cannot keep it.
func (l *Lease) trusts(account string) bool { return !slices.Contains(l.Barred, account) }

// counts reports whether a keeper's word counts for a unit: it stands, and the keeper was
// convicted of nothing in the lease before the unit was accepted. Else others are drawn;
// its bond stands, and it can be asked, until the unit is accepted by their word.
func (l *Lease) counts(u *Unit, a *Attestation) bool {
	return a.Stands() && (u.Status == Accepted || l.trusts(a.Keeper))
}

// Stands reports whether the keeper has attested, and was not shown to be wrong.
func (a *Attestation) Stands() bool { return a.Done && !a.Failed }

// dropKeepers lets go of the keepers of a unit that is accepted whose word did not count:
// those who have not attested, unless they may still keep a piece of it, and those who
// were convicted elsewhere.
func (l *Lease) dropKeepers(i int) (effects []Effect) {
	u, cuts := &l.Units[i], l.Order.Pieces().Cuts()
	u.Attested = slices.DeleteFunc(u.Attested, func(a Attestation) bool {
		drop := !a.Failed && (!a.Done && !cuts || !l.trusts(a.Keeper))
		if drop {
			effects = append(effects, release(a.Keeper, a.Bond, "attestation")...)
			effects = append(effects, l.dropRequests(func(r *Request) bool { return r.Keeper == a.Keeper && r.Unit == i })...)
		}
		return drop
	})
	return effects
}

// attestation returns the standing word of a keeper about a unit, nil if there is
// none.
func (u *Unit) attestation(keeper string) *Attestation {
	for i := range u.Attested {
		if a := &u.Attested[i]; a.Keeper == keeper && a.Stands() {
			return a
		}
	}
	return nil
}

// Keeps reports whether a keeper's word about the unit stands.
func (u *Unit) Keeps(keeper string) bool { return u.attestation(keeper) != nil }

// keepers counts those whose word counts for a unit.
func (l *Lease) keepers(u *Unit) (n int) {
	for i := range u.Attested {
		if l.counts(u, &u.Attested[i]) {
			n++
		}
	}
	return n
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
		return nil, fmt.Errorf("the lease's window closed at block time %d ms: nothing can be asked any more", l.WindowEnd)
	case l.wordBond(e.Keeper, e.Unit) == nil:
		return nil, fmt.Errorf("no attestation of %s to %s stands", e.Keeper, Kept(e.Unit))
	case e.By == e.Keeper:
		return nil, fmt.Errorf("%s cannot ask itself", e.By)
	case l.Request(e.Keeper, e.Unit) != nil:
		return nil, fmt.Errorf("%s is asked about %s already", e.Keeper, Kept(e.Unit))
	case l.full():
		return nil, fmt.Errorf("the lease has %d disputes and questions, open or paid for, and cannot record more", len(l.Disputes)+len(l.Requests)+len(l.Ledger.SlashPaid))
	}
	l.Requests = append(l.Requests, Request{By: e.By, Keeper: e.Keeper, Unit: e.Unit, Fee: l.Params.AskFee, At: now})
	return []Effect{{Lock, e.By, l.Params.AskFee, "ask"}, {Emit, e.Keeper, uint64(e.Unit), "asked"}}, nil
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
		return nil, fmt.Errorf("the answer is late: it was due at block time %d ms", r.Due)
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

// failKeeper takes the bond of a keeper whose word about a unit, or about the order's files,
// was shown to be false: a share for who has shown it, the rest insures. Who asks it has the fee back.
// Another keeper is drawn in its place. A unit that is not accepted and has lost its
// quorum waits for attestations again; accepted work stays.
func (l *Lease) failKeeper(keeper string, unit int, by, why string, now int64) ([]Effect, error) {
	bond := l.wordBond(keeper, unit)
	if bond == nil {
		return nil, fmt.Errorf("no attestation of %s to %s stands", keeper, Kept(unit))
	}
	shares, err := l.divide(*bond, by, nil)
	if err != nil {
		return nil, err
	}
	effects := l.slash(keeper, *bond, shares)
	*bond = 0
	effects = append(effects, l.dropRequests(func(r *Request) bool { return r.Keeper == keeper && r.Unit == unit })...)
	l.bar(keeper)
	at := uint64(l.Files.Draws)
	if unit == OfFiles {
		why = "files " + why
	} else {
		at = uint64(unit)
		l.Units[unit].attestation(keeper).Failed = true
		effects = append(effects, l.lapse(unit, now)...)
	}
	files, err := l.dropFileKeeper(keeper, now)
	if err != nil {
		return nil, err
	}
	effects = append(effects, files...)
	return append(effects, Effect{Kind: Jail, Account: keeper}, Effect{Emit, keeper, at, why}), nil
}

// lapse draws another in the place of a keeper of a unit that was convicted. A unit that
// has counted without a quorum waits for attestations again; if none come, that is no
// fault of its provider's.
func (l *Lease) lapse(i int, now int64) []Effect {
	u := &l.Units[i]
	l.await(i, now)
	if u.Status != Counted || l.keepers(u) >= l.Order.Conditions.Quorum() {
		return nil
	}
	u.Status, u.Due = Received, now+l.Order.Conditions.UnitTimeout
	return []Effect{{Emit, u.Provider, uint64(i), "quorum lost"}}
}

// sweepUnits is how many units of the round a tick looks at after a conviction, so that
// what it does in one block does not grow with the order.
const sweepUnits = 64

// sweep returns the units of the round that a tick looks at next, since somebody was
// convicted who may keep them.
func (l *Lease) sweep() (units []int) {
	if l.Round == len(l.Merges) {
		return nil
	}
	for s := l.Order.Problem.Shards - l.Sweep; l.Sweep > 0 && s < l.Order.Problem.Shards && len(units) < sweepUnits; s++ {
		units = append(units, l.Unit(l.Round, s))
	}
	return units
}

// tickSweep lets others be drawn for the next units of the round in the place of keepers
// that were convicted elsewhere.
func (l *Lease) tickSweep(now int64) (effects []Effect) {
	units := l.sweep()
	for _, i := range units {
		u := &l.Units[i]
		lost := func(a Attestation) bool { return !a.Failed && !l.trusts(a.Keeper) }
		if (u.Status == Received || u.Status == Counted) && slices.ContainsFunc(u.Attested, lost) {
			effects = append(effects, l.lapse(i, now)...)
		}
	}
	l.Sweep -= len(units)
	if len(units) == 0 {
		l.Sweep = 0
	}
	return effects
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

// freeKeepers lets go of what keepers have reserved for a unit that is about to be
// void, and of what they are asked about it.
func (l *Lease) freeKeepers(i int) (effects []Effect) {
	for _, a := range l.Units[i].Attested {
		effects = append(effects, release(a.Keeper, a.Bond, "attestation")...)
	}
	return append(effects, l.dropRequests(func(r *Request) bool { return r.Unit == i })...)
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

func codeAttestation(w *canon.Codec, a *Attestation) {
	w.String(&a.Keeper, maxAccount)
	w.U64(&a.Bond)
	w.Bool(&a.Done)
	w.Bool(&a.Failed)
	given := a.Piece != nil
	if w.Bool(&given); given {
		if a.Piece == nil {
			a.Piece = new(Piece)
		}
		a.Piece.code(w)
	}
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
