package cli

import (
	"bytes"
	"strings"
	"testing"

	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
)

// A reader of its own power did not see that founders still vote almost everything.
func TestPowerInVotes(t *testing.T) {
	founders := []policyv1.Founder{{Account: "f", Weight: 1}, {Account: "g", Weight: 3}}
	r := &policyv1.QueryParamsResponse{Params: policyv1.Params{Base: 1000}, Founders: founders}
	for name, x := range map[string]struct {
		all  uint64
		a    *worth
		want votes
	}{
		"nobody asks":           {200, nil, votes{All: 1000, Base: 1000, Founders: 800}},
		"a worker":              {200, &worth{Account: "w", Effective: 50}, votes{All: 1000, Base: 1000, Founders: 800, Account: 50}},
		"a founder":             {200, &worth{Account: "f", Effective: 50}, votes{All: 1000, Base: 1000, Founders: 800, Account: 250, Founder: 200}},
		"a founder, in the end": {5000, &worth{Account: "g"}, votes{All: 5000, Base: 1000}},
	} {
		if got, err := newVotes(r, x.all, x.a); err != nil || got != x.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	var out bytes.Buffer
	(&powers{Account: &worth{Account: "w"}, Votes: votes{All: 1000, Base: 1000, Founders: 800, Account: 50}}).tell(&out)
	for _, want := range []string{"votes     0.00005 ut, 5 % of all that votes; 0 ut of it as a founder", "0.001 ut, of which founders have 0.0008 ut, 80 %: what power lacks of a base of 0.001 ut"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q:\n%s", want, &out)
		}
	}
}
