package statesync

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cometbft/cometbft/light/provider"
	coretypes "github.com/cometbft/cometbft/rpc/core/types"
	cmttypes "github.com/cometbft/cometbft/types"
)

const (
	patience = 10 * time.Second // with one answer of a server: CometBFT gives 30 s to what takes several
	pause    = time.Minute      // for which a server is not asked that gave none
)

// server is a node that tells headers. One that accepts and says nothing costs its patience, and is then left alone for a while.
type server struct {
	provider.Provider
	commits
	patience time.Duration
	silent   atomic.Int64 // until when it is not asked; ns
}

// commits is how CometBFT's RPC tells headers and commits.
type commits interface {
	Commit(ctx context.Context, height *int64) (*coretypes.ResultCommit, error)
}

// LightBlock implements provider.Provider. The light client drops a server for good over an error that it does not know, and
// ends when it has dropped the last but one. So one that cannot be reached is one that gives no answer.
func (s *server) LightBlock(ctx context.Context, height int64) (b *cmttypes.LightBlock, err error) {
	err = s.ask(ctx, func(ctx context.Context) (err error) {
		b, err = s.Provider.LightBlock(ctx, height)
		return err
	})
	if err == nil {
		unrank(b.ValidatorSet)
		return b, nil
	}
	if bad := (provider.ErrBadLightBlock{}); ctx.Err() == nil && !errors.Is(err, provider.ErrHeightTooHigh) && !errors.Is(err, provider.ErrLightBlockNotFound) && !errors.As(err, &bad) {
		err = provider.ErrNoResponse
	}
	return nil, err
}

// Commit implements commits.
func (s *server) Commit(ctx context.Context, height *int64) (r *coretypes.ResultCommit, err error) {
	err = s.ask(ctx, func(ctx context.Context) (err error) {
		r, err = s.commits.Commit(ctx, height)
		return err
	})
	return r, err
}

// ReportEvidence implements provider.Provider.
func (s *server) ReportEvidence(ctx context.Context, e cmttypes.Evidence) error {
	return s.ask(ctx, func(ctx context.Context) error { return s.Provider.ReportEvidence(ctx, e) })
}

// ask bounds how long a question takes.
func (s *server) ask(ctx context.Context, question func(context.Context) error) error {
	if time.Now().UnixNano() < s.silent.Load() {
		return provider.ErrNoResponse
	}
	limited, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	err := whole(func() error { return question(limited) })
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		s.silent.Store(time.Now().Add(pause).UnixNano())
		return provider.ErrNoResponse
	}
	return err
}

// whole asks, and finds an answer bad at which CometBFT's provider panics: it takes headers, keys and sets for whole.
func whole(ask func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = provider.ErrBadLightBlock{Reason: fmt.Errorf("%v", p)}
		}
	}()
	return ask()
}

// unrank takes the proposers' priorities out of a set. They stand in no hash, so a server may tell any.
func unrank(set *cmttypes.ValidatorSet) {
	for _, v := range set.Validators {
		v.ProposerPriority = 0
	}
	set.Proposer = nil
	set.GetProposer() // finds it anew
}
