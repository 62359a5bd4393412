package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	cmtcfg "github.com/cometbft/cometbft/config"
	"github.com/cometbft/cometbft/privval"
	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"
	sm "github.com/cometbft/cometbft/state"
	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/tally-network/tally/bench/solo"
	"github.com/tally-network/tally/bench/town"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/node/consensus"
	"github.com/tally-network/tally/node/statesync"
)

const (
	syncBatch = 1_000              // orders that are under way together
	townLasts = 7 * 24 * time.Hour // more than the orders take of the town's time
	follows   = 2 * time.Minute    // in which a node must take a snapshot, or reach the newest block
)

// ordersBefore are as many as the target for a new node says.
const ordersBefore = 10_000

// syncRows measures what new nodes, and those that prune, take. It settles twice as many orders, for a quarter of an hour.
func syncRows(ctx context.Context, o Options) ([]Row, error) {
	began, err := StateSync(ctx, ordersBefore, o.Tell)
	if err != nil {
		return nil, err
	}
	kept, err := Disk(ctx, ordersBefore, o.Tell)
	return append(began, kept...), err
}

// StateSync measures how long a new node takes to begin at the state of a chain with so many settled
// orders, and what its files take. The orders are settled without a network; a validator goes on
// from their state, and the new node begins at its snapshot.
func StateSync(ctx context.Context, orders int, tell func(format string, a ...any)) (rows []Row, err error) {
	dir, err := os.MkdirTemp("", "tally-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	first := &consensus.Config{Dir: filepath.Join(dir, "first"), EmptyInterval: time.Second, CommitTimeout: 200 * time.Millisecond}
	spent, err := settleFor(ctx, first, orders, tell)
	if err != nil {
		return nil, err
	}
	serving, err := consensus.Start(ctx, *first)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, serving.Stop()) }()
	snapshot := int64(first.SnapshotInterval)
	tell("waiting for the snapshot of block %d", snapshot)
	begun := time.Now()
	err = until(ctx, func() (bool, error) {
		given, err := serving.Snapshots()
		return len(given) > 0 && serving.Height() >= snapshot+2, err
	})
	if err != nil {
		return nil, err
	}
	taking := time.Since(begun)
	offered, err := solo.OnDisk(filepath.Join(first.Dir, "data", "snapshots", fmt.Sprint(snapshot)))
	if err != nil {
		return nil, err
	}
	next := snapshot + 1
	trusted, err := serving.Client().Commit(ctx, &next)
	if err != nil {
		return nil, err
	}
	second := consensus.Config{
		Dir: filepath.Join(dir, "second"), Genesis: first.Genesis, CommitTimeout: first.CommitTimeout, Peers: []string{serving.Addrs().P2P},
		StateSync: &statesync.Source{
			Servers: []string{"http://" + serving.Addrs().RPC}, Tell: tell,
			Trusted: func() (int64, []byte, error) { return next, trusted.Header.Hash(), nil },
		},
	}
	begun = time.Now()
	node, err := consensus.Start(ctx, second)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, node.Stop()) }()
	if err := until(ctx, func() (bool, error) { return node.Height() >= serving.Height(), nil }); err != nil {
		return nil, err
	}
	took := time.Since(begun)
	files, err := solo.OnDisk(second.Dir)
	if err != nil {
		return nil, err
	}
	return []Row{
		row("settled orders of the chain", "", float64(orders)),
		row("a new node begins at its state, and follows", "s", took.Seconds()).atMost(60),
		row("its snapshot", "MB", float64(offered)/1e6),
		row("until it is taken and two blocks follow", "s", taking.Seconds()),
		row("files of the new node", "MB", float64(files)/1e6),
		row("transactions of the orders", "MB", float64(spent.Bytes)/1e6),
	}, nil
}

