package work_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/work"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// forced begins an order of which the first attempt of the first unit is forced for
// its provider, or is not, and brings that to a receipt that counts.
func forced(t testing.TB, want bool) *worktest.Play {
	t.Helper()
	p := forcedDrawOf(t, want)
	p.Attest(0)
	return p
}

// forcedDrawOf is forced, but for the custodians' word.
func forcedDrawOf(t testing.TB, want bool) *worktest.Play {
	t.Helper()
	for nonce := range uint64(60) {
		o := worktest.Order()
		o.Nonce, o.Conditions.AuditSegments = nonce, o.Problem.Segments()
		p := worktest.Begin(t, chaintest.New(t, worktest.Network(worktest.Rules(worktest.Forced), chaintest.Authority(worktest.Consumer.Name))...), o)
		p.Assign(0, "p0")
		p.Submit(0)
		if _, forced := p.ProveDrawMsg(0); forced == want {
			return p
		}
	}
	t.Fatal("no order is as it should be")
	return nil
}

// Through the whole chain: the forced draw is shown, a blind auditor loses its bond, a
// diligent one is paid out of the pool, and the unit is done again.
func TestForcedAttempt(t *testing.T) {
	for _, diligent := range []bool{true, false} {
		p := forced(t, true)
		p0 := chaintest.Named("p0")
		m, _ := p.ProveDrawMsg(0)
		p.Refuse(work.ErrRefused, p0, m) // nobody has audited it
		auditor := worktest.Named(t, p.Unit(0).Audits[0].Auditor)
		report := p.ReportMsg(0, auditor, true)
		if diligent {
			report = p.DiligentMsg(0, auditor, p.Truth(0))
		}
		p.Deliver(auditor, report)
		p.NextBlock(worktest.UnitWindow)
		if u := p.Unit(0); u.Status != workv1.UNIT_STATUS_COUNTED {
			t.Fatalf("the unit is %v before its forced draw is shown", u.Status)
		}
		bent := *m
		bent.Proof = append([]byte{}, m.Proof...)
		bent.Proof[0] ^= 1
		p.Refuse(work.ErrProof, p0, &bent)
		other := *m
		other.Provider = chaintest.Named("p1").String()
		p.Refuse(work.ErrProof, chaintest.Named("p1"), &other)
		short := *m
		short.Truth = []workv1.Outcome{{End: []byte{1}}}
		p.Refuse(work.ErrMalformed, p0, &short)
		b := p.Deliver(p0, m)
		if len(b.TxResults) != 1 || p.Unit(0).Attempt != 1 || len(p.Unit(0).Forced) != 1 {
			t.Fatalf("attempt %d, forced %v", p.Unit(0).Attempt, p.Unit(0).Forced)
		}
		purse := p.Balance(p0.Address)
		s := p.Finish()
		prize, left := map[string]uint64{}, s.Ledger.Tax
		for _, x := range s.Ledger.Prizes {
			prize[x.Account] = x.Amount
			left -= x.Amount
		}
		if prize[p0.String()] == 0 || p.Balance(p0.Address) <= purse || s.Ledger.Tax == 0 {
			t.Errorf("prizes %v, tax %d", s.Ledger.Prizes, s.Ledger.Tax)
		}
		if blind := s.Ledger.Slashed > 0; blind == diligent {
			t.Errorf("diligent: %v, slashed %d", diligent, s.Ledger.Slashed)
		}
		r, err := p.Work.Params(context.Background(), &workv1.QueryParamsRequest{})
		if err != nil || r.Pool != p.Balance(authtypes.NewModuleAddress(work.Jackpot)) || r.Pool != left {
			t.Errorf("the pool is %d utally, want %d: %v", r.Pool, left, err)
		}
	}
}

// stubborn claims that nothing changes.
type stubborn struct{ root canon.Hash }

func (s stubborn) Root(int) (canon.Hash, error)              { return s.root, nil }
func (s stubborn) Execution(int) (*dispute.Execution, error) { return nil, nil }

// The jackpot pool was drained by a receipt that nobody had seen, an accomplice who
// disputed it, and a forced draw shown because of that.
func TestUnattestedForcedAttempt(t *testing.T) {
	p := forcedDrawOf(t, true)
	m, _ := p.ProveDrawMsg(0)
	open := p.OpenMsg(job.UnitTarget(0), 0, stubborn{canon.Hash(p.Unit(0).Receipt.Start)})
	if text := p.Refuse(work.ErrRefused, worktest.Challenger, open); !strings.Contains(text, "once a quorum of custodians has attested") {
		t.Errorf("refused with %q", text)
	}
	p.Refuse(work.ErrRefused, chaintest.Named("p0"), m)
	p.Attest(0)
	p.Deliver(worktest.Challenger, open)
	p.Deliver(chaintest.Named("p0"), m)
	if s := p.Finish(); len(s.Ledger.Prizes) == 0 {
		t.Error("an attempt that counted was not paid")
	}
}

