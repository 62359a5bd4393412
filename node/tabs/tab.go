package tabs

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/session"
)

// Limits of a tab.
const (
	maxOpen    = 1 << 10 // questions of a consumer that have no receipt yet
	maxPending = 1 << 12 // receipts that no voucher has settled, as in core/session
)

// ErrReceipt is wrapped by what a receipt has against it: its provider has signed what nobody owes.
var ErrReceipt = errors.New("the provider bills what is not owed")

// ErrUnpaid says that less is paid ahead than a request may cost.
var ErrUnpaid = errors.New("too little is paid ahead: settle what was served, or ask for fewer tokens")

// Signed is a receipt, and its provider's signature.
type Signed struct {
	Receipt   session.Receipt
	Signature []byte
}

// Code walks the fields of s.
func (s *Signed) Code(w *canon.Codec) {
	s.Receipt.Code(w)
	w.Blob(&s.Signature, ed25519.SignatureSize)
}

// bill is a receipt that no voucher has settled yet.
type bill struct {
	Signed
	Pages    canon.Hash // the provider's: root of pages, unsalted
	Approved bool       // the consumer's: it has nothing against it
}

// kept is what is on the disk.
type kept struct {
	Tab     session.Tab
	Terms   []byte // the provider's signature
	Voucher []byte // the consumer's, of the newest
	Bills   []bill // one for each receipt that is pending
	Asked   []asked
	Lost    uint64       // utally of receipts whose answers did not come
	Left    bool         // the consumer uses the session no more
	Kind    session.Kind // what the consumer uses it for
}

// asked is a question of the consumer that has no receipt yet.
type asked struct {
	Request canon.Hash
	Most    uint64 // utally that it may cost
}

// Code walks the fields of k.
func (k *kept) Code(w *canon.Codec) {
	k.Tab.Code(w)
	w.Blob(&k.Terms, ed25519.SignatureSize)
	w.Blob(&k.Voucher, ed25519.SignatureSize)
	canon.Seq(w, &k.Bills, maxPending, 6*canon.HashSize, func(w *canon.Codec, b *bill) {
		b.Signed.Code(w)
		w.Hash(&b.Pages)
		w.Bool(&b.Approved)
	})
	canon.Seq(w, &k.Asked, maxOpen, canon.HashSize+1, func(w *canon.Codec, a *asked) {
		w.Hash(&a.Request)
		w.U64(&a.Most)
	})
	w.U64(&k.Lost)
	w.Bool(&k.Left)
	w.U8((*uint8)(&k.Kind))
	if !w.Reading() {
		return
	}
	k.Terms, k.Voucher = bytes.Clone(k.Terms), bytes.Clone(k.Voucher)
	if len(k.Bills) != len(k.Tab.Pending) {
		w.Fail("%d receipts of %d that are pending", len(k.Bills), len(k.Tab.Pending))
		return
	}
	for i := range k.Bills {
		k.Bills[i].Signature = bytes.Clone(k.Bills[i].Signature)
		if k.Bills[i].Receipt.ID() != k.Tab.Pending[i].Receipt {
			w.Fail("receipt %d is another", i)
		}
	}
}

// Tab is the tab of one session, on the disk. All methods may be called concurrently.
type Tab struct {
	file string

	mu   sync.Mutex
	kept kept
	held uint64 // utally of work that is under way
}

// ID returns the session's.
func (t *Tab) ID() canon.Hash {
	terms := t.Terms()
	return terms.ID()
}

// Terms returns the session's terms.
func (t *Tab) Terms() session.Terms {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.kept.Tab.Terms
}

// TermsSignature returns the provider's.
func (t *Tab) TermsSignature() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.kept.Terms
}

// State is how a tab stands.
type State struct {
	Paid    uint64 // utally, by the newest voucher
	Spent   uint64 // utally, by all receipts
	Held    uint64 // utally that work under way may cost
	Escrow  uint64 // utally that vouchers can claim
	Served  uint64 // receipts
	Pending int    // of these, that no voucher settles yet
	Done    bool
	Left    bool         // the consumer uses it no more
	Kind    session.Kind // what the consumer uses it for
}

// Room is what the next request may cost, in utally.
func (s State) Room() uint64 { return s.Paid - min(s.Paid, s.Spent+s.Held) }

// State returns how the tab stands.
func (t *Tab) State() State {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state()
}

func (t *Tab) state() State {
	k := &t.kept.Tab
	return State{k.Voucher.Amount, k.Spent(), t.held, k.Escrow, k.Served(), len(k.Pending), k.Done, t.kept.Left, t.kept.Kind}
}

// keep writes the tab. The caller holds mu, and tells nobody what it has changed if this fails.
func (t *Tab) keep() error {
	b, err := canon.Encoded(&t.kept)
	if err != nil {
		return err
	}
	return durable(t.file, b)
}

