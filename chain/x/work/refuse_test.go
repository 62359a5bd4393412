package work_test

import (
	"context"
	"crypto/ed25519"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	errorsmod "cosmossdk.io/errors"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/vrf"
	"github.com/tally-network/tally/chain/x/provider"
	"github.com/tally-network/tally/chain/x/work"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

func TestReceiptsAreRefused(t *testing.T) {
	p := begin(t)
	p0, p1 := chaintest.Named("p0"), chaintest.Named("p1")
	p.Assign(0, "p0")
	good := p.Receipt(0)
	bend := func(f func(*workv1.MsgSubmit)) *workv1.MsgSubmit {
		m := p.SubmitMsg(good)
		f(m)
		return m
	}
	for name, x := range map[string]struct {
		from  chaintest.Account
		msg   *workv1.MsgSubmit
		want  *errorsmod.Error
		words string
	}{
		"sent by another":   {p1, bend(func(m *workv1.MsgSubmit) { m.Provider = p1.String() }), work.ErrSigner, p1.String()},
		"signed by another": {p0, bend(func(m *workv1.MsgSubmit) { m.Signature = ed25519.Sign(p1.Peer, good.SignBytes()) }), work.ErrRefused, "not signed"},
		"bent":              {p0, bend(func(m *workv1.MsgSubmit) { m.Receipt.Checkpoints[1][0] ^= 1 }), work.ErrRefused, "not signed"},
		"no order":          {p0, bend(func(m *workv1.MsgSubmit) { m.Receipt.Order = "x" }), work.ErrMalformed, "order"},
		"unknown order":     {p0, bend(func(m *workv1.MsgSubmit) { m.Receipt.Order = strings.Repeat("0", 64) }), work.ErrNoLease, ""},
		"short root":        {p0, bend(func(m *workv1.MsgSubmit) { m.Receipt.Start = m.Receipt.Start[1:] }), work.ErrMalformed, "start"},
		"short checkpoint":  {p0, bend(func(m *workv1.MsgSubmit) { m.Receipt.Checkpoints[0] = nil }), work.ErrMalformed, "checkpoints"},
	} {
		if log := p.Refuse(x.want, x.from, x.msg); !strings.Contains(log, x.words) {
			t.Errorf("%s: %q does not say %q", name, log, x.words)
		}
	}
	p.Refuse(sdkerrors.ErrInvalidPubKey, p1, p.SubmitMsg(good)) // the message names p0, who did not sign
	p.Deliver(p0, p.SubmitMsg(good))
	p.Refuse(work.ErrRefused, p0, p.SubmitMsg(good)) // replayed
}

func TestReportsAreRefused(t *testing.T) {
	p := begin(t)
	p.Assign(0, "p0")
	auditor := chaintest.Named("v1")
	early := &workv1.MsgReport{Auditor: auditor.String(), Order: p.ID.String(), Digest: make([]byte, 32)}
	p.Refuse(work.ErrRefused, auditor, early) // nothing to audit yet
	p.Submit(0)
	auditor = worktest.Named(t, p.Unit(0).Audits[0].Auditor)
	receipt, err := canon.HashOf(p.Unit(0).ReceiptId)
	if err != nil {
		t.Fatal(err)
	}
	prove := func(key ed25519.PrivateKey, input []byte) []byte {
		_, pi, err := vrf.Prove(key, input)
		if err != nil {
			t.Fatal(err)
		}
		return pi
	}
	var other chaintest.Account // a validator that is not drawn
	for _, n := range worktest.Validators[1:] {
		if a := chaintest.Named(n); a.String() != auditor.String() {
			other = a
		}
	}
	good := p.ReportMsg(0, auditor, true)
	bend := func(f func(*workv1.MsgReport)) *workv1.MsgReport {
		m := *good
		f(&m)
		return &m
	}
	for name, x := range map[string]struct {
		from chaintest.Account
		msg  *workv1.MsgReport
		want *errorsmod.Error
	}{
		"another's key":  {auditor, bend(func(m *workv1.MsgReport) { m.Proof = prove(other.VRF, proof.AuditInput(receipt, auditor.String())) }), work.ErrProof},
		"another's name": {auditor, bend(func(m *workv1.MsgReport) { m.Proof = prove(auditor.VRF, proof.AuditInput(receipt, other.String())) }), work.ErrProof},
		"another receipt": {auditor, bend(func(m *workv1.MsgReport) {
			m.Proof = prove(auditor.VRF, proof.AuditInput(canon.Hash{1}, auditor.String()))
		}), work.ErrProof},
		"no proof":        {auditor, bend(func(m *workv1.MsgReport) { m.Proof = nil }), work.ErrProof},
		"no digest":       {auditor, bend(func(m *workv1.MsgReport) { m.Digest = nil }), work.ErrMalformed},
		"no such unit":    {auditor, bend(func(m *workv1.MsgReport) { m.Unit = 1 << 31 }), work.ErrRefused},
		"another attempt": {auditor, bend(func(m *workv1.MsgReport) { m.Attempt = 7 }), work.ErrRefused},
		"not drawn":       {other, p.ReportMsg(0, other, true), work.ErrRefused},
		"no validator":    {chaintest.Named("p1"), p.ReportMsg(0, chaintest.Named("p1"), true), work.ErrRefused},
	} {
		if log := p.Refuse(x.want, x.from, x.msg); log == "" {
			t.Errorf("%s: no words", name)
		}
	}
	p.Deliver(auditor, good)
	a := p.Unit(0).Audits[0]
	if !a.Done || !a.Pass || len(a.Segments) != 1 {
		t.Fatalf("%+v", a)
	}
	p.Refuse(work.ErrRefused, auditor, good)
}

func TestAssignmentsAreRefused(t *testing.T) {
	p := begin(t)
	v0, v1 := chaintest.Named("v0"), chaintest.Named("v1")
	p.Refuse(work.ErrRefused, v1, func() *workv1.MsgAssign { // v1 does not lead
		m := p.AssignMsg(0, "p0")
		m.Lead = v1.String()
		return m
	}())
	m := p.AssignMsg(0, "p0")
	m.Units[0].Signature = p.AssignMsg(1, "p0").Units[0].Signature // for another unit
	p.Refuse(work.ErrRefused, v0, m)
	p.Refuse(work.ErrRefused, v0, p.AssignMsg(2, "p0")) // of a later round
	p.Refuse(work.ErrRefused, v0, p.AssignMsg(0, "q0")) // works under v1
	m = p.AssignMsg(0, "p0")
	m.Units[0].Provider = "x"
	p.Refuse(work.ErrMalformed, v0, m)
	m.Units = make([]workv1.Assignment, 257)
	p.Refuse(work.ErrMalformed, v0, m)
	// A jailed provider gets no new unit, though it may finish those that it has.
	p.Assign(0, "p0")
	if err := p.Do(func(ctx sdk.Context) error {
		return p.Provider.Jail(ctx, chaintest.Named("p0").Address, p.Now().Add(time.Hour).UnixMilli())
	}); err != nil {
		t.Fatal(err)
	}
	p.Refuse(work.ErrInactive, v0, p.AssignMsg(1, "p0"))
	p.Submit(0)
}

// A provider without enough free stake cannot take a unit, and nothing of the
// assignment happens.
func TestAssignmentNeedsFreeStake(t *testing.T) {
	p := begin(t, func(g *app.Genesis) {
		g.Params = provider.DefaultGenesis().Params
		g.Params.MinProviderStake, g.Params.UnbondingMs = 1, 1
	})
	p0 := chaintest.Named("p0")
	peer, err := p.Provider.Get(p.Ctx(), p0.Address)
	if err != nil {
		t.Fatal(err)
	}
	p.Deliver(p0, &providerv1.MsgWithdraw{Account: p0.String(), Amount: peer.Stake - 100})
	p.NextBlock(time.Second)
	spend := banktypes.NewMsgSend(p0.Address, worktest.Challenger.Address, coin.Of(p.Balance(p0.Address)-worktest.Tally/2))
	p.Deliver(p0, spend) // what it keeps is for fees
	if log := p.Refuse(work.ErrRefused, p.Lead(), p.AssignMsg(0, "p0")); !strings.Contains(log, "must cover the worst case") || !strings.Contains(log, "> 100 utally") {
		t.Fatal(log)
	}
	if u := p.Unit(0); u.Status != workv1.UNIT_STATUS_OPEN {
		t.Fatalf("%+v", u)
	}
	p.Deliver(worktest.Challenger, banktypes.NewMsgSend(worktest.Challenger.Address, p0.Address, spend.Amount))
	p.Assign(0, "p0") // what its stake lacks comes out of its balance
	if peer, err = p.Provider.Get(p.Ctx(), p0.Address); err != nil || peer.Stake != peer.Reserved || peer.Reserved == 0 {
		t.Fatalf("%+v, %v", peer, err)
	}
}

// The largest messages of every kind fit in a transaction of 64 KiB.
func TestLargestTransactions(t *testing.T) {
	p := begin(t)
	long := func(n int) string { return strings.Repeat("x", n) }
	file := job.File{Role: long(32), CID: long(128), Size: 1 << 63}
	o := p.Order
	o.Problem.Recipe = make([]byte, job.MaxText)
	for range job.MaxFiles {
		o.Problem.Files = append(o.Problem.Files, file)
	}
	p.Assign(0, "p0")
	r := p.Receipt(0)
	r.Data, r.Checkpoints = file, make([]canon.Hash, job.MaxSegments+1)
	assign := p.AssignMsg(1, "p0")
	for len(assign.Units) < 256 {
		assign.Units = append(assign.Units, assign.Units[0])
	}
	for _, m := range []sdk.Msg{
		worktest.Post(o), assign, p.SubmitMsg(r),
		&workv1.MsgDecline{Lead: p.Lease().Lead, Order: p.ID.String(), Reason: long(job.MaxText)},
		&disputev1.MsgMove{Player: worktest.Challenger.String(), Dispute: 1 << 40, Move: make([]byte, dispute.MaxMove)},
	} {
		if n := p.Size(worktest.Challenger, m); n > worktest.MaxTx {
			t.Errorf("%T takes %d bytes", m, n)
		}
	}
}

func TestWorkQueries(t *testing.T) {
	p := begin(t)
	ctx := context.Background()
	p.FinishRound()
	unit, idle := p.Unit(0), idleProvider(p)
	leases := func(r workv1.QueryLeasesRequest) []workv1.Lease {
		t.Helper()
		res, err := p.Work.Leases(ctx, &r)
		if err != nil {
			t.Fatal(err)
		}
		return res.Leases
	}
	for name, x := range map[string]struct {
		request workv1.QueryLeasesRequest
		want    int
	}{
		"all":           {workv1.QueryLeasesRequest{}, 1},
		"active":        {workv1.QueryLeasesRequest{Phase: workv1.PHASE_ACTIVE}, 1},
		"settled":       {workv1.QueryLeasesRequest{Phase: workv1.PHASE_SETTLED}, 0},
		"a provider's":  {workv1.QueryLeasesRequest{Participant: unit.Provider}, 1},
		"an auditor's":  {workv1.QueryLeasesRequest{Participant: unit.Audits[0].Auditor}, 1},
		"an idle one's": {workv1.QueryLeasesRequest{Participant: idle}, 0},
		"consumer's":    {workv1.QueryLeasesRequest{Participant: worktest.Consumer.String()}, 1},
		"a stranger's":  {workv1.QueryLeasesRequest{Participant: chaintest.Named("q0").String()}, 0},
	} {
		if got := leases(x.request); len(got) != x.want {
			t.Errorf("%s: %d leases, want %d", name, len(got), x.want)
		}
	}
	l := p.Lease()
	brief := leases(workv1.QueryLeasesRequest{})[0]
	if len(l.Merges) != 1 || string(brief.Root) != string(l.Merges[0].Root) || string(l.Root) != string(brief.Root) {
		t.Fatalf("%v in brief is %v", l.Merges, brief.Root)
	}
	state, err := p.Work.State(ctx, &workv1.QueryStateRequest{Order: p.ID.String()})
	if err != nil {
		t.Fatal(err)
	}
	var whole job.Lease
	if err := canon.Unmarshal(state.Lease, &whole); err != nil || whole.Check() != nil || whole.Order.ID() != p.ID {
		t.Fatalf("%v, %v", err, whole.Check())
	}
	briefState, err := p.Work.State(ctx, &workv1.QueryStateRequest{Order: p.ID.String(), Brief: true})
	if err != nil {
		t.Fatal(err)
	}
	var filled job.Lease
	if err := canon.Unmarshal(briefState.Lease, &filled); err != nil {
		t.Fatal(err)
	}
	roots, err := p.Work.Roots(ctx, &workv1.QueryRootsRequest{Order: p.ID.String(), Units: []uint32{0, 1, 3}})
	if err != nil || len(roots.Checkpoints) != 3 {
		t.Fatalf("%v, %v", roots, err)
	}
	if len(filled.Merges[0].Inputs) != 0 || len(roots.Checkpoints[2].Roots) != 0 {
		t.Errorf("there are inputs of %v, and %v", filled.Merges[0], roots)
	}
	for at, i := range []int{0, 1} {
		if r := filled.Units[i].Receipt; !r.OnlyEnd() || roots.Checkpoints[at].Attempt != uint32(r.Attempt) || whole.Order.Problem.End(r) != whole.Order.Problem.End(whole.Units[i].Receipt) {
			t.Errorf("brief, unit %d has checkpoints %v", i, r.Checkpoints)
		}
		filled.Units[i].Receipt.Checkpoints = hashes(roots.Checkpoints[at])
	}
	filled.Merges[0].Inputs = filled.Ends(0)
	if !reflect.DeepEqual(filled, whole) {
		t.Errorf("brief and filled it is %+v, want %+v", filled, whole)
	}
	units, err := p.Work.Units(ctx, &workv1.QueryUnitsRequest{Order: p.ID.String()})
	if err != nil || len(units.Units) != 4 {
		t.Fatalf("%v, %v", units, err)
	}
	some, err := p.Work.Units(ctx, &workv1.QueryUnitsRequest{Order: p.ID.String(), From: 1, Limit: 2})
	if err != nil || len(some.Units) != 2 || some.Units[0].String() != units.Units[1].String() || some.Units[0].Status != workv1.UNIT_STATUS_ACCEPTED {
		t.Fatalf("%v, %v", some, err)
	}
	if none, err := p.Work.Units(ctx, &workv1.QueryUnitsRequest{Order: p.ID.String(), From: 99}); err != nil || len(none.Units) != 0 {
		t.Fatalf("%v, %v", none, err)
	}
	p.Finish()
	for live, want := range map[bool]int{true: 0, false: 1} {
		if got := leases(workv1.QueryLeasesRequest{Participant: worktest.Consumer.String(), Live: live}); len(got) != want {
			t.Errorf("%d leases, want %d", len(got), want)
		}
	}
}

// idleProvider returns a provider of the lease that has computed no unit.
func idleProvider(p *worktest.Play) string {
	i := slices.IndexFunc(worktest.Providers, func(name string) bool {
		return !slices.ContainsFunc(p.Lease().Reserve, func(e workv1.Exposure) bool { return e.Account == chaintest.Named(name).String() })
	})
	return chaintest.Named(worktest.Providers[i]).String()
}

func hashes(r workv1.Roots) (out []canon.Hash) {
	for b := range slices.Chunk(r.Roots, len(canon.Hash{})) {
		out = append(out, canon.Hash(b))
	}
	return out
}

// A lease is live until it is settled, and its height is that of the block that changed it.
func TestLiveLeasesTellWhenTheyChanged(t *testing.T) {
	p := begin(t)
	live := func(participant string) []workv1.LiveLease {
		t.Helper()
		r, err := p.Work.Live(context.Background(), &workv1.QueryLiveRequest{Participant: participant})
		if err != nil {
			t.Fatal(err)
		}
		return r.Leases
	}
	first := live("")
	if len(first) != 1 || first[0].Order != p.ID.String() || first[0].Changed == 0 {
		t.Fatalf("live are %v", first)
	}
	p.NextBlock(time.Second)
	if again := live(""); !slices.Equal(first, again) {
		t.Errorf("nothing changed, and %v became %v", first, again)
	}
	p.FinishRound()
	changed := live("")
	if len(changed) != 1 || changed[0].Changed <= first[0].Changed {
		t.Errorf("a round later %v became %v", first, changed)
	}
	for who, want := range map[string]int{worktest.Consumer.String(): 1, p.Unit(0).Provider: 1, idleProvider(p): 0, chaintest.Named("q0").String(): 0} {
		if got := live(who); len(got) != want || want > 0 && !slices.Equal(got, changed) {
			t.Errorf("%s takes part in %v", who, got)
		}
	}
	p.Finish()
	for _, who := range []string{"", worktest.Consumer.String()} {
		if got := live(who); len(got) != 0 {
			t.Errorf("settled, and live is %v", got)
		}
	}
}

func TestWorkQueriesRefuse(t *testing.T) {
	p := begin(t)
	ctx, none := context.Background(), strings.Repeat("0", 64)
	for name, x := range map[string]struct {
		call func() error
		want codes.Code
	}{
		"no id":    {func() error { _, err := p.Work.Lease(ctx, &workv1.QueryLeaseRequest{Order: "x"}); return err }, codes.InvalidArgument},
		"no lease": {func() error { _, err := p.Work.Lease(ctx, &workv1.QueryLeaseRequest{Order: none}); return err }, codes.NotFound},
		"no state": {func() error { _, err := p.Work.State(ctx, &workv1.QueryStateRequest{Order: none}); return err }, codes.NotFound},
		"no units": {func() error { _, err := p.Work.Units(ctx, &workv1.QueryUnitsRequest{Order: none}); return err }, codes.NotFound},
		"no unit": {func() error {
			_, err := p.Work.Unit(ctx, &workv1.QueryUnitRequest{Order: p.ID.String(), Unit: 4})
			return err
		}, codes.NotFound},
		"too many roots": {func() error {
			_, err := p.Work.Roots(ctx, &workv1.QueryRootsRequest{Order: p.ID.String(), Units: make([]uint32, job.MaxUnits+1)})
			return err
		}, codes.InvalidArgument},
		"roots of nothing": {func() error {
			_, err := p.Work.Roots(ctx, &workv1.QueryRootsRequest{Order: p.ID.String()})
			return err
		}, codes.InvalidArgument},
		"roots of no lease": {func() error {
			_, err := p.Work.Roots(ctx, &workv1.QueryRootsRequest{Order: none, Units: []uint32{0}})
			return err
		}, codes.NotFound},
		"roots twice": {func() error {
			_, err := p.Work.Roots(ctx, &workv1.QueryRootsRequest{Order: p.ID.String(), Units: []uint32{1, 1}})
			return err
		}, codes.InvalidArgument},
		"no settlement": {func() error {
			_, err := p.Work.Settlement(ctx, &workv1.QuerySettlementRequest{Order: p.ID.String()})
			return err
		}, codes.NotFound},
		"both": {func() error {
			_, err := p.Work.Leases(ctx, &workv1.QueryLeasesRequest{Phase: 1, Participant: worktest.Consumer.String()})
			return err
		}, codes.InvalidArgument},
		"live leases of a name": {func() error {
			_, err := p.Work.Live(ctx, &workv1.QueryLiveRequest{Participant: "bogus"})
			return err
		}, codes.InvalidArgument},
		"leases of a name": {func() error {
			_, err := p.Work.Leases(ctx, &workv1.QueryLeasesRequest{Participant: "bogus"})
			return err
		}, codes.InvalidArgument},
	} {
		if err := x.call(); status.Code(err) != x.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r, err := p.Work.Params(ctx, &workv1.QueryParamsRequest{}); err != nil || r.Params.RewardBps != job.DefaultParams.RewardBps || r.Params.JailMs != time.Hour.Milliseconds() {
		t.Errorf("%v, %v", r, err)
	}
}

func TestValidateGenesis(t *testing.T) {
	p := begin(t)
	p.FinishRound()
	whole, err := p.Chain.Work.ExportGenesis(p.Ctx())
	if err != nil || work.ValidateGenesis(whole) != nil || len(whole.Leases) != 1 {
		t.Fatalf("%v, %v", err, work.ValidateGenesis(whole))
	}
	state := func(bend func(*job.Lease)) []byte {
		var l job.Lease
		if err := canon.Unmarshal(whole.Leases[0], &l); err != nil {
			t.Fatal(err)
		}
		bend(&l)
		return canon.Marshal(&l)
	}
	for name, bend := range map[string]func(*workv1.GenesisState){
		"params":     func(g *workv1.GenesisState) { g.Params.RewardBps = 9000 },
		"jail":       func(g *workv1.GenesisState) { g.Params.JailMs = -1 },
		"twice":      func(g *workv1.GenesisState) { g.Leases = append(g.Leases, g.Leases[0]) },
		"broken":     func(g *workv1.GenesisState) { g.Leases[0] = g.Leases[0][1:] },
		"no lead":    func(g *workv1.GenesisState) { g.Leases[0] = state(func(l *job.Lease) { l.Leads = nil }) },
		"no units":   func(g *workv1.GenesisState) { g.Leases[0] = state(func(l *job.Lease) { l.Units = nil }) },
		"no money":   func(g *workv1.GenesisState) { g.Leases[0] = state(func(l *job.Lease) { l.Ledger.Escrow-- }) },
		"no phase":   func(g *workv1.GenesisState) { g.Leases[0] = state(func(l *job.Lease) { l.Phase = 9 }) },
		"settlement": func(g *workv1.GenesisState) { g.Settlements = [][]byte{{1}} },
		"unrecorded": func(g *workv1.GenesisState) { g.Settlements = [][]byte{canon.Marshal(&job.Settlement{})} },
		"leaf":       func(g *workv1.GenesisState) { g.Record = [][]byte{{1}} },
		"two leaves": func(g *workv1.GenesisState) { g.Record = [][]byte{make([]byte, 32), make([]byte, 32)} },
	} {
		g := *whole
		g.Leases = append([][]byte(nil), whole.Leases...)
		if bend(&g); work.ValidateGenesis(&g) == nil {
			t.Errorf("%s: a bent genesis was taken", name)
		}
	}
}
