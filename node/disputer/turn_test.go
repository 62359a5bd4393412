package disputer

import (
	"testing"

	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	"github.com/tally-network/tally/internal/testkit/roletest"
)

// Whose move it is follows from the side to move and who sits on it now.
func TestMovesOfASubstituteAreItsOwn(t *testing.T) {
	env, _ := roletest.New(t, roletest.Me)
	p := New(t.Context(), env)
	for _, c := range []struct {
		parties disputev1.Parties
		turn    disputev1.Side
		waiting bool
		mine    bool
	}{
		{disputev1.Parties{Defender: roletest.Me}, disputev1.SIDE_DEFENDER, false, true},
		{disputev1.Parties{Defender: roletest.Me}, disputev1.SIDE_DEFENDER, true, false},
		{disputev1.Parties{Defender: roletest.Me}, disputev1.SIDE_CHALLENGER, false, false},
		{disputev1.Parties{Challenger: roletest.Me}, disputev1.SIDE_CHALLENGER, false, true},
		{disputev1.Parties{Defender: roletest.Me, DefenderSubstitute: "she"}, disputev1.SIDE_DEFENDER, false, false},
		{disputev1.Parties{Defender: "she", DefenderSubstitute: roletest.Me}, disputev1.SIDE_DEFENDER, false, true},
		{disputev1.Parties{Challenger: "she", ChallengerSubstitute: roletest.Me}, disputev1.SIDE_CHALLENGER, false, true},
	} {
		d := &disputev1.Dispute{Parties: c.parties, Turn: c.turn, Waiting: c.waiting}
		if p.mine(d) != c.mine {
			t.Errorf("%+v, turn %v, waiting %v: mine is %v", c.parties, c.turn, c.waiting, !c.mine)
		}
	}
}
