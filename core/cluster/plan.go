package cluster

import (
	"cmp"
	"fmt"
	"slices"
)

// Plan advises each provider, in account order.
type Plan struct {
	Advice []Advice
	Moves  int    // of those who have a validator
	Before uint64 // what these cost now, in µs
	After  uint64 // and if all follow the advice
}

// Advice says where a provider does best. Who has no room anywhere is advised to stay.
type Advice struct {
	Provider string
	Now, To  Place
}

// Place is one in a cluster, as a provider finds it. The zero value is none.
type Place struct {
	Validator string  `json:"validator"`
	Link      Link    `json:"link"`
	Cluster   Profile `json:"cluster"`
	Cost      Cost    `json:"cost"`
}

// wish is a provider's wish for a place.
type wish struct {
	gain     int64 // µs
	provider int32
	to       int32
}

// planner makes a plan. Validators and providers go by their places in account order; who has no validator is under
// one more, which is nobody.
type planner struct {
	rules      *Rules
	validators []*Validator
	given      []int // where each validator is in what was given
	providers  []*Provider
	profiles   []Profile
	now, to    []int      // of each provider
	is         []uint64   // what each costs now
	load       []int      // of each validator
	waiting    [][][]wish // by who is wished for, and who would be left; the largest gain first
	left       int        // moves that the plan may still make
}

// Make returns the plan for validators and providers.
//
// What each provider gains at each validator is known from the start, for a cluster counts as it is now. Wishes are
// granted in the order of their gains, while there is room. One for a cluster that is full waits until somebody leaves
// it, or until somebody in it wishes for the place of who waits: then both change places. For n providers
// and m validators that takes O(n·m·log(n·m)) steps, and memory for n·m wishes.
func Make(validators []Validator, providers []Provider, r Rules) (*Plan, error) {
	p, err := newPlanner(validators, providers, &r)
	if err != nil {
		return nil, err
	}
	for _, w := range p.wishes() {
		p.grant(w)
	}
	return p.plan(), nil
}

// newPlanner returns one that has granted nothing yet.
func newPlanner(validators []Validator, providers []Provider, r *Rules) (*planner, error) {
	p := &planner{rules: r}
	for _, i := range inOrder(len(validators), func(i int) string { return validators[i].Account }) {
		p.validators, p.given = append(p.validators, &validators[i]), append(p.given, i)
	}
	for _, i := range inOrder(len(providers), func(i int) string { return providers[i].Account }) {
		p.providers = append(p.providers, &providers[i])
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	p.begin()
	return p, nil
}

// inOrder returns the places of n accounts in account order.
func inOrder(n int, account func(i int) string) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	slices.SortFunc(out, func(a, b int) int { return cmp.Compare(account(a), account(b)) })
	return out
}

// check returns an error if two have one account.
func (p *planner) check() error {
	for i, v := range p.validators {
		if i > 0 && v.Account == p.validators[i-1].Account {
			return fmt.Errorf("validator %s is there twice", v.Account)
		}
	}
	for i, x := range p.providers {
		if i > 0 && x.Account == p.providers[i-1].Account {
			return fmt.Errorf("provider %s is there twice", x.Account)
		}
	}
	return nil
}

// nobody is whom providers without a validator are under.
func (p *planner) nobody() int { return len(p.validators) }

// begin notes where everybody is, and what it costs.
func (p *planner) begin() {
	members := make([][]*Provider, p.nobody()+1)
	for _, x := range p.providers {
		at, ok := slices.BinarySearchFunc(p.validators, x.Now, func(v *Validator, account string) int { return cmp.Compare(v.Account, account) })
		if !ok {
			at = p.nobody()
		}
		members[at] = append(members[at], x)
		p.now = append(p.now, at)
	}
	p.to = slices.Clone(p.now)
	all := profile(p.providers, Profile{})
	for _, some := range members[:p.nobody()] {
		p.load, p.profiles = append(p.load, len(some)), append(p.profiles, profile(some, all))
		p.waiting = append(p.waiting, make([][]wish, p.nobody()+1))
	}
	p.left = max(2, (len(p.providers)-len(members[p.nobody()]))*p.rules.Moved/1000)
	for i, at := range p.now {
		cost := uint64(unplaced)
		if at != p.nobody() {
			cost = p.place(i, at).Cost.Sum()
		}
		p.is = append(p.is, cost)
	}
}

// unplaced is what it costs to have no validator: more than any place.
const unplaced = 8 * most

