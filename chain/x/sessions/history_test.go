package sessions_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/session"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// history is a chain on which people do what they like, and what they have begun there.
type history struct {
	*chaintest.Chain
	deals  []deal
	number uint64
}

// pick returns one of the sessions that were ever opened, or skips.
func (h *history) pick(t *rapid.T) deal {
	if len(h.deals) == 0 {
		t.Skip("no session")
	}
	return h.deals[rapid.IntRange(max(0, len(h.deals)-4), len(h.deals)-1).Draw(t, "session")]
}

func somebody(t *rapid.T) chaintest.Account {
	return rapid.SampledFrom([]chaintest.Account{alice, anna, carol, p0, p1}).Draw(t, "by")
}

// send puts a message into the next block, whether or not it will be taken.
func (h *history) send(by chaintest.Account, m sdk.Msg) { h.Queue(by, m) }

// Whatever people send, in whatever order, taken or not: after every block the ledgers add up, the indexes are whole, and each stake that
// is reserved is of an order, a game, a sale or a session. In the end all is paid, and forgotten.
func TestRandomHistories(t *testing.T) {
	amount := rapid.Uint64Range(1, 25*tally)
	rapid.Check(t, func(r *rapid.T) {
		h := &history{Chain: network(t)}
		total := func() (sum uint64) {
			for _, a := range []chaintest.Account{alice, anna, carol, p0, p1} {
				sum += h.Balance(a.Address)
			}
			for _, p := range []chaintest.Account{p0, p1} {
				peer, err := h.Provider.Get(h.Ctx(), p.Address)
				if err != nil {
					t.Fatal(err)
				}
				sum += peer.Stake
			}
			return sum + escrow(h.Chain) + insurance(h.Chain)
		}
		began := total()
		actions := map[string]func(*rapid.T){
			"open": func(r *rapid.T) {
				d := dealOf(h.Chain, rapid.SampledFrom([]chaintest.Account{alice, anna, p1}).Draw(r, "consumer"), p0, nonce(uint64(len(h.deals))), func(x *session.Terms) {
					x.Credit.Cap = rapid.Uint64Range(tally/2, 60*tally).Draw(r, "cap")
					x.Escrow = amount.Draw(r, "escrow")
					x.End = x.OpenBy + rapid.Int64Range(1, 10_000_000).Draw(r, "length")
				})
				h.deals = append(h.deals, d)
				h.send(d.consumer, d.open())
			},
			"redeem": func(r *rapid.T) {
				h.number++
				by := somebody(r)
				h.send(by, h.pick(r).redeem(by, h.number, amount.Draw(r, "amount")))
			},
			"release": func(r *rapid.T) {
				h.number++
				by := somebody(r)
				h.send(by, h.pick(r).release(by, h.number, 0, amount.Draw(r, "amount")))
			},
			"fund": func(r *rapid.T) {
				d := h.pick(r)
				h.send(d.consumer, wire.FundSession(d.consumer.String(), d.id, amount.Draw(r, "amount")))
			},
			"close": func(r *rapid.T) {
				by := somebody(r)
				h.send(by, wire.CloseSession(by.String(), h.pick(r).id))
			},
			"finish": func(r *rapid.T) {
				by := somebody(r)
				h.send(by, h.pick(r).finish(by, amount.Draw(r, "amount")))
			},
			"convict the consumer": func(r *rapid.T) { by := somebody(r); h.send(by, h.pick(r).twoVouchers(by)) },
			"dispute": func(r *rapid.T) {
				by := somebody(r)
				h.send(by, h.pick(r).dispute(by, amount.Draw(r, "receipt")))
			},
			"convict the provider": func(r *rapid.T) { by := somebody(r); h.send(by, h.pick(r).twoReceipts(by)) },
			"list": func(r *rapid.T) {
				var all []session.Listing
				for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 3, rapid.ID).Draw(r, "models") {
					all = append(all, listing(name))
				}
				by := rapid.SampledFrom([]chaintest.Account{p0, p1}).Draw(r, "provider")
				h.send(by, wire.ListModels(by.String(), all))
			},
			"block": func(r *rapid.T) {
				h.NextBlock(rapid.SampledFrom([]time.Duration{0, time.Second, hour, 24 * hour}).Draw(r, "pause"))
			},
		}
		r.Repeat(actions)
		h.NextBlock(0)
		h.NextBlock(30 * 24 * hour)
		for range 8 {
			h.NextBlock(24 * hour)
		}
		for _, d := range h.deals {
			if d.known(t, h.Chain) {
				t.Errorf("session %s is known for ever", d.id)
			}
		}
		burnt, err := h.Supply.Burnt(h.Ctx())
		if err != nil {
			t.Fatal(err)
		}
		if got := total(); got > began || began-got > burnt || escrow(h.Chain) != 0 || reserved(t, h.Chain, p0) != 0 {
			t.Errorf("people have %d utally, had %d; %d in escrow, %d reserved", got, began, escrow(h.Chain), reserved(t, h.Chain, p0))
		}
		if g, err := h.Sessions.ExportGenesis(h.Ctx()); err != nil || len(g.Sessions) != 0 || len(g.Offers) != 0 {
			t.Errorf("%v, %v", g, err)
		}
	})
}

// What is signed for one session is of no use in another, whatever is changed of it.
func TestSignedBytesAreOfOneSession(t *testing.T) {
	c := network(t)
	d := dealOf(c, alice, p0)
	c.Deliver(alice, d.open())
	whole := d.redeem(p0, 1, tally)
	rapid.Check(t, func(r *rapid.T) {
		bent := *whole
		bent.Voucher.Statement = append([]byte(nil), whole.Voucher.Statement...)
		bent.Voucher.Statement[rapid.IntRange(0, len(bent.Voucher.Statement)-1).Draw(r, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(r, "bit")
		ctx := c.Ctx()
		if _, err := c.MsgServiceRouter().Handler(&bent)(ctx, &bent); err == nil {
			t.Fatalf("%x is taken", bent.Voucher.Statement)
		}
	})
}
