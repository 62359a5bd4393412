package job

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/beacon"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/proof"
)

// OfFiles stands for the order's files where a question to a custodian names a unit.
const OfFiles = -1

// Question is an open question to a custodian. What it must show is drawn from a
// block after the one in which it was asked.
type Question struct {
	By, Custodian string
	Unit          int        // or OfFiles
	Fee           uint64     // By's, for an answer in time
	At            int64      // protocol time of the question
	Ahead         int        // questions that count as asked of the custodian before it
	Seed          canon.Hash // what is asked follows from it, once Due is not 0
	Due           int64      // protocol time until which an answer is in time
}

// Asked is a custodian with open questions. That it has many harms nobody else: each gives
// it more time.
type Asked struct {
	Custodian string
	Open      int
}

// askable returns an error unless a question can be about the current attempt of a unit, or
// about the order's files, of which there are no attempts.
func (l *Lease) askable(unit, attempt int) error {
	if unit == OfFiles && attempt == 0 {
		return nil
	}
	_, err := l.current(unit, attempt, Received, Counted, Accepted)
	return err
}

// keeps reports whether a custodian's word about a unit stands, or that it has the order's files.
func (l *Lease) keeps(custodian string, unit int) bool {
	if unit == OfFiles {
		k := l.Files.custodian(custodian)
		return k != nil && k.Says == Had
	}
	return l.Units[unit].Keeps(custodian)
}

// Ask lets anybody ask a custodian to show that it keeps what it attested to. The
// fee is the caller's to take, and pays for the answer.
type Ask struct {
	By, Custodian string
	Unit, Attempt int // or OfFiles and 0
	Open          int // questions that the custodian has open in all leases, as far as is known
}

func (e Ask) apply(l *Lease, now int64) ([]Effect, error) {
	if err := l.askable(e.Unit, e.Attempt); err != nil {
		return nil, err
	}
	switch {
	case l.Phase == Closing && now >= l.Windows.End:
		return nil, fmt.Errorf("the lease's window closed at protocol time %d ms: nothing can be asked any more", l.Windows.End)
	case !l.keeps(e.Custodian, e.Unit):
		return nil, fmt.Errorf("no attestation of %s to %s stands", e.Custodian, Kept(e.Unit))
	case e.By == e.Custodian:
		return nil, fmt.Errorf("%s cannot ask itself", e.By)
	case l.Question(e.Custodian, e.Unit) != nil:
		return nil, fmt.Errorf("%s is asked about %s already", e.Custodian, Kept(e.Unit))
	}
	ahead := l.ahead(e.Custodian, e.Open)
	l.countAsked(e.Custodian, 1)
	of := l.questions(e.Unit)
	*of = append(*of, Question{By: e.By, Custodian: e.Custodian, Unit: e.Unit, Fee: l.Params.AskFee, At: now, Ahead: ahead})
	return []Effect{{Lock, e.By, l.Params.AskFee, "ask"}, {Emit, e.Custodian, uint64(e.Unit), "asked"}}, nil
}

// ahead returns how many questions count as asked before the next one to a custodian: those
// of this lease, and of other leases as many as take the time of as many transactions.
// Of these a bounded number counts, or friends could put off an answer for ever.
func (l *Lease) ahead(custodian string, open int) int {
	own := 0
	if at, found := l.askedAt(custodian); found {
		own = l.Asked[at].Open
	}
	others := int64(min(max(open-own, 0), MaxUnits))
	return int(min(int64(own)+others*perTransaction*int64(l.Params.AnswerLoad)/l.Params.AnswerTime, MaxUnits))
}

// Kept names what a question to a custodian is about: a unit, or the order's files.
func Kept(unit int) string {
	if unit == OfFiles {
		return "the order's files"
	}
	return fmt.Sprintf("unit %d", unit)
}

// questions returns the open questions about a unit, or about the order's files.
func (l *Lease) questions(unit int) *[]Question {
	if unit == OfFiles {
		return &l.Files.Questions
	}
	return &l.Units[unit].Questions
}

