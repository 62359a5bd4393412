package serve

import (
	"context"
	"errors"
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

// Disputes opens disputes of replies, and plays them.
type Disputes interface {
	Block(ctx context.Context) error
	Open(ctx context.Context, p *tabs.Proof) error
}

// found are replies that were found wrong here, by request and reply, for a while.
type found struct {
	mu sync.Mutex
	at map[canon.Hash]time.Time
}

// How long and how many replies that were found wrong are remembered.
const (
	remembered = time.Hour
	maxFound   = 1 << 12
)

func (f *found) add(r *lm.Request, reply []int32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, at := range f.at { // each alone
		if time.Since(at) > remembered {
			delete(f.at, id)
		}
	}
	if f.at == nil {
		f.at = map[canon.Hash]time.Time{}
	}
	if len(f.at) < maxFound {
		f.at[tabs.RequestID(r, reply)] = time.Now()
	}
}

// take reports whether a reply was found wrong, and forgets that.
func (f *found) take(r *lm.Request, reply []int32) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := tabs.RequestID(r, reply)
	_, is := f.at[id]
	delete(f.at, id)
	return is
}

// accuse disputes a reply that was found wrong here.
func (s *Server) accuse(ctx context.Context, _ peer.ID, p tabs.Proof) (a tabs.Taken, err error) {
	switch {
	case s.Disputes == nil || s.models[p.Receipt.Model] == nil:
		return a, p2p.ErrRefused
	case p.Terms.Chain != s.ChainID || p.Terms.Provider.Account == s.Account:
		return a, errors.New("the proof is of another chain, or of a reply of this provider")
	}
	if err := p.Verify(); err != nil {
		return a, err
	}
	if !s.found.take(&p.Request, p.Reply) {
		return a, errors.New("nothing wrong was found here with this reply: have it checked first")
	}
	if err := s.Disputes.Open(ctx, &p); err != nil {
		return a, err
	}
	s.Log.Info("a reply is disputed", "provider", p.Terms.Provider.Account, "receipt", p.Receipt.ID())
	return a, nil
}
