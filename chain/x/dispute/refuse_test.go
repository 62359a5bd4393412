package dispute_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	errorsmod "cosmossdk.io/errors"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
	"github.com/cosmos/cosmos-sdk/types/query"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/event"
	"github.com/tally-network/tally/chain/x/dispute"
	"github.com/tally-network/tally/chain/x/work"
	"github.com/tally-network/tally/core/canon"
	game "github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// Targets as a stranger may write them.
func unit(i uint32) workv1.Target  { return workv1.Target{Subject: &workv1.Target_Unit{Unit: i}} }
func merge(r uint32) workv1.Target { return workv1.Target{Subject: &workv1.Target_Merge{Merge: r}} }
func verdict(auditor string) workv1.Target {
	return workv1.Target{Subject: &workv1.Target_Verdict{Verdict: &workv1.VerdictTarget{Auditor: auditor}}}
}

func TestOpenRefuses(t *testing.T) {
	a := newAffair(t)
	_, w := a.sides()
	good := a.OpenMsg(job.UnitTarget(0), 0, w)
	for name, x := range map[string]struct {
		from  chaintest.Account
		bend  func(*disputev1.MsgOpen)
		want  *errorsmod.Error
		words string
	}{
		"own work":      {chaintest.Named("p0"), func(m *disputev1.MsgOpen) { m.Challenger = chaintest.Named("p0").String() }, work.ErrRefused, "its own work"},
		"stale attempt": {worktest.Challenger, func(m *disputev1.MsgOpen) { m.Attempt = 3 }, work.ErrRefused, "attempt 0 stands"},
		"no receipt":    {worktest.Challenger, func(m *disputev1.MsgOpen) { m.Target = unit(1) }, work.ErrRefused, "no receipt"},
		"no unit":       {worktest.Challenger, func(m *disputev1.MsgOpen) { m.Target = unit(1 << 31) }, dispute.ErrOpening, "index"},
		"no merge":      {worktest.Challenger, func(m *disputev1.MsgOpen) { m.Target = merge(0) }, work.ErrRefused, "not merged"},
		"far merge":     {worktest.Challenger, func(m *disputev1.MsgOpen) { m.Target = merge(1 << 31) }, dispute.ErrOpening, "index"},
		"no target":     {worktest.Challenger, func(m *disputev1.MsgOpen) { m.Target = workv1.Target{} }, dispute.ErrOpening, "names nothing"},
		"no auditor":    {worktest.Challenger, func(m *disputev1.MsgOpen) { m.Target = verdict("") }, dispute.ErrOpening, "auditor"},
		"no order":      {worktest.Challenger, func(m *disputev1.MsgOpen) { m.Order = "x" }, dispute.ErrOpening, "order"},
		"unknown order": {worktest.Challenger, func(m *disputev1.MsgOpen) { m.Order = strings.Repeat("0", 64) }, work.ErrNoLease, ""},
		"broken":        {worktest.Challenger, func(m *disputev1.MsgOpen) { m.Opening = []byte{1} }, dispute.ErrOpening, ""},
		"bent":          {worktest.Challenger, func(m *disputev1.MsgOpen) { m.Opening[3] ^= 1 }, dispute.ErrOpening, ""},
		"large":         {worktest.Challenger, func(m *disputev1.MsgOpen) { m.Opening = make([]byte, game.MaxMove+1) }, dispute.ErrOpening, "61441 bytes"},
	} {
		m := *good
		m.Opening = append([]byte(nil), good.Opening...)
		x.bend(&m)
		if log := a.Refuse(x.want, x.from, &m); !strings.Contains(log, x.words) {
			t.Errorf("%s: %q does not say %q", name, log, x.words)
		}
	}
	a.Refuse(sdkerrors.ErrInvalidPubKey, chaintest.Named("p1"), good)
	poor := a.Balance(worktest.Challenger.Address) - bond + 1
	a.Deliver(worktest.Challenger, banktypes.NewMsgSend(worktest.Challenger.Address, worktest.Consumer.Address, coin.Of(poor)))
	if log := a.Refuse(sdkerrors.ErrInsufficientFunds, worktest.Challenger, good); !strings.Contains(log, "bond of 1000000 utally") {
		t.Errorf("%q says too little", log)
	}
	a.Deliver(worktest.Consumer, banktypes.NewMsgSend(worktest.Consumer.Address, worktest.Challenger.Address, coin.Of(poor)))
	a.Deliver(worktest.Challenger, good)
	a.Refuse(work.ErrRefused, worktest.Challenger, good) // disputed already
}

