package session_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/session"
)

// What people have when a world begins, in utally.
const (
	purse = 60_000
	stake = 40_000 // of the one provider: for two sessions, not three
)

// world is some consumers, a provider with one stake, and a chain that does what effects say.
type world struct {
	balances                          map[string]uint64
	escrow, insurance, burnt          uint64
	stake, reserved                   uint64
	now                               int64
	deals                             []*deal
	consumersLie, providerLies, slash bool
}

// deal is a session, with the tabs of both sides.
type deal struct {
	session.Session
	terms              session.Terms
	consumer, provider *session.Tab
	sent               []session.Redeem // signed by the consumer, whoever has them
}

func newWorld(t *rapid.T) *world {
	w := &world{balances: map[string]uint64{"alice": purse, "anna": purse, "bob": purse, "carol": 0}, stake: stake, now: begin}
	w.consumersLie = rapid.Bool().Draw(t, "consumers lie")
	w.providerLies = !w.consumersLie && rapid.Bool().Draw(t, "the provider lies")
	return w
}

// carryOut does what effects say. It fails where somebody lacks the money, and then nothing was done.
func (w *world) carryOut(effects []session.Effect) error {
	before := *w
	before.balances = maps.Clone(w.balances)
	for _, e := range effects {
		if err := w.carry(e); err != nil {
			*w = before
			return err
		}
	}
	return nil
}

func (w *world) carry(e session.Effect) error {
	take := func(from *uint64) error {
		if *from < e.Amount {
			return fmt.Errorf("effect %+v of %d", e, *from)
		}
		*from -= e.Amount
		return nil
	}
	switch e.Kind {
	case session.Lock:
		have := w.balances[e.Account]
		err := take(&have)
		if err == nil {
			w.balances[e.Account], w.escrow = have, w.escrow+e.Amount
		}
		return err
	case session.Pay, session.Refund:
		w.balances[e.Account] += e.Amount
		return take(&w.escrow)
	case session.Burn:
		w.burnt += e.Amount
		return take(&w.escrow)
	case session.Insure:
		w.insurance += e.Amount
		return take(&w.escrow)
	case session.ReserveStake:
		if w.stake-w.reserved < e.Amount {
			return fmt.Errorf("%d utally are free, %d are asked for", w.stake-w.reserved, e.Amount)
		}
		w.reserved += e.Amount
		return nil
	case session.FreeStake:
		return take(&w.reserved)
	}
	w.slash = true
	rest := e.Amount
	for _, s := range e.Shares {
		w.balances[s.Account] += s.Amount
		rest -= s.Amount
	}
	w.stake, w.insurance = w.stake-e.Amount, w.insurance+rest
	return take(&w.reserved)
}

// total returns all money that there is, or was burnt.
func (w *world) total() uint64 {
	sum := w.escrow + w.insurance + w.burnt + w.stake
	for _, name := range slices.Sorted(maps.Keys(w.balances)) {
		sum += w.balances[name]
	}
	return sum
}

// open begins another session, if the provider's stake is enough for it.
func (w *world) open(t *rapid.T) {
	name := rapid.SampledFrom([]string{"alice", "anna"}).Draw(t, "consumer")
	terms := termsOf(name, "bob", func(x *session.Terms) {
		x.Nonce = uint64(len(w.deals))
		x.OpenBy, x.End = w.now+100, w.now+rapid.Int64Range(101, 200_000).Draw(t, "length")
		x.Escrow = rapid.Uint64Range(1, 8_000).Draw(t, "escrow")
	})
	free := w.stake - w.reserved
	s, effects, err := session.Begin(terms, sign("bob", terms.ID()), rules, w.now)
	if err != nil {
		t.Fatal(err)
	}
	reserve, _ := terms.Reserve()
	if err := w.carryOut(effects); err != nil {
		if free >= reserve && w.balances[name] >= terms.Escrow {
			t.Fatalf("refused: %v", err)
		}
		return
	}
	if free < reserve {
		t.Fatalf("a session reserves %d of %d", reserve, free)
	}
	w.deals = append(w.deals, &deal{Session: s, terms: terms, consumer: session.NewTab(terms), provider: session.NewTab(terms)})
}

// try lets an event happen to a session, if the chain takes it.
func (w *world) try(t *rapid.T, d *deal, e session.Event) bool {
	next, effects, err := session.Apply(d.Session, e, w.now)
	if err != nil {
		return false
	}
	if err := w.carryOut(effects); err != nil {
		if _, funds := e.(session.Fund); funds {
			return false // who has no money
		}
		t.Fatalf("%T: %v", e, err)
	}
	if err := next.Check(); err != nil {
		t.Fatalf("%T: %v", e, err)
	}
	d.Session = next
	return true
}

