package consume

import (
	"testing"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
)

// Of several disputes an order is told of by the first that convicted somebody.
func TestTellingDispute(t *testing.T) {
	about := func(unit int, loser disputev1.Side) disputev1.Dispute {
		return disputev1.Dispute{
			Parties: disputev1.Parties{Defender: "defender", Challenger: "challenger", Target: wire.TargetToProto(job.UnitTarget(unit))}, Loser: loser,
		}
	}
	open, lost, won := about(1, disputev1.SIDE_UNSPECIFIED), about(2, disputev1.SIDE_CHALLENGER), about(3, disputev1.SIDE_DEFENDER)
	dropped := about(5, disputev1.SIDE_UNSPECIFIED)
	dropped.Stage = dispute.Over.String()
	for name, c := range map[string]struct {
		all   []disputev1.Dispute
		unit  int
		loser string
	}{
		"one that is open":               {[]disputev1.Dispute{open, lost}, 1, ""},
		"one that failed":                {[]disputev1.Dispute{lost, open}, 2, "challenger"},
		"a conviction after others":      {[]disputev1.Dispute{open, lost, won, about(4, disputev1.SIDE_DEFENDER)}, 3, "defender"},
		"one after one that was dropped": {[]disputev1.Dispute{dropped, lost}, 2, "challenger"},
	} {
		if got := telling(c.all); got == nil || got.Unit != c.unit || got.Loser != c.loser {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if telling(nil) != nil || telling([]disputev1.Dispute{dropped}) != nil {
		t.Error("a dispute where there was none")
	}
}

// What is under way was told as if all of it had been computed.
func TestAcceptedUnitsAreCounted(t *testing.T) {
	l := &job.Lease{Merges: make([]job.Merge, 3), Units: make([]job.Unit, 12)}
	l.Order.Problem.Rounds, l.Order.Problem.Shards = 3, 4
	for _, c := range []struct {
		round    int
		accepted []int
		want     int
	}{{0, nil, 0}, {0, []int{1, 3}, 2}, {1, []int{4, 5, 6}, 7}, {3, nil, 12}} {
		for i := range l.Units {
			l.Units[i].Status = 0
		}
		for _, i := range c.accepted {
			l.Units[i].Status = job.Accepted
		}
		if l.Round = c.round; accepted(l) != c.want {
			t.Errorf("round %d with %v: %d units, want %d", c.round, c.accepted, accepted(l), c.want)
		}
	}
}

func TestSharesNameTheInsuranceFund(t *testing.T) {
	got := shares([]job.Share{{Account: "a", Amount: 1}, {Account: job.Insurance, Amount: 2}, {Account: "a", Amount: 3}})
	if len(got) != 2 || got["a"] != 4 || got[InsuranceFund] != 2 {
		t.Errorf("%v", got)
	}
}

func TestObstaclesAreSaidOfEachOffer(t *testing.T) {
	if got := Obstacles([]marketv1.Bid{{Validator: "a", Obstacle: "too dear"}, {Validator: "b"}, {Validator: "c", Obstacle: "full"}}); got != "a: too dear; c: full" {
		t.Errorf("%q", got)
	}
	if Obstacles(nil) == "" {
		t.Error("nothing is said where there are no offers")
	}
}
