package work_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cosmos/cosmos-sdk/baseapp"
	"github.com/cosmos/cosmos-sdk/codec"
	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkmodule "github.com/cosmos/cosmos-sdk/types/module"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/x/work"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// registry is neighbours who know what a lease has reserved and locked.
type registry struct {
	*neighbours
	lease *job.Lease
}

func (r *registry) Escrow(context.Context, canon.Hash) (uint64, error) {
	return r.lease.Ledger.Escrow, nil
}

func (r *registry) GetBalance(context.Context, sdk.AccAddress, string) sdk.Coin {
	return sdk.NewInt64Coin(coin.Denom, int64(r.lease.Locked()))
}

func (r *registry) WithRole(_ context.Context, role providerv1.Role) (out []providerv1.Peer, err error) {
	if role != providerv1.ROLE_PROVIDER {
		return nil, nil
	}
	for _, s := range r.lease.Reserved() {
		out = append(out, providerv1.Peer{Account: s.Account, Reserved: s.Amount})
	}
	return out, nil
}

// done returns a keeper with one lease, all of whose units are accepted, in all rounds but
// the last also merged; and the context of a transaction with as much gas as one may have.
func done(t testing.TB, rounds, shards, segments int) (*work.Keeper, *job.Lease, sdk.Context) {
	return doneBy(t, rounds, shards, segments, 2, func(*job.Lease) {})
}

// doneBy is done with so many providers, and as many validators, of a lease that is bent
// before it is stored.
func doneBy(t testing.TB, rounds, shards, segments, peers int, bend func(*job.Lease)) (*work.Keeper, *job.Lease, sdk.Context) {
	t.Helper()
	o := worktest.Order()
	p, c := &o.Problem, &o.Conditions
	p.Rounds, p.Shards, p.Records, p.Steps, p.Interval = rounds, shards, 1<<13, segments, 1
	p.StepFLOPs = 1 + 1e9/uint64(segments)
	c.MinProviders, c.MaxPrice, c.UnitTimeout, c.Custodians, c.Auditors, c.AuditSegments, c.TopSegments = 1, 1<<50, 1e9, 1, 0, 0, 0
	c.Window = 1e9
	m := job.Match{
		Order: o, Lead: chaintest.Named("v0").String(), Params: job.DefaultParams.WithoutForced(),
		Affords: func(string, uint64) bool { return true },
	}
	for i := range peers {
		m.Providers = append(m.Providers, party(fmt.Sprint("p", i), uint64(10*(i+1))))
		m.Validators = append(m.Validators, party(fmt.Sprint("v", i+1), 0))
	}
	m.Providers, m.Validators = pool(m.Providers...), pool(m.Validators...)
	l, _, err := job.NewLease(m, 1)
	if err == nil {
		l, _, err = job.Apply(l, job.Tick{Affords: m.Affords}, 2)
	}
	if err != nil {
		t.Fatal(err)
	}
	l.Files.Custodians[0].Says, l.Files.Said, l.Files.Due = job.Had, job.Had, 0
	for i := range l.Units {
		r := job.Receipt{
			Order: o.ID(), Unit: i, Provider: l.Providers[i%peers].Account, Start: p.Start, FLOPs: p.UnitFLOPs(),
			Data: job.File{Role: "receipt", CID: "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku", Size: 1 << 20},
		}
		for s := range segments + 1 {
			r.Checkpoints = append(r.Checkpoints, canon.Sum("state", []byte{byte(i), byte(i >> 8), byte(s), byte(s >> 8)}))
		}
		r.Start = l.RoundStart(i / shards)
		r.Checkpoints[0] = r.Start
		l.Units[i] = job.Unit{
			Status: job.Accepted, Provider: r.Provider, Receipt: &r, Proof: make([]byte, 64),
			Attested: []job.Attestation{{Custodian: l.Auditors[0].Account, Done: true}},
		}
		if round := i / shards; i%shards == shards-1 && round < rounds-1 {
			l.Merges[round] = job.Merge{By: l.Lead(), Root: canon.Sum("merge", []byte{byte(round), byte(round >> 8)}), Inputs: make([]canon.Hash, shards)}
			l.Round++
		}
	}
	bend(&l)
	l.Recount()
	if l.Reserve, err = l.Exposed(); err != nil {
		t.Fatal(err)
	}
	ctx, svc, cdc := chaintest.Store(t)
	n := &registry{&neighbours{}, &l}
	k := work.NewKeeper(cdc, svc, n, n, n, n)
	k.Tell(quiet{}, unheard)
	g := work.DefaultGenesis()
	g.Leases = [][]byte{canon.Marshal(&l)}
	if err := k.InitGenesis(ctx, g); err != nil {
		t.Fatal(err)
	}
	return k, &l, ctx.WithGasMeter(storetypes.NewGasMeter(app.MaxGas))
}

