package merkle

import (
	"runtime"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// hash is a canon.Hash in memory of bytes.
type hash = [canon.HashSize]byte

// batch collects messages of one domain and length, and hashes several at a time.
type batch struct {
	digests *asm.Digests
	n       int // how many wait
	bodies  [asm.DigestLanes][]byte
	dst     [asm.DigestLanes]*hash
	sums    [asm.DigestLanes]hash
	hashed  int // bytes since others had a chance to run
}

func newBatch(d canon.Domain, size int) *batch {
	return &batch{digests: asm.NewDigests(canon.Begin(nil, d), size)}
}

// add sees to it that dst becomes the hash of a body, by sum at the latest. Until then the body must not change;
// dst may lie in bodies that were added before.
func (b *batch) add(dst *hash, body []byte) {
	b.bodies[b.n], b.dst[b.n] = body, dst
	if b.n++; b.n < asm.DigestLanes {
		return
	}
	b.sum()
	if b.hashed += len(body) * asm.DigestLanes; b.hashed >= tuning.YieldBytes {
		b.hashed = 0
		runtime.Gosched() // to threads of a computation beside, which wait for one another all the time
	}
}

// sum hashes what waits.
func (b *batch) sum() {
	b.digests.Sum(&b.sums, b.bodies[:b.n])
	for i, to := range b.dst[:b.n] {
		*to = b.sums[i]
	}
	b.n = 0
}
