// Package cluster advises providers which validator to work under: one that is near, leads machines like
// theirs, and has room.
//
// Call [Make] with what is known of validators and providers, or [Places] for one that begins. [Between] says what is believed of a link of which
// both ends tell, [Rules.Cost] what a provider costs in a cluster, and [Room] how many a cluster may have.
//
// Invariants: a plan depends on what is known, and not on its order. No plan fills a cluster beyond its room. Who moves
// gains what the rules ask for, unless its cluster has more than it may. What is said of one provider's links changes
// no other's costs.
//
// Sources: clusters of DKLabs.AI, §7; constrained k-means (Bradley, Bennett, Demiriz 2000), whose step of assignment
// is done greedily here. The project's specification is docs/spec/clusters.md.
package cluster

import (
	"cmp"
	"slices"

	"github.com/tally-network/tally/core/money"
)

// Link is what was seen of the way between two peers; a field that is 0 was not seen.
type Link struct {
	RTT  uint64 `json:"rtt_us"` // from a request to the beginning of its response
	Rate uint64 `json:"bytes_per_second"`
}

// Assumed is a link of which nothing is known.
var Assumed = Link{RTT: 100_000, Rate: 4_000_000}

// Between returns what is believed of a link by what its two ends say: the slower. What one end alone says is not
// believed where it is better than what is assumed of any link. So neither end alone can better it.
func Between(a, b Link) Link {
	out := Link{max(a.RTT, b.RTT), min(a.Rate, b.Rate)}
	if (a.RTT == 0) != (b.RTT == 0) {
		out.RTT = max(out.RTT, Assumed.RTT)
	}
	if (a.Rate == 0) != (b.Rate == 0) {
		out.Rate = min(max(a.Rate, b.Rate), Assumed.Rate)
	}
	return out
}

// Validator is one that leads a cluster.
type Validator struct {
	Account string
	Room    int // how many providers it may have
}

// Provider is one that looks for a cluster.
type Provider struct {
	Account string
	Now     string // its validator; empty, or none that is known, if it has none
	Region  string // in which it computes; empty if it says none
	Speed   uint64 // FLOP/s; 0 if it was not measured
	Links   []Link // to each validator, in the order in which [Make] is given these; what is missing was not seen
}

// Rules say what counts how far. All times are in µs.
type Rules struct {
	Trips  uint64 // round trips of a unit
	Bytes  uint64 // that are moved for it
	Work   uint64 // FLOP of it
	Abroad uint64 // what it costs to be in another region than most of a cluster
	Least  uint64 // that a move gains
	Part   uint64 // of what a provider costs, in thousandths, that a move gains as well
	Moved  int    // part of the providers that one plan moves, in thousandths; two may move always
}

// Standard are the rules by which the network advises. Their unit exchanges a state of four million float32 weights in eight
// round trips, and takes 20 s at 5 GFLOP/s.
var Standard = Rules{Trips: 8, Bytes: 16 << 20, Work: 100_000_000_000, Abroad: 1_000_000, Least: 100_000, Part: 200, Moved: 50}

// Room returns how many providers one of so many validators may have: a quarter more than an equal share, or eight.
func Room(providers, validators int) int {
	if validators == 0 {
		return 0
	}
	return max(8, (5*providers+4*validators-1)/(4*validators))
}

// most bounds each term of a cost: ten minutes, in µs.
const most = 600_000_000

// Cost is what a provider costs in a cluster, in µs a unit.
type Cost struct {
	Exchange uint64 `json:"exchange_us"` // what is moved takes so long
	Wait     uint64 `json:"wait_us"`     // it waits for the others, or they for it
	Abroad   uint64 `json:"abroad_us"`   // it is in another region
}

// Sum returns all of a cost.
func (c Cost) Sum() uint64 { return c.Exchange + c.Wait + c.Abroad }

// Profile is what the machines of a cluster have in common. What is not known of its own is that of all providers.
type Profile struct {
	Region string `json:"region,omitempty"`          // of most; empty if none says one
	Speed  uint64 `json:"flop_per_second,omitempty"` // the median; 0 if none was measured
}

// Cost returns what a provider costs in a cluster, over a link to its validator.
func (r *Rules) Cost(p *Provider, l Link, c Profile) (out Cost) {
	out.Exchange = min(money.ScaleClamped(r.Trips, cmp.Or(l.RTT, Assumed.RTT), 1), most) + r.time(r.Bytes, cmp.Or(l.Rate, Assumed.Rate))
	if p.Speed > 0 && c.Speed > 0 {
		mine, theirs := r.time(r.Work, p.Speed), r.time(r.Work, c.Speed)
		out.Wait = max(mine, theirs) - min(mine, theirs)
	}
	if p.Region != "" && c.Region != "" && p.Region != c.Region {
		out.Abroad = min(r.Abroad, most)
	}
	return out
}

// Worth reports whether a move from one place to another gains enough.
func (r *Rules) Worth(is, then Cost) bool {
	return int64(is.Sum())-int64(then.Sum()) >= r.worth(is.Sum())
}

// worth returns what a move must gain, where the place that is left costs so much.
func (r *Rules) worth(cost uint64) int64 {
	return int64(max(r.Least, money.ScaleClamped(cost, r.Part, 1000)))
}

// time returns how long something takes at a rate per second.
func (r *Rules) time(amount, rate uint64) uint64 {
	return min(money.ScaleClamped(amount, 1_000_000, rate), most)
}

// profile returns what providers have in common: the lower median of speeds, the most frequent region and of several
// the first. Both are where the sum of what the members cost is least: so plan after plan comes to an end.
func profile(members []*Provider, all Profile) (out Profile) {
	out = all
	var speeds []uint64
	var regions []string
	for _, p := range members {
		if p.Speed > 0 {
			speeds = append(speeds, p.Speed)
		}
		if p.Region != "" {
			regions = append(regions, p.Region)
		}
	}
	if len(speeds) > 0 {
		slices.Sort(speeds)
		out.Speed = speeds[(len(speeds)-1)/2]
	}
	slices.Sort(regions)
	for i, run, best := 0, 0, 0; i < len(regions); i++ {
		if run++; i > 0 && regions[i] != regions[i-1] {
			run = 1
		}
		if run > best {
			best, out.Region = run, regions[i]
		}
	}
	return out
}
