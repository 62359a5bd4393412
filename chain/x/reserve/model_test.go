package reserve_test

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/x/reserve"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	core "github.com/tally-network/tally/core/reserve"
	reservev1 "github.com/tally-network/tally/gen/tally/reserve/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// neighbours are what the module needs, tested alone. Consensus addresses are numbers of validators.
type neighbours struct {
	*chaintest.Bank
	idle bool
}

func (n *neighbours) Seat(_ context.Context, at []byte) (sdk.AccAddress, uint64, error) {
	return who(int(at[0])), uint64(at[0])*7 + 1, nil
}
func (n *neighbours) Share(_ context.Context, _ sdk.AccAddress, pay uint64) (uint64, error) {
	return pay, nil
}
func (n *neighbours) MemberOf(context.Context, sdk.AccAddress) (sdk.AccAddress, error) {
	return nil, nil
}
func (n *neighbours) Due(context.Context, sdk.AccAddress) (uint64, error)  { return 0, nil }
func (n *neighbours) Take(context.Context, sdk.AccAddress) (uint64, error) { return 0, nil }
func (n *neighbours) Value(context.Context) (canon.Hash, bool, error) {
	return canon.Hash{}, !n.idle, nil
}
func (n *neighbours) Rules(context.Context) (job.Params, error) { return job.DefaultParams, nil }

func who(i int) sdk.AccAddress { return chaintest.Named(fmt.Sprint("account", i)).Address }

const people = 5

// eager is the slow model: at the end of an epoch everybody is paid at once.
type eager struct {
	held, jackpot, insurance uint64
	epoch                    core.Epoch
	weights                  map[int][core.Kinds]uint64
	earned                   [people]uint64
	before                   [people]uint64
	credited                 uint64
}

func (m *eager) end(t *rapid.T, r core.Rules) {
	if m.epoch.Credited > 0 {
		p, err := r.Close(m.held, &m.epoch)
		if err != nil {
			t.Fatal(err)
		}
		m.jackpot, m.insurance, m.held = m.jackpot+p.Jackpot, m.insurance+p.Insurance, m.held-p.Jackpot-p.Insurance
		for k, pot := range p.Pots {
			m.held -= pot.Pay // what rounding leaves goes to the fund some day
			for i := range people {
				if w := m.weights[i][k]; w > 0 && pot.Weight > 0 {
					pay := new(big.Int).Mul(new(big.Int).SetUint64(pot.Pay), new(big.Int).SetUint64(w))
					m.earned[i] += pay.Quo(pay, new(big.Int).SetUint64(pot.Weight)).Uint64()
				}
			}
		}
	}
	m.epoch, m.weights = core.Epoch{Number: m.epoch.Number + 1}, map[int][core.Kinds]uint64{}
}

func (m *eager) add(t *rapid.T, i int, micro uint64, w [core.Kinds]uint64) {
	own := m.weights[i]
	for k := range w {
		own[k] += w[k]
	}
	m.weights[i] = own
	if err := m.epoch.Count(micro, w); err != nil {
		t.Fatal(err)
	}
}

// scene plays the same to the module and to the model.
type scene struct {
	k     *reserve.Keeper
	n     *neighbours
	ctx   sdk.Context
	m     eager
	rules reservev1.Params
	all   uint64
}

func ofProto(p reservev1.Params) core.Rules {
	return core.Rules{
		Halving: p.HalvingEpochs, Cap: p.Cap, Bps: [core.Kinds]uint32{p.SeatsBps, p.DrillingBps, p.JoiningBps},
		Jackpot: p.JackpotBps, Insurance: p.InsuranceBps, JoiningUT: p.JoiningUt,
	}
}