// Disk measures what the application's files of a node take after so many orders are settled and
// pruned, and what each order adds for good.
func Disk(ctx context.Context, orders int, tell func(format string, a ...any)) ([]Row, error) {
	dir, err := os.MkdirTemp("", "tally-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	t, err := town.New(dir)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	var files [2]int64 // after half of them, and after all
	for i := range files {
		if _, err := settleAll(ctx, t, orders/len(files), tell); err != nil {
			return nil, err
		}
		if err := t.Pass(ctx, 2*town.Retention); err != nil {
			return nil, err
		}
		if files[i], err = solo.OnDisk(dir); err != nil {
			return nil, err
		}
	}
	const ordersOfAYear = 100_000 // the target's
	each := float64(files[1]-files[0]) / float64(orders-orders/len(files))
	return []Row{
		row("settled orders, pruned", "", float64(orders)),
		row("files of the state, with the versions that are kept", "MB", float64(files[1])/1e6),
		row("for good, of an order", "B", each),
		row("so after 10⁵ orders", "MB", (float64(files[1])+each*float64(ordersOfAYear-orders))/1e6).atMost(500),
	}, nil
}

// settleFor lets orders be settled in the state of a validator's node, which goes on from there.
func settleFor(ctx context.Context, c *consensus.Config, orders int, tell func(format string, a ...any)) (spent town.Spent, err error) {
	conf := cmtcfg.DefaultConfig().SetRoot(c.Dir)
	if _, err := consensus.LoadIdentity(c.Dir); err != nil { // its folders too
		return spent, err
	}
	t, err := town.At(conf.DBDir(), time.Now().Add(-townLasts))
	if err != nil {
		return spent, err
	}
	spent, err = settleAll(ctx, t, orders, tell)
	if err != nil {
		return spent, errors.Join(err, t.Close())
	}
	height, at := t.Last()
	app := t.LastCommitID().Hash
	if err := t.Close(); err != nil {
		return spent, err
	}
	c.Genesis, c.SnapshotInterval = t.Doc, uint64(height)+2
	c.Provers = append(c.Provers, solo.Prover())
	privval.NewFilePV(solo.Producer(), conf.PrivValidatorKeyFile(), conf.PrivValidatorStateFile()).Save()
	state, err := sm.MakeGenesisState(t.Doc)
	if err != nil {
		return spent, err
	}
	named := canon.Sum(canon.Domain("bench/sync"), app)
	state.LastBlockHeight, state.LastBlockTime, state.AppHash, state.LastResultsHash = height, at, app, named[:]
	state.LastBlockID = cmttypes.BlockID{Hash: named[:], PartSetHeader: cmttypes.PartSetHeader{Total: 1, Hash: named[:]}}
	state.Validators = cmttypes.NewValidatorSet([]*cmttypes.Validator{cmttypes.NewValidator(solo.Producer().PubKey(), 1)})
	state.LastValidators, state.NextValidators = state.Validators.Copy(), state.Validators.CopyIncrementProposerPriority(1)
	state.LastHeightValidatorsChanged, state.LastHeightConsensusParamsChanged = height+1, height+1
	commit, err := signed(&state)
	if err != nil {
		return spent, err
	}
	return spent, statesync.Bootstrap(conf, state, commit, nil)
}

// signed is the commit of the last block, which no network has seen, by the producer.
func signed(state *sm.State) (*cmttypes.Commit, error) {
	key := solo.Producer()
	v := &cmttypes.Vote{
		Type: cmtproto.PrecommitType, Height: state.LastBlockHeight, BlockID: state.LastBlockID, Timestamp: time.Now().UTC(), ValidatorAddress: key.PubKey().Address(),
	}
	signature, err := key.Sign(cmttypes.VoteSignBytes(state.ChainID, v.ToProto()))
	return &cmttypes.Commit{Height: v.Height, BlockID: v.BlockID, Signatures: []cmttypes.CommitSig{{
		BlockIDFlag: cmttypes.BlockIDFlagCommit, ValidatorAddress: v.ValidatorAddress, Timestamp: v.Timestamp, Signature: signature,
	}}}, err
}

func settleAll(ctx context.Context, t *town.Town, orders int, tell func(format string, a ...any)) (all town.Spent, err error) {
	for done := 0; done < orders; {
		n := min(syncBatch, orders-done)
		spent, err := t.Settle(ctx, n, 1)
		if err != nil {
			return all, err
		}
		all.Bytes += spent.Bytes
		done += n
		tell("settled %d of %d orders", done, orders)
	}
	return all, nil
}

// until waits for what a node must reach soon.
func until(ctx context.Context, reached func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, follows)
	defer cancel()
	for {
		if is, err := reached(); is || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
