package market

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"cosmossdk.io/collections"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/core/auction"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// book is the keeper with what matching needs of other modules.
type book struct {
	*Keeper
	registry Registry
	leases   Leases
	games    Games
}

// What a block looks at: so many peers that stand behind offers, so many offers, and of one
// validator so many of its providers. Where there are more offers, the blocks in which an order is
// tried look at them in turn, and it meets the best of those at which a block has looked. Where a
// validator has more providers, another part of them has its turn in each block.
const (
	maxPeers  = 2048
	maxOffers = 512
	maxTeam   = job.MaxParties
)

// stock is what is on offer at one moment.
type stock struct {
	rules      job.Params
	games      dispute.Rules
	clusters   []cluster              // in account order
	validators []providerv1.Candidate // of those with the most stake the active ones
	owners     []string               // of these, in order
	part       bool                   // of the offers those alone that have improved
}

// cluster is an offer and the peers behind it.
type cluster struct {
	offer     marketv1.Offer
	lead      providerv1.Candidate
	providers []providerv1.Candidate // active ones
	referees  int                    // owners of active validators beside the lead's
	obstacle  error                  // why it takes no orders now
}

// stock reads the offers that were posted below a height, from an account on, until it has
// looked at all of them or at as many as a block may.
func (b book) stock(ctx context.Context, below int64, from sdk.AccAddress) (s stock, seen window, err error) {
	if s, err = b.rules(ctx); err != nil {
		return s, seen, err
	}
	seen.from = from
	offers, left := 0, maxPeers
	look := func(part *collections.Range[sdk.AccAddress]) error {
		return b.offers.Walk(ctx, part, func(lead sdk.AccAddress, o marketv1.Offer) (bool, error) {
			if offers++; offers > maxOffers || left <= 0 {
				seen.until = lead
				return true, nil
			}
			read, err := b.enterCluster(ctx, &s, lead, o, below, min(left, maxTeam))
			left -= read
			return false, err
		})
	}
	err = look(new(collections.Range[sdk.AccAddress]).StartInclusive(from))
	if err == nil && seen.until == nil {
		err = look(new(collections.Range[sdk.AccAddress]).EndExclusive(from))
	}
	seen.whole = seen.until == nil
	slices.SortFunc(s.clusters, func(x, y cluster) int { return cmp.Compare(x.offer.Validator, y.offer.Validator) })
	return s, seen, err
}

// stockOf reads the offers of some validators, as stock does. Those at which it may not look
// yet stay marked.
func (b book) stockOf(ctx context.Context, below int64, leads []sdk.AccAddress) (s stock, err error) {
	if s, err = b.rules(ctx); err != nil {
		return s, err
	}
	left := maxPeers
	s.part = true
	for _, lead := range leads {
		o, err := b.offers.Get(ctx, lead)
		if errors.Is(err, collections.ErrNotFound) {
			continue
		}
		if err == nil && (left <= 0 || o.Height >= below) {
			err = b.registry.MarkImproved(ctx, lead)
		}
		if err != nil {
			return s, err
		}
		read, err := b.enterCluster(ctx, &s, lead, o, below, min(left, maxTeam))
		if left -= read; err != nil {
			return s, err
		}
	}
	return s, nil
}

// rules returns a stock of nothing, with the rules and the validators that judge.
func (b book) rules(ctx context.Context) (s stock, err error) {
	if s.rules, err = b.leases.Rules(ctx); err != nil {
		return s, err
	}
	if s.games, err = b.games.Rules(ctx); err != nil {
		return s, err
	}
	all, err := b.registry.Validators(ctx, job.MaxParties)
	s.validators = b.free(ctx, all)
	for i := range s.validators {
		s.owners = append(s.owners, ownerOf(&s.validators[i]))
	}
	slices.Sort(s.owners)
	s.owners = slices.Compact(s.owners)
	return s, err
}

// turnOf returns where in the order of accounts a block begins to look.
func turnOf(ctx context.Context) sdk.AccAddress {
	height := sdk.UnwrapSDKContext(ctx).BlockHeight()
	h := canon.Sum(canon.DomainDraw, []byte("market"), binary.BigEndian.AppendUint64(nil, uint64(height)))
	return h[:20]
}

// nextWindow returns where the next part of the offers begins.
func (b book) nextWindow(ctx context.Context) (sdk.AccAddress, error) {
	from, err := b.cursor.Get(ctx)
	if errors.Is(err, collections.ErrNotFound) {
		return turnOf(ctx), nil
	}
	return from, err
}