func (s *scene) check(t *rapid.T) {
	if err := s.k.Invariant(s.ctx); err != nil {
		t.Fatal(err)
	}
	g, err := s.k.ExportGenesis(s.ctx)
	if err == nil {
		err = reserve.ValidateGenesis(g)
	}
	if err != nil {
		t.Fatal(err)
	}
	if s.n.Total() != s.all || s.n.Module("jackpot") != g.Totals.Jackpot || s.n.Module("insurance") != g.Totals.Insurance {
		t.Fatalf("%d utally of %d are somewhere; %+v", s.n.Total(), s.all, g.Totals)
	}
	if left := s.n.Module(reserve.Name); s.all-left != g.Totals.Claimed+g.Totals.Jackpot+g.Totals.Insurance {
		t.Fatalf("%d utally have left the reserve, and it counts %+v", s.all-left, g.Totals)
	}
	paid := new(big.Int).SetUint64(g.Totals.Owed + g.Totals.Claimed + g.Totals.Jackpot + g.Totals.Insurance)
	most := new(big.Int).Mul(new(big.Int).SetUint64(s.m.credited), big.NewInt(core.MaxCap))
	if paid.Mul(paid, big.NewInt(1_000_000)).Cmp(most) > 0 {
		t.Fatalf("%s utally·10⁶ were paid for %d µut", paid, s.m.credited)
	}
}

// claim claims as a transaction does: all of it, or nothing.
func (s *scene) claim(i int) (uint64, error) {
	branch, write := s.ctx.CacheContext()
	bank := s.n.Bank.Clone()
	paid, err := s.k.Claim(branch, who(i))
	if err != nil {
		s.n.Bank = bank
		return 0, err
	}
	write()
	return paid, nil
}

// again exports the module's state, and goes on with what imports it.
func (s *scene) again(t *testing.T, rt *rapid.T) {
	g, err := s.k.ExportGenesis(s.ctx)
	if err != nil {
		rt.Fatal(err)
	}
	at := s.ctx.BlockTime()
	ctx, svc, cdc := chaintest.Store(t)
	s.ctx = ctx.WithBlockTime(at).WithBlockHeader(s.ctx.BlockHeader()).WithBlockTime(at)
	s.k = reserve.NewKeeper(cdc, svc, reserve.Needs{Bank: s.n, Seats: s.n, Beacon: s.n, Leases: s.n}, reserve.Pools{Jackpot: "jackpot", Insurance: "insurance"})
	if err := s.k.InitGenesis(s.ctx, g); err != nil {
		rt.Fatal(err)
	}
}

