package runner

import (
	"testing"

	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
)

// A newcomer went under the first of the cheapest validators, where it was alone, and no
// order that wants two providers came there.
func TestNewcomerGoesWhereOthersAre(t *testing.T) {
	all := []marketv1.Offer{{Validator: "alone", FeeBps: 500}, {Validator: "team", FeeBps: 500}, {Validator: "dear", FeeBps: 501}}
	if got := cheapestOf(all, map[string][]uint64{"team": {1, 2}, "dear": {1, 1, 1}}); got != "team" {
		t.Errorf("it goes under %q", got)
	}
}
