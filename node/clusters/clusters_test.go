package clusters

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"slices"
	"testing"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/cluster"
	"github.com/tally-network/tally/core/match"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/p2p"
)

var (
	near = cluster.Link{RTT: 1_000, Rate: 100_000_000}
	far  = cluster.Link{RTT: 300_000, Rate: 1_000_000}
)

// leading is a network of validators that offer at fees, without providers.
func leading(fees map[string]uint32, accounts ...string) *network {
	n := &network{tiers: match.Tiers{{Label: "A", Speed: 1_000_000_000_000}, {Label: "C"}}}
	for _, a := range accounts {
		n.offers = append(n.offers, marketv1.Offer{Validator: a, FeeBps: fees[a]})
		n.validators = append(n.validators, providerv1.Peer{Account: a})
	}
	return n
}

func (n *network) add(account, under string) {
	p := providerv1.Peer{Account: account}
	p.Listing.Validator = under
	n.providers = append(n.providers, p)
}

// A newcomer went under the first of the cheapest validators, where it was alone, and no
// order that wants two providers came there.
func TestNewcomerGoesWhereOthersAre(t *testing.T) {
	fees := map[string]uint32{"alone": 500, "team": 500, "dear": 501}
	for name, x := range map[string]struct {
		seen seen
		full string
		want string
	}{
		"nothing is known":                       {want: "team"},
		"what is a bit nearer weighs less":       {seen: seen{{"me", "alone"}: {RTT: 1000}, {"me", "team"}: {RTT: 2000}, {"me", "dear"}: {RTT: 1}}, want: "team"},
		"what is much nearer weighs more":        {seen: seen{{"me", "dear"}: near}, want: "dear"},
		"others' word of a link does not":        {seen: seen{{"dear", "me"}: near}, want: "team"},
		"others' word that a link is slow does":  {seen: seen{{"team", "me"}: far}, want: "alone"},
		"and not where it has seen it by itself": {seen: seen{{"team", "me"}: far, {"me", "team"}: near, {"me", "alone"}: near, {"me", "dear"}: near}, want: "team"},
		"there is no room":                       {full: "team", want: "alone"},
		"there is no room anywhere":              {full: "all", want: "team"},
	} {
		n := leading(fees, "alone", "team", "dear")
		n.add("a", "team")
		n.add("b", "team")
		n.add("me", "") // registered, and under nobody
		for i := range 12 {
			switch x.full {
			case "team":
				n.add(fmt.Sprint(x.full, i), x.full)
			case "all":
				for _, v := range []string{"alone", "team", "dear"} {
					n.add(fmt.Sprint(v, i), v)
				}
			}
		}
		if x.seen == nil {
			x.seen = seen{}
		}
		if got, err := n.choose(x.seen, "me", ""); err != nil || got != x.want {
			t.Errorf("%s: it goes under %q, want %q (%v)", name, got, x.want, err)
		}
	}
}

func TestViewOfWhatIsKnown(t *testing.T) {
	n := leading(nil, "v", "w")
	n.add("p", "v")
	n.add("q", "w")
	n.providers[0].Pace = providerv1.Pace{Work: 1 << 60, TimeMs: 600_000}
	n.add("w", "w") // provides to itself
	s := seen{{"p", "v"}: far, {"v", "p"}: far, {"p", "w"}: near, {"w", "p"}: near, {"v", "q"}: near}
	v, err := n.view(s, "")
	if err != nil {
		t.Fatal(err)
	}
	p := v.Providers[0]
	if p.Account != "p" || p.Tier != "A" || p.Now.Validator != "v" || p.Advised.Validator != "w" || p.Now.Link != far || p.Advised.Link != near || p.Gain() <= 0 {
		t.Errorf("%+v", p)
	}
	for _, x := range v.Providers[1:] {
		if x.Now != x.Advised || x.Gain() != 0 {
			t.Errorf("%+v is to move", x)
		}
	}
	if v.Moves != 1 || v.Validators[0].Now != 1 || v.Validators[0].Advised != 0 || v.Validators[1].Advised != 3 || v.Before <= v.After {
		t.Errorf("%+v", v)
	}
	if v, err = leading(nil).view(nil, ""); err != nil || v.Validators == nil || v.Providers == nil {
		t.Errorf("of nobody: %+v, %v", v, err)
	}
}

func TestWhomToAsk(t *testing.T) {
	n := leading(nil, "v", "w")
	for _, p := range []string{"p", "q", "w"} {
		n.add(p, "v")
	}
	var got []string
	for _, p := range n.peers("q") {
		got = append(got, p.Account)
	}
	if want := []string{"v", "w", "q", "p"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for i := range 2 * maxAsked {
		n.add(fmt.Sprint(i), "v")
	}
	if all := n.peers(""); len(all) != maxAsked {
		t.Errorf("%d are asked", len(all))
	}
}

// What peers tell is of those whom the registry has, and of themselves alone.
func TestAskingPeers(t *testing.T) {
	var hosts []*p2p.Host
	var peers []providerv1.Peer
	for _, account := range []string{"me", "v", "p", "away", "stranger"} {
		public, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		h, err := p2p.New(p2p.Options{Key: key})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.Close() })
		p := providerv1.Peer{Account: account, PeerKey: public}
		p.Listing.Addrs = h.Addrs()
		hosts, peers = append(hosts, h), append(peers, p)
		h.ServeLinks()
	}
	hosts[3].Close()
	for _, to := range []int{2, 4} { // v has asked p and a stranger
		if err := hosts[1].SetAddrs(hosts[to].ID(), peers[to].Listing.Addrs); err != nil {
			t.Fatal(err)
		}
		if _, err := hosts[1].LinksOf(t.Context(), hosts[to].ID()); err != nil {
			t.Fatal(err)
		}
	}
	s, told := ask(t.Context(), hosts[0], peers[:4], peers[:4])
	if l := s[[2]string{"v", "p"}]; told != 3 || len(s) != 1 || l.RTT == 0 {
		t.Errorf("%d have told %v", told, s)
	}
}

// Validators that took their stake out, or are excluded, had all newcomers by a fee of nothing, and made so little room for a
// cluster that its providers were advised to leave it.
func TestWhoMayLeadNothingHasNoCluster(t *testing.T) {
	const least = 1_000
	honest := providerv1.Peer{Account: "team", Stake: least}
	all, n := []providerv1.Peer{honest}, leading(nil)
	n.offers = append(n.offers, marketv1.Offer{Validator: honest.Account, FeeBps: 500})
	for i := range 20 {
		p := providerv1.Peer{Account: fmt.Sprint("dead", i), Stake: least - 1}
		if i%2 == 0 {
			p.Stake, p.JailedUntil = least, wire.Forever
		}
		all, n.offers = append(all, p), append(n.offers, marketv1.Offer{Validator: p.Account})
	}
	for i := range 10 {
		n.add(fmt.Sprint("p", i), honest.Account)
	}
	n.lead(all, &providerv1.Params{MinValidatorStake: least})
	if got, err := n.choose(seen{}, "me", ""); err != nil || got != honest.Account {
		t.Errorf("a newcomer goes under %q (%v)", got, err)
	}
	if v, err := n.view(seen{}, ""); err != nil || len(v.Validators) != 1 || v.Moves != 0 {
		t.Errorf("%+v, %v", v, err)
	}
}