// Whoever computes, makes blocks and claims, when and in what order, under whatever rules: everybody gets what a slow
// model pays at the end of each epoch, to the last utally; and nothing is paid but out of the reserve, nor above the cap.
func TestLazyEqualsEager(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := &neighbours{Bank: chaintest.NewBank()}
		s := &scene{n: n, rules: reserve.DefaultParams(), all: rapid.Uint64Range(1, 1<<60).Draw(rt, "reserve")}
		s.m = eager{held: s.all, weights: map[int][core.Kinds]uint64{}}
		ctx, svc, cdc := chaintest.Store(t)
		s.ctx = ctx
		n.Give(moduleAccount(), s.all)
		s.k = reserve.NewKeeper(cdc, svc, reserve.Needs{Bank: n, Seats: n, Beacon: n, Leases: n}, reserve.Pools{Jackpot: "jackpot", Insurance: "insurance"})
		g := reserve.DefaultGenesis()
		g.Params.HalvingEpochs = rapid.Uint64Range(1, 50_000).Draw(rt, "halving")
		s.rules = g.Params
		if err := s.k.InitGenesis(s.ctx, g); err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(1, 40).Draw(rt, "events") {
			i := rapid.IntRange(0, people-1).Draw(rt, "who")
			switch rapid.IntRange(0, 6).Draw(rt, "event") {
			case 0, 1:
				micro, drilling := rapid.Uint64Range(1, 1<<50).Draw(rt, "micro"), rapid.Bool().Draw(rt, "drilling")
				w := [core.Kinds]uint64{core.Joining: ofProto(s.rules).First(micro, s.m.before[i])}
				if drilling {
					w[core.Drilling] = micro
				}
				s.m.add(rt, i, micro, w)
				if err := s.k.Credited(s.ctx, who(i), drilling, micro, s.m.before[i]); err != nil {
					rt.Fatal(err)
				}
				s.m.before[i], s.m.credited = s.m.before[i]+micro, s.m.credited+micro
			case 2:
				n.idle = rapid.Bool().Draw(rt, "idle")
				if !n.idle && s.m.weights[i][core.Seats] == 0 {
					s.m.add(rt, i, 0, [core.Kinds]uint64{core.Seats: uint64(i)*7 + 1})
				}
				h := s.ctx.BlockHeader()
				h.ProposerAddress = []byte{byte(i)}
				if err := s.k.EndBlock(s.ctx.WithBlockHeader(h)); err != nil {
					rt.Fatal(err)
				}
			case 3:
				paid, err := s.claim(i)
				if had := n.Balances[string(who(i))]; err == nil && (paid == 0 || had != s.m.earned[i]) || err != nil && !errors.Is(err, reserve.ErrNothing) {
					rt.Fatalf("%d has %d by a claim of %d, the model paid %d: %v", i, had, paid, s.m.earned[i], err)
				}
			case 4:
				for range rapid.IntRange(1, 3).Draw(rt, "epochs") {
					s.m.end(rt, ofProto(s.rules))
				}
				s.ctx = s.ctx.WithBlockTime(ctx.BlockTime().Add(time.Duration(s.m.epoch.Number)*time.Hour + time.Duration(rapid.IntRange(0, 3599).Draw(rt, "s"))*time.Second))
			case 5:
				s.again(t, rt)
			case 6:
				p := s.rules
				p.Cap, p.SeatsBps = rapid.Uint64Range(0, core.MaxCap).Draw(rt, "cap"), rapid.Uint32Range(0, 4_000).Draw(rt, "seats")
				if err := reserve.Replace(s.ctx, s.k, p); err != nil {
					rt.Fatal(err)
				}
				s.rules = p
			}
			s.check(rt)
		}
		s.m.end(rt, ofProto(s.rules))
		s.ctx = s.ctx.WithBlockTime(ctx.BlockTime().Add(time.Duration(s.m.epoch.Number) * time.Hour))
		for i := range people {
			if _, err := s.claim(i); err != nil && !errors.Is(err, reserve.ErrNothing) {
				rt.Fatal(err)
			}
			if had := n.Balances[string(who(i))]; had != s.m.earned[i] {
				rt.Fatalf("%d has %d, the model paid %d", i, had, s.m.earned[i])
			}
		}
		// Where nobody has earned a utally, something else must come to close the epoch.
		if err := s.k.Credited(s.ctx, who(0), false, 1, 1<<60); err != nil {
			rt.Fatal(err)
		}
		s.m.credited++
		s.check(rt)
		if g, err := s.k.ExportGenesis(s.ctx); err != nil || n.Module(reserve.Name) != s.m.held+g.Totals.Owed {
			rt.Fatalf("all have claimed: %+v; %d are held, want %d more (%v)", g, n.Module(reserve.Name), s.m.held, err)
		}
	})
}

// What is wrong with rewards is told of, and holds up no settlement.
func TestRewardsHoldUpNothing(t *testing.T) {
	n := &neighbours{Bank: chaintest.NewBank()}
	k, ctx := newKeeper(t, n)
	before := module.Now(ctx)
	for range 2 {
		if err := k.Credited(ctx, who(0), false, 1<<63, 0); err != nil {
			t.Fatal(err)
		}
	}
	if g, err := k.ExportGenesis(ctx); err != nil || g.Open.Credited != 1<<63 || g.OriginMs != before {
		t.Errorf("%+v, %v", g, err)
	}
	if err := k.Invariant(ctx); err != nil {
		t.Error(err)
	}
}
