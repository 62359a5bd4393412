package work_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tally-network/tally/chain/x/provider"
	"github.com/tally-network/tally/chain/x/work"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	"github.com/tally-network/tally/core/tensor"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

const answerTime = 20 * time.Second

// asked is a play whose units all end in one real state, that of their start and
// of their checkpoints.
type asked struct {
	*worktest.Play
	state   *graph.State
	records *tensor.Tensor
}

// Checkpoints implements worktest.Computer.
func (a asked) Checkpoints(_ int, start canon.Hash) []canon.Hash {
	return slices.Repeat([]canon.Hash{start}, a.Order.Problem.Segments()+1)
}

// Merge implements worktest.Computer.
func (a asked) Merge(ends []canon.Hash) canon.Hash { return ends[0] }

func beginAsked(t *testing.T) asked {
	t.Helper()
	rules := worktest.Rules(func(p *job.Params) { p.AnswerTime = answerTime.Milliseconds() })
	a := beginAskedOf(t, func(o *job.Order) { o.Conditions.Custodians = 1 }, rules)
	a.Compute(0, "p0")
	return a
}

func beginAskedOf(t *testing.T, bend func(*job.Order), more ...chaintest.Option) asked {
	t.Helper()
	x, err := tensor.FromBytes(tensor.Int64, tensor.Shape{40, 64}, make([]byte, 8*40*64))
	if err != nil {
		t.Fatal(err)
	}
	a := asked{state: &graph.State{Slots: []graph.Slot{{Name: "w", Type: x.Type, Shape: x.Shape}}, Tensors: []*tensor.Tensor{x}}, records: x}
	o := worktest.Order()
	bend(&o)
	o.Problem.Data = x.Root()
	if o.Problem.Start, err = a.state.Root(); err != nil {
		t.Fatal(err)
	}
	c := chaintest.New(t, worktest.Network(more...)...)
	a.Play = worktest.Begin(t, c, o)
	a.Computer = a
	return a
}

func (a asked) custodian() chaintest.Account {
	return worktest.Named(a.T, a.Unit(0).Attested[0].Custodian)
}

func (a asked) askMsg(custodian chaintest.Account) *workv1.MsgAsk {
	return &workv1.MsgAsk{Sender: worktest.Challenger.String(), Order: a.ID.String(), Custodian: custodian.String()}
}

// answerMsg answers the first open question.
func (a asked) answerMsg() *workv1.MsgAnswer {
	a.T.Helper()
	r := a.Unit(0).Questions[0]
	seed, err := canon.HashOf(r.Seed)
	if err != nil {
		a.T.Fatal(err)
	}
	root := a.Order.Problem.Start
	q := proof.SampleStates(seed, a.Checkpoints(0, root), a.records.Root())
	shown := q.ShowTensor(a.records)
	if q.State >= 0 {
		if shown, err = q.ShowState(a.state); err != nil {
			a.T.Fatal(err)
		}
	}
	return &workv1.MsgAnswer{Custodian: r.Custodian, Order: a.ID.String(), Unit: r.Unit, Shown: canon.Marshal(&shown)}
}

func TestCustodianAnswers(t *testing.T) {
	a := beginAsked(t)
	custodian, fee := a.custodian(), job.DefaultParams.AskFee
	before, purse := a.Balance(custodian.Address), a.Balance(worktest.Challenger.Address)
	a.Deliver(worktest.Challenger, a.askMsg(custodian))
	if r := a.Unit(0).Questions; len(r) != 1 || r[0].Due != 0 || len(r[0].Seed) != 0 || a.Balance(moduleAddress(work.Name)) != fee {
		t.Fatalf("%+v, %d locked", r, a.Balance(moduleAddress(work.Name)))
	}
	early := &workv1.MsgAnswer{Custodian: custodian.String(), Order: a.ID.String(), Shown: canon.Marshal(&proof.Shown{})}
	a.Queue(custodian, early)
	if r := a.NextBlock(time.Second).TxResults[0]; r.Code == 0 {
		t.Fatal("an answer came before the question")
	}
	if r := a.Unit(0).Questions[0]; r.Due != a.Now().Add(answerTime).UnixMilli() || len(r.Seed) == 0 {
		t.Fatalf("%+v at %d", r, a.Now().UnixMilli())
	}
	m := a.answerMsg()
	a.Refuse(work.ErrRefused, worktest.Challenger, a.askMsg(custodian))
	a.Refuse(work.ErrRefused, custodian, early)
	a.Refuse(work.ErrMalformed, custodian, &workv1.MsgAnswer{Custodian: custodian.String(), Order: a.ID.String(), Shown: []byte{1}})
	a.Refuse(work.ErrMalformed, custodian, &workv1.MsgAnswer{Custodian: custodian.String(), Order: a.ID.String(), Shown: make([]byte, proof.MaxShown+1)})
	used := a.Deliver(custodian, m).TxResults[0].GasUsed
	if size := a.Size(custodian, m); size > worktest.MaxTx {
		t.Errorf("the answer has %d bytes", size)
	} else {
		t.Logf("the answer has %d bytes and takes %d gas", size, used)
	}
	if got, paid := a.Balance(custodian.Address)-before, purse-a.Balance(worktest.Challenger.Address); got != fee || paid != fee || a.Balance(moduleAddress(work.Name)) != 0 {
		t.Fatalf("the custodian got %d, the asker paid %d", got, paid)
	}
	a.Refuse(work.ErrRefused, custodian, m)
	a.Finish()
	if p, err := a.Provider.Get(a.Ctx(), custodian.Address); err != nil || p.Reserved != 0 || p.JailedUntil != 0 {
		t.Fatalf("%+v, %v", p, err)
	}
}

