package e2e_test

import (
	"slices"
	"testing"

	"github.com/tally-network/tally/core/job"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	"github.com/tally-network/tally/internal/testkit/nettest"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/demo"
	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/home"
	"github.com/tally-network/tally/node/role"
)

// The lead has every role, that of a provider under itself among them, and another validator is a
// challenger too. The order settles, what they compute holds, and a provider that cheats is convicted.
func TestAccountsOfSeveralRoles(t *testing.T) {
	nettest.Rare(t)
	t.Parallel()
	n := nettest.Start(t, nettest.Options{
		Config: func(c *devnet.Config) { c.Validators = 4 },
		Spec: func(s *consume.Spec) {
			s.Conditions.Assurance.Audit, s.Problem.Batch = &consume.SpecAudit{Auditors: 1, Segments: 2}, 8
			s.Problem.Shards = 3 // of which each computes two at a time
		},
		Also: map[string][]home.Role{"validator-0": {home.Provider, home.Challenger}, "validator-1": {home.Challenger}},
		Env: func(env *role.Env) {
			if env.Name == "provider-0" {
				env.Jobs.Exec, _ = demo.CheatULP.Executor(env.Jobs.Exec, job.Training, 4)
			}
		},
	})
	l := n.Settle(n.Post(nil))
	var providers []string
	for _, p := range l.Providers {
		providers = append(providers, n.Name(p.Account))
	}
	slices.Sort(providers)
	if !slices.Equal(providers, []string{"provider-0", "provider-1", "validator-0"}) {
		t.Errorf("providers %v", providers)
	}
	ds := disputes(t, n)
	for _, d := range ds {
		if d.Loser != disputev1.SIDE_DEFENDER || n.Name(d.Parties.Defender) != "provider-0" {
			t.Errorf("dispute %+v", d)
		}
	}
	if got := barred(n, l); !slices.Equal(got, []string{"provider-0"}) || len(ds) == 0 {
		t.Errorf("barred %v after %d disputes", got, len(ds))
	}
	if paid(n, l.Ledger.Paid, "validator-0") == 0 || l.Round != len(l.Merges) {
		t.Errorf("paid %+v, %d rounds of %d", l.Ledger.Paid, l.Round, len(l.Merges))
	}
}

// All validators provide: an honest order settles, for whoever is to keep its files takes them from the consumer.
func TestAllValidatorsProvide(t *testing.T) {
	nettest.Rare(t)
	t.Parallel()
	n := nettest.Start(t, nettest.Options{
		Config: func(c *devnet.Config) { c.Validators = 4 },
		Spec:   func(s *consume.Spec) { s.Conditions.Assurance = consume.SpecAssurance{Replicas: 2} },
		Also:   map[string][]home.Role{"validator-0": {home.Provider}, "validator-1": {home.Provider}, "validator-2": {home.Provider}, "validator-3": {home.Provider}},
		Idle:   []string{"challenger-0"},
	})
	l := n.Settle(n.Post(nil))
	if l.Files.Said != job.Had || l.Reason != "" {
		t.Errorf("files %v, %s", l.Files.Said, l.Reason)
	}
}
