package dispute

import (
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/record"
)

// Claim is what a receipt or a merge asserts: that a program, run so many times from
// these inputs, gives these states. It holds all that the referee needs to know about the
// order, so a game does not depend on what becomes of the unit meanwhile.
//
// Each step reads the state that the last one gave. If the steps are Independent, each
// reads the inputs: then every step is a segment, and nothing is said of an end.
type Claim struct {
	Program     canon.Hash   // root of the program that each step runs
	Independent bool         // no step reads what another gave
	Inputs      []canon.Hash // state roots that the first step reads, one for each group; if independent, every step
	Data        canon.Hash   // tensor root of the training records, zero if none are read
	Batch       Batch        // which records each step reads
	Steps       int
	Interval    int        // steps between checkpoints
	Checkpoints canon.Hash // root over the states at 0, Interval, 2·Interval, …, Steps; zero for a single step
	End         canon.Hash // state root after the last step; not used if steps are independent

	Sequence *Sequence // a reply's claim, whose one step the game finds: all else is zero until then
}

// Batch says which records the steps of a claim read: those of one shard, from
// the given step of training on; or, if Straight, all records in their order.
type Batch struct {
	record.Order
	Shard, First int
	Straight     bool
}

// Row returns record number i of the batch that a step of the claim reads. Beyond the last
// record straight batches repeat it.
func (b *Batch) Row(step, i int) int64 {
	if b.Straight {
		return int64(min((b.First+step)*b.Order.Batch+i, b.Records-1))
	}
	return b.Order.Row(b.Shard, b.First+step, i)
}

// MaxSteps bounds the steps of a claim; MaxGroups the states that a step reads.
const (
	MaxSteps  = 1 << 30
	MaxGroups = 1 << 12
)

// Segments returns the number of segments of the claim.
func (c *Claim) Segments() int {
	if c.Interval < 1 {
		return 1
	}
	return (c.Steps + c.Interval - 1) / c.Interval
}

// Code walks the fields of c.
func (c *Claim) Code(w *canon.Codec) {
	w.Hash(&c.Program)
	w.Bool(&c.Independent)
	w.Hashes(&c.Inputs, MaxGroups)
	w.Hash(&c.Data)
	w.U64(&c.Batch.Seed)
	for _, p := range []*int{&c.Batch.Records, &c.Batch.Shards, &c.Batch.Order.Batch, &c.Batch.Shard, &c.Batch.First} {
		w.Int(p, 1<<40)
	}
	w.Bool(&c.Batch.Straight)
	w.Int(&c.Steps, MaxSteps)
	w.Int(&c.Interval, MaxSteps)
	w.Hash(&c.Checkpoints)
	w.Hash(&c.End)
	optional(w, &c.Sequence, func(w *canon.Codec, s *Sequence) { s.code(w) })
}
