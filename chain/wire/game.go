package wire

import (
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/tensor"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
)

// DisputeToProto returns a game as queries and events show it.
func DisputeToProto(id uint64, p disputev1.Parties, g *dispute.Game) disputev1.Dispute {
	v := disputev1.Dispute{
		Id: id, Parties: p, Stage: g.Stage.String(), Turn: disputev1.Side(g.Stage.Turn()),
		DefenderLeftMs: g.Left[0], ChallengerLeftMs: g.Left[1], Moves: uint32(g.Moves),
		StepLo: uint64(g.Lo), StepHi: uint64(g.Hi), Node: uint32(g.Node), Element: uint64(g.Element),
		FoldFrom: uint32(g.From), FoldTo: uint32(g.To), Loser: disputev1.Side(g.Loser), Reason: g.Reason,
		Missed: g.Missed, Waiting: g.Waiting,
	}
	switch {
	case g.Waiting:
		v.Turn = disputev1.SIDE_UNSPECIFIED
	case g.Stage != dispute.Over:
		v.Deadline = g.Deadline()
	}
	if g.Opcode != nil {
		v.Op = g.Opcode.Origin.Op
		row, col := tensor.LayoutOf(g.Opcode.Type, g.Opcode.Shape).TileAt(g.Tile)
		v.TileRow, v.TileCol = uint32(row), uint32(col)
	}
	return v
}