func TestMoveRefuses(t *testing.T) {
	a := newAffair(t)
	id := a.challenge()
	defender, challenger := a.sides()
	who, good, err := a.MoveMsg(id, defender, challenger)
	if err != nil || who.Name != "p0" {
		t.Fatalf("%s moves first: %v", who.Name, err)
	}
	bend := func(f func(*disputev1.MsgMove)) *disputev1.MsgMove {
		m := *good
		f(&m)
		return &m
	}
	stranger := chaintest.Named("p2")
	pick := game.EncodeMove(&game.Pick{})
	for name, x := range map[string]struct {
		from chaintest.Account
		msg  *disputev1.MsgMove
		want *errorsmod.Error
	}{
		"stranger":    {stranger, bend(func(m *disputev1.MsgMove) { m.Player = stranger.String() }), dispute.ErrStranger},
		"not signed":  {stranger, good, sdkerrors.ErrInvalidPubKey},
		"out of turn": {worktest.Challenger, bend(func(m *disputev1.MsgMove) { m.Player, m.Move = worktest.Challenger.String(), pick }), dispute.ErrTurn},
		"again":       {who, bend(func(m *disputev1.MsgMove) { m.Number-- }), dispute.ErrTurn},
		"too early":   {who, bend(func(m *disputev1.MsgMove) { m.Number++ }), dispute.ErrTurn},
		"unfit":       {who, bend(func(m *disputev1.MsgMove) { m.Move = pick }), dispute.ErrMove},
		"broken":      {who, bend(func(m *disputev1.MsgMove) { m.Move = []byte{2, 1} }), dispute.ErrMove},
		"empty":       {who, bend(func(m *disputev1.MsgMove) { m.Move = nil }), dispute.ErrMove},
		"large":       {who, bend(func(m *disputev1.MsgMove) { m.Move = make([]byte, game.MaxMove+1) }), dispute.ErrMove},
		"no dispute":  {who, bend(func(m *disputev1.MsgMove) { m.Dispute = 99 }), dispute.ErrNoDispute},
	} {
		if log := a.Refuse(x.want, x.from, x.msg); log == "" {
			t.Errorf("%s: no words", name)
		}
	}
	// A move in the block in which the clock runs out comes too late.
	d, _ := a.Game(id)
	a.Queue(who, good)
	b := a.NextBlock(time.Duration(d.Deadline-a.Now().UnixMilli()+1) * time.Millisecond)
	if r := b.TxResults[0]; r.Code != dispute.ErrLate.ABCICode() || r.Codespace != dispute.Name {
		t.Fatalf("a late move: %s", r.Log)
	}
	a.Refuse(dispute.ErrOver, who, good)
}

