package light

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	dbm "github.com/cometbft/cometbft-db"
	cmtlight "github.com/cometbft/cometbft/light"
	"github.com/cometbft/cometbft/light/provider"
	"github.com/cometbft/cometbft/light/store/db"
	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/tally-network/tally/node/client"
)

// Bounds on what one call fetches. A set changes by at most a quarter in an epoch of ten minutes. If
// all validators sign, a jump spans two epochs: 48 jumps in a trusting period. If a third does not
// sign, it may span only one: 96 jumps. The client bisects, so a jump costs two or three blocks
// (TestThousandChanges). A block of 100 validators has 20 KiB.
const (
	maxHeaders = 2048
	maxBytes   = 64 << 20
	// maxDrift is how far a header may be ahead of this machine's clock.
	maxDrift = 10 * time.Second
)

// Follower follows a chain.
type Follower struct {
	Block    func(ctx context.Context, height int64) (*cmttypes.LightBlock, error) // what a node gives, unchecked
	Now      func() time.Time                                                      // nil: the clock of this machine
	Progress func(headers int, height int64)                                       // sees each block that is fetched; may be nil
}

// NewFollower returns what follows a chain by asking a node.
func NewFollower(chain *client.Client) *Follower {
	return &Follower{Block: func(ctx context.Context, height int64) (*cmttypes.LightBlock, error) {
		return Block(ctx, chain, height)
	}}
}

// Stats says what following took.
type Stats struct {
	Headers int   `json:"headers"` // that were fetched
	Bytes   int64 `json:"bytes"`   // of them, with their validators
}

// Follow returns an error unless a block follows from a trusted block. held is the block that from
// is of, if the caller has it, or else nil.
func (f *Follower) Follow(ctx context.Context, from TrustedBlock, held, to *cmttypes.LightBlock) (Stats, error) {
	now := time.Now
	if f.Now != nil {
		now = f.Now
	}
	if err := errors.Join(from.Check(), from.CheckAge(now())); err != nil {
		return Stats{}, err
	}
	if err := check(to, from.Chain, FromLightBlock(to).Height); err != nil {
		return Stats{}, err
	}
	switch {
	case held != nil && bytes.Equal(held.Hash(), from.Header[:]) && FromLightBlock(held) != from:
		return Stats{}, errBent(from)
	case to.Height < from.Height:
		return Stats{}, fmt.Errorf("the node is at block %d, before the trusted block %d: ask it again later, or another", to.Height, from.Height)
	case to.Height == from.Height && bytes.Equal(to.Hash(), from.Header[:]) && FromLightBlock(to) != from:
		return Stats{}, errBent(from)
	case to.Height == from.Height && bytes.Equal(to.Hash(), from.Header[:]):
		return Stats{}, nil
	case to.Height == from.Height:
		return Stats{}, fmt.Errorf("the node has another block %d than the one that is trusted: one of them is of another chain; ask another node", to.Height)
	}
	s := &source{f: f, ends: map[int64]*cmttypes.LightBlock{from.Height: held, to.Height: to}, from: from, chain: from.Chain}
	// The client wants a witness. One node is all there is, and is not believed: so it is its own.
	c, err := cmtlight.NewClient(ctx, from.Chain, cmtlight.TrustOptions{Period: TrustingPeriod, Height: from.Height, Hash: from.Header[:]},
		s, []provider.Provider{s}, db.New(dbm.NewMemDB(), ""), cmtlight.MaxClockDrift(maxDrift))
	if err == nil {
		_, err = c.VerifyLightBlockAtHeight(ctx, to.Height, now())
	}
	if s.failed != nil { // the client goes on to say that it has nobody else to ask
		err = s.failed
	}
	if err != nil {
		err = fmt.Errorf("block %d does not follow from %v, by what the node says: ask another node, or pin a newer block that you trust with tally trust pin (%w)", to.Height, from, err)
	}
	return s.stats, err
}

// errBent says that a trusted block names its header, and another time or other sets than that has.
func errBent(t TrustedBlock) error {
	return fmt.Errorf("%v is trusted with another time or other validators than its header has: pin it anew with tally trust pin", t)
}

// source is a node as CometBFT's light client asks it: within bounds, and once for each end of the way, which
// the client compares with what its witness says.
type source struct {
	f     *Follower
	from  TrustedBlock
	chain string

	mu     sync.Mutex                     // sync: the client asks its witness from another goroutine
	ends   map[int64]*cmttypes.LightBlock // by height; nil: not there yet
	stats  Stats
	failed error
}

// ChainID implements provider.Provider.
func (s *source) ChainID() string { return s.chain }

// ReportEvidence implements provider.Provider. There is nobody to report to.
func (s *source) ReportEvidence(context.Context, cmttypes.Evidence) error { return nil }

// LightBlock implements provider.Provider.
func (s *source) LightBlock(ctx context.Context, height int64) (*cmttypes.LightBlock, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return nil, s.failed
	}
	end, is := s.ends[height]
	if end != nil {
		return end, nil
	}
	b, err := s.fetch(ctx, height)
	if err != nil {
		s.failed = err
		return nil, err
	}
	if is {
		if height == s.from.Height && bytes.Equal(b.Hash(), s.from.Header[:]) && FromLightBlock(b) != s.from {
			s.failed = errBent(s.from)
			return nil, s.failed
		}
		s.ends[height] = b
	}
	return b, nil
}

func (s *source) fetch(ctx context.Context, height int64) (*cmttypes.LightBlock, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.stats.Headers == maxHeaders || s.stats.Bytes >= maxBytes {
		return nil, fmt.Errorf("%d headers of %d bytes were not enough, limits %d and %d", s.stats.Headers, s.stats.Bytes, maxHeaders, maxBytes)
	}
	b, err := s.f.Block(ctx, height)
	if err != nil {
		return nil, err
	}
	if err := check(b, s.chain, height); err != nil {
		return nil, err
	}
	m, err := b.ToProto()
	if err != nil {
		return nil, err
	}
	s.stats.Headers++
	s.stats.Bytes += int64(m.Size())
	if s.f.Progress != nil {
		s.f.Progress(s.stats.Headers, height)
	}
	return b, nil
}

// FollowPinned follows from a home's trusted block of a node's chain to the node's newest block, and pins that.
func FollowPinned(ctx context.Context, home string, chain *client.Client, progress func(headers int, height int64)) (t TrustedBlock, w Stats, err error) {
	from, err := Pinned(home, chain.ChainID)
	if errors.Is(err, fs.ErrNotExist) {
		return t, w, fmt.Errorf("no block of %s is pinned in %s: pin one with tally trust pin, from a node or a file that you trust", chain.ChainID, home)
	} else if err != nil {
		return t, w, err
	}
	to, err := newest(ctx, chain)
	if err != nil {
		return t, w, err
	}
	f := NewFollower(chain)
	f.Progress = progress
	if w, err = f.Follow(ctx, from, nil, to); err != nil {
		return t, w, err
	}
	t = FromLightBlock(to)
	return t, w, Pin(home, t)
}