// place returns a validator's place as a provider finds it.
func (p *planner) place(i, at int) (out Place) {
	x := p.providers[i]
	out.Validator, out.Cluster = p.validators[at].Account, p.profiles[at]
	if given := p.given[at]; given < len(x.Links) {
		out.Link = x.Links[given]
	}
	out.Cost = p.rules.Cost(x, out.Link, out.Cluster)
	return out
}

// wishes returns who gains where, the largest gain first. Who is in a crowded cluster wishes to leave it, even at a loss.
func (p *planner) wishes() (out []wish) {
	for i, at := range p.now {
		for j := range p.validators {
			w := wish{int64(p.is[i]) - int64(p.place(i, j).Cost.Sum()), int32(i), int32(j)}
			if j != at && (p.gains(w) || p.crowded(at)) {
				out = append(out, w)
			}
		}
	}
	slices.SortFunc(out, func(a, b wish) int {
		return cmp.Or(cmp.Compare(b.gain, a.gain), cmp.Compare(a.provider, b.provider), cmp.Compare(a.to, b.to))
	})
	return out
}

// gains reports whether a wish gains enough to be worth a move.
func (p *planner) gains(w wish) bool {
	return w.gain >= p.rules.worth(p.is[w.provider])
}

// crowded reports whether a validator has more than it may.
func (p *planner) crowded(at int) bool {
	return at != p.nobody() && p.load[at] > p.validators[at].Room
}

// grant grants a wish if that can be done, and what then can be, too.
func (p *planner) grant(w wish) {
	from, to := p.now[w.provider], int(w.to)
	switch {
	case p.to[w.provider] != from || !p.gains(w) && !p.crowded(from):
	case p.load[to] < p.validators[to].Room:
		for next := &w; next != nil; {
			next = p.move(*next)
		}
	case p.gains(w):
		other := p.first(from, to)
		if other == nil || p.left < 2 {
			p.waiting[to][from] = append(p.waiting[to][from], w)
			return
		}
		p.to[w.provider], p.to[other.provider] = to, from
		p.left -= 2
	}
}

// move moves a provider where there is room, and returns whose wish can be granted by that.
func (p *planner) move(w wish) (next *wish) {
	from, to := p.now[w.provider], int(w.to)
	if from != p.nobody() {
		if p.left == 0 {
			return nil
		}
		p.left--
		p.load[from]--
	}
	p.to[w.provider] = to
	p.load[to]++
	if from == p.nobody() || p.load[from] >= p.validators[from].Room {
		return nil
	}
	for origin := range p.waiting[from] {
		if x := p.first(from, origin); x != nil && (next == nil || x.gain > next.gain) {
			next = x
		}
	}
	return next
}

// first returns who gains most of those who wait for one validator, and are still under another.
func (p *planner) first(wanted, under int) *wish {
	if wanted == p.nobody() {
		return nil
	}
	q := &p.waiting[wanted][under]
	for len(*q) > 0 && p.to[(*q)[0].provider] != under {
		*q = (*q)[1:]
	}
	if len(*q) == 0 {
		return nil
	}
	return &(*q)[0]
}

func (p *planner) plan() *Plan {
	out := &Plan{}
	for i, x := range p.providers {
		a := Advice{Provider: x.Account}
		if at := p.now[i]; at != p.nobody() {
			a.Now = p.place(i, at)
		}
		if to := p.to[i]; to != p.nobody() {
			a.To = p.place(i, to)
		}
		if a.Now.Validator != "" {
			out.Before, out.After = out.Before+a.Now.Cost.Sum(), out.After+a.To.Cost.Sum()
			if a.To.Validator != a.Now.Validator {
				out.Moves++
			}
		}
		out.Advice = append(out.Advice, a)
	}
	return out
}

// Places returns where there is room for a provider that has no validator yet, the best first.
func Places(validators []Validator, providers []Provider, newcomer Provider, r Rules) (out []Place, err error) {
	newcomer.Now = ""
	p, err := newPlanner(validators, append(slices.Clip(providers), newcomer), &r)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(p.providers, func(x *Provider) bool { return x.Account == newcomer.Account })
	for at, v := range p.validators {
		if p.load[at] < v.Room {
			out = append(out, p.place(i, at))
		}
	}
	slices.SortStableFunc(out, func(a, b Place) int { return cmp.Compare(a.Cost.Sum(), b.Cost.Sum()) })
	return out, nil
}
