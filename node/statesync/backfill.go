package statesync

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	cmtdb "github.com/cometbft/cometbft-db"
	"github.com/cometbft/cometbft/evidence"
	cmtstate "github.com/cometbft/cometbft/proto/tendermint/state"
	sm "github.com/cometbft/cometbft/state"
	cmttypes "github.com/cometbft/cometbft/types"
	"github.com/cosmos/gogoproto/proto"
	"golang.org/x/sync/errgroup"
)

const (
	batchBlocks = 64      // blocks that are read before they are kept
	askAtOnce   = 4       // of them
	checkpoint  = 100_000 // CometBFT keeps a validator set again at multiples of it
)

// backfill gives a restored node the headers, commits and validator sets of the blocks before its
// state, as far back as evidence counts: a block that brings evidence which cannot be checked
// would stop the node. It goes back from a verified block, by hashes and signatures, so it may
// read them from anybody.
type backfill struct {
	headers *stateProvider
	state   sm.State
	above   *cmttypes.Header // of the block after the next one to be read
	tell    func(format string, args ...any)

	blocks, states cmtdb.DB
	set            *cmttypes.ValidatorSet // of the run of blocks that was read last
	last           int64                  // block of that run
}

// run reads until evidence no longer counts, or as far as anybody tells.
func (b *backfill) run(ctx context.Context) error {
	told, size := time.Now(), int64(batchBlocks)
	for b.above.Height > b.headers.initial {
		top := b.above.Height - 1
		all, err := b.ask(ctx, max(b.headers.initial, top-size+1), top)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && size > 1 { // some of them may be told
			size /= 4
			continue
		}
		size = min(4*size, batchBlocks) // again: a node may have been away for a moment
		if err != nil {
			b.tell("block %d and those before are told by no node that you named; evidence from there would stop this node, so give it no votes for %v: %v",
				top, b.state.ConsensusParams.Evidence.MaxAgeDuration, err)
			break
		}
		old, err := b.keep(all)
		if err != nil {
			return err
		}
		if old {
			break
		}
		if time.Since(told) > tellEvery {
			told = time.Now()
			b.tell("read the headers back to block %d, for evidence that still counts", b.above.Height)
		}
	}
	if b.set == nil {
		return nil
	}
	return b.keepSets(b.above.Height)
}

// ask has the servers tell blocks, one after the other until one does.
func (b *backfill) ask(ctx context.Context, least, top int64) (all []*cmttypes.LightBlock, err error) {
	for _, s := range b.headers.servers {
		var e error
		if all, e = b.read(ctx, s, least, top); e == nil {
			return all, nil
		}
		err = errors.Join(err, e)
	}
	return nil, err
}

// read returns the blocks from top down to least, which it has checked.
func (b *backfill) read(ctx context.Context, s *server, least, top int64) ([]*cmttypes.LightBlock, error) {
	all := make([]*cmttypes.LightBlock, top-least+1)
	err := parallel(ctx, len(all), func(ctx context.Context, i int) error {
		height := top - int64(i)
		r, err := s.Commit(ctx, &height)
		if err == nil {
			all[i] = &cmttypes.LightBlock{SignedHeader: &r.SignedHeader}
			err = r.SignedHeader.ValidateBasic(b.state.ChainID)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	above, set := b.above, b.set
	for _, x := range all {
		if x.Height != above.Height-1 || !x.Commit.BlockID.Equals(above.LastBlockID) {
			return nil, fmt.Errorf("block %d has the hash %X, and the next one follows %X", x.Height, x.Commit.BlockID.Hash, above.LastBlockID.Hash)
		}
		if !bytes.Equal(x.Commit.Hash(), above.LastCommitHash) { // which holds the votes for nil too, and who was absent
			return nil, fmt.Errorf("the votes for block %d are not those that the next one holds", x.Height)
		}
		if set == nil || !bytes.Equal(set.Hash(), x.ValidatorsHash) {
			full, err := s.LightBlock(ctx, x.Height)
			if err != nil {
				return nil, err
			}
			if set = full.ValidatorSet; !bytes.Equal(set.Hash(), x.ValidatorsHash) {
				return nil, fmt.Errorf("the validators of block %d are told wrong", x.Height)
			}
		}
		x.ValidatorSet, above = set, x.Header
	}
	return all, parallel(ctx, len(all), func(_ context.Context, i int) error { // the round stands in no hash
		x := all[i]
		return x.ValidatorSet.VerifyCommitLight(b.state.ChainID, x.Commit.BlockID, x.Height, x.Commit)
	})
}

// parallel does something n times, some at once, until one fails.
func parallel(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(askAtOnce)
	for i := range n {
		g.Go(func() error { return errors.Join(ctx.Err(), do(ctx, i)) })
	}
	return g.Wait()
}

// keep writes blocks as CometBFT does, until evidence of one no longer counts.
func (b *backfill) keep(all []*cmttypes.LightBlock) (old bool, err error) {
	batch := b.blocks.NewBatch()
	defer func() { err = errors.Join(err, batch.Close()) }()
	for _, x := range all {
		if evidence.IsEvidenceExpired(b.state.LastBlockHeight, b.state.LastBlockTime, x.Height, x.Time, b.state.ConsensusParams.Evidence) {
			old = true
			break
		}
		if x.ValidatorSet != b.set {
			if b.set != nil {
				if err := b.keepSets(x.Height + 1); err != nil {
					return false, err
				}
			}
			b.set, b.last = x.ValidatorSet, x.Height
		}
		b.above = x.Header
		meta := cmttypes.BlockMeta{BlockID: x.Commit.BlockID, Header: *x.Header}
		err := errors.Join(
			put(batch, fmt.Sprintf("H:%d", x.Height), meta.ToProto()),
			put(batch, fmt.Sprintf("C:%d", x.Height), x.Commit.ToProto()))
		if err != nil {
			return false, err
		}
	}
	return old, batch.WriteSync()
}

// keepSets writes the validator set of the blocks from first to b.last, each of which has a row that
// says where the whole set stands. Its proposers' priorities are nobody's: no hash holds them, and the application knows none of
// the past. Evidence is checked by keys and votes. Of these blocks this node's RPC tells other priorities than nodes that
// made them, which [server] does not look at.
func (b *backfill) keepSets(first int64) (err error) {
	set, err := b.set.ToProto()
	if err != nil {
		return err
	}
	batch := b.states.NewBatch()
	defer func() { err = errors.Join(err, batch.Close()) }()
	for h := first; h <= b.last; h++ {
		row := cmtstate.ValidatorsInfo{LastHeightChanged: first}
		if h == first || h%checkpoint == 0 {
			row.ValidatorSet = set
		}
		if err := put(batch, fmt.Sprintf("validatorsKey:%d", h), &row); err != nil {
			return err
		}
	}
	return batch.WriteSync()
}

func put(batch cmtdb.Batch, key string, m proto.Message) error {
	text, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	return batch.Set([]byte(key), text)
}
