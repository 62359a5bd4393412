package work_test

import (
	"fmt"
	"testing"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/x/work"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// large returns a lease of 1000 units in rounds of the given number, all units of
// its first round received, with one provider and stakes that suffice.
func large(b *testing.B, shards int) *worktest.Play {
	b.Helper()
	o := worktest.Order()
	o.Problem.Rounds, o.Problem.Shards, o.Problem.Records = 1000/shards, shards, 1000
	o.Conditions.MinProviders, o.Conditions.MaxPrice, o.Conditions.UnitTimeout = 1, 1_000*worktest.Tally, 1e9
	c := chaintest.New(b, worktest.Network(worktest.Rules(func(p *job.Params) { p.MaxOpen = 1000 }), func(g *app.Genesis) {
		for i := range g.Peers {
			g.Peers[i].Stake = 1 << 40
		}
	})...)
	p := worktest.Begin(b, c, o)
	one := p.AssignMsg(0, "p0")
	for at := 0; at < shards; at += 50 {
		m := &workv1.MsgAssign{Lead: one.Lead, Order: one.Order}
		for u := at; u < min(at+50, shards); u++ {
			m.Units = append(m.Units, p.AssignMsg(u, "p0").Units...)
		}
		p.Deliver(p.Lead(), m)
	}
	p0 := chaintest.Named("p0")
	for u := range shards {
		p.Queue(p0, p.SubmitMsg(p.Receipt(u)))
		if u%10 == 9 {
			p.Flush()
		}
	}
	return p
}

// What one message takes on a lease of 1000 units, without the transaction
// around it: time, and gas.
func BenchmarkMessage(b *testing.B) {
	for _, shards := range []int{20, 1000} {
		b.Run(fmt.Sprintf("%dx%d", 1000/shards, shards), func(b *testing.B) {
			p := large(b, shards)
			custodian := p.Lease().Files.Custodians[0].Account
			m := &workv1.MsgAttest{Custodian: custodian, Order: p.ID.String(), Unit: uint32(shards / 2)}
			handle := p.MsgServiceRouter().Handler(m)
			var gas uint64
			for b.Loop() {
				ctx := p.Ctx()
				if _, err := handle(ctx, m); err != nil {
					b.Fatal(err)
				}
				gas = ctx.GasMeter().GasConsumed()
			}
			b.ReportMetric(float64(gas), "gas")
		})
	}
}

// What a block takes while a lease of 1000 units waits.
func BenchmarkIdleBlock(b *testing.B) {
	p := large(b, 20)
	end := work.NewModule(p.Chain.Work, nil, &neighbours{})
	for b.Loop() {
		if err := end.EndBlock(p.Ctx()); err != nil {
			b.Fatal(err)
		}
	}
}

// What a role reads of the largest lease: all of it, as roles once did in every block; it
// without state roots, when it has changed; or whether it has.
func BenchmarkRead(b *testing.B) {
	k, l, ctx := done(b, 16, 256, 256)
	ctx, order := ctx.WithGasMeter(storetypes.NewInfiniteGasMeter()), l.Order.ID().String()
	read := func(brief bool) func() (int, error) {
		return func() (int, error) {
			r, err := k.Queries().State(ctx, &workv1.QueryStateRequest{Order: order, Brief: brief})
			if err != nil {
				return 0, err
			}
			return len(r.Lease), canon.Unmarshal(r.Lease, &job.Lease{})
		}
	}
	for name, f := range map[string]func() (int, error){
		"whole": read(false),
		"brief": read(true),
		"live": func() (int, error) {
			r, err := k.Queries().Live(ctx, &workv1.QueryLiveRequest{})
			return r.Size(), err
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			size := 0
			for b.Loop() {
				var err error
				if size, err = f(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(size), "B/read")
		})
	}
}

// What a lease takes that draws from many: to store it, to read its skeleton, and to settle it.
func BenchmarkParties(b *testing.B) {
	for _, peers := range []int{4, 1000} {
		k, l, ctx := doneBy(b, 1, 4, 1, peers, func(*job.Lease) {})
		ctx = ctx.WithGasMeter(storetypes.NewInfiniteGasMeter())
		b.Run(fmt.Sprintf("store/peers=%d", peers), func(b *testing.B) {
			for b.Loop() {
				ctx, _ := ctx.CacheContext()
				other := *l
				if err := k.Enter(ctx, canon.Sum("order", []byte("other")), &other); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("read/peers=%d", peers), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := k.ReadSkeleton(ctx, l.Order.ID()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