// errSame says that there is nothing to change.
var errSame = errors.New("nothing changes")

// change changes the tab on the disk, or not at all. Then what was held is free.
func (t *Tab) change(held *Held, do func(k *kept) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.kept
	next := old
	next.Tab.Pending, next.Tab.Settled.Peaks = slices.Clone(old.Tab.Pending), slices.Clone(old.Tab.Settled.Peaks)
	next.Bills, next.Asked = slices.Clone(old.Bills), slices.Clone(old.Asked)
	switch err := do(&next); {
	case errors.Is(err, errSame):
		held.free()
		return nil
	case err != nil:
		return err
	}
	t.kept = next
	if err := t.keep(); err != nil {
		t.kept = old
		return err
	}
	held.free()
	return nil
}

// Newest returns the newest voucher and its signature; none if nothing is paid.
func (t *Tab) Newest() (session.Voucher, []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.kept.Tab.Voucher, t.kept.Voucher
}

// Take takes a voucher of the consumer. One that the tab has already changes nothing.
func (t *Tab) Take(v *session.Voucher, signature []byte) error {
	terms := t.Terms()
	if err := v.Verify(&terms, signature); err != nil {
		return err
	}
	t.mu.Lock()
	known := v.Number <= t.kept.Tab.Voucher.Number
	t.mu.Unlock()
	if known {
		return nil
	}
	return t.change(nil, func(k *kept) error {
		before := len(k.Tab.Pending)
		if err := k.Tab.Take(v); err != nil {
			return err
		}
		k.Voucher, k.Bills = bytes.Clone(signature), k.Bills[before-len(k.Tab.Pending):]
		return nil
	})
}

// Held is what is kept for work under way.
type Held struct {
	tab   *Tab
	price uint64
}

// Hold keeps so much of what is paid for work that begins. Bill or Accept end that, or Free.
func (t *Tab) Hold(price uint64) (*Held, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.state(); s.Done {
		return nil, errors.New("the session is over")
	} else if price > s.Room() || s.Pending >= maxPending/2 {
		return nil, fmt.Errorf("%w (%d utally are left, %d are wanted)", ErrUnpaid, s.Room(), price)
	}
	t.held += price
	return &Held{t, price}, nil
}

// HoldUpTo keeps what a reply of as many tokens costs by price as there is room for, most at most.
func (t *Tab) HoldUpTo(most int, price func(tokens int) uint64) (n int, held *Held, err error) {
	room := t.State().Room()
	n = sort.Search(most, func(i int) bool { return price(i+1) > room }) // prices grow with tokens
	held, err = t.Hold(price(max(n, 1)))
	return n, held, err
}

// Free ends a hold. It may be called again, and of none.
func (h *Held) Free() {
	if h == nil {
		return
	}
	h.tab.mu.Lock()
	defer h.tab.mu.Unlock()
	h.free()
}

func (h *Held) free() {
	if h != nil {
		h.tab.held -= h.price
		h.price = 0
	}
}

// Bill writes a receipt of work under its next number, and signs it. What was held for it is free again. Pages is the root that the receipt has salted.
func (t *Tab) Bill(r session.Receipt, pages canon.Hash, key ed25519.PrivateKey, held *Held) (s Signed, err error) {
	err = t.change(held, func(k *kept) error {
		r.Session, r.Model, r.Number = k.Tab.Terms.ID(), k.Tab.Terms.Model, k.Tab.Served()
		if err := k.Tab.Add(&r); err != nil {
			return err
		}
		id := r.ID()
		s = Signed{r, ed25519.Sign(key, id[:])}
		k.Bills = append(k.Bills, bill{Signed: s, Pages: pages})
		return nil
	})
	return s, err
}

// Since returns the receipts from a number on that no voucher settles yet, at most so many.
func (t *Tab) Since(number uint64, most int) []Signed {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []Signed
	for _, b := range t.kept.Bills {
		if b.Receipt.Number >= number && len(out) < most {
			out = append(out, b.Signed)
		}
	}
	return out
}

// Pages returns the root of pages behind a receipt that no voucher settles yet.
func (t *Tab) Pages(number uint64) (canon.Hash, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range t.kept.Bills {
		if b.Receipt.Number == number {
			return b.Pages, true
		}
	}
	return canon.Hash{}, false
}

// Final ends the tab, and returns what the session comes to: most at most, or nothing has changed. So much was claimed on the chain already.
// It may be called again.
func (t *Tab) Final(claimed, most uint64) (f session.Final, err error) {
	err = t.change(nil, func(k *kept) error {
		if t.held > 0 {
			return errors.New("a reply is under way")
		}
		if f = k.Tab.Final(claimed); f.Amount > most {
			return fmt.Errorf("the session comes to %d utally, and not to %d", f.Amount, most)
		}
		return nil
	})
	return f, err
}

