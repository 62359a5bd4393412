package client

import (
	"errors"
	"testing"
)

// A node that lies about the price of gas burnt a third of a consumer's money.
func TestPricesOfANodeAreBounded(t *testing.T) {
	for _, c := range []struct{ own, asked, want uint64 }{
		{0, 100, 100}, {500, 100, 500}, {100, 500, 500}, {0, maxGasPrice, maxGasPrice}, {0, maxGasPrice + 1, 0},
		{20_000, 20_000, 20_000}, {20_000, 15_000, 20_000}, {20_000, 20_001, 0}, {0, 1 << 63, 0},
	} {
		got, err := boundPrice(c.asked, c.own)
		var dear *PriceError
		if got != c.want || (c.want == 0) != errors.As(err, &dear) {
			t.Errorf("own %d, asked %d: %d, %v; want %d", c.own, c.asked, got, err, c.want)
		}
	}
}
