package auction_test

import (
	"fmt"
	"testing"

	"github.com/tally-network/tally/bench/market"
	"github.com/tally-network/tally/core/auction"
)

func crowd(b *testing.B, n int) *auction.Book {
	book, err := market.Crowd(n)
	if err != nil {
		b.Fatal(err)
	}
	return book
}

func BenchmarkClear(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			book := crowd(b, n)
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := auction.Clear(book, auction.Params{}, auction.Standard); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			book := crowd(b, n)
			_, cert, err := auction.Clear(book, auction.Params{}, auction.Standard)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := auction.Check(book, auction.Params{}, cert); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCritical(b *testing.B) {
	for _, n := range []int{100, 1_000, 4_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			book := crowd(b, n)
			for b.Loop() {
				if _, _, err := auction.Clear(book, auction.Params{Rule: auction.Critical}, auction.Standard); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