// Fraud in the first round is convicted within the gas of one transaction, however large the
// order: what it voids was charged to whoever showed it, who then could not win.
func TestLateConvictionFitsATransaction(t *testing.T) {
	const limit = app.MaxGas * 6 / 10
	for _, shape := range [][3]int{{8, 4, 2}, {256, 8, 256}} {
		k, l, ctx := done(t, shape[0], shape[1], shape[2])
		id := l.Order.ID()
		if _, _, err := k.OpenDispute(ctx, id, job.OpenDispute{ID: 1, Target: job.UnitTarget(1), Challenger: chaintest.Named("c").String()}); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if _, err := k.CloseDispute(ctx, id, 1, dispute.Defender, false); err != nil {
			t.Fatal(err)
		}
		t.Logf("%v: %d gas, %v", shape, ctx.GasMeter().GasConsumed(), time.Since(begun))
		if gas := ctx.GasMeter().GasConsumed(); gas > limit {
			t.Errorf("%v: opening and winning a dispute takes %d gas of a lease, want at most %d", shape, gas, limit)
		}
	}
}

// crowd fills every list of a lease. All parties have had units, given some up, and wait
// for more. Half of the validators are barred. 440 disputes are open, and 1,000 strangers
// were paid. Every unit but the first has an open question; every unit has a forced
// attempt and a void verdict.
func crowd(l *job.Lease) {
	for i := range l.Providers {
		a := l.Providers[i].Account
		l.Faults = append(l.Faults, job.Fault{Provider: a, Late: 1})
		l.Queue = append(l.Queue, job.Waiting{Provider: a, Since: 1})
	}
	for i := range l.Auditors[:len(l.Auditors)/2] {
		l.Barred = append(l.Barred, l.Auditors[i].Account)
	}
	for i := range 440 {
		l.Disputes = append(l.Disputes, job.Dispute{
			ID: uint64(100 + i), Target: job.UnitTarget(i), Defender: l.Units[i].Provider, Challenger: chaintest.Named(fmt.Sprint("c", i)).String(), At: 1 << 40,
		})
	}
	for i := range 1000 {
		l.Ledger.SlashPaid = append(l.Ledger.SlashPaid, job.Share{Account: chaintest.Named(fmt.Sprint("s", i)).String(), Amount: 1 << 40})
		l.Ledger.Slashed += 1 << 40
		l.Ledger.Strangers++
	}
	asked := map[string]int{}
	for i := range l.Units {
		u := &l.Units[i]
		custodian := l.Auditors[i%len(l.Auditors)].Account
		u.Attested[0].Custodian = custodian
		if i > 0 {
			u.Questions = []job.Question{{By: chaintest.Named("c").String(), Custodian: custodian, Unit: i, Fee: l.Params.AskFee, At: 1 << 40, Due: 1 << 41}}
			asked[custodian]++
		}
		forced, refuted := *u.Receipt, *u.Receipt
		refuted.Attempt, u.Attempt, u.Receipt.Attempt = 1, 2, 2
		truth := make([]proof.Outcome, len(forced.Checkpoints)-1)
		l.Past[i] = []job.Past{
			{Forced: &job.Forced{Index: i, Unit: job.Unit{Receipt: &forced, Provider: u.Provider, Status: job.Received}, Truth: truth, Until: 1 << 40}},
			{Receipt: &refuted, Verdicts: []job.Audit{{Auditor: custodian, Done: true, Pass: true, Bonded: true}}},
		}
	}
	l.Windows.Truth = 1 << 40
	for custodian, n := range asked {
		l.Asked = append(l.Asked, job.Asked{Custodian: custodian, Open: n})
	}
	slices.SortFunc(l.Asked, func(a, b job.Asked) int { return strings.Compare(a.Custodian, b.Custodian) })
}

