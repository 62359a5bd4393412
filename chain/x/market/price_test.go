package market

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cosmos/cosmos-sdk/codec"
	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	"github.com/cosmos/cosmos-sdk/runtime"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	"github.com/cosmos/cosmos-sdk/testutil"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// dropped is the rule as one would state it: the dearest provider leaves the team until
// the price is paid, then whoever cannot put up the bond.
func (s *stock) dropped(c *cluster, providers []*providerv1.Candidate, o *job.Order, limit uint64) (b bid, team []*providerv1.Candidate) {
	b.fee = uint64(c.offer.FeeBps)
	pay := func(x *providerv1.Candidate) uint64 {
		pay, err := ratesOf(x).Pay(o.Problem.UnitFLOPs(), o.Problem.StepBytes*uint64(o.Problem.Steps))
		if err != nil {
			return math.MaxUint64
		}
		return pay
	}
	team = slices.Clone(providers)
	slices.SortStableFunc(team, func(x, y *providerv1.Candidate) int { return cmp.Compare(pay(x), pay(y)) })
	team = team[:min(len(team), job.MaxParties)]
	for len(team) > 0 {
		s.quote(&b, o, job.Dearest(parties(team)))
		if (b.obstacle != nil || b.quote.Price > limit) && len(team) > o.Conditions.Bid().Providers {
			team = team[:len(team)-1]
			continue
		}
		able := slices.DeleteFunc(slices.Clone(team), func(p *providerv1.Candidate) bool { return p.Free < b.bond })
		if b.obstacle != nil || len(able) == len(team) {
			break
		}
		if team = able; len(team) == 0 {
			b.obstacle = fmt.Errorf("nobody has the bond")
		}
	}
	return b, team
}

// samePrice fails unless an offer is priced as the rule says that is stated here.
func samePrice(t *rapid.T, got, want bid, team []*providerv1.Candidate) {
	t.Helper()
	if (got.obstacle == nil) != (want.obstacle == nil) || !slices.Equal(got.team.peers(), team) {
		t.Fatalf("a team of %d, %v; want %d, %v", len(got.team), got.obstacle, len(team), want.obstacle)
	}
	if got.obstacle == nil && (got.quote != want.quote || got.bond != want.bond) {
		t.Fatalf("%+v with a bond of %d; want %+v, %d", got.quote, got.bond, want.quote, want.bond)
	}
}

// The team that is found by halves is the one that is found by dropping one provider
// after another, whatever they ask, and the quotes that it takes are few.
func TestTeamIsFoundByHalves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		price := rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64Range(0, 40), rapid.Uint64Range(900, 1100), rapid.Just(uint64(math.MaxUint64)))
		c := cluster{offer: marketv1.Offer{FeeBps: rapid.Uint32Range(0, 2000).Draw(t, "fee")}}
		for i := range rapid.IntRange(0, 40).Draw(t, "providers") {
			c.providers = append(c.providers, providerv1.Candidate{
				Account: fmt.Sprintf("p%02d", i), Free: rapid.Uint64Range(0, 3_000_000).Draw(t, "stake"),
				UnitPrice: price.Draw(t, "unit"), BytePrice: price.Draw(t, "byte"),
			})
		}
		o := job.Order{
			Problem: job.Problem{Rounds: 2, Shards: 2, Steps: 6, Interval: 2,
				StepFLOPs: rapid.SampledFrom([]uint64{1, 1e6, 5e9}).Draw(t, "flops"), StepBytes: rapid.SampledFrom([]uint64{1, 1e9}).Draw(t, "bytes")},
			Conditions: job.Conditions{MinProviders: rapid.IntRange(1, 9).Draw(t, "least"), Auditors: 1, AuditSegments: 1, Custodians: 3},
		}
		s := stock{rules: job.DefaultParams}
		limit := rapid.OneOf(rapid.Uint64Range(0, 400_000), rapid.Just(uint64(math.MaxUint64))).Draw(t, "limit")
		var providers []*providerv1.Candidate
		for i := range c.providers {
			providers = append(providers, &c.providers[i])
		}
		want, team := s.dropped(&c, providers, &o, limit)
		samePrice(t, s.price(&c, &o, s.rank(&o.Problem, []cluster{c}), limit), want, team)
	})
}

