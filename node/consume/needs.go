package consume

import (
	"fmt"
	"slices"
	"time"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/core/match"
	"github.com/tally-network/tally/node/consume/quantity"
)

// SpecNeeds is what an order asks of those who compute it, beside their price. What is not given asks
// nothing.
type SpecNeeds struct {
	OnlyProviders   []string       `json:"onlyProviders,omitempty"` // accounts
	Regions         []string       `json:"regions,omitempty"`       // countries, ISO 3166-1 alpha-2
	ExcludedRegions []string       `json:"excludedRegions,omitempty"`
	Tags            []string       `json:"tags,omitempty"`    // all of these
	Privacy         string         `json:"privacy,omitempty"` // public, discreet or enclosed
	Memory          quantity.Bytes `json:"memory,omitempty"`
	Tier            string         `json:"tier,omitempty"`
	Speed           quantity.Speed `json:"speed,omitempty"` // of each, as measured
	Power           quantity.Power `json:"power,omitempty"` // effective

	MaxProviders int            `json:"maxProviders,omitempty"`
	Throughput   quantity.Speed `json:"throughput,omitempty"` // of all together, as measured
	Deadline     Duration       `json:"deadline,omitempty"`   // from the match
}

// needs returns what these come to, or what is wrong.
func (s *SpecNeeds) needs() (n match.Needs, err error) {
	sorted := func(all []string) []string {
		all = slices.Clone(all)
		slices.Sort(all)
		return all
	}
	n = match.Needs{
		Accounts: sorted(s.OnlyProviders), Regions: sorted(s.Regions), Excluded: sorted(s.ExcludedRegions), Tags: sorted(s.Tags),
		Memory: uint64(s.Memory), Tier: s.Tier, Speed: uint64(s.Speed), Power: uint64(s.Power),
		Most: s.MaxProviders, Throughput: uint64(s.Throughput), Deadline: time.Duration(s.Deadline).Milliseconds(),
	}
	for _, a := range n.Accounts {
		if _, err := address.Parse(a); err != nil {
			return n, fmt.Errorf("conditions.onlyProviders: %w: tally query provider peers lists them", err)
		}
	}
	if s.Privacy != "" {
		if n.Privacy, err = match.ParsePrivacy(s.Privacy); err != nil {
			return n, fmt.Errorf("conditions.privacy: %w", err)
		}
	}
	if err := n.Check(); err != nil {
		return n, fmt.Errorf("conditions: %w", err)
	}
	return n, nil
}
