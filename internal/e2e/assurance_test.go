package e2e_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tally-network/tally/internal/testkit/nettest"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/devnet"
)

// Each form of assurance that looks at everything finds one forged unit of either kind, with no
// challenger about. The cheater loses its bond, and the order ends as if it had been honest.
func TestAssuranceFindsACheater(t *testing.T) {
	for form, assurance := range map[string]consume.SpecAssurance{
		"watched":  {Watched: true},
		"replicas": {Replicas: 2},
	} {
		for _, kind := range []string{"training", "batch"} {
			t.Run(form+" "+kind, func(t *testing.T) {
				t.Parallel()
				var cheater atomic.Value // the first to compute unit 1
				wrong := nettest.Bend{Wrong: func(r nettest.Run) bool {
					if r.Merge || r.Round != 0 || r.Shard != 1 || r.Step != 1 {
						return false
					}
					cheater.CompareAndSwap(nil, r.Role)
					return cheater.Load() == r.Role
				}}
				bend := func(c *consume.SpecConditions) {
					c.Assurance = assurance
					c.UnitTimeout = consume.Duration(20 * time.Second) // so long another unit of the convict is held, if it was just counted
				}
				o := nettest.Options{
					Config: func(c *devnet.Config) { c.Providers = 3 },
					Spec:   func(s *consume.Spec) { bend(&s.Conditions) },
					Bend:   map[string]nettest.Bend{"provider-0": wrong, "provider-1": wrong, "provider-2": wrong},
					Idle:   []string{"challenger-0"},
				}
				if kind == "batch" {
					_, o.Draft = batchDraft(t, bend)
				}
				n := nettest.Start(t, o)
				l := n.Settle(n.Post(nil))
				who, _ := cheater.Load().(string) // nobody, if no provider came to the unit
				if got := barred(n, l); !slices.Equal(got, []string{who}) {
					t.Fatalf("barred %v, %q cheated", got, who)
				}
			})
		}
	}
}
