package session_test

import (
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/session"
)

// BenchmarkVoucher checks vouchers as a provider does: reads, verifies and takes them.
func BenchmarkVoucher(b *testing.B) {
	terms := termsOf("alice", "bob")
	tab := session.NewTab(terms)
	v := session.Voucher{Session: terms.ID(), Number: 1, Amount: 500, Root: canon.Root(nil)}
	raw, signature := canon.Marshal(&v), sign("alice", v.ID())
	b.ReportAllocs()
	for b.Loop() {
		var v session.Voucher
		if err := canon.Unmarshal(raw, &v); err != nil {
			b.Fatal(err)
		}
		if err := v.Verify(&terms, signature); err != nil {
			b.Fatal(err)
		}
		one := *tab
		if err := one.Take(&v); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "vouchers/s")
}
