package market

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
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
	"github.com/tally-network/tally/core/team"
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

// bid is an offer priced for one order.
type bid struct {
	book.Offer
	owner    string // of the lead
	fee      uint64 // bps
	quote    job.Quote
	bond     uint64      // behind a unit of the first round, and behind the lead
	pays     uint64      // utally that the order pays at least; what providers, referees and fees do not get of it is burnt
	deposit  uint64      // locked beside the maximum price, or beside this if there is none
	sold     []job.Share // stake behind what these have sold at an auction
	team     members
	misses   []match.Miss // of providers behind the offer, or for replicas behind all offers
	obstacle error        // nil if the order can be leased to it
}

// wants returns what an order asks of offers; a maximum price of zero stands for
// any price.
func wants(c *job.Conditions) book.Bid {
	w := c.Bid()
	if w.MaxPrice == 0 {
		w.MaxPrice = math.MaxUint64
	}
	return w
}

// bids prices the offers for an order: those that nothing keeps from it whatever they cost or,
// for people, who compare, all of them.
func (s *stock) bids(o *job.Order, all bool) (out []bid) {
	unfit := s.rules.Suits(o)
	if unfit == nil { // the rules may have changed since it was posted
		unfit = s.rules.Replayable(o, s.games)
	}
	needs, err := o.Conditions.Needs.Under(s.tiers)
	unfit = cmp.Or(unfit, err)
	w := wants(&o.Conditions)
	var common fitting // of an order with replicas: they are the same for all offers, so they are ranked once
	for i := range s.clusters {
		c := &s.clusters[i]
		s.work++
		if !all && (unfit != nil || s.barred(c, &w)) {
			continue
		}
		fit := common
		switch {
		case o.Conditions.Replicas == 0:
			fit = s.fit(s.rank(&o.Problem, s.clusters[i:i+1]), &needs)
		case common.team == nil:
			common = s.fit(s.rank(&o.Problem, s.clusters), &needs)
			fit = common
		}
		b := s.price(c, o, s.computing(fit.team, c, o), w.MaxPrice)
		b.Referees, b.misses = c.referees, fit.lack.Misses()
		b.obstacle = cmp.Or(s.powers.unread(&needs), b.obstacle, unfit, c.obstacle, c.leads(b.quote.Price, b.bond), fit.because(w.Meets(b.Offer), b.Providers < w.Providers), s.suffices(b.team, o), c.full)
		out = append(out, b)
	}
	return out
}

// leads returns an error if the lead cannot put up a bond, or may not lead what has this price.
func (c *cluster) leads(price, bond uint64) error {
	switch {
	case c.lead.Free < bond:
		return fmt.Errorf("the validator has %d utally of stake free, leading takes a bond of %d", c.lead.Free, bond)
	case c.room < price:
		return fmt.Errorf("the validator may lead work of %d utally more, for its stake and how it has led: this costs %d", c.room, price)
	}
	return nil
}

// barred reports whether an offer cannot meet what an order wants, whatever it costs.
func (s *stock) barred(c *cluster, w *book.Bid) bool {
	return c.obstacle != nil || c.full != nil || c.lead.Free < s.rules.MinBond || c.referees < w.Referees ||
		w.Validator != "" && w.Validator != c.offer.Validator
}

// price puts the team together: of the providers that can put up the bond as
// many of the cheapest as a price of at most limit allows, at least as many as
// the order wants. So nobody can spoil an offer with a price that nobody pays.
func (s *stock) price(c *cluster, o *job.Order, ranked members, limit uint64) bid {
	b := bid{Offer: book.Offer{Validator: c.offer.Validator, Since: c.offer.Since}, owner: ownerOf(&c.lead), fee: uint64(c.offer.FeeBps)}
	able := ranked[:min(len(ranked), job.MaxParties)]
	for len(able) > 0 { // twice at most: fewer providers never make the bond larger
		able = s.afford(&b, able, o, limit)
		fit := s.without(able, func(p *member) bool { return p.Free < b.bond })
		if b.obstacle != nil || len(fit) == len(able) {
			break
		}
		if able = fit; len(able) == 0 {
			b.obstacle = fmt.Errorf("no provider has the %d utally of stake free that a unit's bond takes", b.bond)
		}
	}
	if most := o.Conditions.Needs.Most; most > 0 && len(able) > most && b.obstacle == nil { // each can put up what is less
		able = able[:most]
		s.quote(&b, o, able[most-1].dearest)
	}
	b.team, b.Price, b.Providers = able, b.quote.Price, len(able)
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

// afford prices an order for the team that a price of at most limit pays.
func (s *stock) afford(b *bid, t members, o *job.Order, limit uint64) members {
	terms := s.terms(b, o)
	n, p, err := terms.Afford(len(t), func(n int) job.Rates { return t[n-1].dearest }, limit)
	s.priced(b, terms, p, err)
	return t[:n]
}

// quote prices an order at the rates of the dearest of a team.
func (s *stock) quote(b *bid, o *job.Order, dearest job.Rates) {
	terms := s.terms(b, o)
	p, err := terms.At(dearest)
	s.priced(b, terms, p, err)
}

func (s *stock) terms(b *bid, o *job.Order) *team.Terms {
	return &team.Terms{Order: o, FeeBps: b.fee, Rules: &s.rules}
}

func (s *stock) priced(b *bid, t *team.Terms, p team.Price, err error) {
	s.work += t.Quotes
	b.quote, b.bond, b.obstacle = p.Quote, p.Bond, err
}

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
