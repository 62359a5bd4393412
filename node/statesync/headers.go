package statesync

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	cmtdb "github.com/cometbft/cometbft-db"
	cmtlog "github.com/cometbft/cometbft/libs/log"
	cmtlight "github.com/cometbft/cometbft/light"
	"github.com/cometbft/cometbft/light/provider"
	lighthttp "github.com/cometbft/cometbft/light/provider/http"
	lightdb "github.com/cometbft/cometbft/light/store/db"
	cmtstate "github.com/cometbft/cometbft/proto/tendermint/state"
	sm "github.com/cometbft/cometbft/state"
	cmttypes "github.com/cometbft/cometbft/types"
	"github.com/cometbft/cometbft/version"

	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/light"
)

// Source names the nodes that tell the chain's headers, and the block from which these are believed.
type Source struct {
	Servers []string                                        // RPC, as http://host:port; of one alone nobody checks what it leaves out
	Trusted func() (height int64, header []byte, err error) // is asked for a block that is trusted, if the node has none itself
	// StallTimeout is how long nothing may happen before the node gives up; 0: 5 minutes.
	StallTimeout time.Duration
	Tell         func(format string, args ...any) // what happens, for people; nil: nobody

	patience time.Duration // with one answer of a server; 0: the usual
}

// A state needs the headers of the two blocks after it, which an idle chain makes late.
const (
	headerTries = 4
	headerPause = time.Second
)

// stateProvider gives what the light client has verified. It is CometBFT's StateProvider, with bounded
// answers, and ends with its context.
type stateProvider struct {
	ctx     context.Context // of all that is asked
	end     func()          // ends ctx
	initial int64           // height of the chain
	servers []*server

	mu     sync.Mutex // sync: the light client is for one at a time
	client *cmtlight.Client
}

// final is an error at which CometBFT ends, instead of trying the next snapshot.
type final struct{ error }

// Is lets CometBFT know it.
func (final) Is(target error) bool { return target == cmtlight.ErrNoWitnesses }

// newStateProvider asks the servers for the trusted block.
func newStateProvider(ctx context.Context, genesis *cmttypes.GenesisDoc, s *Source, logger cmtlog.Logger) (*stateProvider, error) {
	h := &stateProvider{initial: max(genesis.InitialHeight, 1)}
	h.ctx, h.end = context.WithCancel(ctx)
	var all []provider.Provider
	for _, at := range s.Servers {
		rpc, err := client.NewHeaders(at)
		if err != nil {
			return nil, fmt.Errorf("RPC %s: %w", at, err)
		}
		n := &server{Provider: lighthttp.NewWithClient(genesis.ChainID, rpc), commits: rpc, patience: cmp.Or(s.patience, patience)}
		h.servers, all = append(h.servers, n), append(all, n)
	}
	switch len(all) {
	case 0:
		return nil, errors.New("name the RPC of a node of the chain, as http://host:port")
	case 1:
		s.Tell("%s alone tells the headers: nobody checks whether it shows another fork that validators signed; name a second node", s.Servers[0])
		all = append(all, all[0]) // the light client wants a witness
	}
	height, header, err := s.Trusted()
	if err != nil {
		return nil, err
	}
	h.client, err = cmtlight.NewClient(ctx, genesis.ChainID, cmtlight.TrustOptions{Period: light.TrustingPeriod, Height: height, Hash: header},
		all[0], all[1:], lightdb.New(cmtdb.NewMemDB(), ""), cmtlight.Logger(logger), cmtlight.MaxRetryAttempts(5))
	if err != nil {
		return nil, fmt.Errorf("the trusted block %d, of hash %X, is not what %v tell: see that they answer, or name others, or another trusted block: %w",
			height, header, s.Servers, err)
	}
	return h, nil
}

// block returns a verified block.
func (h *stateProvider) block(ctx context.Context, height int64) (b *cmttypes.LightBlock, err error) {
	for range headerTries {
		b, err = h.client.VerifyLightBlockAtHeight(ctx, height, time.Now())
		if !errors.Is(err, provider.ErrHeightTooHigh) && !errors.Is(err, cmtlight.ErrFailedHeaderCrossReferencing) {
			break
		}
		select {
		case <-ctx.Done():
		case <-h.ctx.Done():
		case <-time.After(headerPause):
		}
	}
	switch {
	case h.ctx.Err() != nil:
		return nil, final{h.ctx.Err()}
	case errors.Is(err, cmtlight.ErrFailedHeaderCrossReferencing):
		return nil, final{fmt.Errorf("block %d is told by one server alone, and no other confirms it: name others that answer (%w)", height, err)}
	}
	return b, err
}