// Leave uses the session no more. What is paid ahead on it may be lost.
func (t *Tab) Leave() error {
	return t.change(nil, func(k *kept) error {
		if k.Left {
			return errSame
		}
		k.Left = true
		return nil
	})
}

// Ask notes a question that will be asked, and what it may cost: its receipt may come after a crash.
func (t *Tab) Ask(request canon.Hash, most uint64) error {
	return t.change(nil, func(k *kept) error {
		if len(k.Asked) >= maxOpen {
			return fmt.Errorf("%d questions have no answer yet", len(k.Asked))
		}
		k.Asked = append(k.Asked, asked{request, most})
		return nil
	})
}

// Drop forgets a question that was not answered: no receipt of it is accepted any more.
func (t *Tab) Drop(request canon.Hash) error {
	return t.change(nil, func(k *kept) error {
		if i := slices.IndexFunc(k.Asked, func(a asked) bool { return a.Request == request }); i >= 0 {
			k.Asked = slices.Delete(k.Asked, i, i+1)
		}
		return nil
	})
}

// Accept takes a receipt of something that was asked. What was held for it is free again. One that the tab has already changes nothing else.
func (t *Tab) Accept(s *Signed, held *Held) error {
	return t.accept(s, held, func(*kept, *bill) error { return nil })
}

func (t *Tab) accept(s *Signed, held *Held, also func(*kept, *bill) error) error {
	terms := t.Terms()
	if err := s.Receipt.Verify(&terms, s.Signature); err != nil {
		return err
	}
	return t.change(held, func(k *kept) error {
		for _, b := range k.Bills {
			if b.Receipt == s.Receipt {
				return errSame
			}
		}
		i := slices.IndexFunc(k.Asked, func(a asked) bool { return a.Request == s.Receipt.Request })
		if i < 0 {
			return fmt.Errorf("receipt %d is of something that nobody has asked for", s.Receipt.Number)
		}
		if price, err := s.Receipt.Price(&k.Tab.Terms); err != nil || price > k.Asked[i].Most {
			return fmt.Errorf("receipt %d costs %d utally, and what was asked %d at most (%v)", s.Receipt.Number, price, k.Asked[i].Most, err)
		}
		if err := k.Tab.Add(&s.Receipt); err != nil {
			return err
		}
		k.Asked = slices.Delete(k.Asked, i, i+1)
		k.Bills = append(k.Bills, bill{Signed: Signed{s.Receipt, bytes.Clone(s.Signature)}})
		return also(k, &k.Bills[len(k.Bills)-1])
	})
}

// Open returns the receipts of a consumer that were neither approved nor settled.
func (t *Tab) Open() (all []Signed) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range t.kept.Bills {
		if !b.Approved {
			all = append(all, b.Signed)
		}
	}
	return all
}

// AcceptLost takes a receipt whose answer did not come, and with it the obligation to pay. That may happen in a crash of either side, but not often.
func (t *Tab) AcceptLost(s *Signed) error {
	return t.accept(s, nil, func(k *kept, b *bill) error {
		price, err := s.Receipt.Price(&k.Tab.Terms)
		if err != nil {
			return err
		}
		k.Lost += price
		if most := k.Tab.Terms.Credit.First/2 + k.Tab.Spent()/10; k.Lost > most {
			return fmt.Errorf("the provider bills %d utally for answers that did not come, of %d in all: that is too much", k.Lost, k.Tab.Spent())
		}
		b.Approved = true
		return nil
	})
}

// Approve says that the consumer has nothing against a receipt. The next voucher settles it, with all before it.
func (t *Tab) Approve(number uint64) error {
	return t.change(nil, func(k *kept) error {
		for i := range k.Bills {
			if k.Bills[i].Receipt.Number == number {
				k.Bills[i].Approved = true
			}
		}
		return nil
	})
}

// Pay returns the newest voucher, signed. It is a new one if receipts were approved since the last, or if less than need utally are left and more can be paid.
func (t *Tab) Pay(need uint64, key ed25519.PrivateKey) (v session.Voucher, signature []byte, err error) {
	err = t.change(nil, func(k *kept) error {
		v, signature = k.Tab.Voucher, k.Voucher
		n := 0
		for n < len(k.Bills) && k.Bills[n].Approved {
			n++
		}
		next, err := k.Tab.Next(n)
		if err != nil {
			return err
		}
		if n == 0 && (k.Tab.Room() >= need || next.Amount == v.Amount) {
			return errSame
		}
		if err := k.Tab.Take(&next); err != nil {
			return err
		}
		id := next.ID()
		v, signature = next, ed25519.Sign(key, id[:])
		k.Voucher, k.Bills = signature, k.Bills[n:]
		return nil
	})
	return v, signature, err
}
