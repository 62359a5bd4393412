package statesync

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	cmtdb "github.com/cometbft/cometbft-db"
	"github.com/cometbft/cometbft/light/provider"
	coretypes "github.com/cometbft/cometbft/rpc/core/types"
	sm "github.com/cometbft/cometbft/state"
	"github.com/cometbft/cometbft/store"
	cmttypes "github.com/cometbft/cometbft/types"

	chainheaders "github.com/tally-network/tally/internal/testkit/headers"
)

// teller tells the blocks of a chain, of which it changes some.
type teller struct {
	provider.Provider
	first  int64
	blocks []*cmttypes.LightBlock
	lie    func(*cmttypes.LightBlock)
}

// ChainID implements provider.Provider.
func (n *teller) ChainID() string { return n.blocks[0].ChainID }

// LightBlock implements provider.Provider.
func (n *teller) LightBlock(_ context.Context, height int64) (*cmttypes.LightBlock, error) {
	last := n.first + int64(len(n.blocks)) - 1
	switch {
	case height == 0:
		height = last
	case height < n.first:
		return nil, provider.ErrLightBlockNotFound
	case height > last:
		return nil, provider.ErrHeightTooHigh
	}
	x := n.blocks[height-n.first]
	header, commit := *x.Header, &cmttypes.Commit{ // whose hash nobody has made yet
		Height: height, Round: x.Commit.Round, BlockID: x.Commit.BlockID, Signatures: slices.Clone(x.Commit.Signatures),
	}
	told := &cmttypes.LightBlock{SignedHeader: &cmttypes.SignedHeader{Header: &header, Commit: commit}, ValidatorSet: x.ValidatorSet.Copy()}
	if n.lie != nil {
		n.lie(told)
	}
	return told, nil
}

// Commit implements commits.
func (n *teller) Commit(ctx context.Context, height *int64) (*coretypes.ResultCommit, error) {
	x, err := n.LightBlock(ctx, *cmp.Or(height, new(int64)))
	if err != nil {
		return nil, err
	}
	return &coretypes.ResultCommit{SignedHeader: *x.SignedHeader}, nil
}

// restored is a node that has the state of a block, and nothing from before.
func restored(c *chainheaders.Chain, initial, height int64, from ...*teller) (*backfill, *[]string) {
	told := &[]string{}
	b := &backfill{
		headers: &stateProvider{initial: initial}, state: sm.State{ChainID: c.ID, LastBlockHeight: height, LastBlockTime: c.Time(height), ConsensusParams: *cmttypes.DefaultConsensusParams()},
		blocks: cmtdb.NewMemDB(), states: cmtdb.NewMemDB(), tell: func(format string, args ...any) { *told = append(*told, fmt.Sprintf(format, args...)) },
	}
	for _, n := range from {
		b.headers.servers = append(b.headers.servers, &server{Provider: n, commits: n, patience: patience})
	}
	return b, told
}

// holds fails unless a node can check evidence of exactly the blocks from first on.
func (b *backfill) holds(t *testing.T, from *teller, first int64) {
	t.Helper()
	blocks, states := store.NewBlockStore(b.blocks), sm.NewStore(b.states, sm.StoreOptions{})
	for h := max(from.first, first-1); h <= b.state.LastBlockHeight; h++ {
		meta, commit := blocks.LoadBlockMeta(h), blocks.LoadBlockCommit(h)
		set, err := states.LoadValidators(h)
		if h < first {
			if meta != nil || commit != nil || err == nil {
				t.Fatalf("block %d is kept", h)
			}
			continue
		}
		want := from.blocks[h-from.first]
		if err != nil || meta == nil || commit == nil {
			t.Fatalf("block %d: %v %v %v", h, meta, commit, err)
		}
		if !bytes.Equal(meta.Header.Hash(), want.Hash()) || !commit.BlockID.Equals(want.Commit.BlockID) || !bytes.Equal(set.Hash(), want.ValidatorsHash) {
			t.Fatalf("block %d is not the chain's", h)
		}
	}
}