// A cheater showed a false truth that nobody disputed in time, was convicted of other
// work, and had its share of the bond of the honest auditor that it contradicted.
func TestTruthOfTheConvictedJudgesNobody(t *testing.T) {
	p := forced(t, true)
	p0 := chaintest.Named("p0")
	auditor := worktest.Named(t, p.Unit(0).Audits[0].Auditor)
	p.Deliver(auditor, p.ReportMsg(0, auditor, true)) // its digest is not what p0 will show
	p.NextBlock(worktest.UnitWindow)
	m, _ := p.ProveDrawMsg(0)
	p.Deliver(p0, m)

	p.Assign(1, "p0")
	p.Submit(1)
	p.Attest(1)
	p.Deliver(worktest.Challenger, p.OpenMsg(job.UnitTarget(1), 0, stubborn{canon.Hash(p.Unit(1).Receipt.Start)}))
	for range 100 { // p0 is silent
		if p.NextBlock(time.Minute); slices.Contains(p.Lease().Barred, p0.String()) {
			break
		}
	}
	purse := p.Balance(p0.Address)
	for range 100 {
		if p.Lease().Phase == workv1.PHASE_ACTIVE {
			p.FinishRound()
		}
		if p.NextBlock(worktest.UnitTimeout); p.Lease().Phase == workv1.PHASE_SETTLED {
			break
		}
	}
	r, err := p.Work.Settlement(context.Background(), &workv1.QuerySettlementRequest{Order: p.ID.String()})
	if err != nil {
		t.Fatal(err)
	}
	q, err := providerv1.NewQueryClient(p.Chain).Peer(context.Background(), &providerv1.QueryPeerRequest{Account: auditor.String()})
	if err != nil || q.Peer.Stake != 10_000*worktest.Tally || q.Peer.Reserved != 0 {
		t.Errorf("the auditor is %+v: %v", q, err)
	}
	for _, x := range r.Settlement.Ledger.Prizes {
		if x.Account == p0.String() {
			t.Errorf("the convicted won %d utally", x.Amount)
		}
	}
	if got := p.Balance(p0.Address); got != purse {
		t.Errorf("the convicted has %d, had %d", got, purse)
	}
}

// A unit that was not forced is accepted once that is shown, and no truth beside the
// receipt is taken.
func TestPlainAttempt(t *testing.T) {
	p := forced(t, false)
	p.Audit(0, true)
	p.NextBlock(worktest.UnitWindow)
	m, _ := p.ProveDrawMsg(0)
	bent := *m
	bent.Truth = wire.OutcomesToProto(p.Truth(0))
	p.Refuse(work.ErrRefused, chaintest.Named("p0"), &bent)
	p.Deliver(chaintest.Named("p0"), m)
	if u := p.Unit(0); !u.Plain || u.Status != workv1.UNIT_STATUS_ACCEPTED {
		t.Fatalf("the unit is %v", u.Status)
	}
}

// Rules are changed by the authority of the genesis alone, and only to such as are
// in equilibrium; the refusal shows the inequality.
func TestUpdateParams(t *testing.T) {
	boss, stranger := worktest.Consumer, worktest.Challenger
	c := chaintest.New(t, worktest.Network(chaintest.Authority(boss.Name))...)
	p := worktest.Begin(t, c, worktest.Order())
	q := func() *workv1.QueryParamsResponse {
		r, err := p.Work.Params(context.Background(), &workv1.QueryParamsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := q(); r.Authority != boss.String() || r.Params.ForcedBps != 0 {
		t.Fatalf("authority %s, rules %+v", r.Authority, r.Params)
	}
	update := func(bend func(*workv1.Params)) *workv1.MsgUpdateParams {
		m := &workv1.MsgUpdateParams{Authority: boss.String(), Params: work.DefaultParams()}
		bend(&m.Params)
		return m
	}
	for why, bend := range map[string]func(*workv1.Params){
		"forced_bps is 0":                        func(p *workv1.Params) { p.ForcedBps = 0 },
		"forced_bps · verdict_factor = 200 · 99": func(p *workv1.Params) { p.VerdictFactor = 99 },
		"the tax would not pay what is forced":   func(p *workv1.Params) { p.TaxBps = 1 },
		"would pay for challenging oneself":      func(p *workv1.Params) { p.RewardBps = 5000 },
		"jail of -1 ms":                          func(p *workv1.Params) { p.JailMs = -1 },
		"every attempt is forced":                func(p *workv1.Params) { p.ForcedBps = 10_000 },
	} {
		if text := p.Refuse(module.ErrRules, boss, update(bend)); !strings.Contains(text, why) {
			t.Errorf("refused with %q, want %q", text, why)
		}
	}
	good := update(func(p *workv1.Params) { p.BurnBps = 100 })
	foreign := *good
	foreign.Authority = stranger.String()
	p.Refuse(module.ErrAuthority, stranger, &foreign)
	p.Deliver(boss, good)
	if r := q(); r.Params != good.Params {
		t.Fatalf("rules %+v, want %+v", r.Params, good.Params)
	}
	if r := p.Lease().Params; r.ForcedBps != 0 || r.BurnBps != job.DefaultParams.BurnBps {
		t.Errorf("a lease that had begun is under the rules %+v", r)
	}
	p.Finish()
	g, err := c.Work.ExportGenesis(c.Ctx())
	if err != nil || g.Authority != boss.String() || g.Params != good.Params || work.ValidateGenesis(g) != nil {
		t.Errorf("exported %+v, %v", g.Params, err)
	}
}
