package auction

import (
	"testing"

	"pgregory.net/rapid"
)

func TestWhatIsAskedOfBidders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doubt, record := rapid.Uint32Range(0, bps).Draw(t, "doubt"), rapid.Uint64().Draw(t, "record")
		if h := Handicap(doubt, record); h > doubt || record > uint64(doubt) && h != 0 || record == 0 && h != doubt {
			t.Fatalf("a record of %d makes of a doubt of %d one of %d", record, doubt, h)
		}
		period, failed := rapid.Int64Range(1, 7*24*3600*1000).Draw(t, "period"), rapid.Uint32().Draw(t, "failed")
		if s := SitOut(period, failed); s < period || s < SitOut(period, failed-min(failed, 1)) || s > period<<maxDoublings {
			t.Fatalf("after %d failures a task sits out for %d periods of %d", failed, s/period, period)
		}
		sold := rapid.Uint64Range(1, MaxUnits).Draw(t, "sold")
		if !Enough(sold, sold) || Enough(0, sold) || Enough(sold/2, sold) && sold > 1 {
			t.Fatalf("of %d units the half is enough, or all are not", sold)
		}
	})
	for speed, want := range map[uint64]uint64{0: 1_440_000, 99e9: 1_440_000, 100e9: 1_440_000, 1000e9: 14_400_000, 20_000e9: 288_000_000} {
		if n := Sellable(speed); n != want {
			t.Errorf("at %d operations a second %d units may be on sale, want %d", speed, n, want)
		}
	}
	for left, sold := range map[uint64]uint64{9: 10, 90: 100, 1: 1, MaxUnits: MaxUnits} {
		if !Enough(left, sold) {
			t.Errorf("%d of %d are too few", left, sold)
		}
	}
	if Enough(8, 10) || Enough(1, 10) {
		t.Error("a crumb is enough")
	}
}
