package p2p

import (
	"context"
	"slices"
	"sync"

	"github.com/libp2p/go-libp2p/core/peer"
)

// turns bounds how many requests are answered at a time, and lets one peer have a quarter
// of the places. A free place goes to the peer that has the fewest, and among those to the
// request that has waited longest. So whoever asks for much waits behind those that ask
// for little.
type turns struct {
	mu      sync.Mutex
	free    int             // places
	each    int             // places that one peer may have
	taken   map[peer.ID]int // places that peers have
	waiting []waiter        // in the order in which they came
}

type waiter struct {
	peer peer.ID
	turn chan struct{}
}

// newTurns returns turns with n places.
func newTurns(n int) *turns { return &turns{free: n, each: max(1, n/4), taken: map[peer.ID]int{}} }

// take waits for a place until ctx ends. The caller calls leave once.
func (t *turns) take(ctx context.Context, id peer.ID) (leave func(), err error) {
	t.mu.Lock()
	w := waiter{id, make(chan struct{})}
	t.waiting = append(t.waiting, w)
	t.next()
	t.mu.Unlock()
	leave = func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.free++
		if t.taken[id]--; t.taken[id] == 0 {
			delete(t.taken, id)
		}
		t.next()
	}
	select {
	case <-w.turn:
		return leave, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	i := slices.Index(t.waiting, w)
	if i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	}
	t.mu.Unlock()
	if i < 0 {
		leave() // its turn had just come
	}
	return nil, ctx.Err()
}

// next gives the free places away. The caller holds mu.
func (t *turns) next() {
	for t.free > 0 {
		best, fewest := -1, t.each
		for i, w := range t.waiting {
			if n := t.taken[w.peer]; n < fewest {
				best, fewest = i, n
			}
		}
		if best < 0 {
			return
		}
		w := t.waiting[best]
		t.waiting = slices.Delete(t.waiting, best, best+1)
		t.free--
		t.taken[w.peer]++
		close(w.turn)
	}
}