// deal returns one of the sessions, or skips.
func (w *world) deal(t *rapid.T) *deal {
	if len(w.deals) == 0 {
		t.Skip("no session")
	}
	return w.deals[rapid.IntRange(0, len(w.deals)-1).Draw(t, "session")]
}

// pay has the consumer pay ahead; perhaps it vanishes before the provider has the voucher.
func (w *world) pay(t *rapid.T) {
	d := w.deal(t)
	if d.Phase != session.Open || w.now >= d.terms.End {
		return
	}
	v, err := d.consumer.Next(rapid.IntRange(0, len(d.consumer.Pending)).Draw(t, "settles"))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.consumer.Take(&v); err != nil {
		t.Fatal(err)
	}
	d.sent = append(d.sent, session.Redeem{Voucher: v, Signature: sign(d.terms.Consumer.Account, v.ID())})
	if !rapid.Bool().Draw(t, "arrives") {
		return
	}
	if err := d.provider.Take(&v); err != nil && d.consumer.Served() == d.provider.Served() && v.Amount <= d.provider.Escrow && !d.provider.Done {
		t.Fatalf("an honest voucher: %v", err)
	}
}

// serve has the provider answer; perhaps it vanishes before the consumer has the receipt.
func (w *world) serve(t *rapid.T) {
	d := w.deal(t)
	if d.Phase != session.Open || w.now >= d.terms.End {
		return
	}
	r := receiptOf(&d.terms, d.provider.Served(), rapid.Uint64Range(0, 2_000).Draw(t, "prompt"), rapid.Uint64Range(0, 2_000).Draw(t, "reply"))
	if err := d.provider.Add(&r); err != nil {
		return // it is not paid for
	}
	if !rapid.Bool().Draw(t, "arrives") {
		return
	}
	if err := d.consumer.Add(&r); err != nil && d.consumer.Served()+1 == d.provider.Served() && d.consumer.Voucher.Number == d.provider.Voucher.Number {
		t.Fatalf("an honest receipt: %v", err)
	}
}

// post has anybody post any voucher that was ever signed, to any session.
func (w *world) post(t *rapid.T) {
	from, to := w.deal(t), w.deal(t)
	if len(from.sent) == 0 {
		return
	}
	e := rapid.SampledFrom(from.sent).Draw(t, "voucher")
	before := to.Claimed()
	if w.try(t, to, e) && (from != to || to.Claimed() > e.Voucher.Amount || to.Claimed() <= before) {
		t.Fatalf("a voucher of %d of session %d is taken by another, or twice", e.Voucher.Amount, from.terms.Nonce)
	}
}

// cheat has a side that lies sign what it should not.
func (w *world) cheat(t *rapid.T) {
	d := w.deal(t)
	two, both := equivocations(&d.terms, "carol")
	switch {
	case w.consumersLie:
		two.Vouchers[1].Root = canon.Root(nil)
		for i := range two.Vouchers {
			v := &two.Vouchers[i]
			v.Number = rapid.Uint64Range(1, 5).Draw(t, "number")
			v.Amount = rapid.Uint64Range(0, 500).Draw(t, "amount")
			two.Signatures[i] = sign(d.terms.Consumer.Account, v.ID())
			d.sent = append(d.sent, session.Redeem{Voucher: *v, Signature: two.Signatures[i]})
		}
		w.try(t, d, two)
	case w.providerLies:
		w.try(t, d, both)
	default: // a stranger forges
		for i := range two.Signatures {
			two.Signatures[i], both.Signatures[i] = sign("carol", two.Vouchers[i].ID()), sign("carol", both.Receipts[i].ID())
		}
		if w.try(t, d, two) || w.try(t, d, both) {
			t.Fatal("what was forged convicts")
		}
	}
}

// settle checks what the sides of a session that is over have lost at most.
func (w *world) settle(t *rapid.T, d *deal) {
	name := fmt.Sprintf("session %d of %s", d.terms.Nonce, d.terms.Consumer.Account)
	if !w.providerLies && d.Claimed() < d.provider.Spent() {
		t.Fatalf("%s: the provider has served for %d utally and got %d", name, d.provider.Spent(), d.Claimed())
	}
	if w.consumersLie {
		return
	}
	credit := d.terms.Credit
	if lost := d.Claimed() - min(d.Claimed(), d.consumer.Spent()); lost > credit.Instalment(d.consumer.Cost) || lost > credit.Cap {
		t.Fatalf("%s: the consumer has %d utally of replies and paid %d", name, d.consumer.Spent(), d.Claimed())
	}
	if d.Ledger.Forfeit > 0 {
		t.Fatalf("%s: an honest consumer forfeits %d", name, d.Ledger.Forfeit)
	}
}

