package market

import (
	"cmp"
	"context"
	"fmt"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/match"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// What the conditions of an order cost, as many times as weighing a provider does.
const (
	readPower = 64 // to read the computing power of an account: 15 µs
	planned   = 5  // to plan with a member of a team: some fifty times as long as to pass over it
)

// fitting are the members of a ranked team that meet what an order needs of each, and what others lack.
type fitting struct {
	team members
	lack match.Census
}

// fit takes those out of a ranked team that do not meet what an order needs of each of them.
func (s *stock) fit(t members, n *match.Needs) (f fitting) {
	if f.team = t; !n.AskEach() {
		return f
	}
	s.work += len(t)
	f.team = s.without(t, func(p *member) bool {
		c := s.capability(p.Candidate, n)
		return !f.lack.Add(n, &c)
	})
	return f
}

// because adds to why an order does not take an offer what providers lack, where there are too few.
func (f *fitting) because(why error, few bool) error {
	if lack := f.lack.Err(); why != nil && few && lack != nil {
		return fmt.Errorf("%w: %w", why, lack)
	}
	return why
}

// capability returns what is known of a provider, as far as an order asks.
func (s *stock) capability(p *providerv1.Candidate, n *match.Needs) match.Capability {
	d := &p.Declared
	c := match.Capability{
		Account: p.Account, Speed: p.Speed,
		Declared: match.Declared{Region: d.Region, Tags: d.Tags, Memory: d.Memory, Privacy: match.Privacy(d.Privacy)},
	}
	if n.Power > 0 {
		read := false
		if c.Power, read = s.powers.of(p.Account); read {
			s.work += readPower
		}
	}
	return c
}

// computing returns who of a team may compute an order that a cluster takes. Where every owner of a
// validator is needed to judge, none of them may have a provider.
func (s *stock) computing(t members, c *cluster, o *job.Order) members {
	if k := &o.Conditions; c.referees >= max(k.Auditors, k.Custodians)+k.Copies() {
		return t
	}
	own := ownerOf(&c.lead)
	return s.without(t, func(p *member) bool { return p.judge != "" && p.judge != own })
}

// suffices returns an error if a team is too slow for an order.
func (s *stock) suffices(t members, o *job.Order) error {
	n := &o.Conditions.Needs
	if n.Throughput == 0 && n.Deadline == 0 {
		return nil
	}
	s.work += planned * len(t)
	speeds := make([]uint64, len(t))
	for i := range t {
		speeds[i] = t[i].Speed
	}
	return n.Suffices(o.Plan(), speeds)
}

// powers are the computing powers that a block has read.
type powers struct {
	ctx  context.Context
	from Powers
	read map[string]uint64
	err  error // why one could not be read: then nobody is known to have what an order asks
}

func newPowers(ctx context.Context, from Powers) powers {
	return powers{ctx: ctx, from: from, read: map[string]uint64{}}
}

// of returns the effective power of an account, and whether that had to be read.
func (p *powers) of(account string) (power uint64, read bool) {
	if power, ok := p.read[account]; ok {
		return power, false
	}
	a, err := address.Parse(account)
	if err == nil {
		power, err = p.from.Effective(p.ctx, a)
	}
	p.err = cmp.Or(p.err, err)
	p.read[account] = power
	return power, true
}

// unread returns why power that an order asks for could not be read, if it could not.
func (p *powers) unread(n *match.Needs) error {
	if n.Power == 0 {
		return nil
	}
	return p.err
}
