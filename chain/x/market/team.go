package market

import (
	"cmp"
	"math"
	"slices"

	"github.com/tally-network/tally/core/job"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// members are providers, the cheapest for an order's units first. Offers share them, so they are not changed.
type members []member

// member is a provider of a team.
type member struct {
	*providerv1.Candidate
	pay     uint64    // of a unit
	dearest job.Rates // of those up to this one
	judge   string    // its owner, if that owns an active validator too
}

// rank returns the providers behind offers. Those behind the offer that an order is leased to compute
// it. Places of replicas are drawn from those behind all offers: a lead could fill its own cluster
// with accomplices.
func (s *stock) rank(p *job.Problem, clusters []cluster) members {
	n := 0
	for i := range clusters {
		n += len(clusters[i].providers)
	}
	s.work += n
	t := make(members, 0, n)
	for i := range clusters {
		for j := range clusters[i].providers {
			x := member{Candidate: &clusters[i].providers[j]}
			var err error
			if x.pay, err = ratesOf(x.Candidate).Pay(p.UnitFLOPs(), p.StepBytes*uint64(p.Steps)); err != nil {
				x.pay = math.MaxUint64
			}
			if owner := ownerOf(x.Candidate); s.owners[owner] {
				x.judge = owner
			}
			t = append(t, x)
		}
	}
	slices.SortStableFunc(t, func(x, y member) int { return cmp.Compare(x.pay, y.pay) })
	return t.sum()
}

// sum enters the dearest rates of each beginning.
func (t members) sum() members {
	for i := range t {
		t[i].dearest = ratesOf(t[i].Candidate)
		if i > 0 {
			t[i].dearest = t[i-1].dearest.Dearest(t[i].dearest)
		}
	}
	return t
}

// without returns a team without some of its members.
func (s *stock) without(t members, some func(*member) bool) members {
	s.work += len(t) / passed
	first := 0
	for first < len(t) && !some(&t[first]) {
		first++
	}
	if first == len(t) {
		return t
	}
	out := append(make(members, 0, len(t)), t[:first]...)
	for i := first + 1; i < len(t); i++ {
		if !some(&t[i]) {
			out = append(out, t[i])
		}
	}
	return out.sum()
}

// referees returns the validators that are independent of the owner of a lead.
func (s *stock) referees(owner string) (out []*providerv1.Candidate) {
	for i := range s.validators {
		if v := &s.validators[i]; ownerOf(v) != owner {
			out = append(out, v)
		}
	}
	return out
}

// ownerOf returns who owns a candidate: itself, if it has declared nobody.
func ownerOf(c *providerv1.Candidate) string { return cmp.Or(c.Owner, c.Account) }

// peers returns the members alone.
func (t members) peers() []*providerv1.Candidate {
	out := make([]*providerv1.Candidate, len(t))
	for i := range t {
		out[i] = t[i].Candidate
	}
	return out
}

// parties returns peers as leases know them, in account order.
func parties(peers []*providerv1.Candidate) []job.Party {
	out := make([]job.Party, len(peers))
	for i, p := range peers {
		out[i] = job.Party{Account: p.Account, Key: p.PeerKey, VRF: p.VrfKey, Rates: ratesOf(p), Weight: p.Stake, Owner: p.Owner}
	}
	slices.SortFunc(out, func(x, y job.Party) int { return cmp.Compare(x.Account, y.Account) })
	return out
}

func ratesOf(p *providerv1.Candidate) job.Rates {
	return job.Rates{GFLOP: p.UnitPrice, GB: p.BytePrice}
}
