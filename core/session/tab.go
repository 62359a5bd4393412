package session

import (
	"errors"
	"fmt"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/money"
)

// maxPending bounds the receipts that no voucher has settled yet.
const maxPending = 1 << 12

// Tab is the running account of a session, as each side keeps it off the chain. Begin with [NewTab].
//
//	consumer: Next, sign, Take, store, send      provider: Verify, Take, store
//	provider: Add, store, sign, send             consumer: Verify, Add, check
//
// What is signed is stored first, for a number must never be signed twice. At all times
//
//	settled + pending ≤ paid ≤ settled + instalment(settled)
//
// as far as the side itself keeps to [Tab.Next] and [Tab.Add].
type Tab struct {
	Terms    Terms
	Settled  canon.Accumulator // receipts that the newest voucher settles
	Cost     uint64            // utally of these
	Pending  []Line            // receipts after them, oldest first
	Voucher  Voucher           // the newest
	Escrow   uint64            // utally that vouchers can claim: what was locked, less what was given back
	Releases uint64            // that were given
	Done     bool              // a final was signed: nothing comes any more

	id canon.Hash // of the session
}

// Line is a receipt on a tab.
type Line struct {
	Receipt canon.Hash
	Price   uint64 // utally
}

// NewTab returns the tab of a session that has just begun.
func NewTab(t Terms) *Tab {
	id := t.ID()
	return &Tab{Terms: t, Escrow: t.Escrow, Voucher: Voucher{Session: id, Root: canon.Root(nil)}, id: id}
}

// ReadTab reads what Marshal has made of a tab.
func ReadTab(b []byte) (*Tab, error) {
	var t Tab
	if err := canon.Unmarshal(b, &t); err != nil {
		return nil, fmt.Errorf("read a tab: %w", err)
	}
	return &t, nil
}

// Served returns how many receipts there are.
func (t *Tab) Served() uint64 { return t.Settled.N + uint64(len(t.Pending)) }

// Spent returns what they cost, in utally.
func (t *Tab) Spent() uint64 {
	sum := t.Cost
	for _, l := range t.Pending {
		sum += l.Price // no overflow: it is at most what was paid
	}
	return sum
}

// Room returns what is paid and not spent, in utally: the next receipt costs at most that.
func (t *Tab) Room() uint64 { return t.Voucher.Amount - t.Spent() }

// Add adds the next receipt. It must be paid already.
func (t *Tab) Add(r *Receipt) error {
	switch {
	case t.Done:
		return errDone
	case r.Session != t.id:
		return fmt.Errorf("%s is of session %s, not %s", r.name(), r.Session, t.id)
	case r.Number != t.Served():
		return fmt.Errorf("%s comes after %d others", r.name(), t.Served())
	case len(t.Pending) == maxPending:
		return fmt.Errorf("%d receipts wait for a voucher: want one first", maxPending)
	}
	if err := r.check(&t.Terms); err != nil {
		return err
	}
	price, err := r.Price(&t.Terms)
	if err != nil {
		return err
	}
	if price > t.Room() {
		return fmt.Errorf("%s costs %d utally, %d are paid ahead: want a voucher first", r.name(), price, t.Room())
	}
	t.Pending = append(t.Pending, Line{r.ID(), price})
	return nil
}

// Next returns the voucher that settles the first n pending receipts and pays the next instalment. The consumer signs it once
// they were checked, as far as its draws ask for that.
func (t *Tab) Next(n int) (Voucher, error) {
	root, cost, err := t.through(n)
	if err != nil {
		return Voucher{}, err
	}
	amount := min(saturated(cost, t.Terms.Credit.Instalment(cost)), t.Escrow)
	return Voucher{
		Session: t.id, Number: t.Voucher.Number + 1, Amount: max(amount, t.Voucher.Amount),
		Receipts: root.N, Root: root.Root(),
	}, nil
}