// Whatever befell the units of a lease and whoever takes part, what happens next to one
// unit fits a transaction: forced attempts, verdicts and questions once were in what
// every event reads and writes, and eleven forced attempts froze a lease.
func TestFullLeaseFitsATransaction(t *testing.T) {
	const limit = app.MaxGas / 3
	k, l, ctx := doneBy(t, 1, job.MaxParties, 256, job.MaxParties, crowd)
	t.Logf("%d bytes that change, %d that are fixed", len(canon.Marshal(l.Mutable())), len(canon.Marshal(l.Fixed())))
	stranger := chaintest.Named("c").String()
	for name, e := range map[string]job.Event{
		"question":   job.Ask{By: stranger, Custodian: l.Units[0].Attested[0].Custodian, Attempt: 2},
		"missed":     job.MissAnswer{ID: 100, Missed: true},
		"substitute": job.Substitute{ID: 100, By: stranger},
		"dispute":    job.OpenDispute{ID: 1, Target: job.UnitTarget(600), Attempt: 2, Challenger: stranger},
		"verdict":    job.CloseDispute{ID: 101, Loser: dispute.Challenger},
	} {
		ctx := ctx.WithGasMeter(storetypes.NewGasMeter(app.MaxGas))
		if err := k.Apply(ctx, l.Order.ID(), e); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		t.Logf("%s: %d gas", name, ctx.GasMeter().GasConsumed())
		if gas := ctx.GasMeter().GasConsumed(); gas > limit {
			t.Errorf("a %s takes %d gas, want at most %d", name, gas, limit)
		}
	}
}

// What befell units that are open, and were withheld, costs those who speak about others
// little: every event must know who withheld them, and no more.
func TestWithheldUnitsCostOthersLittle(t *testing.T) {
	const withheld = 100
	gas := func(bend func(u *job.Unit, past *[]job.Past)) uint64 {
		k, l, ctx := doneBy(t, 1, 512, 256, 2, func(l *job.Lease) {
			for i := range withheld {
				bend(&l.Units[100+3*i], &l.Past[100+3*i])
			}
			l.Windows.Truth = 1
		})
		if _, _, err := k.OpenDispute(ctx, l.Order.ID(), job.OpenDispute{ID: 1, Target: job.UnitTarget(1), Challenger: chaintest.Named("c").String()}); err != nil {
			t.Fatal(err)
		}
		return ctx.GasMeter().GasConsumed()
	}
	bare := gas(func(*job.Unit, *[]job.Past) {})
	full := gas(func(u *job.Unit, past *[]job.Past) {
		forced, refuted := *u.Receipt, *u.Receipt
		refuted.Attempt = 1
		*past = []job.Past{
			{Forced: &job.Forced{Index: forced.Unit, Unit: job.Unit{Receipt: &forced, Provider: u.Provider}, Truth: make([]proof.Outcome, 256), Until: 1}},
			{Receipt: &refuted, Verdicts: make([]job.Audit, 16)},
		}
		*u = job.Unit{Status: job.Open, Attempt: 2, Withheld: []string{u.Provider}}
	})
	if full > bare+withheld*3000 {
		t.Errorf("a dispute about another unit takes %d gas, and %d where %d units were withheld", bare, full, withheld)
	}
}

