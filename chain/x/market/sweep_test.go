package market_test

import (
	"testing"
	"time"

	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// Leases in which one validator says that it cannot keep the files hold up no other, however many
// units they have.
func TestSweepsHoldUpNobody(t *testing.T) {
	c := newChain(t)
	p := worktest.Begin(t, c, worktest.Order())
	c.Deliver(v0, &marketv1.MsgPostOffer{Validator: v0.String(), FeeBps: 500, MaxLeases: 64})
	p.Assign(0, "p0")
	const shards = 256
	var mine []*worktest.Play
	for n := range 9 {
		o := worktest.Order()
		o.Nonce, o.Problem.Rounds, o.Problem.Shards = uint64(100+n), 1, shards
		o.Problem.StepFLOPs, o.Problem.StepBytes, o.Problem.Records = 1e6, 1e3, 1000
		c.Queue(consumer, worktest.Post(o))
		mine = append(mine, worktest.Join(t, c, o))
	}
	for i, r := range c.NextBlock(time.Second).TxResults {
		if r.Code != 0 {
			t.Fatalf("posting %d: %s", i, r.Log)
		}
	}
	c.NextBlock(time.Second)
	c.NextBlock(time.Second)
	v3 := chaintest.Named("v3")
	for _, m := range mine {
		c.Queue(v3, m.FilesMsg(v3.String(), workv1.WORD_CANNOT))
	}
	p0 := chaintest.Named("p0")
	c.Queue(p0, p.SubmitMsg(p.Receipt(0)))
	b := c.NextBlock(time.Second)
	for i, r := range b.TxResults {
		if r.Code != 0 {
			t.Fatalf("transaction %d: %s", i, r.Log)
		}
	}
	waited := 0
	for len(p.Unit(0).Audits) == 0 && waited < 20 {
		c.NextBlock(time.Second)
		waited++
	}
	t.Logf("auditors were drawn %d blocks after the receipt", waited)
	if waited > 1 {
		t.Fatalf("nine leases of %d shards held up another's draw for %d blocks", shards, waited-1)
	}
}
