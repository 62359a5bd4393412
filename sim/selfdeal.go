package sim

import "github.com/tally-network/tally/core/job"

// SelfDeal is how one person, who is consumer, lead, all providers and a third of the validators, orders from itself to draw
// forced attempts. It asks for no auditors.
type SelfDeal uint8

// The self-deals.
const (
	DealsToTheEnd SelfDeal = iota // all that it orders is done
	DealsLate                     // what is not forced is late
	DealsUndrawn                  // nobody can put up the bonds behind what is not forced, which costs it nothing
	DealsUntilOne                 // likewise, until something is forced; all that follows is done
	DealsWithhold                 // nobody has the data of what is not forced
	numSelfDeals
)

// SelfDeals says how.
var SelfDeals = [numSelfDeals]string{"finishes", "is late with the rest", "lets nobody be drawn for the rest", "lets nobody be drawn until one is forced", "withholds the rest"}

// Play plays such an order. It gains what it has in the end over not ordering; computing costs it nothing, since it may ask
// any price for little work.
func (s SelfDeal) Play(rules job.Params, rounds int, seed uint64) (Game, error) {
	return s.play(economy{rules: rules, forced: rules.ForcedBps + moreForced/uint64(rounds), rounds: rounds}, seed)
}

func (s SelfDeal) play(e economy, seed uint64) (Game, error) {
	e.deal = deal{true, s == DealsUndrawn || s == DealsUntilOne, s == DealsUntilOne}
	does := Strategy{chooseAudits: noAuditors}
	switch s {
	case DealsLate:
		does[choosePlain] = isLate
	case DealsWithhold:
		does[choosePlain] = withholds
	}
	b, err := newBout(e, 1<<Consumer|1<<Lead|1<<Provider|1<<Custodian, does, seed)
	if err == nil {
		err = b.play()
	}
	if err != nil {
		return Game{}, err
	}
	g := Game{Weight: likelihood(b)}
	for account, n := range b.earned { // order: a sum of whole numbers
		if b.mine(account) {
			g.Gain += float64(n)
		}
	}
	return g, nil
}

// deal is what a coalition does that orders from itself.
type deal struct {
	owned   bool // it has all providers
	undrawn bool // it lets nobody be drawn for what is not forced
	once    bool // until something is
}

// spoils reports whether the coalition sees to it that nobody is drawn for an attempt.
func (d deal) spoils(b *bout, unit, attempt int) bool {
	if !d.undrawn || d.once && len(b.shown) > 0 {
		return false
	}
	_, forced := b.forcedDraw(unit, attempt)
	return !forced
}

// affords says whether accounts can put up a bond. Where the coalition asks a great price only its own can, and only if it
// wishes.
func (d deal) affords(b *bout) func(string, uint64) bool {
	for shard, u := range b.lease.RoundUnits() {
		if undrawn(&u) && d.spoils(b, b.lease.Unit(b.lease.Round, shard), u.Attempt) {
			return func(string, uint64) bool { return false }
		}
	}
	return func(_ string, bond uint64) bool { return bond <= stake }
}

// waits reports whether a receipt is kept back until those of forced attempts have their custodians.
func (d deal) waits(b *bout, unit, attempt int) bool {
	if !d.spoils(b, unit, attempt) {
		return false
	}
	for shard, u := range b.lease.RoundUnits() {
		if (u.Status == job.Assigned || undrawn(&u)) && !d.spoils(b, b.lease.Unit(b.lease.Round, shard), u.Attempt) {
			return true
		}
	}
	return false
}

// undrawn reports whether nobody is drawn yet for a receipt.
func undrawn(u *job.Unit) bool { return u.Status == job.Received && len(u.Attested) == 0 }
