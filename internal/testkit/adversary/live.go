package adversary

import (
	"slices"
	"testing"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"

	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// Live is a history on a chain itself: in blocks of signed transactions, which can be played again without this package. Nothing
// is judged in it. testdata/before has no such file.
type Live struct {
	*writer
	queued []sending // in the block under way, in the order of its transactions
}

type sending struct {
	Op
	msg sdk.Msg
}

// NewLive begins the history of a seed on a chain that has the Options of the plain world, beside the test's own.
func NewLive(tb testing.TB, c *chaintest.Chain, seed uint64) *Live {
	tb.Helper()
	w := worldOf(tb, c, Plain)
	h := w.writer(seed)
	h.play = w.branch(h.script)
	return &Live{writer: h}
}

// Next makes a block of what is due, of what hostile people send besides, and of what others put into the queue.
func (l *Live) Next(others func()) chaintest.Block {
	l.tb.Helper()
	l.ctx = l.Ctx() // the application may be another since
	ops, wait := l.ops(), time.Duration(l.wait())*time.Millisecond
	l.height, l.now = l.height+1, l.now.Add(wait)
	l.block = l.at(l.ctx)
	for _, o := range ops {
		l.send(o)
	}
	others()
	b := l.NextBlock(wait)
	l.took(b)
	if l.found != nil {
		l.tb.Fatal(l.found)
	}
	return b
}

// ops are those of a block. Where nothing goes on, somebody who is honest orders something.
func (l *Live) ops() []Op {
	out := l.due()
	if l.quiet() {
		out = append(out, Op{By: buyers[l.IntN(len(buyers))], Msg: "market.MsgPostOrder", Pick: l.IntN(tails) + l.copies(0)})
	}
	for range l.IntN(4) {
		out = append(out, l.op(l.hostile()))
	}
	return out
}

// send puts a transaction of an op into the queue, if one can hold its message: whose signers are people of the world.
func (l *Live) send(o Op) {
	m := l.said(o)
	if m == nil || o.Msg == "beacon.MsgProve" { // a block with a second proof is not proposed
		return
	}
	signers, _, err := l.Codec.GetMsgV1Signers(m)
	if err != nil || len(signers) == 0 {
		return
	}
	var by []chaintest.Account
	for _, s := range signers {
		name := nameOf(sdk.AccAddress(s).String())
		if !slices.Contains(everybody, name) {
			return
		}
		by = append(by, named(name))
	}
	if len(by) == 1 {
		l.Queue(by[0], m)
	} else {
		l.QueueOf(by, m)
	}
	l.queued = append(l.queued, sending{o, m})
}

// said returns the message of an op, nil if it has none.
func (l *Live) said(o Op) sdk.Msg {
	if o.Msg == "again" {
		return l.sent[o.Pick%len(l.sent)].msg
	}
	m, _, err := l.composer(o).message()
	if err != nil {
		return nil
	}
	return m
}

// took notes what a block has executed.
func (l *Live) took(b chaintest.Block) {
	l.ctx, l.height, l.now, l.hash, l.dirty = l.Ctx(), b.Height, b.Time, b.Hash, true
	for i, s := range l.queued {
		if b.TxResults[i].Code != 0 {
			continue
		}
		if _, hostile := l.script.Hostile[s.By]; hostile {
			l.sent = append(l.sent, sentMsg{s.By, s.msg})
		}
		if o, ok := s.msg.(*marketv1.MsgPostOrder); ok {
			l.posted(s.By, o, s.Pick)
		}
	}
	l.queued = nil
	l.refresh()
}
