package seals_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	if w, err := d.Wanted(); err != nil || len(w) != 1 || w[order] != 900 {
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

func TestDue(t *testing.T) {
	open := &auctionv1.Progress{Number: 1, ClosesAt: 10}
	sealed := &auctionv1.Progress{Number: 1, ClosesAt: 10, RevealsUntil: 20}
	over := &auctionv1.Progress{Number: 1, ClosesAt: 10, RevealsUntil: 20, RevealedAt: 3}
	mine, told := &auctionv1.Seal{}, &auctionv1.Seal{Price: 5}
	for name, x := range map[string]struct {
		p    *auctionv1.Progress
		s    *auctionv1.Seal
		now  int64
		want seals.Step
	}{
		"none": {nil, nil, 5, seals.Nothing}, "open bids": {open, nil, 5, seals.Nothing},
		"may bid": {sealed, nil, 9, seals.Seal}, "too late": {sealed, nil, 10, seals.Nothing}, "has bid": {sealed, mine, 9, seals.Nothing},
		"others know": {sealed, mine, 10, seals.Reveal}, "lost": {sealed, mine, 20, seals.Nothing},
		"revealed": {sealed, told, 10, seals.Nothing}, "waits": {over, mine, 15, seals.Nothing},
	} {
		if got := seals.Due(&auctionv1.QuerySealResponse{Progress: x.p, Seal: x.s}, x.now); got != x.want {
			t.Errorf("%s: %d, want %d", name, got, x.want)
		}
	}
}
