package seals_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/cosmos/cosmos-sdk/types"
	"google.golang.org/grpc"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/node/seals"
)

// What a home has sealed it can open, after a restart too, and nobody else can; what was sealed first is never lost to a second try.
func TestSealAndOpen(t *testing.T) {
	home, who := t.TempDir(), chaintest.Named("p0")
	order := canon.Sum("order").String()
	first, err := seals.In(home).Seal("chain", who.String(), 7, order, "", 1200)
	if err != nil {
		t.Fatal(err)
	}
	again, err := seals.In(home).Seal("chain", who.String(), 7, order, "", 1300)
	if err != nil || string(again.Commitment) == string(first.Commitment) {
		t.Fatal(err)
	}
	on := &auctionv1.Seal{Bidder: who.String(), Order: order, Commitment: first.Commitment}
	m, err := seals.In(home).Open(7, on)
	if err != nil || m.Price != 1200 || m.Clearing != 7 || m.Order != order {
		t.Fatalf("%+v, %v", m, err)
	}
	b := wire.Bid{Chain: "chain", Clearing: 7, Bidder: who.Address, Price: m.Price}
	b.Order, _ = canon.ParseHash(order)
	copy(b.Salt[:], m.Salt)
	if h := b.Commitment(); string(h[:]) != string(first.Commitment) {
		t.Error("what is revealed is not what was sealed")
	}
	if _, err := seals.In(t.TempDir()).Open(7, on); err == nil || !strings.Contains(err.Error(), "not in this home") {
		t.Errorf("another home: %v", err)
	}
	if err := seals.In(home).Clean(7); err != nil {
		t.Fatal(err)
	}
	if _, err := seals.In(home).Open(7, on); err != nil {
		t.Errorf("what opens a bid of the clearing under way is gone: %v", err)
	}
	if err := seals.In(home).Clean(8); err != nil {
		t.Fatal(err)
	}
	if _, err := seals.In(home).Open(7, on); err == nil {
		t.Error("what opens bids of old clearings stays for good")
	}
}

