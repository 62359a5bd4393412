package wire

import (
	"fmt"
	"math"

	"github.com/tally-network/tally/core/match"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

func needsToProto(n *match.Needs) marketv1.Needs {
	return marketv1.Needs{
		Accounts: n.Accounts, Regions: n.Regions, Excluded: n.Excluded, Tags: n.Tags, Privacy: uint32(n.Privacy),
		Memory: n.Memory, Tier: n.Tier, Speed: n.Speed, Power: n.Power,
		MaxProviders: uint32(n.Most), Throughput: n.Throughput, DeadlineMs: n.Deadline,
	}
}

func needsFromProto(m *marketv1.Needs) (n match.Needs, err error) {
	for _, l := range []struct {
		name string
		all  []string
	}{{"accounts", m.Accounts}, {"regions", m.Regions}, {"excluded regions", m.Excluded}, {"tags", m.Tags}} {
		if err := tooMany(len(l.all), match.MaxListed, l.name); err != nil {
			return n, err
		}
	}
	if m.Privacy > math.MaxUint8 {
		return n, fmt.Errorf("privacy %d is no level", m.Privacy)
	}
	return match.Needs{
		Accounts: m.Accounts, Regions: m.Regions, Excluded: m.Excluded, Tags: m.Tags, Privacy: match.Privacy(m.Privacy),
		Memory: m.Memory, Tier: m.Tier, Speed: m.Speed, Power: m.Power,
		Most: int(m.MaxProviders), Throughput: m.Throughput, Deadline: m.DeadlineMs,
	}, nil
}

// DeclaredToProto returns what a provider says of itself as its listing carries it.
func DeclaredToProto(d match.Declared) providerv1.Declared {
	return providerv1.Declared{Region: d.Region, Tags: d.Tags, Memory: d.Memory, Privacy: uint32(d.Privacy)}
}

// DeclaredFromProto is the inverse of DeclaredToProto.
func DeclaredFromProto(m *providerv1.Declared) (match.Declared, error) {
	if err := tooMany(len(m.Tags), match.MaxListed, "tags"); err != nil {
		return match.Declared{}, err
	}
	if m.Privacy > math.MaxUint8 {
		return match.Declared{}, fmt.Errorf("privacy %d is no level", m.Privacy)
	}
	return match.Declared{Region: m.Region, Tags: m.Tags, Memory: m.Memory, Privacy: match.Privacy(m.Privacy)}, nil
}

// TiersToProto returns classes of speed as the registry's rules carry them.
func TiersToProto(t match.Tiers) []providerv1.Tier {
	return list(t, func(x match.Tier) providerv1.Tier { return providerv1.Tier{Label: x.Label, Speed: x.Speed} })
}

// TiersFromProto is the inverse of TiersToProto.
func TiersFromProto(all []providerv1.Tier) match.Tiers {
	return list(all, func(m providerv1.Tier) match.Tier { return match.Tier{Label: m.Label, Speed: m.Speed} })
}

// SpeedOf returns the speed of a peer in FLOP/s, as measured.
func SpeedOf(p *providerv1.Pace) uint64 { return PaceFromProto(p).Speed() }

// PaceFromProto returns what was measured of a peer.
func PaceFromProto(p *providerv1.Pace) match.Pace {
	return match.Pace{Work: p.Work, Time: p.TimeMs, Probed: p.Probed}
}