// Providers of an order with replicas are ranked for all offers. Each has the team and the price that it
// would have if it ranked them for itself.
func TestReplicasArePricedAsForEachOffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		owner := rapid.SampledFrom([]string{"", "x", "y", "z"})
		s := stock{rules: job.DefaultParams, games: dispute.DefaultRules, owners: map[string]bool{"x": true, "y": true, "v0": true, "v1": true}}
		for v := range rapid.IntRange(1, 5).Draw(t, "offers") {
			lead := fmt.Sprintf("v%d", v)
			c := cluster{
				offer: marketv1.Offer{Validator: lead, FeeBps: rapid.Uint32Range(0, 2000).Draw(t, "fee")}, referees: rapid.IntRange(2, 6).Draw(t, "referees"),
				lead: providerv1.Candidate{Account: lead, Owner: owner.Draw(t, "owner"), Free: rapid.SampledFrom([]uint64{0, 1e12}).Draw(t, "free")},
			}
			if rapid.Bool().Draw(t, "jailed") {
				c.obstacle = errors.New("jailed")
			}
			for i := range rapid.IntRange(0, 9).Draw(t, "providers") {
				c.providers = append(c.providers, providerv1.Candidate{
					Account: fmt.Sprintf("%s-%d", lead, i), Owner: owner.Draw(t, "owner"), Free: rapid.Uint64Range(0, 3_000_000).Draw(t, "stake"),
					UnitPrice: rapid.Uint64Range(900, 1100).Draw(t, "unit"), BytePrice: rapid.Uint64Range(0, 9).Draw(t, "byte"),
				})
			}
			s.clusters = append(s.clusters, c)
		}
		o := replicated(rapid.Uint64Range(1, 400_000).Draw(t, "limit"))
		all := s.bids(&o, true)
		open := slices.DeleteFunc(slices.Clone(all), func(b bid) bool { return b.obstacle != nil })
		some := slices.DeleteFunc(s.bids(&o, false), func(b bid) bool { return b.obstacle != nil })
		if len(all) != len(s.clusters) || fmt.Sprint(open) != fmt.Sprint(some) {
			t.Fatalf("of all offers %v can have the order, of those that are not barred %v", open, some)
		}
		for i := range s.clusters {
			c := &s.clusters[i]
			var providers []*providerv1.Candidate
			for j := range s.clusters {
				for k := range s.clusters[j].providers {
					p := &s.clusters[j].providers[k]
					if judge := s.owners[ownerOf(p)] && ownerOf(p) != ownerOf(&c.lead); !judge || c.referees >= 5 {
						providers = append(providers, p)
					}
				}
			}
			want, team := s.dropped(c, providers, &o, o.Conditions.MaxPrice)
			samePrice(t, s.price(c, &o, s.computing(s.rank(&o.Problem, s.clusters), c, &o), o.Conditions.MaxPrice), want, team)
		}
	})
}

// replicated returns an order with two replicas.
func replicated(limit uint64) job.Order {
	return job.Order{
		Problem: job.Problem{Rounds: 2, Shards: 2, Steps: 6, Interval: 2, StepFLOPs: 1e9, StepBytes: 1e6},
		Conditions: job.Conditions{MinProviders: 1, Replicas: 2, Custodians: 3, MaxPrice: limit,
			UnitTimeout: 1e6, UnitWindow: 1e6, Window: 1e6},
	}
}

// crowd returns a stock of so many offers with different fees, and of so many providers behind them all
// told. Half of these lack the bond. If leads judge, too, each has a list of providers of its own.
func crowd(offers, providers int, judges bool) stock {
	s := stock{rules: job.DefaultParams, games: dispute.DefaultRules, owners: map[string]bool{}}
	for v := range offers {
		lead := fmt.Sprintf("v%d", v)
		c := cluster{offer: marketv1.Offer{Validator: lead, FeeBps: uint32(v)}, lead: providerv1.Candidate{Account: lead, Free: 1e12}, referees: 5}
		if s.owners[lead] = judges; judges {
			c.referees = 4
		}
		s.clusters = append(s.clusters, c)
	}
	for i := range providers {
		c := &s.clusters[i%offers]
		c.providers = append(c.providers, providerv1.Candidate{
			Account: fmt.Sprintf("p%d", i), Free: uint64(i%2) * 1e12, UnitPrice: uint64(1_000 + i), BytePrice: 1, Owner: c.lead.Account,
		})
	}
	return s
}