func TestCustodianThatDoesNotAnswerIsConvicted(t *testing.T) {
	a := beginAsked(t)
	custodian := a.custodian()
	bond := job.DefaultParams.KeepFactor * (a.Lease().Quote.Unit + a.Lease().Quote.Keep)
	before, err := a.Provider.Get(a.Ctx(), custodian.Address)
	if err != nil {
		t.Fatal(err)
	}
	purse, fund := a.Balance(worktest.Challenger.Address), a.Balance(moduleAddress(provider.Insurance))
	a.Deliver(worktest.Challenger, a.askMsg(custodian))
	a.NextBlock(time.Second)
	m := a.answerMsg()
	fork := worktest.Join(t, a.Chain.Fork(), a.Order) // questions survive an export
	for _, p := range []*worktest.Play{a.Play, fork} {
		p.NextBlock(answerTime + time.Millisecond)
		p.Refuse(work.ErrRefused, custodian, m)
		reward := (bond*job.DefaultParams.RewardBps + 9999) / 10_000
		after, err := p.Provider.Get(p.Ctx(), custodian.Address)
		if err != nil || before.Stake-after.Stake != bond || after.JailedUntil <= p.Now().UnixMilli() {
			t.Fatalf("%+v, was %+v: %v", after, before, err)
		}
		if got, insured := p.Balance(worktest.Challenger.Address)-purse, p.Balance(moduleAddress(provider.Insurance))-fund; got != reward || insured != bond-reward {
			t.Fatalf("the asker got %d of %d, the fund %d", got, bond, insured)
		}
		if u := p.Unit(0); u.Status != workv1.UNIT_STATUS_RECEIVED || len(u.Attested) != 2 || !u.Attested[0].Failed || u.Attested[1].Custodian == custodian.String() {
			t.Fatalf("%+v", u)
		}
	}
	a.Attest(0) // by who is drawn in its place
	a.Finish()
	settlement(a.Play)
}

func TestNobodyAsksForNothing(t *testing.T) {
	a := beginAsked(t)
	poor := a.askMsg(a.custodian())
	poor.Sender = chaintest.Named("p0").String() // all that it has is bonded
	a.Queue(chaintest.Named("p0"), poor)
	if r := a.NextBlock(time.Second).TxResults[0]; r.Code == 0 {
		t.Fatal("an account without money asked")
	}
	other := a.askMsg(chaintest.Named("p1"))
	a.Refuse(work.ErrRefused, worktest.Challenger, other)
}

// Who has said that it has the order's files is asked for a tile of them by the same
// messages as who keeps a unit, and loses its bond if it does not show it.
func TestFileCustodianIsAskedOnChain(t *testing.T) {
	rules := worktest.Rules(func(p *job.Params) { p.AnswerTime = answerTime.Milliseconds() })
	a := beginAskedOf(t, func(*job.Order) {}, rules)
	k := a.Lease().Files.Custodians[0]
	custodian := worktest.Named(t, k.Account)
	ask := a.askMsg(custodian)
	ask.Files, ask.Unit = true, 1
	a.Refuse(work.ErrMalformed, worktest.Challenger, ask)
	ask.Unit, ask.Attempt = 0, 1
	a.Refuse(work.ErrRefused, worktest.Challenger, ask)
	ask.Attempt = 0
	a.Deliver(worktest.Challenger, ask)
	a.NextBlock(time.Second)
	r := a.Lease().Files.Questions[0]
	seed, err := canon.HashOf(r.Seed)
	if err != nil || !r.Files || r.Unit != 0 {
		t.Fatalf("%+v: %v", r, err)
	}
	q := proof.SampleStates(seed, []canon.Hash{a.Order.Problem.Start}, a.records.Root())
	shown := q.ShowTensor(a.records)
	if q.State >= 0 {
		if shown, err = q.ShowState(a.state); err != nil {
			t.Fatal(err)
		}
	}
	m := &workv1.MsgAnswer{Custodian: k.Account, Order: a.ID.String(), Files: true, Shown: canon.Marshal(&shown)}
	about := *m
	about.Files = false
	a.Refuse(work.ErrRefused, custodian, &about)
	before := a.Balance(custodian.Address)
	a.Deliver(custodian, m)
	if got := a.Balance(custodian.Address) - before; got != job.DefaultParams.AskFee || len(a.Lease().Files.Questions) != 0 {
		t.Fatalf("the custodian got %d for its answer", got)
	}

	a.Deliver(worktest.Challenger, ask) // again; now it is silent
	a.NextBlock(time.Second)
	stake, err := a.Provider.Get(a.Ctx(), custodian.Address)
	if err != nil {
		t.Fatal(err)
	}
	a.NextBlock(answerTime + time.Millisecond)
	after, err := a.Provider.Get(a.Ctx(), custodian.Address)
	fine := a.Lease().Quote.Unit * a.Lease().Params.LateBps / 10_000
	if err != nil || stake.Stake-after.Stake != fine || fine == 0 || after.JailedUntil <= a.Now().UnixMilli() {
		t.Fatalf("%+v, was %+v: %v", after, stake, err)
	}
	for _, left := range a.Lease().Files.Custodians {
		if left.Account == k.Account {
			t.Fatal("a convicted custodian still keeps the files")
		}
	}
}