func TestDisputeQueries(t *testing.T) {
	a := newAffair(t)
	q, ctx := disputev1.NewQueryClient(a.Chain), context.Background()
	id := a.challenge()
	list := func(r disputev1.QueryDisputesRequest, want int) {
		t.Helper()
		r.Pagination = &query.PageRequest{Limit: 5}
		res, err := q.Disputes(ctx, &r)
		if err != nil || len(res.Disputes) != want || want > 0 && (res.Disputes[0].Id != id || res.Disputes[0].Parties.Defender != chaintest.Named("p0").String()) {
			t.Fatalf("%+v: %v, %v", r, res, err)
		}
	}
	list(disputev1.QueryDisputesRequest{}, 1)
	list(disputev1.QueryDisputesRequest{Open: true}, 1)
	list(disputev1.QueryDisputesRequest{Order: a.ID.String()}, 1)
	list(disputev1.QueryDisputesRequest{Order: strings.Repeat("0", 64)}, 0)
	// Roles ask for those in which it is their turn, and challengers for silent sides.
	d, _ := a.Game(id)
	next, other := d.Parties.Defender, d.Parties.Challenger
	if d.Turn == disputev1.SIDE_CHALLENGER {
		next, other = other, next
	}
	list(disputev1.QueryDisputesRequest{Turn: next}, 1)
	list(disputev1.QueryDisputesRequest{Turn: other}, 0)
	list(disputev1.QueryDisputesRequest{Missed: true}, 0)
	a.NextBlock(time.Duration(dispute.DefaultParams().AnswerMs+1) * time.Millisecond)
	list(disputev1.QueryDisputesRequest{Missed: true}, 1)
	list(disputev1.QueryDisputesRequest{Turn: next}, 1)
	defender, challenger := a.sides()
	a.PlayOut(id, defender, challenger)
	list(disputev1.QueryDisputesRequest{Open: true}, 0)
	list(disputev1.QueryDisputesRequest{Turn: next}, 0)
	list(disputev1.QueryDisputesRequest{Missed: true}, 0)
	list(disputev1.QueryDisputesRequest{Order: a.ID.String()}, 1)
	for name, x := range map[string]struct {
		call func() error
		want codes.Code
	}{
		"unknown": {func() error { _, err := q.Dispute(ctx, &disputev1.QueryDisputeRequest{Dispute: 7}); return err }, codes.NotFound},
		"no id":   {func() error { _, err := q.Disputes(ctx, &disputev1.QueryDisputesRequest{Order: "x"}); return err }, codes.InvalidArgument},
		"both": {func() error {
			_, err := q.Disputes(ctx, &disputev1.QueryDisputesRequest{Order: a.ID.String(), Open: true})
			return err
		}, codes.InvalidArgument},
		"turn and missed": {func() error {
			_, err := q.Disputes(ctx, &disputev1.QueryDisputesRequest{Turn: next, Missed: true})
			return err
		}, codes.InvalidArgument},
		"turn of nobody": {func() error { _, err := q.Disputes(ctx, &disputev1.QueryDisputesRequest{Turn: "x"}); return err }, codes.InvalidArgument},
	} {
		if err := x.call(); status.Code(err) != x.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r, err := q.Params(ctx, &disputev1.QueryParamsRequest{}); err != nil || r.Params != dispute.DefaultParams() {
		t.Errorf("%v, %v", r, err)
	}
}

// A dispute under way survives an export; both chains reach the same verdict.
func TestDisputeSurvivesExport(t *testing.T) {
	a := newAffair(t)
	id := a.challenge()
	defender, challenger := a.sides()
	for range 4 {
		a.Step(id, defender, challenger, new(worktest.Cost))
	}
	fork := *a.Play
	fork.Chain = a.Fork()
	one, _ := a.PlayOut(id, defender, challenger)
	two, _ := worktest.Join(t, fork.Chain, a.Order).PlayOut(id, defender, challenger)
	if one.Loser != disputev1.SIDE_DEFENDER || one.Reason != two.Reason || one.Moves != two.Moves {
		t.Fatalf("%+v\nafter an import\n%+v", one, two)
	}
	a.Fork() // with a dispute that is over
}

func TestValidateGenesis(t *testing.T) {
	a := newAffair(t)
	a.challenge()
	whole, err := a.Chain.Dispute.ExportGenesis(a.Ctx())
	if err != nil || dispute.ValidateGenesis(whole) != nil || len(whole.Disputes) != 1 {
		t.Fatalf("%v, %v", err, dispute.ValidateGenesis(whole))
	}
	for name, bend := range map[string]func(*disputev1.GenesisState){
		"depth":   func(g *disputev1.GenesisState) { g.Params.Depth = 9 },
		"clock":   func(g *disputev1.GenesisState) { g.Params.ClockMs = 0 },
		"queue":   func(g *disputev1.GenesisState) { g.Params.Parallel = 0 },
		"twice":   func(g *disputev1.GenesisState) { g.Disputes = append(g.Disputes, g.Disputes[0]) },
		"next":    func(g *disputev1.GenesisState) { g.Next = 0 },
		"game":    func(g *disputev1.GenesisState) { g.Disputes[0].Game = nil },
		"order":   func(g *disputev1.GenesisState) { g.Disputes[0].Parties.Order = "" },
		"nobody":  func(g *disputev1.GenesisState) { g.Disputes[0].Parties.Defender = "" },
		"riches":  func(g *disputev1.GenesisState) { g.Disputes[0].Parties.Bond = coin.MaxSupply + 1 },
		"no move": func(g *disputev1.GenesisState) { g.Disputes[0].Game = g.Disputes[0].Game[1:] },
	} {
		g := *whole
		g.Disputes = append([]disputev1.GenesisDispute(nil), whole.Disputes...)
		if bend(&g); dispute.ValidateGenesis(&g) == nil {
			t.Errorf("%s: a bent genesis was taken", name)
		}
	}
}

// claims is a stand-in for x/work.
type claims struct {
	claim  game.Claim
	closed []game.Side
	err    error
}

func (c *claims) Claim(context.Context, canon.Hash, job.Target, int, int) (game.Claim, uint64, error) {
	return c.claim, 10, nil
}

func (c *claims) OpenDispute(context.Context, canon.Hash, job.OpenDispute) (string, bool, error) {
	return chaintest.Named("p0").String(), false, nil
}

func (c *claims) CloseDispute(_ context.Context, _ canon.Hash, _ uint64, loser game.Side, _ bool) (game.Side, error) {
	c.closed = append(c.closed, loser)
	return loser, c.err
}

func (c *claims) MissAnswer(context.Context, canon.Hash, uint64, bool) error { return c.err }

func (c *claims) Substitute(context.Context, canon.Hash, uint64, string) error { return c.err }

// strangers is a registry that knows nobody.
type strangers struct{ dispute.Stakes }

func (strangers) Affords(context.Context, sdk.AccAddress, uint64) (bool, error) { return false, nil }

// alone returns a keeper over stand-ins, and a challenger with 10 utally.
func alone(t *testing.T, w *claims) (*dispute.Keeper, *chaintest.Bank, sdk.Context) {
	t.Helper()
	ctx, svc, cdc := chaintest.Store(t)
	bank := chaintest.NewBank()
	bank.Give(worktest.Challenger.Address, 10)
	k := dispute.NewKeeper(cdc, svc, bank, strangers{}, w, nil)
	if err := k.InitGenesis(ctx, dispute.DefaultGenesis()); err != nil {
		t.Fatal(err)
	}
	return k, bank, ctx
}

// A claim whose own checkpoints contradict its start is lost when it is opened.
func TestContradictionIsLostAtOnce(t *testing.T) {
	points := []canon.Hash{{1}, {2}}
	tree := canon.NewTree(points)
	w := &claims{claim: game.Claim{Inputs: []canon.Hash{{3}}, Steps: 1, Interval: 1, Checkpoints: tree.Root(), End: points[1]}}
	k, bank, ctx := alone(t, w)
	o := game.Opening{From: points[0], To: points[1], FromPath: tree.Prove(0), ToPath: tree.Prove(1)}
	id, err := k.Open(ctx, worktest.Challenger.Address, canon.Hash{9}, job.UnitTarget(0), 0, o)
	if err != nil {
		t.Fatal(err)
	}
	g, _, err := k.Game(ctx, id)
	if err != nil || g.Loser != game.Defender || len(w.closed) != 1 || w.closed[0] != game.Defender {
		t.Fatalf("%v, %v, %v", g.Loser, w.closed, err)
	}
	if bank.Balances[string(worktest.Challenger.Address)] != 10 || k.Invariant(ctx) != nil {
		t.Fatalf("%v, %v", bank.Balances, k.Invariant(ctx))
	}
}

// A dispute that cannot be ended does not stop the chain, nor the others.
func TestDisputeThatCannotEnd(t *testing.T) {
	w := &claims{claim: game.Claim{Inputs: []canon.Hash{{3}}, Steps: 1}, err: errors.New("it rains")}
	k, bank, ctx := alone(t, w)
	if _, err := k.Open(ctx, worktest.Challenger.Address, canon.Hash{9}, job.UnitTarget(0), 0, game.Opening{}); err != nil {
		t.Fatal(err)
	}
	for wet := range 2 {
		if wet == 1 {
			w.err = nil
		}
		later := ctx.WithBlockTime(ctx.BlockTime().Add(time.Duration(wet+1) * time.Hour)).WithEventManager(sdk.NewEventManager())
		if err := k.EndBlock(later); err != nil {
			t.Fatal(err)
		}
		stuck, err := event.Of[*disputev1.EventStuck](later.EventManager().ABCIEvents())
		if err != nil || len(stuck) != 1-wet {
			t.Fatalf("%v, %v", stuck, err)
		}
		if held := bank.Module(dispute.Name); held != uint64(10*(1-wet)) {
			t.Fatalf("%d utally are locked", held)
		}
	}
}

// A dispute that its lease has ended in the last block ends in another chain as in this one: nobody has lost it.
func TestDroppedDisputesSurviveExport(t *testing.T) {
	w := &claims{claim: game.Claim{Inputs: []canon.Hash{{3}}, Steps: 1}, err: errors.New("the lease has no such dispute")}
	k, bank, ctx := alone(t, w)
	id, err := k.Open(ctx, worktest.Challenger.Address, canon.Hash{9}, job.UnitTarget(0), 0, game.Opening{})
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Drop(ctx, id, "it is gone"); err != nil {
		t.Fatal(err)
	}
	g, err := k.ExportGenesis(ctx)
	if err != nil || dispute.ValidateGenesis(g) != nil {
		t.Fatal(err, dispute.ValidateGenesis(g))
	}
	ctx, svc, cdc := chaintest.Store(t)
	k = dispute.NewKeeper(cdc, svc, bank.Clone(), strangers{}, w, nil)
	if err := k.InitGenesis(ctx, g); err != nil {
		t.Fatal(err)
	}
	later := ctx.WithBlockTime(ctx.BlockTime().Add(time.Hour))
	if err := k.EndBlock(later); err != nil {
		t.Fatal(err)
	}
	if over, _, err := k.Game(later, id); err != nil || over.Stage != game.Over || over.Reason != "it is gone" || over.Loser != game.Nobody {
		t.Errorf("%+v, %v", over, err)
	}
}

// What a verdict takes, with the transaction around it.
func BenchmarkVerdict(b *testing.B) {
	a := newAffair(b)
	id := a.challenge()
	defender, challenger := a.sides()
	for {
		if _, g := a.Game(id); g.Stage == game.ProveBlock {
			break
		}
		a.Step(id, defender, challenger, new(worktest.Cost))
	}
	_, m, err := a.MoveMsg(id, defender, challenger)
	if err != nil {
		b.Fatal(err)
	}
	move, err := game.DecodeMove(m.Move)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := a.Chain.Dispute.Move(a.Ctx(), m, move); err != nil {
			b.Fatal(err)
		}
	}
}