// An order with replicas weighs each provider once, and no offer copies, prices and sorts those of
// all as each once did. What is done is what the block counts.
func TestReplicasArePricedOnce(t *testing.T) {
	for name, x := range map[string]struct {
		prepare func(*stock)
		most    int // beside ranking the providers once, for an offer
	}{
		"leads that can lead": {func(*stock) {}, 200},
		"nothing at stake": {func(s *stock) {
			for i := range s.clusters {
				s.clusters[i].lead.Free = 0
			}
		}, 1},
		"jailed": {func(s *stock) {
			for i := range s.clusters {
				s.clusters[i].obstacle = errors.New("jailed")
			}
		}, 1},
	} {
		for _, judges := range []bool{false, true} {
			s := crowd(512, 2_000, judges)
			x.prepare(&s)
			o := replicated(100_000)
			bids := s.bids(&o, false)
			if most := 2_000 + x.most*512; s.work > most || x.most > 1 && (len(bids) != 512 || s.work < 2_000) {
				t.Errorf("%s: %d offers were priced, which took %d, want at most %d", name, len(bids), s.work, most)
			}
			if allocs := testing.AllocsPerRun(1, func() { s.bids(&o, false) }); allocs > 8*512 {
				t.Errorf("%s: %.0f allocations", name, allocs)
			}
		}
	}
}

// Where a block looks at a part of the offers, an order is tried until all have been looked at, and
// waits only then.
func TestOrderSeesAllOffersBeforeItWaits(t *testing.T) {
	for name, x := range map[string]struct {
		windows []window
		tried   []bool // after each
	}{
		"all at once": {[]window{{from: sdk.AccAddress("m"), whole: true}}, []bool{true}},
		"three parts": {[]window{
			{from: sdk.AccAddress("m"), until: sdk.AccAddress("t")}, {from: sdk.AccAddress("t"), until: sdk.AccAddress("c")},
			{from: sdk.AccAddress("c"), until: sdk.AccAddress("n")},
		}, []bool{false, false, true}},
		"ends where it began": {[]window{
			{from: sdk.AccAddress("m"), until: sdk.AccAddress("c")}, {from: sdk.AccAddress("c"), until: sdk.AccAddress("m")},
			{from: sdk.AccAddress("m"), until: sdk.AccAddress("c")},
		}, []bool{false, false, true}},
		"the others are withdrawn": {[]window{
			{from: sdk.AccAddress("m"), until: sdk.AccAddress("t")}, {from: sdk.AccAddress("t"), whole: true},
		}, []bool{false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			key := storetypes.NewKVStoreKey(Name)
			ctx := testutil.DefaultContextWithKeys(map[string]*storetypes.KVStoreKey{Name: key, "block": module.BlockStore}, nil, nil)
			k := NewKeeper(codec.NewProtoCodec(codectypes.NewInterfaceRegistry()), runtime.NewKVStoreService(key), nil, nil, nil)
			if err := k.turns.set(ctx, 1, turn{At: 5}); err != nil {
				t.Fatal(err)
			}
			for i, w := range x.windows {
				if err := k.turns.failed(ctx, 1, w); err != nil {
					t.Fatal(err)
				}
				got, err := k.turns.get(ctx, 1)
				if err != nil || got.Tried != x.tried[i] || got.Tried == (got.At == 5) {
					t.Fatalf("after %d parts: %+v, %v", i+1, got, err)
				}
			}
		})
	}
}

// What 64 orders with 2 replicas take, if a block tried all of them.
func BenchmarkReplicas(b *testing.B) {
	for _, x := range []struct{ offers, providers int }{{50, 1_000}, {512, 2_000}} {
		for _, judges := range []bool{false, true} {
			b.Run(fmt.Sprintf("offers=%d/providers=%d/judges=%v", x.offers, x.providers, judges), func(b *testing.B) {
				s := crowd(x.offers, x.providers, judges)
				o := replicated(100_000)
				for b.Loop() {
					s.work = 0
					for range 64 {
						s.bids(&o, false)
					}
				}
				b.ReportMetric(float64(s.work), "weighed/op")
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(max(s.work, 1)), "ns/weighed")
			})
		}
	}
}

// dark is powers that cannot be read.
type dark struct{}

func (dark) Effective(context.Context, sdk.AccAddress) (uint64, error) {
	return 0, errors.New("the records cannot be read")
}

// Where computing power cannot be read, an order that asks for some waits, and the offers say why. Others do
// not notice.
func TestPowerThatCannotBeRead(t *testing.T) {
	o, s := replicated(100_000), crowd(1, 4, false)
	for i := range s.clusters[0].providers {
		s.clusters[0].providers[i].Account = sdk.AccAddress(make([]byte, 20+i)).String()
	}
	s.powers = newPowers(t.Context(), dark{})
	for _, power := range []uint64{1, 0} {
		o.Conditions.Needs.Power = power
		b := s.bids(&o, true)[0]
		if unread := b.obstacle != nil && strings.Contains(b.obstacle.Error(), "cannot be read"); unread != (power > 0) {
			t.Errorf("asked for a power of %d: %v", power, b.obstacle)
		}
	}
}