// newest returns the height of the newest block that a server tells.
func (h *stateProvider) newest(ctx context.Context) uint64 {
	heights := make([]int64, len(h.servers))
	_ = parallel(ctx, len(heights), func(ctx context.Context, i int) error {
		if r, err := h.servers[i].Commit(ctx, nil); err == nil && r.Header != nil {
			heights[i] = r.Header.Height
		}
		return nil // others may answer
	})
	return uint64(max(0, slices.Max(heights)))
}

// AppHash implements statesync.StateProvider.
func (h *stateProvider) AppHash(ctx context.Context, height uint64) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx.Err() != nil {
		return nil, final{h.ctx.Err()}
	}
	if last := h.newest(ctx); height > last { // what waits for a header would wait for each such offer
		return nil, fmt.Errorf("block %d is offered, and the newest is %d", height, last)
	}
	if _, err := h.block(ctx, int64(height)+2); err != nil { // State needs it
		return nil, err
	}
	next, err := h.block(ctx, int64(height)+1)
	if err != nil {
		return nil, err
	}
	return next.AppHash, nil
}

// Commit implements statesync.StateProvider: the first commit that a server tells with which CometBFT will start.
func (h *stateProvider) Commit(ctx context.Context, height uint64) (*cmttypes.Commit, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b, err := h.block(ctx, int64(height))
	if err != nil {
		return nil, err
	}
	commit, err := b.Commit, checkVotes(b, b.Commit)
	for _, s := range h.servers {
		if err == nil {
			return commit, nil
		}
		r, e := s.Commit(ctx, &b.Height)
		if e == nil {
			commit, e = r.Commit, checkVotes(b, r.Commit)
		}
		if err = errors.Join(err, e); e == nil {
			err = nil
		}
	}
	if err != nil {
		return nil, final{fmt.Errorf("no server tells a commit of block %d with which a node starts: name another (%w)", height, err)}
	}
	return commit, nil
}

// checkVotes returns an error unless CometBFT can make votes of a block's commit, as it does at each start. It panics over
// one that is wrong. The light client looks at two thirds of them, and at none for nil.
func checkVotes(b *cmttypes.LightBlock, c *cmttypes.Commit) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a vote in the commit is wrong: %v", p)
		}
	}()
	if id, ok := c.ToVoteSet(b.ChainID, b.ValidatorSet).TwoThirdsMajority(); !ok || !id.Equals(b.Commit.BlockID) || c.Height != b.Height {
		return errors.New("the commit is of another block")
	}
	return nil
}

// State implements statesync.StateProvider: the state after a block, as CometBFT's own has it, but for the
// consensus parameters. No header holds all of them; the application does.
func (h *stateProvider) State(ctx context.Context, height uint64) (s sm.State, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var b [3]*cmttypes.LightBlock // the block, and the two after it
	for i := range b {
		if b[i], err = h.block(ctx, int64(height)+int64(i)); err != nil {
			return s, err
		}
	}
	return sm.State{
		ChainID: h.client.ChainID(), InitialHeight: h.initial,
		Version:         cmtstate.Version{Consensus: b[1].Version, Software: version.TMCoreSemVer},
		LastBlockHeight: b[0].Height, LastBlockTime: b[0].Time, LastBlockID: b[0].Commit.BlockID,
		AppHash: b[1].AppHash, LastResultsHash: b[1].LastResultsHash,
		LastValidators: b[0].ValidatorSet, Validators: b[1].ValidatorSet, NextValidators: b[2].ValidatorSet,
		LastHeightValidatorsChanged:      b[2].Height,
		LastHeightConsensusParamsChanged: b[1].Height,
	}, nil
}

// after returns the verified header after a block.
func (h *stateProvider) after(ctx context.Context, height int64) (*cmttypes.Header, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b, err := h.block(ctx, height+1)
	if err != nil {
		return nil, err
	}
	return b.Header, nil
}

// ParseTrustedBlock reads HEIGHT:HASH, of the header of a block that is trusted.
func ParseTrustedBlock(text string) (height int64, header []byte, err error) {
	a, b, _ := strings.Cut(text, ":")
	height, errA := strconv.ParseInt(a, 10, 64)
	header, errB := hex.DecodeString(b)
	if errA != nil || errB != nil || height < 1 || len(header) != sha256.Size {
		return 0, nil, fmt.Errorf("%.80q is not HEIGHT:HASH, of a hash of %d digits", text, 2*sha256.Size)
	}
	return height, header, nil
}
