package work_test

import (
	"testing"

	"github.com/cosmos/gogoproto/proto"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/work"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/proof"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// FuzzProveDraw shows forced draws of a forced attempt, and of a plain one: whatever the message
// holds, it is taken or refused with an error, and every ledger adds up.
func FuzzProveDraw(f *testing.F) {
	states := []*worktest.Play{due(f, true), due(f, false)}
	for i, p := range states {
		m, _ := p.ProveDrawMsg(0)
		if _, err := p.MsgServiceRouter().Handler(m)(p.Ctx(), m); err != nil {
			f.Fatal(err)
		}
		add(f, uint8(i), m)
	}
	f.Fuzz(func(t *testing.T, state uint8, b []byte) {
		deliver(t, states[int(state)%len(states)], &workv1.MsgProveDraw{}, b)
	})
}

// messages are those of x/work, each as it could be sent when the first unit waits
// for its forced draw and the second is being computed.
func messages(p *worktest.Play) []sdk.Msg {
	draw, _ := p.ProveDrawMsg(0)
	u, order := p.Unit(0), p.ID.String()
	auditor, custodian := worktest.Named(p.T, u.Audits[0].Auditor), u.Attested[0].Custodian
	idle := chaintest.Named("p2").String()
	return []sdk.Msg{
		p.AssignMsg(1, "p2"),
		&workv1.MsgReady{Provider: idle, Order: order},
		p.FilesMsg(p.Lease().Files.Custodians[2].Account, workv1.WORD_MISSING),
		p.SubmitMsg(p.Receipt(1)),
		&workv1.MsgCommit{Provider: idle, Order: order, Unit: 1, Hash: make([]byte, 32)},
		&workv1.MsgReveal{Provider: idle, Receipt: p.SubmitMsg(p.Receipt(1)).Receipt, Inner: [][]byte{make([]byte, 32)}, Salt: make([]byte, 32)},
		&workv1.MsgAttest{Custodian: custodian, Order: order},
		&workv1.MsgAsk{Sender: worktest.Challenger.String(), Order: order, Custodian: custodian},
		&workv1.MsgAnswer{Custodian: custodian, Order: order, Shown: canon.Marshal(&proof.Shown{})},
		&workv1.MsgExpose{Sender: worktest.Challenger.String(), Order: order, Custodian: custodian, Wrong: canon.Marshal(&proof.WrongFragment{Tiles: make([]proof.Shown, 2)})},
		&workv1.MsgExposeCost{Sender: worktest.Challenger.String(), Order: order, Shown: canon.Marshal(&graph.Refutation{Opened: make([]graph.Opened, 2)})},
		p.ReportMsg(0, auditor, true),
		draw,
		&workv1.MsgMerge{Lead: p.Lease().Lead, Order: order, Root: make([]byte, 32)},
		&workv1.MsgTakeLead{Validator: auditor.String(), Order: order},
		&workv1.MsgDecline{Lead: p.Lease().Lead, Order: order, Reason: "no files"},
		&workv1.MsgHalt{Sender: worktest.Challenger.String(), Order: order, Opening: wire.OpeningToProto(canon.Opening{N: 1})},
		&workv1.MsgStop{Consumer: worktest.Consumer.String(), Order: order},
		&workv1.MsgUpdateParams{Authority: worktest.Consumer.String(), Params: work.DefaultParams()},
	}
}

// FuzzMessages does so with every message of the module.
func FuzzMessages(f *testing.F) {
	p := due(f, true)
	all := messages(p)
	if n := len(workv1.Msg_serviceDesc.Methods); n != len(all) {
		f.Fatalf("the module has %d messages, %d are fuzzed", n, len(all))
	}
	for i, m := range all {
		add(f, uint8(i), m)
	}
	f.Fuzz(func(t *testing.T, kind uint8, b []byte) {
		m := proto.Clone(all[int(kind)%len(all)])
		m.Reset()
		deliver(t, p, m, b)
	})
}

// due is an order whose first unit waits for nothing but its forced draw.
func due(t testing.TB, isForced bool) *worktest.Play {
	p := forced(t, isForced)
	p.Audit(0, true)
	p.NextBlock(worktest.UnitWindow)
	p.Assign(1, "p1")
	return p
}

func add(f *testing.F, kind uint8, m proto.Message) {
	b, err := proto.Marshal(m)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(kind, b)
}

// deliver lets a message happen to a copy of the state, as if its sender had signed.
func deliver(t *testing.T, p *worktest.Play, m sdk.Msg, b []byte) {
	if proto.Unmarshal(b, m) != nil {
		return
	}
	ctx := p.Ctx()
	if _, err := p.MsgServiceRouter().Handler(m)(ctx, m); err != nil {
		return
	}
	if err := p.CheckInvariants(ctx); err != nil {
		t.Fatalf("after %v: %v", m, err)
	}
}
