package clusters

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"github.com/cosmos/gogoproto/grpc"

	"github.com/tally-network/tally/core/cluster"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/p2p"
)

// View is a plan for the whole network. Times are in µs a unit.
type View struct {
	Validators []Validator `json:"validators"`
	Providers  []Provider  `json:"providers"`
	Moves      int         `json:"moves"`
	Before     uint64      `json:"cost_now_us"`
	After      uint64      `json:"cost_advised_us"`
	Asked      int         `json:"peers_asked"`
	Told       int         `json:"peers_told"`
}

// Validator is one that leads a cluster.
type Validator struct {
	Account string `json:"account"`
	Room    int    `json:"room"`
	Now     int    `json:"providers"`
	Advised int    `json:"providers_advised"`
}

// Provider is one, and where it does best.
type Provider struct {
	Account string        `json:"account"`
	Region  string        `json:"region,omitempty"`
	Tier    string        `json:"tier,omitempty"`
	Now     cluster.Place `json:"now"`
	Advised cluster.Place `json:"advised"`
}

// Gain returns what a provider gains by following the advice.
func (p *Provider) Gain() int64 { return int64(p.Now.Cost.Sum()) - int64(p.Advised.Cost.Sum()) }

// Look makes the plan. It asks validators first, then a provider if one is named, then others. What the account me has
// seen goes before what others say; it may be "".
func Look(ctx context.Context, node grpc.ClientConn, me, first string) (v *View, err error) {
	n, err := read(ctx, node)
	if err != nil {
		return nil, err
	}
	if first != "" && !slices.ContainsFunc(n.providers, func(p providerv1.Peer) bool { return p.Account == first }) {
		return nil, fmt.Errorf("%s is no registered provider", first)
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	host, err := p2p.New(p2p.Options{Key: key})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	peers := n.peers(first)
	s, told := ask(ctx, host, peers, slices.Concat(n.validators, n.providers))
	v, err = n.view(s, me)
	if err == nil {
		v.Asked, v.Told = len(peers), told
	}
	return v, err
}

// peers returns whom to ask: validators, then a provider, then others.
func (n *network) peers(first string) (out []providerv1.Peer) {
	has := map[string]bool{}
	add := func(all []providerv1.Peer, fits func(account string) bool) {
		for _, p := range all {
			if len(out) < maxAsked && !has[p.Account] && fits(p.Account) {
				has[p.Account] = true
				out = append(out, p)
			}
		}
	}
	anybody := func(string) bool { return true }
	add(n.validators, anybody)
	add(n.providers, func(account string) bool { return account == first })
	add(n.providers, anybody)
	return out
}

// view makes the plan of what is known.
func (n *network) view(s seen, me string) (*View, error) {
	leads, providers := n.leads(), n.all(s, me)
	plan, err := cluster.Make(leads, providers, cluster.Standard)
	if err != nil {
		return nil, err
	}
	out := &View{Validators: []Validator{}, Providers: []Provider{}, Moves: plan.Moves, Before: plan.Before, After: plan.After}
	now, advised := map[string]int{}, map[string]int{}
	known := map[string]*cluster.Provider{}
	for i := range providers {
		known[providers[i].Account] = &providers[i]
	}
	for _, a := range plan.Advice {
		p := known[a.Provider]
		now[a.Now.Validator]++
		advised[a.To.Validator]++
		out.Providers = append(out.Providers, Provider{a.Provider, p.Region, n.tiers.Of(p.Speed), a.Now, a.To})
	}
	for _, v := range leads {
		out.Validators = append(out.Validators, Validator{v.Account, v.Room, now[v.Account], advised[v.Account]})
	}
	return out, nil
}
