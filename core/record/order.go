package record

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/tally-network/tally/core/canon"
)

// Order says in which order training reads records: the records are cut into
// shards of contiguous runs, and each epoch of a shard is a permutation of its
// records, keyed by seed, shard and epoch. It depends on nothing else.
type Order struct {
	Seed            uint64
	Records, Shards int
	Batch           int // records a step reads
}

// Check returns an error unless every shard has a record.
func (o Order) Check() error {
	if o.Shards < 1 || o.Batch < 1 || o.Records < o.Shards {
		return fmt.Errorf("batches of %d from %d records in %d shards", o.Batch, o.Records, o.Shards)
	}
	return nil
}

// Range returns the records of a shard: the first, and how many.
func (o Order) Range(shard int) (first, n int) {
	first = o.Records * shard / o.Shards
	return first, o.Records*(shard+1)/o.Shards - first
}

// Row returns the record that sample i of a step of a shard reads. Steps count
// from the beginning of training; the cost is the same for any of them.
func (o Order) Row(shard, step, i int) int64 {
	first, n := o.Range(shard)
	position := step*o.Batch + i
	key := canon.Sum(canon.DomainBatch, canon.Encode(func(e *canon.Encoder) {
		e.Uint(o.Seed)
		e.Uint(uint64(shard))
		e.Uint(uint64(position / n))
	}))
	return int64(first + permute(key, n, position%n))
}

// Rows returns the records of a whole batch.
func (o Order) Rows(shard, step int) []int64 {
	out := make([]int64, o.Batch)
	for i := range out {
		out[i] = o.Row(shard, step, i)
	}
	return out
}

const feistelRounds = 6

// permute maps x to its image under the permutation of 0…n−1 that key selects:
// a balanced Feistel network over the next even number of bits, walked until it
// lands below n (at most four times on average).
func permute(key canon.Hash, n, x int) int {
	half := max(1, (bits.Len(uint(n-1))+1)/2)
	mask := uint64(1)<<half - 1
	for {
		l, r := uint64(x)>>half, uint64(x)&mask
		for round := range feistelRounds {
			var b [9]byte
			b[0] = byte(round)
			binary.LittleEndian.PutUint64(b[1:], r)
			f := canon.Sum(canon.DomainBatch, key[:], b[:])
			l, r = r, l^binary.LittleEndian.Uint64(f[:8])&mask
		}
		if x = int(l<<half | r); x < n {
			return x
		}
	}
}
