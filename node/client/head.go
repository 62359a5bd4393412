package client

import (
	"context"
	"sync"
)

// head is the newest block, and lets many wait for the next.
type head struct {
	mu      sync.Mutex
	block   Block
	changed chan struct{} // closed and replaced at every block
}

func (h *head) set(b Block) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if b.Height <= h.block.Height {
		return
	}
	h.block = b
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *head) newest() Block {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.block
}

func (h *head) after(ctx context.Context, height int64) (Block, error) {
	for {
		h.mu.Lock()
		b, changed := h.block, h.changed
		h.mu.Unlock()
		if b.Height > height {
			return b, nil
		}
		select {
		case <-ctx.Done():
			return Block{}, ctx.Err()
		case <-changed:
		}
	}
}