// Take takes the next voucher, whose signature was verified. It settles what it names.
func (t *Tab) Take(v *Voucher) error {
	switch last := &t.Voucher; {
	case t.Done:
		return errDone
	case v.Session != t.id:
		return fmt.Errorf("%s is of session %s, not %s", v.name(), v.Session, t.id)
	case v.Number <= last.Number:
		return fmt.Errorf("%s comes after voucher %d", v.name(), last.Number)
	case v.Amount < last.Amount:
		return fmt.Errorf("%s pays %d utally in all, the one before it %d", v.name(), v.Amount, last.Amount)
	case v.Amount > t.Escrow:
		return fmt.Errorf("%s pays %d utally, %d are in escrow: the consumer must fund the session first", v.name(), v.Amount, t.Escrow)
	case v.Receipts < t.Settled.N || v.Receipts > t.Served():
		return fmt.Errorf("%s settles %d receipts: want %d to %d", v.name(), v.Receipts, t.Settled.N, t.Served())
	}
	n := int(v.Receipts - t.Settled.N)
	settled, cost, err := t.through(n)
	if err != nil {
		return err
	}
	if settled.Root() != v.Root {
		return fmt.Errorf("%s has root %s over %d receipts, which have %s", v.name(), v.Root, v.Receipts, settled.Root())
	}
	t.Settled, t.Cost, t.Pending, t.Voucher = settled, cost, t.Pending[n:], *v
	return nil
}

// Give returns the release by which a provider lets the consumer have some of the escrow back, which it signs. What
// vouchers have paid stays.
func (t *Tab) Give(amount uint64) (Release, error) {
	if free := t.Escrow - t.Voucher.Amount; amount == 0 || amount > free {
		return Release{}, fmt.Errorf("%d utally would go back, %d are in escrow and not paid", amount, free)
	}
	t.Escrow, t.Releases = t.Escrow-amount, t.Releases+1
	return Release{Session: t.id, Number: t.Releases, Claimed: t.Voucher.Amount, Amount: amount}, nil
}

// Final ends the tab, and returns what the session comes to, which a side signs. So much was claimed on the chain already.
func (t *Tab) Final(claimed uint64) Final {
	t.Done = true
	return Final{Session: t.id, Amount: max(t.Spent(), claimed)}
}

var errDone = errors.New("a final was signed: nothing is served or paid after it")

// through returns what is settled once the first n pending receipts are, and what that costs.
func (t *Tab) through(n int) (settled canon.Accumulator, cost uint64, err error) {
	if n < 0 || n > len(t.Pending) {
		return settled, 0, fmt.Errorf("%d receipts are pending, not %d", len(t.Pending), n)
	}
	settled, cost = t.Settled, t.Cost
	for _, l := range t.Pending[:n] {
		settled.Append(l.Receipt)
		if cost, err = money.Sum(cost, l.Price); err != nil {
			return settled, 0, err
		}
	}
	return settled, cost, nil
}

// Code walks the fields of t.
func (t *Tab) Code(w *canon.Codec) {
	t.Terms.Code(w)
	t.Settled.Code(w)
	w.U64(&t.Cost)
	canon.Seq(w, &t.Pending, maxPending, canon.HashSize+1, func(w *canon.Codec, l *Line) {
		w.Hash(&l.Receipt)
		w.U64(&l.Price)
	})
	t.Voucher.Code(w)
	w.U64(&t.Escrow)
	w.U64(&t.Releases)
	w.Bool(&t.Done)
	if !w.Reading() {
		return
	}
	t.id = t.Terms.ID()
	sum := []uint64{t.Cost}
	for _, l := range t.Pending {
		sum = append(sum, l.Price)
	}
	spent, err := money.Sum(sum...)
	if err != nil || spent > t.Voucher.Amount || t.Voucher.Amount > t.Escrow || t.Voucher.Session != t.id {
		w.Fail("a tab on which more was spent than paid, or paid than is in escrow")
	}
}
