package cpu

import (
	"runtime"
	"sync"
	"weak"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/merkle"
)

// rootCache remembers the roots of constants, by which packed weights are found, for as long as somebody has them: a model is
// planned anew for each length of a sequence, and its weights are the same tensors.
type rootCache struct {
	mu sync.Mutex
	of map[weak.Pointer[tensor.Tensor]]canon.Hash
}

// root returns the root of a constant, which does not change any more.
func (c *rootCache) root(x *tensor.Tensor, threads int) canon.Hash {
	at := weak.Make(x)
	c.mu.Lock()
	h, ok := c.of[at]
	c.mu.Unlock()
	if ok {
		return h
	}
	h = merkle.Root(x, threads)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[weak.Pointer[tensor.Tensor]]canon.Hash{}
	}
	if _, ok := c.of[at]; !ok {
		c.of[at] = h
		runtime.AddCleanup(x, c.forget, at)
	}
	return h
}

func (c *rootCache) forget(at weak.Pointer[tensor.Tensor]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.of, at)
}

// known is that of the process.
var known rootCache
