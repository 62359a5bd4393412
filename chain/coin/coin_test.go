package coin

import (
	"math"
	"testing"
)

func TestAmounts(t *testing.T) {
	for _, n := range []uint64{0, 1, MaxSupply, math.MaxUint64} {
		if coins := Of(n); !coins.IsValid() || Amount(coins) != n {
			t.Errorf("%d utally became %s", n, coins)
		}
	}
	if MaxSupply+MaxSupply < MaxSupply {
		t.Error("two amounts that exist overflow")
	}
}
