package worktest

import (
	"cmp"
	"context"
	"errors"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// MaxTx bounds every transaction of a dispute, in bytes.
const MaxTx = 64 << 10

// Claim returns what the chain takes an attempt of a target to assert.
func (p *Play) Claim(t job.Target, attempt int) dispute.Claim {
	p.T.Helper()
	c, _, err := p.Chain.Work.Claim(p.Ctx(), p.ID, t, attempt, 0)
	if err != nil {
		p.T.Fatal(err)
	}
	return c
}

// OpenMsg returns the message by which the challenger disputes a target, which
// its witness must find wrong.
func (p *Play) OpenMsg(t job.Target, attempt int, w dispute.Witness) *disputev1.MsgOpen {
	p.T.Helper()
	o, err := dispute.Challenge(p.Claim(t, attempt), p.points(t, attempt), w)
	if err != nil {
		p.T.Fatal(err)
	}
	return &disputev1.MsgOpen{
		Challenger: Challenger.String(), Order: p.ID.String(), Target: wire.TargetToProto(t), Attempt: uint32(attempt),
		Opening: canon.Marshal(&o),
	}
}

// points returns the states that a claim goes through.
func (p *Play) points(t job.Target, attempt int) []canon.Hash {
	p.T.Helper()
	s, err := p.State().Subject(t, attempt)
	if err != nil {
		p.T.Fatal(err)
	}
	return s.Points
}

// Dispute opens a dispute and returns its id.
func (p *Play) Dispute(t job.Target, attempt int, w dispute.Witness) uint64 {
	p.T.Helper()
	b := p.Deliver(Challenger, p.OpenMsg(t, attempt, w))
	return chaintest.Events[*disputev1.EventOpened](p.T, b)[0].Dispute
}

// Game returns a dispute as clients see it, and its game.
func (p *Play) Game(id uint64) (disputev1.Dispute, dispute.Game) {
	p.T.Helper()
	r, err := disputev1.NewQueryClient(p.Chain).Dispute(context.Background(), &disputev1.QueryDisputeRequest{Dispute: id})
	if err != nil {
		p.T.Fatal(err)
	}
	var g dispute.Game
	if err := canon.Unmarshal(r.Game, &g); err != nil {
		p.T.Fatal(err)
	}
	return r.Dispute, g
}

// Cost is what the transactions of a dispute took.
type Cost struct {
	Moves   int
	Gas     uint64 // of all of them
	Dearest uint64 // gas of one
	Largest int    // bytes of one
}

// PlayOut lets both sides move until the dispute is over. A side that finds
// nothing more to say falls silent, and time passes.
func (p *Play) PlayOut(id uint64, defender, challenger dispute.Witness) (disputev1.Dispute, Cost) {
	p.T.Helper()
	var cost Cost
	for {
		d, g := p.Game(id)
		if g.Stage == dispute.Over {
			return d, cost
		}
		p.Step(id, defender, challenger, &cost)
	}
}

// Step lets the side whose turn it is move once, or be silent until its clock has
// run out.
func (p *Play) Step(id uint64, defender, challenger dispute.Witness, cost *Cost) {
	p.T.Helper()
	d, _ := p.Game(id)
	who, m, err := p.MoveMsg(id, defender, challenger)
	if errors.Is(err, dispute.ErrAgree) {
		p.NextBlock(time.Duration(d.Deadline-p.Now().UnixMilli()+1) * time.Millisecond)
		return
	}
	if err != nil {
		p.T.Fatalf("%s: %v", d.Stage, err)
	}
	used := p.Deliver(who, m).TxResults[0].GasUsed
	cost.add(uint64(used), p.Size(who, m))
}

// MoveMsg returns the next move, and who makes it.
func (p *Play) MoveMsg(id uint64, defender, challenger dispute.Witness) (chaintest.Account, *disputev1.MsgMove, error) {
	p.T.Helper()
	d, g := p.Game(id)
	who, w := Named(p.T, cmp.Or(d.Parties.DefenderSubstitute, d.Parties.Defender)), defender
	if d.Turn == disputev1.SIDE_CHALLENGER {
		who, w = Named(p.T, cmp.Or(d.Parties.ChallengerSubstitute, d.Parties.Challenger)), challenger
	}
	m, err := dispute.Play(&g, w)
	if err != nil {
		return who, nil, err
	}
	return who, &disputev1.MsgMove{Player: who.String(), Dispute: id, Move: dispute.EncodeMove(m), Number: d.Moves}, nil
}

func (c *Cost) add(gas uint64, bytes int) {
	c.Moves++
	c.Gas += gas
	c.Dearest, c.Largest = max(c.Dearest, gas), max(c.Largest, bytes)
}

// Size returns the bytes of a transaction.
func (p *Play) Size(from chaintest.Account, m sdk.Msg) int {
	p.T.Helper()
	tx, err := p.Sign(app.Signer{ChainID: chaintest.ChainID, Key: from.Key}, chaintest.Gas, p.Fee(), m)
	if err != nil {
		p.T.Fatal(err)
	}
	return len(tx)
}

// Send returns the message by which the consumer gives somebody utally.
func Send(to chaintest.Account, amount uint64) sdk.Msg {
	return banktypes.NewMsgSend(Consumer.Address, to.Address, coin.Of(amount))
}