// enterCluster enters an offer that was posted below a height, with at most so many of the
// providers behind it. It says how many it has read.
func (b book) enterCluster(ctx context.Context, s *stock, lead sdk.AccAddress, o marketv1.Offer, below int64, most int) (read int, err error) {
	if o.Height >= below || most <= 0 {
		return 0, nil
	}
	c := cluster{offer: o}
	if err := b.judge(ctx, &c, lead); err != nil {
		return 0, err
	}
	all, err := b.registry.Providers(ctx, lead, turnOf(ctx), most)
	if err != nil {
		return 0, err
	}
	c.providers, c.referees = b.free(ctx, all), len(s.owners)
	if _, judges := slices.BinarySearch(s.owners, ownerOf(&c.lead)); judges {
		c.referees-- // not its own
	}
	s.clusters = append(s.clusters, c)
	return len(all), nil
}

// judge reads the lead of a cluster, and says why it takes no orders now, if it does not.
func (b book) judge(ctx context.Context, c *cluster, lead sdk.AccAddress) (err error) {
	if c.lead, err = b.registry.Candidate(ctx, lead); err != nil {
		return err
	}
	led, err := b.leases.Led(ctx, c.offer.Validator)
	if err != nil {
		return err
	}
	c.obstacle = nil
	switch {
	case !b.registry.Free(ctx, c.lead):
		c.obstacle = fmt.Errorf("the validator is jailed, owes an answer in a dispute, or its stake is below the minimum")
	case led >= int(c.offer.MaxLeases):
		c.obstacle = fmt.Errorf("leads %d leases, as many as it offers", led)
	}
	return nil
}

// refresh reads a lead anew: of all that is on offer, a lease that begins changes what its lead
// has reserved and how many leases that leads.
func (b book) refresh(ctx context.Context, s *stock, lead string) error {
	account, err := address.Parse(lead)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(s.clusters, func(c cluster) bool { return c.offer.Validator == lead })
	return b.judge(ctx, &s.clusters[i], account)
}

// free returns the candidates that may get new work now.
func (b book) free(ctx context.Context, all []providerv1.Candidate) (out []providerv1.Candidate) {
	for _, c := range all {
		if b.registry.Free(ctx, c) {
			out = append(out, c)
		}
	}
	return out
}

// bid is an offer priced for one order.
type bid struct {
	auction.Offer
	owner    string // of the lead
	fee      uint64 // bps
	quote    job.Quote
	bond     uint64 // behind a unit of the first round, and behind the lead
	deposit  uint64 // locked beside the maximum price, or beside this if there is none
	team     []*providerv1.Candidate
	obstacle error // nil if the order can be leased to it
}

// wants returns what an order asks of offers; a maximum price of zero stands for
// any price.
func wants(c *job.Conditions) auction.Bid {
	w := c.Bid()
	if w.MaxPrice == 0 {
		w.MaxPrice = math.MaxUint64
	}
	return w
}

// bids prices every offer for an order.
func (s *stock) bids(o *job.Order) []bid {
	out := make([]bid, len(s.clusters))
	unfit := s.rules.Suits(o)
	if unfit == nil { // the rules may have changed since it was posted
		unfit = s.rules.Replayable(o, s.games)
	}
	w := wants(&o.Conditions)
	everybody := s.ranked(o)
	for i := range s.clusters {
		c := &s.clusters[i]
		b := s.price(c, o, everybody, w.MaxPrice)
		b.Referees = c.referees
		if b.obstacle == nil {
			b.obstacle = unfit
		}
		if b.obstacle == nil {
			b.obstacle = c.obstacle
		}
		if free := c.lead.Free; b.obstacle == nil && free < b.bond {
			b.obstacle = fmt.Errorf("the validator has %d utally of stake free, leading takes a bond of %d", free, b.bond)
		}
		if b.obstacle == nil {
			b.obstacle = w.Meets(b.Offer)
		}
		out[i] = b
	}
	return out
}

// price puts the team together: of the providers that can put up the bond as
// many of the cheapest as a price of at most limit allows, at least as many as
// the order wants. So nobody can spoil an offer with a price that nobody pays.
func (s *stock) price(c *cluster, o *job.Order, everybody []*providerv1.Candidate, limit uint64) bid {
	b := bid{Offer: auction.Offer{Validator: c.offer.Validator}, owner: ownerOf(&c.lead), fee: uint64(c.offer.FeeBps)}
	team := s.providersFor(c, o, everybody)
	for len(team) > 0 { // twice at most: fewer providers never make the bond larger
		team = s.afford(&b, team, o, limit)
		unable := func(p *providerv1.Candidate) bool { return p.Free < b.bond }
		if b.obstacle != nil || !slices.ContainsFunc(team, unable) {
			break
		}
		if team = slices.DeleteFunc(slices.Clone(team), unable); len(team) == 0 {
			b.obstacle = fmt.Errorf("no provider has the %d utally of stake free that a unit's bond takes", b.bond)
		}
	}
	b.team, b.Price, b.Providers = team, b.quote.Price, len(team)
	price := limit
	if limit == math.MaxUint64 {
		price = b.Price
	}
	var err error
	if b.deposit, err = s.rules.Deposit(price); err != nil && b.obstacle == nil {
		b.obstacle = err
	}
	return b
}

