package proof

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// missed is the exact probability.
func missed(n, forged, audited int) float64 {
	r := new(big.Rat).SetFrac(new(big.Int).Binomial(int64(n-forged), int64(audited)), new(big.Int).Binomial(int64(n), int64(audited)))
	f, _ := r.Float64()
	return f
}

func TestMissedIsHypergeometricRoundedUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 256).Draw(t, "n")
		forged, audited := rapid.IntRange(0, n).Draw(t, "forged"), rapid.IntRange(0, n).Draw(t, "audited")
		got, want := float64(Missed(n, forged, audited))/Certain, 0.0
		if audited <= n-forged {
			want = missed(n, forged, audited)
		}
		if got < want-1e-12 || got > want+float64(n)/Certain {
			t.Fatalf("%d of %d forged, %d audited: missed with %v, want %v", forged, n, audited, got, want)
		}
	})
}

func TestOdds(t *testing.T) {
	for _, c := range []struct {
		n, forged, audited, auditors int
		want                         float64
	}{
		{100, 10, 5, 1, 0.42}, {100, 10, 10, 1, 0.67}, {100, 10, 20, 1, 0.90}, {100, 30, 5, 1, 0.84}, {100, 30, 10, 1, 0.98},
		{100, 100, 1, 1, 1}, {4, 1, 1, 1, 0.25}, {4, 1, 1, 2, 0.4375}, {4, 0, 4, 3, 0}, {4, 1, 0, 3, 0}, {4, 1, 4, 1, 1},
	} {
		if got := float64(Detected(c.n, c.forged, c.audited, c.auditors)) / Certain; math.Abs(got-c.want) > 0.005 {
			t.Errorf("%+v: detected with %v", c, got)
		}
	}
	if got := AtLeastOnce(Certain/20, 50); math.Abs(float64(got)/Certain-0.923) > 0.001 {
		t.Errorf("one of 50 at 5 %% each: %d", got)
	}
	if AtLeastOnce(0, 1<<40) != 0 || AtLeastOnce(1, 1<<62) > Certain || AtLeastOnce(Certain, 1) != Certain {
		t.Error("odds at the ends")
	}
}

func TestAuditedFallsToItsFloor(t *testing.T) {
	last := 100
	for record := range uint64(2000) {
		got := Audited(100, 5, record)
		switch {
		case got > last:
			t.Fatalf("record %d: %d segments, fewer for a shorter record", record, got)
		case record <= 10 && got != 100, got < 5:
			t.Fatalf("record %d: %d segments", record, got)
		}
		last = got
	}
	if last != 5 || Audited(100, 5, 100) != 10 || Audited(100, 5, 0) != 100 || Audited(0, 0, 50) != 0 || Audited(4, 0, 1<<40) != 1 {
		t.Fatalf("a record of 2000 gives %d", last)
	}
}

func TestLargestComesBesideTheDraw(t *testing.T) {
	sizes := []float64{3, 9, 1, 9, 4}
	for q, want := range [][]int{{}, {3}, {3, 4}, {3, 4, 0}, {3, 4, 0, 2}, {3, 4, 0, 2}} {
		if got := Largest(sizes, q, []int{1}); !slices.Equal(got, want) {
			t.Errorf("the largest %d: %v, want %v", q, got, want)
		}
	}
}
