package p2p

import (
	"context"
	"sync"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

// lane is one protocol with one peer.
type lane struct {
	proto protocol.ID
	peer  peer.ID
}

// slots counts the exchanges that run in each lane. The zero value is ready.
type slots struct {
	mu    sync.Mutex
	lanes map[lane]*slot
}

type slot struct {
	users int // holders of a place, and those waiting for one
	free  chan struct{}
}

// enter takes one of n places in a lane, waiting for it until ctx ends. The
// caller calls leave once.
func (s *slots) enter(ctx context.Context, l lane, n int) (leave func(), err error) {
	e := s.join(l, n)
	select {
	case e.free <- struct{}{}:
		return func() { <-e.free; s.part(l, e) }, nil
	case <-ctx.Done():
		s.part(l, e)
		return nil, ctx.Err()
	}
}

// tryEnter is enter without waiting.
func (s *slots) tryEnter(l lane, n int) (leave func(), ok bool) {
	e := s.join(l, n)
	select {
	case e.free <- struct{}{}:
		return func() { <-e.free; s.part(l, e) }, true
	default:
		s.part(l, e)
		return nil, false
	}
}

func (s *slots) join(l lane, n int) *slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lanes == nil {
		s.lanes = map[lane]*slot{}
	}
	e := s.lanes[l]
	if e == nil {
		e = &slot{free: make(chan struct{}, n)}
		s.lanes[l] = e
	}
	e.users++
	return e
}

func (s *slots) part(l lane, e *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.users--; e.users == 0 {
		delete(s.lanes, l)
	}
}
