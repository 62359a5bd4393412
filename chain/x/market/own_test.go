package market

import (
	"testing"

	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

func TestATeamIsOwnedByOneAccount(t *testing.T) {
	of := func(account, owner string) member {
		return member{Candidate: &providerv1.Candidate{Account: account, Owner: owner}}
	}
	for name, c := range map[string]struct {
		team members
		want bool
	}{
		"nobody":                 {nil, false},
		"itself":                 {members{of("a", "")}, true},
		"its peers":              {members{of("a", ""), of("p", "a"), of("q", "a")}, true},
		"itself under its owner": {members{of("a", "b")}, true},
		"itself and a stranger":  {members{of("a", ""), of("b", "")}, false},
		"strangers of one owner": {members{of("p", "b"), of("q", "b")}, false},
	} {
		if got := c.team.ownedBy("a"); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