// ranked returns the providers behind all offers, the cheapest for an order first, if its places are
// drawn from all of them: those of replicas, with whom a lead could else fill its own cluster.
func (s *stock) ranked(o *job.Order) []*providerv1.Candidate {
	if o.Conditions.Replicas == 0 {
		return nil
	}
	var all []providerv1.Candidate
	for i := range s.clusters {
		all = append(all, s.clusters[i].providers...)
	}
	return cheapest(all, &o.Problem)
}

// providersFor returns who may compute an order that a cluster takes, the cheapest first, at most
// job.MaxParties: those behind its offer, or of everybody if places are drawn from all.
//
// Where every owner of a validator is needed to judge, none of them may have a provider.
func (s *stock) providersFor(c *cluster, o *job.Order, everybody []*providerv1.Candidate) []*providerv1.Candidate {
	all := everybody
	if o.Conditions.Replicas == 0 {
		all = cheapest(c.providers, &o.Problem)
	}
	judges := func(p *providerv1.Candidate) bool {
		_, found := slices.BinarySearch(s.owners, ownerOf(p))
		return found && ownerOf(p) != ownerOf(&c.lead)
	}
	if k := &o.Conditions; c.referees < max(k.Auditors, k.Custodians)+k.Copies() && slices.ContainsFunc(all, judges) {
		all = slices.DeleteFunc(slices.Clone(all), judges)
	}
	return all[:min(len(all), job.MaxParties)]
}

// afford prices an order for the longest beginning of a team, cheapest first, that a price
// of at most limit pays, or for as few as the order wants. A longer one is never cheaper,
// so it is found by halves.
func (s *stock) afford(b *bid, team []*providerv1.Candidate, o *job.Order, limit uint64) []*providerv1.Candidate {
	rates := make([]job.Rates, len(team)) // the dearest of each beginning
	for i, p := range team {
		rates[i] = ratesOf(p)
		if i > 0 {
			rates[i] = rates[i-1].Dearest(rates[i])
		}
	}
	quote := func(n int) []*providerv1.Candidate { s.quote(b, o, rates[n-1]); return team[:n] }
	if quote(len(team)); b.obstacle == nil && b.quote.Price <= limit {
		return team
	}
	least := min(o.Conditions.Bid().Providers, len(team))
	more := sort.Search(len(team)-least, func(i int) bool {
		quote(least + i + 1)
		return b.quote.Unit > 0 && (b.obstacle != nil || b.quote.Price > limit) || tooMuch(rates[least+i], &o.Problem)
	})
	if quote(least + more); b.obstacle != nil { // priced at nothing, or all of them too dear
		return quote(least)
	}
	return team[:least+more]
}

// tooMuch reports whether the pay of a unit cannot be counted.
func tooMuch(r job.Rates, p *job.Problem) bool {
	_, err := r.Pay(p.UnitFLOPs(), p.StepBytes*uint64(p.Steps))
	return err != nil
}

// quote prices an order at the rates of the dearest of a team.
func (s *stock) quote(b *bid, o *job.Order, dearest job.Rates) {
	p, terms := &o.Problem, &o.Conditions
	b.quote, b.obstacle = job.NewQuote(p, terms, dearest, b.fee, s.rules.Tariff)
	if b.obstacle == nil {
		// A provider with a long record is audited least, and its bond is highest.
		var bond job.Bond
		bond, b.obstacle = b.quote.Bond(p, terms, &s.rules, 0, terms.Audited(math.MaxUint64))
		b.bond = bond.Amount
	}
}

// cheapest returns peers, the cheapest for an order's units first.
func cheapest(peers []providerv1.Candidate, p *job.Problem) []*providerv1.Candidate {
	type priced struct {
		peer *providerv1.Candidate
		pay  uint64
	}
	list := make([]priced, len(peers))
	for i := range peers {
		pay, err := ratesOf(&peers[i]).Pay(p.UnitFLOPs(), p.StepBytes*uint64(p.Steps))
		if err != nil {
			pay = math.MaxUint64
		}
		list[i] = priced{&peers[i], pay}
	}
	slices.SortStableFunc(list, func(x, y priced) int { return cmp.Compare(x.pay, y.pay) })
	out := make([]*providerv1.Candidate, len(list))
	for i := range out {
		out[i] = list[i].peer
	}
	return out
}

// weight returns what it takes to price everything for an order: how many providers are ranked, and as
// much as a few more for each offer. Where each offer has all of them for its team, they are ranked once,
// and looked at by each.
func (s *stock) weight(o *job.Order) int {
	n, offers := 0, len(s.clusters)
	for i := range s.clusters {
		n += len(s.clusters[i].providers)
	}
	if o.Conditions.Replicas > 0 {
		return n + offers*(8+min(n, job.MaxParties)/4)
	}
	return n + 8*offers
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
