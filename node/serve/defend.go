package serve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/node/tabs"
	"github.com/tally-network/tally/p2p"
)

// What was signed may be disputed, so requests and replies are kept until their sessions are over. A reply that was found wrong here is disputed when
// its consumer brings the proof.

// found are replies that were found wrong here for consumers, for a while.
type found struct {
	mu sync.Mutex
	of map[peer.ID]map[canon.Hash]time.Time // by consumer, and by model, request and reply
}

// How long, of how many consumers and how many of each replies that were found wrong are remembered.
const (
	remembered = time.Hour
	maxFinders = 1 << 12
	maxFound   = 16
)

// finding names a reply of a model.
func finding(model canon.Hash, r *lm.Request, reply []int32) canon.Hash {
	id := tabs.RequestID(r, reply)
	return canon.Sum(canon.DomainRequest, slices.Concat(model[:], id[:]))
}

func (f *found) add(by peer.ID, id canon.Hash) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for p, all := range f.of { // each alone
		maps.DeleteFunc(all, func(_ canon.Hash, at time.Time) bool { return time.Since(at) > remembered })
		if len(all) == 0 {
			delete(f.of, p)
		}
	}
	switch {
	case f.of == nil:
		f.of = map[peer.ID]map[canon.Hash]time.Time{}
	case f.of[by] == nil && len(f.of) >= maxFinders:
		return
	}
	if f.of[by] == nil {
		f.of[by] = map[canon.Hash]time.Time{}
	}
	if len(f.of[by]) < maxFound {
		f.of[by][id] = time.Now()
	}
}

// has reports whether something was found wrong for a consumer.
func (f *found) has(by peer.ID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.of[by]) > 0
}

// is reports whether a reply was found wrong for a consumer, and gone forgets it.
func (f *found) is(by peer.ID, id canon.Hash) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, is := f.of[by][id]
	return is
}

func (f *found) gone(by peer.ID, id canon.Hash) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of[by], id)
}

// accuse disputes a reply that was found wrong here for the consumer who brings its proof.
func (s *Server) accuse(ctx context.Context, from peer.ID, p tabs.Proof) (a tabs.Taken, err error) {
	switch {
	case s.Disputes == nil || s.model(p.Receipt.Model) == nil || !s.found.has(from):
		return a, p2p.ErrRefused
	case p.Terms.Chain != s.ChainID || p.Terms.Provider.Account == s.Account:
		return a, errors.New("the proof is of another chain, or of a reply of this provider")
	}
	id := finding(p.Receipt.Model, &p.Request, p.Reply)
	if !s.found.is(from, id) {
		return a, errors.New("nothing wrong was found here with this reply: have it checked first")
	}
	if err := p.Verify(); err != nil {
		return a, err
	}
	if _, err := s.session(ctx, p.Receipt.Session); err != nil {
		return a, fmt.Errorf("there is no session %s: %w", p.Receipt.Session, err)
	}
	if err := s.Disputes.Open(ctx, &p); err != nil {
		return a, err
	}
	s.found.gone(from, id)
	s.Log.Info("a reply is disputed", "provider", p.Terms.Provider.Account, "receipt", p.Receipt.ID())
	return a, nil
}
