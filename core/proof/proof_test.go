package proof

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/tally-network/tally/core/canon"
)

func seedOf(i uint64) []byte { return binary.LittleEndian.AppendUint64(nil, i) }

func TestCheckpoints(t *testing.T) {
	for _, c := range []struct {
		steps, interval int
		want            []int
	}{{6, 2, []int{0, 2, 4, 6}}, {7, 3, []int{0, 3, 6, 7}}, {2, 5, []int{0, 2}}, {1, 1, []int{0, 1}}} {
		if got := Checkpoints(c.steps, c.interval); !slices.Equal(got, c.want) {
			t.Errorf("%d steps every %d: %v, want %v", c.steps, c.interval, got, c.want)
		}
	}
}

// detection is the probability that auditing k of n segments at random hits at
// least one of the forged: 1 − C(n−forged, k)/C(n, k).
func detection(n, forged, k int) float64 {
	miss := 1.0
	for i := range min(k, n) {
		miss *= float64(max(n-forged-i, 0)) / float64(n-i)
	}
	return 1 - miss
}

func TestDetectionMatchesDraws(t *testing.T) {
	for _, c := range []struct {
		n, forged, k int
		want         float64
	}{{100, 10, 5, 0.42}, {100, 10, 20, 0.90}, {100, 30, 10, 0.98}, {100, 100, 1, 1}, {10, 0, 5, 0}, {4, 1, 4, 1}} {
		if got := detection(c.n, c.forged, c.k); math.Abs(got-c.want) > 0.006 {
			t.Errorf("detection(%d, %d, %d) = %.3f, want %.2f", c.n, c.forged, c.k, got, c.want)
		}
	}
	hits, runs := 0, 5000
	for i := range uint64(runs) {
		for _, s := range Segments(seedOf(i), 20, 3) {
			if s < 4 {
				hits++
				break
			}
		}
	}
	if got, want := float64(hits)/float64(runs), detection(20, 4, 3); math.Abs(got-want) > 0.04 {
		t.Errorf("auditing hit a forged segment in %.3f of draws, formula says %.3f", got, want)
	}
}

func TestDigestBindsAuditorReceiptAndOutcomes(t *testing.T) {
	r := canon.Sum("receipt")
	outcomes := []Outcome{{canon.Sum("a"), canon.Sum("b")}, {canon.Sum("c"), canon.Sum("d")}}
	skipped := slices.Clone(outcomes)
	skipped[1].Before = outcomes[0].End // a checkpoint, which everybody knows
	d := Digest("x", r, outcomes)
	if d == Digest("y", r, outcomes) || d == Digest("x", canon.Sum("other"), outcomes) || d == Digest("x", r, outcomes[:1]) || d == Digest("x", r, skipped) {
		t.Fatal("a digest fits another auditor, receipt or execution")
	}
	if string(AuditInput(r, "x")) == string(AuditInput(r, "y")) {
		t.Fatal("two auditors share a VRF input")
	}
}
