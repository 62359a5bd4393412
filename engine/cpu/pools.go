package cpu

import (
	"runtime"
	"sync"

	"github.com/tally-network/tally/engine/cpu/tuning"
)

// pools keep the threads of an executor from run to run: a run may be shorter than it takes to start them. The threads end once neither
// the executor nor a runner of it is left.
type pools struct {
	size int
	idle *idlePools
}

// idlePools are those that no run has, which threads do not refer to.
type idlePools struct {
	mu    sync.Mutex
	pools []*threadPool
}

func newPools(size int) *pools {
	p := &pools{size, &idlePools{}}
	runtime.AddCleanup(p, (*idlePools).close, p.idle)
	return p
}

// take returns a pool that no run has.
func (p *pools) take() *threadPool {
	p.idle.mu.Lock()
	defer p.idle.mu.Unlock()
	if n := len(p.idle.pools); n > 0 {
		t := p.idle.pools[n-1]
		p.idle.pools = p.idle.pools[:n-1]
		return t
	}
	return newThreadPool(p.size)
}

// give takes a pool back whose run has ended.
func (p *pools) give(t *threadPool) {
	p.idle.mu.Lock()
	defer p.idle.mu.Unlock()
	if t.do = nil; len(p.idle.pools) < tuning.IdlePools {
		p.idle.pools = append(p.idle.pools, t)
	} else {
		t.close()
	}
}

func (i *idlePools) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, t := range i.pools {
		t.close()
	}
	i.pools = nil
}
