package market

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cosmos/cosmos-sdk/codec"
	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	"github.com/cosmos/cosmos-sdk/runtime"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	"github.com/cosmos/cosmos-sdk/testutil"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/job"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// dropped is the rule as one would state it: the dearest provider leaves the team until
// the price is paid, then whoever cannot put up the bond.
func (s *stock) dropped(c *cluster, o *job.Order, limit uint64) (b bid) {
	b.fee = uint64(c.offer.FeeBps)
	team := cheapest(c.providers, &o.Problem)
	for len(team) > 0 {
		s.quote(&b, o, job.Dearest(parties(team)))
		if (b.obstacle != nil || b.quote.Price > limit) && len(team) > o.Conditions.MinProviders {
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
	b.team = team
	return b
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
		got, want := s.price(&c, &o, nil, limit), s.dropped(&c, &o, limit)
		if (got.obstacle == nil) != (want.obstacle == nil) || !slices.Equal(got.team, want.team) {
			t.Fatalf("a team of %d, %v; want %d, %v", len(got.team), got.obstacle, len(want.team), want.obstacle)
		}
		if got.obstacle == nil && (got.quote != want.quote || got.bond != want.bond) {
			t.Fatalf("%+v with a bond of %d; want %+v, %d", got.quote, got.bond, want.quote, want.bond)
		}
	})
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
			k := NewKeeper(codec.NewProtoCodec(codectypes.NewInterfaceRegistry()), runtime.NewKVStoreService(key), nil, nil)
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

// stalls is a stock of offers, behind each of which stand some providers.
func stalls(offers, providers int) *stock {
	s := &stock{rules: job.DefaultParams}
	for i := range offers {
		c := cluster{offer: marketv1.Offer{Validator: fmt.Sprintf("v%03d", i)}, referees: 9}
		for j := range providers {
			c.providers = append(c.providers, providerv1.Candidate{Account: fmt.Sprintf("p%03d-%03d", i, j), Free: 1 << 40, UnitPrice: uint64(1000 + (i*7+j*13)%100)})
		}
		s.clusters = append(s.clusters, c)
	}
	return s
}

func replicatedOrder(replicas int) *job.Order {
	return &job.Order{
		Problem:    job.Problem{Rounds: 2, Shards: 2, Steps: 6, Interval: 2, StepFLOPs: 1e9, StepBytes: 1e6},
		Conditions: job.Conditions{MinProviders: 2, Custodians: 3, Replicas: replicas, MaxPrice: 1 << 40},
	}
}

// Offers of an order with replicas share one ranking of all providers, and a block's limit counts it
// once, and what each offer looks at.
func TestReplicasAreRankedOnce(t *testing.T) {
	s, o := stalls(20, 50), replicatedOrder(2)
	everybody := s.ranked(o)
	if len(everybody) != 1000 || !slices.IsSortedFunc(everybody, func(x, y *providerv1.Candidate) int { return int(x.UnitPrice) - int(y.UnitPrice) }) {
		t.Fatalf("%d are ranked", len(everybody))
	}
	for i := range s.clusters {
		if team := s.providersFor(&s.clusters[i], o, everybody); len(team) != 1000 || &team[0] != &everybody[0] {
			t.Fatal("an offer has a ranking of its own")
		}
	}
	if got, want := s.weight(o), 1000+20*(8+250); got != want {
		t.Errorf("an order with replicas weighs %d, want %d", got, want)
	}
	if got, want := s.weight(replicatedOrder(0)), 1000+20*8; got != want {
		t.Errorf("another weighs %d, want %d", got, want)
	}
}

// What a block may take to price orders: as many as it may weigh, with the largest stock.
func BenchmarkPrice(b *testing.B) {
	for _, replicas := range []int{0, 2} {
		b.Run(fmt.Sprintf("replicas=%d", replicas), func(b *testing.B) {
			s, o := stalls(maxOffers, maxPeers/maxOffers), replicatedOrder(replicas)
			b.ReportAllocs()
			for b.Loop() {
				for left := maxWeighed; left > 0; left -= s.weight(o) {
					s.bids(o)
				}
			}
		})
	}
}