// pass lets time pass. A provider that is there posts its best voucher while it can.
func (w *world) pass(t *rapid.T, ms int64) {
	for _, d := range w.deals {
		w.answer(t, d)
	}
	w.now += ms
	for _, d := range w.deals {
		for d.Phase != session.Ended && w.now >= d.Due {
			w.try(t, d, session.Tick{})
			w.answer(t, d)
		}
	}
}

func (w *world) answer(t *rapid.T, d *deal) {
	best := d.provider.Voucher
	if d.Phase != session.Closing || best.Amount <= d.Claimed() {
		return
	}
	if !w.try(t, d, session.Redeem{Voucher: best, Signature: sign(d.terms.Consumer.Account, best.ID())}) {
		t.Fatalf("the provider's voucher of %d is refused, %d are claimed and %d in escrow", best.Amount, d.Claimed(), d.Ledger.Escrow)
	}
}

// Whatever people and strangers do, in whatever order, and wherever they stop: no money is made or lost, one stake is not
// sold twice, and an honest side loses one instalment at most.
func TestHonestSidesLoseAnInstalmentAtMost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		total := w.total()
		by := func(t *rapid.T) string {
			return rapid.SampledFrom([]string{"alice", "anna", "bob", "carol"}).Draw(t, "by")
		}
		t.Repeat(map[string]func(*rapid.T){
			"open": w.open, "pay": w.pay, "pay on": w.pay, "serve": w.serve, "serve on": w.serve, "post": w.post, "cheat": w.cheat,
			"close": func(t *rapid.T) {
				d := w.deal(t)
				if w.try(t, d, session.Close{By: by(t)}) {
					w.answer(t, d)
				}
			},
			"fund": func(t *rapid.T) {
				d, amount := w.deal(t), rapid.Uint64Range(0, 2_000).Draw(t, "amount")
				if w.try(t, d, session.Fund{Amount: amount}) {
					d.consumer.Escrow, d.provider.Escrow = d.consumer.Escrow+amount, d.provider.Escrow+amount
				}
			},
			"give back": func(t *rapid.T) {
				d := w.deal(t)
				r, err := d.provider.Give(rapid.Uint64Range(1, 2_000).Draw(t, "amount"))
				if err != nil {
					return
				}
				best := d.provider.Voucher
				w.try(t, d, session.Redeem{Voucher: best, Signature: sign(d.terms.Consumer.Account, best.ID())})
				if w.try(t, d, session.Return{Release: r, Signature: sign("bob", r.ID())}) {
					d.consumer.Escrow = max(d.consumer.Escrow-r.Amount, d.consumer.Voucher.Amount)
				}
			},
			"finish": func(t *rapid.T) {
				d, who := w.deal(t), by(t)
				if d.Phase == session.Ended || who != d.terms.Consumer.Account && who != "bob" {
					return
				}
				f := d.provider.Final(d.Claimed())
				if w.consumersLie || w.providerLies { // an honest side signs what its own tab says
					f.Amount = max(f.Amount, d.Claimed())
				}
				other := map[bool]string{true: d.terms.Consumer.Account, false: "bob"}[who == "bob"]
				if other != "bob" && f.Amount > d.consumer.Voucher.Amount {
					return // the consumer signs no more than it has paid
				}
				w.try(t, d, session.Finish{By: who, Final: f, Signature: sign(other, f.ID())})
			},
			"pass": func(t *rapid.T) { w.pass(t, rapid.Int64Range(0, 70_000).Draw(t, "ms")) },
			"": func(t *rapid.T) {
				if w.total() != total || w.reserved > w.stake {
					t.Fatalf("there are %d utally, there were %d; %d of %d are reserved", w.total(), total, w.reserved, w.stake)
				}
			},
		})
		for range 3 {
			w.pass(t, 300_000)
		}
		for _, d := range w.deals {
			if d.Phase != session.Ended {
				t.Fatalf("session %d is %v at the end of time", d.terms.Nonce, d.Phase)
			}
			w.settle(t, d)
		}
		if w.total() != total || w.escrow != 0 || w.reserved != 0 || !w.providerLies && w.slash {
			t.Fatalf("%d utally of %d, %d in escrow, %d reserved, slashed: %v", w.total(), total, w.escrow, w.reserved, w.slash)
		}
	})
}
