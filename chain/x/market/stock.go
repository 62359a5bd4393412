package market

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"cosmossdk.io/collections"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/book"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/match"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// matcher is the keeper with what matching needs of other modules.
type matcher struct {
	*Keeper
	registry Registry
	leases   Leases
	games    Games
	powers   Powers
}

// Limits on what one block reads. Where there is more, blocks read it part by part: an order meets the best
// offer of the part that its block reads.
const (
	maxLeads = 2048           // validators that may have an offer
	maxTeam  = job.MaxParties // providers of one validator
)

// Passing over so many members of a ranked team takes as long as weighing one provider, or one quote: 0.25 µs
// in BenchmarkReplicas. More would let a block do more than it counts.
const passed = 16

// beginning is how many times as long as weighing a provider it takes to store a party of a lease that
// begins: 0.7 µs, in BenchmarkParties of x/work.
const beginning = 4

// stock is what is on offer at one moment.
type stock struct {
	rules      job.Params
	games      dispute.Rules
	clusters   []cluster              // in account order
	validators []providerv1.Candidate // of those with the most stake the active ones
	owners     map[string]bool        // of these
	tiers      match.Tiers
	leadFactor uint64
	powers     powers
	improved   bool // of the offers those alone that have improved
	work       int  // done to price it: providers weighed, and as much as weighing so many
}

// cluster is an offer and the peers behind it.
type cluster struct {
	offer     marketv1.Offer
	lead      providerv1.Candidate
	providers []providerv1.Candidate // active ones
	referees  int                    // owners of active validators beside the lead's
	obstacle  error                  // why it takes no orders now
	full      error                  // if it leads as many as it offers; told last, for that passes
	room      uint64                 // utally: the price of what it may still lead
}

// leads visits validators that may have an offer, from an account on until before another; nil is either
// end.
type leads func(ctx context.Context, from, until sdk.AccAddress, visit func(sdk.AccAddress) (stop bool, err error)) error

// posted visits whoever has an offer, without stake too.
func (m matcher) posted(ctx context.Context, from, until sdk.AccAddress, visit func(sdk.AccAddress) (bool, error)) error {
	part := new(collections.Range[sdk.AccAddress])
	if from != nil {
		part.StartInclusive(from)
	}
	if until != nil {
		part.EndExclusive(until)
	}
	return m.offers.Walk(ctx, part, func(lead sdk.AccAddress, _ marketv1.Offer) (bool, error) { return visit(lead) })
}

// stock reads the offers of leads that were posted below a height, from an account on, until it has
// looked at all of them or at as many as a block may.
func (m matcher) stock(ctx context.Context, below int64, from sdk.AccAddress, among leads) (s stock, seen window, err error) {
	if s, err = m.rules(ctx); err != nil {
		return s, seen, err
	}
	seen.from = from
	looked, offers, left := 0, 0, book.MaxPeers
	look := func(lead sdk.AccAddress) (bool, error) {
		looked++
		o, err := m.offers.Get(ctx, lead)
		switch has := err == nil; {
		case !has && !errors.Is(err, collections.ErrNotFound):
			return true, err
		case looked > maxLeads || has && (offers == book.MaxOffers || left <= 0):
			seen.until = lead
			return true, nil
		case !has:
			return false, nil
		}
		offers++
		read, err := m.enterCluster(ctx, &s, lead, o, below, min(left, maxTeam))
		left -= read
		return false, err
	}
	err = among(ctx, from, nil, look)
	if err == nil && seen.until == nil {
		err = among(ctx, nil, from, look)
	}
	seen.whole = seen.until == nil
	slices.SortFunc(s.clusters, func(x, y cluster) int { return cmp.Compare(x.offer.Validator, y.offer.Validator) })
	return s, seen, err
}

// stockOf reads the offers of some validators, as stock does. Those at which it may not look
// yet stay marked.
func (m matcher) stockOf(ctx context.Context, below int64, leads []sdk.AccAddress) (s stock, err error) {
	if s, err = m.rules(ctx); err != nil {
		return s, err
	}
	left := book.MaxPeers
	s.improved = true
	for _, lead := range leads {
		o, err := m.offers.Get(ctx, lead)
		if errors.Is(err, collections.ErrNotFound) {
			continue
		}
		if err == nil && (left <= 0 || o.Height >= below) {
			err = m.registry.MarkImproved(ctx, lead)
		}
		if err != nil {
			return s, err
		}
		read, err := m.enterCluster(ctx, &s, lead, o, below, min(left, maxTeam))
		if left -= read; err != nil {
			return s, err
		}
	}
	return s, nil
}

