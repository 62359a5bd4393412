// Package probe measures how fast a provider is, by work that it cannot have prepared.
//
// A provider opens a probe. A seed follows from the value of a later block. The provider orders from itself the batch that
// belongs to the seed, and computes it. Once that order is settled, it has shown how much it computed between the seed and
// the last of its receipts.
//
// The batch is the same for everybody but for its records, [Records]. A run applies [Model] to one of them. The chain knows
// the programs by their roots, one for each number of runs. Call [Seed], then [ForSeed] of its order, then [Computed] of its
// lease, then [Speed].
//
// Invariants: what is measured depends on nothing that is known before the seed. All time from the seed on counts. So a
// speed is never above the machine's, and waiting makes it less.
//
// Source: Distribute.AI §3 ("probes"), and docs/spec/market.md, which says where we deviate.
package probe

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/match"
	"github.com/tally-network/tally/core/tensor"
)

// A record is four numbers of 24 bits, in the model's only input.
const (
	Input   = "record"
	Numbers = 4
)

// LeastMs is the time over which work is spread at least, in ms. A block comes about every second, so less would measure blocks.
const LeastMs = 60_000

// StandsMs is for how long what was shown counts, in ms: a month.
const StandsMs = 30 * 24 * 3_600_000

// MostRuns bounds the runs of a probe. Fewest is the number of runs of the smallest.
const (
	Fewest   = 1 << 4
	MostRuns = 1 << 16
)

// RunFLOPs and runBytes are what a run computes, in FLOP, and moves, in bytes: it counts as moving all records, though it
// reads one. recordBytes and resultBytes are the sizes of a record and of a result.
const (
	RunFLOPs    = 68_790_796_296
	runBytes    = 1_111_540_224
	recordBytes = 4 * Numbers
	resultBytes = 266
)

// programs are the roots of the model's program for 2⁴, 2⁵ … 2¹⁶ runs: these are part of it.
var programs = [...]string{
	"e38e0bf10623e4285ad7da3dfab773838fafc5afc28dfa4628fd467cde33cf22",
	"2d0326f10189af47b2512c3f4dc26e583cec4f5228c63e42c38e092426e47265",
	"326be20b1021f53b18e7ce207fe4f1a639ad130a879d1062c72dc5105fa71c0b",
	"186430fc061137a389d7d6bd9b59988139a81ab7c6f2bbca65eb052dc6c57d8f",
	"a4c30174cafa6342d60cae04be54daa13a9611a33a354672f8bea7f4d4a8be08",
	"d084ce93a382a1f22345715ddc0e49c5b6c242b34f1802a50cb2af8e241a3598",
	"5bf9e2fddd241222179519041385326a1cb34d512da735b5b47c017b4b539ce5",
	"28b2053c31edbf04c4a14c4e5fe94aa51eef60b34cf7d37d52be55ce7c83a526",
	"42a7bba7c71e96126ecbbb1d1995621f550682324685cff1a10d107f7fdb4235",
	"c069f605f0f797bc3543df24d526467a33c8cafbef21148b0f349bb8e20e8901",
	"1c8a78be3f943ec3c8e2f1a74e69f26fe62a1f14eb980f11dd51fbd9799f88ec",
	"de38957334e15abfff3ebb0d424b4e360fe622325200d099fbc54a56998735d4",
	"0bcd443ffbf63bccca08d0d3136dd38d0af92082d226ca3bb6ee581cbc8f2ad6",
}

// Seed returns the seed of an account's probe, by the beacon's value.
func Seed(value canon.Hash, account string) canon.Hash {
	return canon.Sum(canon.DomainProbe, value[:], []byte(account))
}