// As many verdicts about earlier attempts as there may be do not keep a provider from
// showing its forced draw: each attempt is stored by itself.
func TestPastAttemptsDoNotKeepAForcedDrawHidden(t *testing.T) {
	cost := map[int]uint64{}
	for _, attempts := range []int{0, 8} {
		k, l, ctx := doneBy(t, 1, 4, 256, 2, func(l *job.Lease) {
			l.Params.ForcedBps = job.DefaultParams.ForcedBps
			u := &l.Units[1]
			for n := range attempts {
				r := *u.Receipt
				r.Attempt = n
				l.Past[1] = append(l.Past[1], job.Past{Receipt: &r, Verdicts: make([]job.Audit, 16), Refuted: 3})
			}
			for i := range l.Units {
				l.Units[i].Plain, l.Units[i].Seed = i != 1, canon.Sum("block")
			}
			r := *u.Receipt
			r.Attempt = attempts
			u.Status, u.Attempt, u.Receipt = job.Counted, attempts, &r
		})
		var output []byte
		for n := byte(0); !proof.Forced(output, l.Params.ForcedBps); n++ {
			h := canon.Sum("output", []byte{n})
			output = slices.Concat(h[:], h[:])
		}
		if err := k.Apply(ctx, l.Order.ID(), job.ProveDraw{
			By: l.Units[1].Provider, Unit: 1, Attempt: attempts, Output: output, Truth: make([]proof.Outcome, 256),
		}); err != nil {
			t.Fatal(err)
		}
		cost[attempts] = ctx.GasMeter().GasConsumed()
	}
	t.Log(cost)
	if cost[8] > 2*cost[0] {
		t.Errorf("to show a forced draw takes %d gas, and %d after 8 attempts", cost[0], cost[8])
	}
}

// The merge of as many shards as an order may have fits into a transaction.
func TestMergeOfAllShardsFitsATransaction(t *testing.T) {
	k, l, ctx := done(t, 1, job.MaxUnits, 2)
	cdc := codec.NewProtoCodec(codectypes.NewInterfaceRegistry())
	m := work.NewModule(k, nil, nil)
	m.RegisterInterfaces(cdc.InterfaceRegistry())
	router := baseapp.NewMsgServiceRouter()
	router.SetInterfaceRegistry(cdc.InterfaceRegistry())
	m.RegisterServices(sdkmodule.NewConfigurator(cdc, router, baseapp.NewGRPCQueryRouter()))
	root := canon.Sum("merge")
	poor := ctx.WithGasMeter(storetypes.NewGasMeter(3_000_000))
	merge := &workv1.MsgMerge{Lead: l.Lead(), Order: l.Order.ID().String(), Root: root[:], Data: marketv1.File{Role: "state", Cid: "x"}}
	// It is charged before it is done, so nobody has it done, and undone, for nothing.
	func() {
		defer func() {
			if out, ok := recover().(storetypes.ErrorOutOfGas); !ok || out.Descriptor != "order" {
				t.Errorf("with too little gas the merge was done, or ran out of it elsewhere: %v", out)
			}
		}()
		_, _ = router.Handler(merge)(poor, merge)
	}()
	begun := time.Now()
	if _, err := router.Handler(merge)(ctx, merge); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d gas, %v", ctx.GasMeter().GasConsumed(), time.Since(begun))
	if gas := ctx.GasMeter().GasConsumed(); gas > app.MaxGas*6/10 {
		t.Errorf("a merge of %d shards takes %d gas", job.MaxUnits, gas)
	}
	if _, err := router.Handler(merge)(ctx, merge); err == nil {
		t.Error("a round was merged twice")
	}
}
