package app

import (
	"slices"
	"strings"

	sdk "github.com/cosmos/cosmos-sdk/types"
)

// A transaction is a move if clocks or windows wait for what it does: everything
// that leases and disputes are driven by. All others are general: nobody loses a
// bond because they come a block later.
var (
	driven = []string{"/tally.work.v1.", "/tally.dispute.v1."}
	// Nobody waits for these.
	undriven = []string{"/tally.work.v1.MsgAsk", "/tally.work.v1.MsgUpdateParams", "/tally.dispute.v1.MsgUpdateParams"}
)

// entry is a transaction as mempool and proposals count it.
type entry struct {
	raw    []byte
	tx     sdk.Tx
	sender string // who pays, or is paid for
	gas    uint64 // its limit
	move   bool
}

func entryOf(tx sdk.Tx, raw []byte) entry {
	e := entry{raw: raw, tx: tx, move: isMove(tx)}
	if t, ok := tx.(sdk.FeeTx); ok {
		e.sender, e.gas = string(t.FeePayer()), t.GetGas()
	}
	return e
}

// isMove says whether all messages of a transaction are moves.
func isMove(tx sdk.Tx) bool {
	for _, m := range tx.GetMsgs() {
		name := sdk.MsgTypeURL(m)
		if slices.Contains(undriven, name) || !slices.ContainsFunc(driven, func(p string) bool { return strings.HasPrefix(name, p) }) {
			return false
		}
	}
	return len(tx.GetMsgs()) > 0
}

// fill is what transactions take of a block: in all, and by general ones.
type fill struct{ gas, bytes, generalGas, generalBytes uint64 }

// room is what a block may hold. General transactions get at most three quarters
// of it, so that a quarter is always there for moves.
type room struct{ gas, bytes uint64 }

const generalShare, shares = 3, 4

func (f fill) with(e entry) fill {
	n := uint64(len(e.raw)) + txOverhead
	f.gas, f.bytes = f.gas+e.gas, f.bytes+n
	if !e.move {
		f.generalGas, f.generalBytes = f.generalGas+e.gas, f.generalBytes+n
	}
	return f
}

// txOverhead is what a block's encoding adds to a transaction at most, in bytes.
const txOverhead = 8

func (r room) holds(f fill) bool {
	return f.gas <= r.gas && f.bytes <= r.bytes &&
		f.generalGas <= r.gas/shares*generalShare && f.generalBytes <= r.bytes/shares*generalShare
}

// crowded says whether moves may have found no place, though they used the
// quarter that is theirs alone.
func (r room) crowded(f fill) bool {
	gas := f.gas-f.generalGas >= r.gas/shares && f.gas+MaxGas > r.gas
	bytes := f.bytes-f.generalBytes >= r.bytes/shares && f.bytes+MaxTx > r.bytes
	return gas || bytes
}

// roomOf returns what a block may hold by the consensus parameters.
func roomOf(ctx sdk.Context) room {
	b := ctx.ConsensusParams().Block
	if b == nil || b.MaxGas <= 0 || b.MaxBytes <= 0 {
		return room{maxBlockGas, maxBlockBytes}
	}
	return room{uint64(b.MaxGas), uint64(b.MaxBytes)}
}
