package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"

	cmttypes "github.com/cometbft/cometbft/types"
	"github.com/cosmos/gogoproto/proto"
	"google.golang.org/grpc/metadata"

	grpctypes "github.com/cosmos/cosmos-sdk/types/grpc"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/demo"
	"github.com/tally-network/tally/node/role"
)

// whole measures a devnet that rests, and the demo.
func whole(ctx context.Context, o Options) ([]Row, error) {
	dir, err := os.MkdirTemp("", "tally-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	resting, err := idle(ctx, o) // first, while the process is small
	if err != nil {
		return nil, err
	}
	o.Tell("running the demo in %s, on %d processors", dir, runtime.GOMAXPROCS(0))
	t := &trial{}
	r, err := demo.Run(ctx, demo.Options{Dir: dir, Cheat: demo.CheatULP, Inspect: t.inspect, Line: func(s string) { o.Tell("%s", s) }})
	if err != nil {
		return nil, err
	}
	if r.Dispute == nil || t.moves == 0 {
		return nil, errors.New("the demo had no dispute")
	}
	info, err := os.Stat(r.Bundle)
	if err != nil {
		return nil, err
	}
	rows := []Row{
		row("demo first block", "s", r.FirstBlock).atMost(3),
		row("demo", "s", r.Seconds).atMost(240),
		row("demo training", "steps/s", float64(r.Steps)/t.training.Seconds()),
		row("demo loss held out, after", "nats/character", float64(r.HeldOutLossLast)),
		row("demo proof", "MB", float64(info.Size())/1e6),
		row("dispute moves", "", float64(t.moves)).atMost(40),
		row("dispute largest transaction", "KiB", float64(t.largest)/1024).atMost(64),
		row("dispute all transactions", "KiB", float64(t.all)/1024),
		row("dispute verdict", "ms", t.verdict.Seconds()*1000).atMost(10),
	}
	return append(rows, resting...), nil
}

// trial is what a demo shows of its disputes. Of several it keeps the dearest.
type trial struct {
	mu       sync.Mutex // both orders are followed at once
	begun    time.Time
	training time.Duration // until the last merge
	judged   map[uint64]bool

	moves, largest, all int
	verdict             time.Duration
}

func (t *trial) inspect(ctx context.Context, env *role.Env, l *job.Lease) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.begun.IsZero() {
		t.begun, t.judged = time.Now(), map[uint64]bool{}
	}
	if l.Phase == job.Active && l.Order.Problem.Kind == job.Training {
		t.training = time.Since(t.begun)
	}
	ds, err := consume.Disputes(ctx, env, l.Order.ID())
	if err != nil {
		return err
	}
	for i := range ds {
		d := &ds[i]
		if consume.Loser(d) == "" || t.judged[d.Id] {
			continue
		}
		t.judged[d.Id] = true
		if err := t.judge(ctx, env, d.Id); err != nil {
			return fmt.Errorf("dispute %d: %w", d.Id, err)
		}
	}
	return nil
}

// moved is the event that a move of a dispute leaves.
var moved = proto.MessageName(&disputev1.EventMoved{})

const page = 100 // the largest that a node gives

// judge weighs the moves of a dispute that is over, and repeats its last one on
// the game as it stood before.
func (t *trial) judge(ctx context.Context, env *role.Env, id uint64) error {
	enc, err := app.NewEncoding()
	if err != nil {
		return err
	}
	perPage := page
	found, err := env.Chain.RPC.TxSearch(ctx, moved+".size EXISTS", false, nil, &perPage, "asc")
	if err != nil {
		return err
	}
	var last *disputev1.MsgMove
	var at int64
	moves, all := 0, 0
	for _, x := range found.Txs {
		m, err := moveIn(enc, x.Tx)
		if err != nil {
			return err
		}
		if m == nil || m.Dispute != id {
			continue
		}
		last, at = m, x.Height
		moves, all, t.largest = moves+1, all+len(x.Tx), max(t.largest, len(x.Tx))
	}
	if last == nil {
		return errors.New("its moves are not to be found")
	}
	t.moves, t.all = max(t.moves, moves), max(t.all, all)
	before := metadata.AppendToOutgoingContext(ctx, grpctypes.GRPCBlockHeightHeader, strconv.FormatInt(at-1, 10))
	q, err := disputev1.NewQueryClient(env.Chain.Conn).Dispute(before, &disputev1.QueryDisputeRequest{Dispute: id})
	if err != nil {
		return err
	}
	var g dispute.Game
	if err := canon.Unmarshal(q.Game, &g); err != nil {
		return err
	}
	begun := time.Now()
	m, err := dispute.DecodeMove(last.Move)
	if err != nil {
		return err
	}
	if g, err = dispute.Apply(g, g.Stage.Turn(), m, g.Since); err != nil || g.Stage != dispute.Over {
		return fmt.Errorf("its last move does not end it (%v)", err)
	}
	t.verdict = max(t.verdict, time.Since(begun))
	return nil
}

// moveIn returns the move that a transaction makes, if it makes one.
func moveIn(enc app.Encoding, raw cmttypes.Tx) (*disputev1.MsgMove, error) {
	tx, err := enc.Tx.TxDecoder()(raw)
	if err != nil {
		return nil, err
	}
	for _, m := range tx.GetMsgs() {
		if m, ok := m.(*disputev1.MsgMove); ok {
			return m, nil
		}
	}
	return nil, nil
}