// Records returns the records of so many runs: a tensor [runs, 4] of int32, from −2²³ to 2²³−1.
func Records(seed canon.Hash, runs int) *graph.State {
	v := make([]int32, 0, runs*Numbers)
	for i := range (runs*Numbers + 7) / 8 {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(i))
		h := canon.Sum(canon.DomainProbe, seed[:], n[:])
		for j := range min(8, cap(v)-len(v)) {
			v = append(v, int32(binary.LittleEndian.Uint32(h[4*j:]))>>8)
		}
	}
	t := tensor.Must(tensor.From(tensor.Shape{runs, Numbers}, v))
	return &graph.State{Slots: []graph.Slot{{Name: Input, Type: t.Type, Shape: t.Shape}}, Tensors: []*tensor.Tensor{t}}
}

// Runs returns the least power of two of runs that takes ms at speed (FLOP/s). ms counts up to ten minutes; the result is
// within Fewest and MostRuns.
func Runs(speed, ms uint64) int {
	want := speed / 1000 * min(ms, 10*LeastMs) / RunFLOPs
	runs := Fewest
	for uint64(runs) < want && runs < MostRuns {
		runs *= 2
	}
	return runs
}

// Problem returns what the probe of a seed computes, in units of so many runs each. The runs are a power of two from Fewest
// to MostRuns; its time grows with them.
func Problem(seed canon.Hash, runs, steps int) (job.Problem, error) {
	i := bits.Len(uint(runs)) - bits.Len(uint(Fewest))
	if i < 0 || i >= len(programs) || runs != Fewest<<i || steps < 1 || runs%steps != 0 {
		return job.Problem{}, fmt.Errorf("a probe of %d runs in units of %d: want a power of two from %d to %d, and equal units", runs, steps, Fewest, MostRuns)
	}
	step, err := canon.ParseHash(programs[i])
	if err != nil {
		return job.Problem{}, err
	}
	start, err := Records(seed, runs).Root()
	return job.Problem{
		Kind: job.Batch, Profile: lower.FP32.String(), Step: step, Start: start, Rounds: 1, Shards: runs / steps, Steps: steps, Interval: 1,
		Batch: 1, Records: runs, StateBytes: resultBytes, StepFLOPs: RunFLOPs, StepBytes: runBytes + recordBytes*uint64(runs),
	}, err
}

// IsProbe reports whether a problem has the program of a probe, whatever its records are.
func IsProbe(p *job.Problem) bool { return slices.Contains(programs[:], p.Step.String()) }

// ForSeed reports whether an order is the probe of a seed. An auditor must look at a sixteenth of each unit at least: nobody else is
// hurt if its results are wrong. Its time grows with the runs.
func ForSeed(o *job.Order, seed canon.Hash) bool {
	if c := &o.Conditions; !IsProbe(&o.Problem) || c.Auditors == 0 || c.AuditFloor > 0 || c.AuditSegments < Audited(o.Problem.Steps) {
		return false
	}
	if o.Problem.Shards*o.Problem.Steps != o.Problem.Records { // that many records have been paid for, before they are made here
		return false
	}
	same, err := *o, error(nil)
	same.Problem, err = Problem(seed, o.Problem.Records, o.Problem.Steps)
	same.Problem.Files = o.Problem.Files
	return err == nil && same.ID() == o.ID()
}

// Audited returns how many runs of a unit of so many an auditor executes again at least.
func Audited(steps int) int { return (steps + 15) / 16 }

// Computed returns what a provider computed in the first attempts of a lease of one round, in FLOP, and the protocol time of
// its last receipt, in ms. Units that others computed as well do not count.
func Computed(l *job.Lease, provider string) (flops uint64, last int64) {
	for i := range l.Units {
		u := &l.Units[i]
		if u.Status == job.Accepted && u.Attempt == 0 && len(u.Replicas) == 0 && !u.Differed && u.Provider == provider {
			flops += min(l.Order.Problem.UnitFLOPs(), math.MaxUint64-flops)
			last = max(last, l.StartedAt+u.Took)
		}
	}
	return flops, last
}

// Speed returns how fast a machine is that has computed so many FLOP in so many ms from the seed on, in FLOP/s, rounded down.
func Speed(flops, ms uint64) uint64 { return match.SpeedOf(flops, max(ms, LeastMs)) }