// Questions returns all open questions: first those about the order's files, then by unit.
func (l *Lease) Questions() (out []*Question) {
	for unit := OfFiles; unit < len(l.Units); unit++ {
		of := *l.questions(unit)
		for i := range of {
			out = append(out, &of[i])
		}
	}
	return out
}

// askedAt returns the place of a custodian among those with open questions.
func (l *Lease) askedAt(custodian string) (at int, found bool) {
	return slices.BinarySearchFunc(l.Asked, custodian, func(a Asked, k string) int { return strings.Compare(a.Custodian, k) })
}

// countAsked adds to the number of a custodian's open questions.
func (l *Lease) countAsked(custodian string, n int) {
	at, found := l.askedAt(custodian)
	if !found {
		l.Asked = slices.Insert(l.Asked, at, Asked{Custodian: custodian})
	}
	l.Asked[at].Open += n
	if l.Asked[at].Open == 0 {
		l.Asked = slices.Delete(l.Asked, at, at+1)
	}
}

// Question returns the open question to a custodian about a unit, or about the order's files,
// nil if there is none.
func (l *Lease) Question(custodian string, unit int) *Question {
	if unit < OfFiles || unit >= len(l.Units) {
		return nil
	}
	of := *l.questions(unit)
	for i := range of {
		if of[i].Custodian == custodian {
			return &of[i]
		}
	}
	return nil
}

// Sample returns what the answer to a question must show, once that is drawn.
func (l *Lease) Sample(q *Question) (sample proof.Sample, drawn bool) {
	if q.Due == 0 {
		return sample, false
	}
	records := l.Order.Problem.Data
	if q.Unit == OfFiles { // they hold the state that the order starts from, and the records
		return proof.SampleStates(q.Seed, []canon.Hash{l.Order.Problem.Start}, records), true
	}
	u := &l.Units[q.Unit]
	if p := u.attestation(q.Custodian).Fragment; p != nil {
		return proof.SampleFragments(q.Seed, p.Root, len(u.Receipt.Checkpoints)-1, records), true
	}
	return proof.SampleStates(q.Seed, u.Receipt.Checkpoints, records), true
}

// Answer shows what a custodian was asked for.
type Answer struct {
	By            string
	Unit, Attempt int // or OfFiles and 0
	Shown         proof.Shown
}

func (e Answer) apply(l *Lease, now int64) ([]Effect, error) {
	if err := l.askable(e.Unit, e.Attempt); err != nil {
		return nil, err
	}
	q := l.Question(e.By, e.Unit)
	if q == nil {
		return nil, fmt.Errorf("nobody asks %s about %s", e.By, Kept(e.Unit))
	}
	sample, drawn := l.Sample(q)
	switch {
	case !drawn:
		return nil, fmt.Errorf("what is asked is drawn in the next block")
	case now > q.Due:
		return nil, fmt.Errorf("the answer is late: it was due at protocol time %d ms", q.Due)
	}
	if err := sample.Check(&e.Shown); err != nil {
		return nil, err
	}
	fee, of := q.Fee, l.questions(e.Unit)
	*of = slices.DeleteFunc(*of, func(q Question) bool { return q.Custodian == e.By })
	l.countAsked(e.By, -1)
	return []Effect{{Unlock, e.By, fee, "answer"}, {Emit, e.By, uint64(e.Unit), "answered"}}, nil
}

// tickQuestions draws what questions of earlier blocks ask for, and convicts custodians
// whose time has run out.
func (l *Lease) tickQuestions(seed canon.Hash, now int64) (effects []Effect, err error) {
	var late []Question
	for _, unit := range append([]int{OfFiles}, l.known()...) {
		of := *l.questions(unit)
		for i := range of {
			switch q := &of[i]; {
			case q.Due == 0 && now > q.At:
				q.Seed, q.Due = l.drawQuestion(seed, q), now+l.answerTime(q)
			case q.Due != 0 && now > q.Due:
				late = append(late, *q)
			}
		}
	}
	for _, q := range late {
		if l.Question(q.Custodian, q.Unit) == nil {
			continue // of a custodian of the files that was just convicted about a unit
		}
		more, err := l.failCustodian(q.Custodian, q.Unit, q.By, Absence, now)
		if err != nil {
			return nil, err
		}
		effects = append(effects, more...)
	}
	return effects, nil
}