// rules returns a stock of nothing, with the rules and the validators that judge.
func (m matcher) rules(ctx context.Context) (s stock, err error) {
	if s.rules, err = m.leases.Rules(ctx); err != nil {
		return s, err
	}
	if s.games, err = m.games.Rules(ctx); err != nil {
		return s, err
	}
	registry, err := m.registry.Params(ctx)
	if err != nil {
		return s, err
	}
	s.leadFactor, s.tiers, s.powers = registry.LeadFactor, wire.TiersFromProto(registry.Tiers), newPowers(ctx, m.powers)
	all, err := m.registry.Validators(ctx, job.MaxParties)
	s.validators = m.free(ctx, all)
	s.owners = map[string]bool{}
	for i := range s.validators {
		s.owners[ownerOf(&s.validators[i])] = true
	}
	return s, err
}

// turnOf returns where in the order of accounts a block begins to look.
func turnOf(ctx context.Context) sdk.AccAddress {
	height := sdk.UnwrapSDKContext(ctx).BlockHeight()
	h := canon.Sum(canon.DomainDraw, []byte("market"), binary.BigEndian.AppendUint64(nil, uint64(height)))
	return h[:20]
}

// nextWindow returns where the next part of the offers begins.
func (m matcher) nextWindow(ctx context.Context) (sdk.AccAddress, error) {
	from, err := m.cursor.Get(ctx)
	if errors.Is(err, collections.ErrNotFound) {
		return turnOf(ctx), nil
	}
	return from, err
}

// enterCluster enters an offer that was posted below a height, with at most so many of the
// providers behind it. It says how many it has read.
func (m matcher) enterCluster(ctx context.Context, s *stock, lead sdk.AccAddress, o marketv1.Offer, below int64, most int) (read int, err error) {
	if most <= 0 {
		return 0, nil
	}
	if entered, err := m.enterLead(ctx, s, lead, o, below); err != nil || !entered {
		return 0, err
	}
	all, err := m.registry.Providers(ctx, lead, turnOf(ctx), most)
	s.clusters[len(s.clusters)-1].providers = m.free(ctx, all)
	return len(all), err
}

// readLead reads the lead of a cluster, and says why it takes no orders now, if it does not.
func (m matcher) readLead(ctx context.Context, s *stock, c *cluster, lead sdk.AccAddress) (err error) {
	if c.lead, err = m.registry.Candidate(ctx, lead); err != nil {
		return err
	}
	led, worth, err := m.leases.Leading(ctx, c.offer.Validator)
	if err != nil {
		return err
	}
	c.room = match.Lapse(c.lead.Lapsed).Capacity(c.lead.Stake, s.leadFactor)
	c.room -= min(worth, c.room)
	c.obstacle, c.full = nil, nil
	if !m.registry.Free(ctx, c.lead) {
		c.obstacle = errors.New("the validator is jailed or excluded, owes an answer in a dispute, or its stake is below the minimum")
	}
	if led >= int(c.offer.MaxLeases) {
		c.full = fmt.Errorf("leads %d leases, as many as it offers: an order waits until one ends", led)
	}
	return nil
}

// refresh reads a lead anew: of all that is on offer, a lease that begins changes what its lead
// has reserved and how many leases that leads.
func (m matcher) refresh(ctx context.Context, s *stock, lead string) error {
	account, err := address.Parse(lead)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(s.clusters, func(c cluster) bool { return c.offer.Validator == lead })
	return m.readLead(ctx, s, &s.clusters[i], account)
}

// free returns the candidates that may get new work now.
func (m matcher) free(ctx context.Context, all []providerv1.Candidate) (out []providerv1.Candidate) {
	for _, c := range all {
		if m.registry.Free(ctx, c) {
			out = append(out, c)
		}
	}
	return out
}
