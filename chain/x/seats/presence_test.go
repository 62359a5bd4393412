package seats_test

import (
	"slices"
	"testing"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"
	cmted25519 "github.com/cometbft/cometbft/crypto/ed25519"
	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/x/seats"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// long is how many blocks an epoch has in which absence is judged.
const long = 12

// longer gives a network epochs in which absence is judged, and f1 more votes than a draw may move.
func longer(g *app.Genesis) {
	g.Epoch = long
	g.Validators[1].Votes = 3
}

// consensus returns the address of a member's key.
func consensus(t *testing.T, c *chaintest.Chain, who chaintest.Account) []byte {
	t.Helper()
	return cmted25519.PubKey(member(t, c, who).Member.ConsensusKey).Address()
}

// signed says how all founders have signed the block before, all others than who by committing to it.
func signed(t *testing.T, c *chaintest.Chain, flag cmtproto.BlockIDFlag, who ...string) {
	t.Helper()
	c.Signed = nil
	for _, n := range founders {
		v := abci.VoteInfo{
			Validator:   abci.Validator{Address: consensus(t, c, chaintest.Named(n)), Power: 1},
			BlockIdFlag: cmtproto.BlockIDFlagCommit,
		}
		if slices.Contains(who, n) {
			v.BlockIdFlag = flag
		}
		c.Signed = append(c.Signed, v)
	}
}

// reach makes blocks that something happens in until an epoch has begun, and returns who was seated in them.
func reach(t *testing.T, c *chaintest.Chain, epoch uint64) (seated []*seatsv1.EventSeated) {
	t.Helper()
	for status(t, c).Epoch < epoch {
		seated = append(seated, chaintest.Events[*seatsv1.EventSeated](t, busy(c))...)
	}
	return seated
}

// blocks makes as many blocks that something happens in.
func blocks(c *chaintest.Chain, n int) {
	for range n {
		busy(c)
	}
}

// Who misses more than half of an epoch's counted blocks is jailed from the next draw on.
func TestWhoMissesTooManyBlocksIsJailed(t *testing.T) {
	for name, x := range map[string]struct {
		flag            cmtproto.BlockIDFlag
		missed, counted int // of an epoch
		after           int // missed in the next
		want            seatsv1.Status
	}{
		"all":                      {cmtproto.BlockIDFlagAbsent, 12, 12, 0, seatsv1.STATUS_JAILED},
		"one more than half":       {cmtproto.BlockIDFlagAbsent, 7, 12, 0, seatsv1.STATUS_JAILED},
		"half":                     {cmtproto.BlockIDFlagAbsent, 6, 12, 0, seatsv1.STATUS_ACTIVE},
		"half, and the next block": {cmtproto.BlockIDFlagAbsent, 6, 12, 1, seatsv1.STATUS_ACTIVE},
		"and goes on missing":      {cmtproto.BlockIDFlagAbsent, 7, 12, 1, seatsv1.STATUS_JAILED},
		"for nil":                  {cmtproto.BlockIDFlagNil, 12, 12, 0, seatsv1.STATUS_ACTIVE},
		"of ten":                   {cmtproto.BlockIDFlagAbsent, 6, 10, 0, seatsv1.STATUS_JAILED},
		"of nine":                  {cmtproto.BlockIDFlagAbsent, 9, 9, 0, seatsv1.STATUS_ACTIVE},
	} {
		c := chaintest.New(t, network(longer)...)
		for c.Height() < long { // epoch 1 begins with the next block
			busy(c)
		}
		signed(t, c, x.flag, "f1")
		blocks(c, x.missed)
		signed(t, c, x.flag)
		blocks(c, x.counted-x.missed)
		for range long - x.counted {
			c.NextBlock(time.Second)
		}
		if x.after > 0 {
			signed(t, c, x.flag, "f1")
		}
		busy(c)
		if m := member(t, c, chaintest.Named("f1")).Member; status(t, c).Epoch != 2 || m.Status != x.want {
			t.Errorf("%s: %v", name, m)
		}
	}
}

// Whoever is unjailed is not jailed again for blocks from before.
func TestUnjailForgives(t *testing.T) {
	c, f1 := chaintest.New(t, network(longer)...), chaintest.Named("f1")
	signed(t, c, cmtproto.BlockIDFlagAbsent, "f1")
	reach(t, c, 1) // jailed for epoch 0
	calendar, err := c.Beacon.Calendar(c.Ctx())
	if err != nil {
		t.Fatal(err)
	}
	for calendar.At(c.Height()+1) == calendar.At(c.Height()) { // it misses these as well
		busy(c)
	}
	signed(t, c, cmtproto.BlockIDFlagAbsent)
	c.Deliver(f1, &seatsv1.MsgUnjail{Account: f1.String()}) // before the draw of the next epoch goes through members
	blocks(c, 3)
	if m := member(t, c, f1).Member; m.Status != seatsv1.STATUS_ACTIVE {
		t.Errorf("in epoch %d, at block %d: %v", status(t, c).Epoch, c.Height(), m)
	}
}

// Who is jailed loses its seats step by step and keeps its bond. Draws count it two epochs after it is unjailed.
func TestTheJailedReturn(t *testing.T) {
	c, f1 := chaintest.New(t, network(longer)...), chaintest.Named("f1")
	c.Refuse(seats.ErrStatus, f1, &seatsv1.MsgUnjail{Account: f1.String()})
	signed(t, c, cmtproto.BlockIDFlagAbsent, "f1")
	seated := reach(t, c, 1) // it has signed nothing in epoch 0
	signed(t, c, cmtproto.BlockIDFlagAbsent)
	before := member(t, c, f1).Member
	if before.Status != seatsv1.STATUS_JAILED {
		t.Fatalf("after an epoch in which it signed nothing: %v", before)
	}
	fell := 0
	for _, e := range append(seated, reach(t, c, 6)...) {
		if got := votes(e.Seats, f1); got > 0 {
			fell++
		}
	}
	now := member(t, c, f1).Member
	if before.Votes != 3 || now.Votes != 0 || fell != 1 || now.Bond != 100_000*tally {
		t.Fatalf("from %d votes in %d steps: %v", before.Votes, fell+1, now)
	}
	c.Deliver(f1, &seatsv1.MsgUnjail{Account: f1.String()})
	c.Refuse(seats.ErrStatus, f1, &seatsv1.MsgUnjail{Account: f1.String()})
	at := status(t, c).Epoch
	if m := member(t, c, f1).Member; m.Status != seatsv1.STATUS_ACTIVE || m.FromEpoch != at+2 {
		t.Fatalf("returned in epoch %d: %v", at, m)
	}
	for _, e := range reach(t, c, at+6) {
		if got := votes(e.Seats, f1); got > 0 != (e.Epoch >= at+2) {
			t.Errorf("returned in epoch %d, and has %d seats in %d", at, got, e.Epoch)
		}
	}
	if got := member(t, c, f1).Member.Votes; got != 4_286 {
		t.Errorf("it has %d of 10,000 seats back, by three votes of seven", got)
	}
}
