package role_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/internal/testkit/roletest"
)

// A provider follows the leases in which it has a part, and those of its validator whose units it may be
// offered; each once.
func TestLeasesThatConcernAProvider(t *testing.T) {
	env, n := roletest.New(t, roletest.Me)
	n.Peers = []providerv1.Peer{{Account: roletest.Me, Listing: providerv1.Listing{Validator: "lead"}}}
	n.Parts = map[string][]canon.Hash{}
	want := map[canon.Hash]string{}
	for nonce, x := range []struct {
		name           string
		part, led, may bool
		replicas       int
		follows        bool
	}{
		{"it had a unit of it, and its validator has changed", true, false, false, 0, true},
		{"its validator's, which may offer it units", false, true, true, 0, true},
		{"the same, and it has had one", true, true, true, 0, true},
		{"its validator's, for others behind it", false, true, false, 0, false},
		{"its validator's, of drawn replicas", false, true, true, 2, false},
		{"of drawn replicas, and it was drawn", true, true, true, 2, true},
		{"others'", false, false, true, 0, false},
	} {
		l, _ := roletest.Lease(t, env)
		l.Order.Nonce, l.Order.Conditions.Replicas = uint64(nonce), x.replicas
		if l.Providers = (job.Pool{{Account: "other"}}); x.may {
			l.Providers = job.Pool{{Account: roletest.Me}, {Account: "other"}}
		}
		n.Put(l)
		id := l.Order.ID()
		if x.part {
			n.Parts[roletest.Me] = append(n.Parts[roletest.Me], id)
		}
		if x.led {
			n.Parts["lead"] = append(n.Parts["lead"], id)
		}
		if x.follows {
			want[id] = x.name
		}
	}
	live, err := env.Live(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range live {
		if id := l.Order.ID(); want[id] == "" {
			t.Errorf("it follows order %d, which does not concern it, or twice", l.Order.Nonce)
		} else {
			delete(want, id)
		}
	}
	if len(want) > 0 {
		t.Errorf("it does not follow these: %q", slices.Sorted(maps.Values(want)))
	}
}