// answerTime returns how long a custodian has for an answer, with the questions that it had
// before: so many asked together cannot make it late, and none can be asked to keep
// others from being asked.
func (l *Lease) answerTime(q *Question) int64 {
	return l.Params.AnswerTime * int64(1+q.Ahead/l.Params.AnswerLoad)
}

// drawQuestion returns the seed of a question: each gets another, and asks for something else.
func (l *Lease) drawQuestion(seed canon.Hash, q *Question) canon.Hash {
	id := l.Order.ID()
	return canon.Hash(beacon.Draw(seed, beacon.Questions, canon.Encode(func(e *canon.Encoder) {
		e.Hash(id)
		e.Uint(uint64(q.Unit - OfFiles)) // 0: the files
		e.String(q.Custodian)
	})))
}

// dropQuestions takes questions about a unit, or about the order's files, back, and
// returns their fees.
func (l *Lease) dropQuestions(unit int, which func(q *Question) bool) (effects []Effect) {
	of := l.questions(unit)
	*of = slices.DeleteFunc(*of, func(q Question) bool {
		drop := which(&q)
		if drop {
			l.countAsked(q.Custodian, -1)
			effects = append(effects, Effect{Unlock, q.By, q.Fee, "ask"})
		}
		return drop
	})
	return effects
}

// Locked returns the fees that the lease holds for answers.
func (l *Lease) Locked() (fees uint64) {
	for _, q := range l.Questions() {
		fees += q.Fee
	}
	return fees
}

// wakeOf returns the protocol time from which a question needs a Tick, Never if none
// does.
func wakeOf(questions []Question) int64 {
	wake := int64(Never)
	for _, q := range questions {
		wake = min(wake, max(q.At, q.Due)+1)
	}
	return wake
}

// checkQuestions: questions are about attestations that stand, each once, and counted.
func (l *Lease) checkQuestions() error {
	open, total := map[string]int{}, 0
	for _, q := range l.Questions() {
		switch {
		case l.Phase == Settled:
			return fmt.Errorf("settled, and %s is asked about %s", q.Custodian, Kept(q.Unit))
		case q.Unit < OfFiles || q.Unit >= len(l.Units) || l.Question(q.Custodian, q.Unit) != q:
			return fmt.Errorf("%s is asked about %s twice, or the question stands with another unit", q.Custodian, Kept(q.Unit))
		case !l.keeps(q.Custodian, q.Unit):
			return fmt.Errorf("%s is asked about %s, to which it has not attested", q.Custodian, Kept(q.Unit))
		case q.Fee != l.Params.AskFee:
			return fmt.Errorf("%s is asked for a fee of %d utally, not %d", q.Custodian, q.Fee, l.Params.AskFee)
		}
		open[q.Custodian]++
		total++
	}
	for i, a := range l.Asked {
		if i > 0 && l.Asked[i-1].Custodian >= a.Custodian {
			return fmt.Errorf("the counts of questions are not in account order at %s", a.Custodian)
		}
		if total -= a.Open; a.Open != open[a.Custodian] || a.Open < 1 {
			return fmt.Errorf("%d open questions to %s are counted, there are %d", a.Open, a.Custodian, open[a.Custodian])
		}
	}
	if total != 0 {
		return fmt.Errorf("%d open questions are not counted", total)
	}
	return nil
}

func codeQuestion(w *canon.Codec, q *Question) {
	w.String(&q.By, maxAccount)
	w.String(&q.Custodian, maxAccount)
	of := q.Unit - OfFiles
	w.Int(&of, MaxUnits-OfFiles)
	q.Unit = of + OfFiles
	w.U64(&q.Fee)
	w.I64(&q.At)
	w.Int(&q.Ahead, MaxUnits)
	w.Hash(&q.Seed)
	w.I64(&q.Due)
}

// maxAskFee keeps the fees of all questions of a lease from overflowing.
const maxAskFee = math.MaxUint64 / (MaxUnits + 1) / maxKept