// A restored node reads back what evidence is checked by, over changes of the validator set and where
// CometBFT keeps a set anew, and not further than evidence counts.
func TestBackfill(t *testing.T) {
	c := chainheaders.New("c", 4, 1, time.Now())
	const first, height = checkpoint - 150, checkpoint + 140
	honest := &teller{first: first, blocks: c.History(first, height+1)}
	for name, x := range map[string]struct {
		initial, blocks int64
		age             time.Duration
		reaches         int64
	}{
		"all":                     {first, 1000, time.Hour, first},
		"later first block":       {first + 20, 1000, time.Hour, first + 20},
		"by blocks, if by time":   {first, 50, time.Minute, height - 50},
		"by time, if by blocks":   {first, 50, 10 * time.Minute, height - 100},
		"no block counts":         {first, 0, 0, height},
		"further than it is told": {first - 70, 1000, time.Hour, first},
	} {
		t.Run(name, func(t *testing.T) {
			b, told := restored(c, x.initial, height, honest)
			b.above = honest.blocks[height+1-first].Header
			b.state.ConsensusParams.Evidence.MaxAgeNumBlocks, b.state.ConsensusParams.Evidence.MaxAgeDuration = x.blocks, x.age
			if err := b.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.holds(t, honest, x.reaches)
			if lacks := x.initial < first; lacks != (len(*told) == 1 && strings.Contains((*told)[0], "no node that you named")) {
				t.Error(*told)
			}
		})
	}
}

// Whoever tells something else is not believed; the next one is asked.
func TestBackfillFromLiars(t *testing.T) {
	c := chainheaders.New("c", 4, 1, time.Now())
	const first, height, lied = 1, 210, 130
	blocks := c.History(first, height+1)
	other := chainheaders.New("c", 4, 1, time.Now().Add(time.Second))
	for name, lie := range map[string]func(x *cmttypes.LightBlock){
		"another header":           func(x *cmttypes.LightBlock) { x.Header.AppHash = x.Header.DataHash },
		"a block of another chain": func(x *cmttypes.LightBlock) { *x = *other.Block(x.Height) },
		"another round":            func(x *cmttypes.LightBlock) { x.Commit.Round = 1 },
		"another signature":        func(x *cmttypes.LightBlock) { x.Commit.Signatures[0].Signature = make([]byte, 64) },
		"a signature past two thirds": func(x *cmttypes.LightBlock) {
			x.Commit.Signatures[3].Signature = make([]byte, 64)
		},
		"one absent who was there": func(x *cmttypes.LightBlock) { x.Commit.Signatures[3] = cmttypes.NewCommitSigAbsent() },
		"few signatures": func(x *cmttypes.LightBlock) {
			x.Commit.Signatures[0], x.Commit.Signatures[1] = cmttypes.NewCommitSigAbsent(), cmttypes.NewCommitSigAbsent()
		},
		"no header": func(x *cmttypes.LightBlock) { x.Header = nil },
		"no commit": func(x *cmttypes.LightBlock) { x.Commit = nil },
	} {
		t.Run(name, func(t *testing.T) {
			honest := &teller{first: first, blocks: blocks}
			liar := &teller{first: first, blocks: blocks, lie: func(x *cmttypes.LightBlock) {
				if x.Height == lied {
					lie(x)
				}
			}}
			b, told := restored(c, first, height, liar, honest)
			b.above = blocks[height+1-first].Header
			if err := b.run(t.Context()); err != nil || len(*told) > 0 {
				t.Fatal(err, *told)
			}
			b.holds(t, honest, first)
			b, told = restored(c, first, height, liar)
			b.above = blocks[height+1-first].Header
			if err := b.run(t.Context()); err != nil || len(*told) != 1 {
				t.Fatal(err, *told)
			}
			b.holds(t, honest, lied+1)
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b, _ := restored(c, first, height, &teller{first: first, blocks: blocks})
	b.above = blocks[height+1-first].Header
	if err := b.run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A set that is told wrong is not the one that a header names.
func TestBackfillFromLiarsAboutSets(t *testing.T) {
	c := chainheaders.New("c", 4, 1, time.Now())
	honest := &teller{first: 1, blocks: c.History(1, 51)}
	b, told := restored(c, 1, 50, &teller{first: 1, blocks: honest.blocks, lie: func(x *cmttypes.LightBlock) { x.ValidatorSet = c.Set(200) }}, honest)
	b.above = honest.blocks[50].Header
	if err := b.run(t.Context()); err != nil || len(*told) > 0 {
		t.Fatal(err, *told)
	}
	b.holds(t, honest, 1)
}
