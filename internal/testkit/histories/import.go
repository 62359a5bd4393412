package histories

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	abci "github.com/cometbft/cometbft/abci/types"
	dbm "github.com/cosmos/cosmos-db"
	"github.com/cosmos/gogoproto/proto"

	"github.com/tally-network/tally/chain/module"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// Imported exports the state at some height, and lets another chain begin with it at the next. What that exports is the same, byte
// for byte. Until the end of the epoch every block has the same results on both; then they export the same again. It returns how
// many blocks these were.
//
// App hashes cannot be equal: nodes of an IAVL tree hash the version in which they were written. After the epoch the chains differ,
// too. A genesis says in which epoch it is, and not for how many blocks it has been.
func (h *History) Imported(tb testing.TB) (blocks int64) {
	tb.Helper()
	r := rand.New(rand.NewPCG(h.Seed, 0x1a9))
	n := h.Begun(tb)
	n.Until(2 + r.Int64N(h.Last()-2))
	for !n.mayLeave() {
		if n.height == h.Last() {
			return 0
		}
		n.Until(n.height + 1)
	}
	state := n.export()
	o := n.imported(state)
	if back := o.export(); !bytes.Equal(state, back) {
		tb.Fatalf("seed %d, height %d: what is imported is exported otherwise: %s", h.Seed, n.height, difference(state, back))
	}
	begun := n.height
	end := begun
	for end < min(((begun-1)/h.epoch+1)*h.epoch, h.Last()) && h.At(end+1).Request.DecidedLastCommit.Round == 0 {
		end++
	}
	for o.height < end {
		res := o.next()
		if d := unequal(h.At(o.height), res); d != "" {
			tb.Fatalf("seed %d: imported at height %d, block %d has another result: %s", h.Seed, begun, o.height, d)
		}
	}
	n.Until(end)
	if a, b := n.export(), o.export(); !bytes.Equal(a, b) {
		tb.Fatalf("seed %d: imported at height %d, the state at %d is another: %s", h.Seed, begun, end, difference(a, b))
	}
	return end - begun
}

// mayLeave reports whether all that counts of a node's state is in a genesis. These are not: a planned upgrade, for its height is one
// of this chain alone; a draw of seats, or a clearing, that is under way, and when the next clearing may open; and when the last block
// was, which tells whether the next pause counts in full.
func (n *Node) mayLeave() bool {
	if n.height == n.h.Last() || n.height >= n.h.Planned && n.height < n.h.Upgrade {
		return false
	}
	pause := n.h.At(n.height + 1).Time.Sub(n.h.At(n.height).Time)
	var s seatsv1.QueryStatusResponse
	var c auctionv1.QueryClearingResponse
	n.query("/tally.seats.v1.Query/Status", &s)
	n.query("/tally.auction.v1.Query/Clearing", &c)
	return pause <= gap && s.Draw == nil && c.Clearing == nil && c.NextAt <= module.Now(n.ctx())+pause.Milliseconds()
}

// query asks the state what needs no more than the method's name.
func (n *Node) query(method string, reply proto.Message) {
	n.tb.Helper()
	res, err := n.GRPCQueryRouter().Route(method)(n.ctx(), &abci.RequestQuery{})
	if err == nil {
		err = proto.Unmarshal(res.Value, reply)
	}
	if err != nil {
		n.tb.Fatal(err)
	}
}

// imported is a node of a chain that begins with a state, at the height after this node's.
func (n *Node) imported(state json.RawMessage) *Node {
	n.tb.Helper()
	o := n.h.Opened(n.tb, dbm.NewMemDB(), n.height)
	params := n.GetConsensusParams(n.ctx())
	if _, err := o.InitChain(&abci.RequestInitChain{
		ChainId: chaintest.ChainID, Time: n.h.At(n.height).Time, InitialHeight: n.height + 1, ConsensusParams: &params, AppStateBytes: state,
	}); err != nil {
		n.tb.Fatalf("seed %d: what was exported at height %d cannot be imported: %v", n.h.Seed, n.height, err)
	}
	return o
}

// unequal says what a block has done otherwise than in the history, "" if nothing. Gas may differ: it counts the bytes of what is
// read, and heights from which something counts are others in an imported state.
func unequal(want chaintest.Block, got *abci.ResponseFinalizeBlock) string {
	results := want.Results()
	if len(results) != len(got.TxResults) {
		return fmt.Sprintf("%d transactions, and not %d", len(got.TxResults), len(results))
	}
	for i, r := range results {
		x := got.TxResults[i]
		a, b := &abci.ExecTxResult{Code: r.Code, Codespace: r.Codespace, Log: r.Log, Data: r.Data}, &abci.ExecTxResult{Code: x.Code, Codespace: x.Codespace, Log: x.Log, Data: x.Data}
		if d := cmp.Or(otherwise("the result", a, b), otherEvent(r.Events, x.Events)); d != "" {
			return fmt.Sprintf("transaction %d: %s", i, d)
		}
	}
	if d := otherEvent(want.Events, got.Events); d != "" {
		return d
	}
	a := &abci.ResponseFinalizeBlock{ValidatorUpdates: want.ValidatorUpdates, ConsensusParamUpdates: want.ConsensusParamUpdates}
	b := &abci.ResponseFinalizeBlock{ValidatorUpdates: got.ValidatorUpdates, ConsensusParamUpdates: got.ConsensusParamUpdates}
	return otherwise("what consensus is told", a, b)
}

// otherEvent says which event is another.
func otherEvent(want, got []abci.Event) string {
	for i := range min(len(want), len(got)) {
		if d := otherwise(fmt.Sprint("event ", i), &want[i], &got[i]); d != "" {
			return d
		}
	}
	if len(want) != len(got) {
		longer := slices.MaxFunc([][]abci.Event{want, got}, func(a, b []abci.Event) int { return cmp.Compare(len(a), len(b)) })
		return fmt.Sprintf("%d events, and not %d: %v", len(got), len(want), longer[min(len(want), len(got)):])
	}
	return ""
}

// otherwise says how two values differ, "" if they do not.
func otherwise(what string, want, got proto.Message) string {
	if proto.Equal(want, got) {
		return ""
	}
	return fmt.Sprintf("%s is %v, and not %v", what, got, want)
}

// difference shows in which modules two states differ, and where.
func difference(a, b json.RawMessage) (out string) {
	var x, y map[string]json.RawMessage
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return "no states"
	}
	for _, name := range slices.Sorted(maps.Keys(x)) {
		p, q := x[name], y[name]
		if bytes.Equal(p, q) {
			continue
		}
		at := 0
		for at < min(len(p), len(q)) && p[at] == q[at] {
			at++
		}
		show := func(s []byte) []byte { return s[max(0, min(len(s), at)-200):min(len(s), at+200)] }
		out += fmt.Sprintf("\n%s: …%s…\n  becomes …%s…", name, show(p), show(q))
	}
	return out
}
