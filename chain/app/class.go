package app

import (
	"slices"
	"strings"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	authsigning "github.com/cosmos/cosmos-sdk/x/auth/signing"

	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
)

// A transaction is a move if clocks or windows wait for what it does: all that drives
// leases and disputes, what reveals a sealed bid, what takes on an order, what proves for a draw of seats, and what claims in a session or convicts a side of it. All others are general: nobody loses a
// bond because they come a block later.
var (
	movePrefixes = []string{"/tally.work.v1.", "/tally.dispute.v1.", "/tally.auction.v1.MsgReveal", "/tally.auction.v1.MsgTakeOn", "/tally.seats.v1.MsgProve", "/tally.sessions.v1.MsgRedeem", "/tally.sessions.v1.MsgTwo"}
	// No clock waits for these messages of the same packages.
	notMoves = []string{"/tally.work.v1.MsgAsk", "/tally.work.v1.MsgUpdateParams", "/tally.dispute.v1.MsgUpdateParams"}
)

// entry is a transaction as mempool and proposals count it.
type entry struct {
	raw  []byte
	tx   sdk.Tx
	by   []string // address bytes of all who sign it, the fee payer among them
	gas  uint64   // its limit
	move bool

	party bool // a move of somebody who has something at stake; only a node's own choices go by it
}

func entryOf(tx sdk.Tx, raw []byte) entry {
	e := entry{raw: raw, tx: tx, move: isMove(tx) || holdsProof(tx)}
	if t, ok := tx.(sdk.FeeTx); ok {
		e.gas = t.GetGas()
	}
	if t, ok := tx.(authsigning.SigVerifiableTx); ok {
		signers, _ := t.GetSigners() // the ante handler refuses what has none
		for _, account := range signers {
			e.by = append(e.by, string(account))
		}
	}
	return e
}

// known tells of a move whether it is a party's: of somebody who has a stake, as all who
// take part in leases do, or whose turn it is in a game, or to reveal a bid, or to prove for a draw. Challengers need no stake,
// and their openings are a stranger's moves; then they have a bond to lose.
func (a *App) known(ctx sdk.Context, e entry) entry {
	free := ctx.WithGasMeter(storetypes.NewInfiniteGasMeter())
	e.party = e.move && (slices.ContainsFunc(e.by, func(account string) bool { return a.Provider.Slashable(free, sdk.AccAddress(account)) }) || a.plays(free, e.tx.GetMsgs()))
	return e
}

// plays reports whether a transaction is one move in a game, of whoever has the turn, reveals a bid, of whoever has sealed
// one, or proves for a draw, of a member that has not. It is asked before signatures are looked at, so it reads one game, bid or member.
func (a *App) plays(ctx sdk.Context, msgs []sdk.Msg) bool {
	if len(msgs) != 1 {
		return false
	}
	switch m := msgs[0].(type) {
	case *disputev1.MsgMove:
		return a.Dispute.HasTurn(ctx, m.Player, m.Dispute)
	case *auctionv1.MsgReveal:
		return a.Auction.HasSealed(ctx, m)
	case *seatsv1.MsgProve:
		return a.Seats.HasToProve(ctx, m.Account, m.Epoch)
	}
	return false
}

// isMove reports whether a transaction is a move.
func isMove(tx sdk.Tx) bool { return AreMoves(tx.GetMsgs()) }

// AreMoves reports whether a transaction of these messages is a move: all of them are.
func AreMoves(msgs []sdk.Msg) bool {
	for _, m := range msgs {
		name := sdk.MsgTypeURL(m)
		if slices.Contains(notMoves, name) || !slices.ContainsFunc(movePrefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			return false
		}
	}
	return len(msgs) > 0
}

// fill is what transactions take of a block, all of them and the general ones alone.
// Gas is that of their limits.
type fill struct{ gas, bytes, generalGas, generalBytes uint64 }

// room is what a block may hold.
type room struct{ gas, bytes uint64 }

// General transactions get at most generalShare of the shares of a block, so that a
// quarter is always there for moves.
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

// full reports whether moves alone left no room that would do for any other.
func (r room) full(f fill) bool {
	return f.gas-f.generalGas+MaxGas > r.gas || f.bytes-f.generalBytes+MaxTx > r.bytes
}

// roomOf returns what a block may hold by the consensus parameters.
func roomOf(ctx sdk.Context) room {
	b := ctx.ConsensusParams().Block
	if b == nil || b.MaxGas <= 0 || b.MaxBytes <= 0 {
		return room{maxBlockGas, maxBlockBytes}
	}
	return room{uint64(b.MaxGas), uint64(b.MaxBytes)}
}