func TestWanted(t *testing.T) {
	home := t.TempDir()
	d, order := seals.In(home), canon.Sum("order").String()
	if w, err := d.Wanted(); err != nil || len(w) != 0 {
		t.Fatalf("%v, %v", w, err)
	}
	for _, price := range []uint64{900, 1 << 40} { // the first one holds: a person has chosen it
		if err := d.Want(order, price); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(string(d), "orders", "junk.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if w, err := d.Wanted(); err != nil || len(w) != 1 || w[order].Price != 900 {
		t.Errorf("%v, %v", w, err)
	}
	for range 2 {
		if err := d.Done(order); err != nil {
			t.Error(err)
		}
	}
	if w, err := d.Wanted(); err != nil || len(w) != 0 {
		t.Errorf("%v, %v", w, err)
	}
}

// node is one that knows of a clearing, and of the bid in it.
type node struct {
	auctionv1.QueryClient
	progress *auctionv1.Progress
	seal     *auctionv1.Seal
	waits    bool // for sellers of the order
}

func (n *node) Seal(context.Context, *auctionv1.QuerySealRequest, ...grpc.CallOption) (*auctionv1.QuerySealResponse, error) {
	return &auctionv1.QuerySealResponse{Progress: n.progress, Seal: n.seal, Waits: n.waits}, nil
}

// bidder is one that has sent what sent says.
func bidder(t *testing.T, n *node, sent *[]sdk.Msg) *seals.Bidder {
	return &seals.Bidder{Dir: seals.In(t.TempDir()), Chain: "chain", Account: chaintest.Named("p0").String(), Query: n, Send: func(_ context.Context, m ...sdk.Msg) error {
		*sent = append(*sent, m...)
		return nil
	}}
}

func TestABidderBidsWhenItIsDue(t *testing.T) {
	open := &auctionv1.Progress{Number: 1, ClosesAt: 10}
	sealed := &auctionv1.Progress{Number: 1, ClosesAt: 10, RevealsUntil: 20}
	over := &auctionv1.Progress{Number: 1, ClosesAt: 10, RevealsUntil: 20, RevealedAt: 3}
	const nothing, seals, reveals = "", "*auctionv1.MsgSeal", "*auctionv1.MsgReveal"
	for name, x := range map[string]struct {
		p      *auctionv1.Progress
		sealed bool   // its bid
		price  uint64 // that is revealed
		now    int64
		want   string
	}{
		"none": {nil, false, 0, 5, nothing}, "open bids": {open, false, 0, 5, nothing},
		"may bid": {sealed, false, 0, 9, seals}, "too late": {sealed, false, 0, 10, nothing}, "has bid": {sealed, true, 0, 9, nothing},
		"others know": {sealed, true, 0, 10, reveals}, "lost": {sealed, true, 0, 20, nothing},
		"revealed": {sealed, true, 5, 10, nothing}, "waits": {over, true, 0, 15, nothing},
	} {
		var sent []sdk.Msg
		n := &node{progress: x.p}
		b := bidder(t, n, &sent)
		if x.sealed {
			m, err := b.Dir.Seal(b.Chain, b.Account, 1, "", "C", 5)
			if err != nil {
				t.Fatal(err)
			}
			n.seal = &auctionv1.Seal{Bidder: b.Account, Commitment: m.Commitment, Price: x.price}
		}
		if _, err := b.Step(t.Context(), "", x.now, func(uint64) (string, uint64, error) { return "C", 5, nil }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got := ""
		if len(sent) > 0 {
			got = fmt.Sprintf("%T", sent[0])
		}
		if got != x.want || len(sent) > 1 {
			t.Errorf("%s: sent %q, want %q", name, got, x.want)
		}
	}
}

// A bid is tried once in a clearing, and not used up by having nothing to bid yet; a price that could not be revealed is never sealed.
func TestABidderTriesOnceInAClearing(t *testing.T) {
	var sent []sdk.Msg
	n := &node{progress: &auctionv1.Progress{Number: 1, ClosesAt: 10, RevealsUntil: 20}}
	b := bidder(t, n, &sent)
	for i, x := range []struct{ clearing, price, sealed uint64 }{{1, 0, 0}, {1, 5, 1}, {1, 5, 0}, {2, 5, 2}} {
		n.progress.Number = x.clearing
		got, err := b.Step(t.Context(), "", 1, func(uint64) (string, uint64, error) { return "C", x.price, nil })
		if err != nil || got != x.sealed {
			t.Errorf("%d: sealed in clearing %d, want %d: %v", i, got, x.sealed, err)
		}
	}
	for _, price := range []uint64{0, 1<<40 + 1} {
		if _, err := b.Dir.Seal(b.Chain, b.Account, 3, "", "C", price); err == nil {
			t.Errorf("a bid of %d was sealed", price)
		}
	}
}

// While a sale of an order was open its home tried to bid for it: that was refused, and then it missed the clearing.
func TestABidderWaitsWhileTheOrderIsSold(t *testing.T) {
	var sent []sdk.Msg
	n := &node{progress: &auctionv1.Progress{Number: 1, ClosesAt: 10, RevealsUntil: 20}, waits: true}
	b := bidder(t, n, &sent)
	for now, want := range []uint64{0, 0, 1, 0} {
		n.waits = now < 2
		got, err := b.Step(t.Context(), canon.Sum("order").String(), int64(now), func(uint64) (string, uint64, error) { return "", 5, nil })
		if err != nil || got != want {
			t.Errorf("at %d: sealed in clearing %d, want %d: %v", now, got, want, err)
		}
	}
}

// A note that cannot be read says so, and keeps no other order from its bid.
func TestANoteThatCannotBeRead(t *testing.T) {
	d, good, bad := seals.In(t.TempDir()), canon.Sum("good").String(), canon.Sum("bad").String()
	if err := d.Want(good, 7); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(string(d), "orders", bad+".json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := d.Wanted()
	if err == nil || !strings.Contains(err.Error(), "seal by hand") || len(w) != 1 || w[good].Price != 7 {
		t.Errorf("%v, %v", w, err)
	}
}
