// Package beacon is the chance that everybody agrees on: a chain of values that nobody chooses,
// and the draws that follow from them.
//
// A [Calendar] says in which epoch a block is, and a [State] holds the last value and what
// closed epochs leave. The proposer of a block evaluates its VRF on [State.Input], and
// [State.Advance] takes the output. Call [Draw] with a value, for what is drawn by it.
//
// Invariants: a value binds all values before it. A draw follows from the value, its purpose
// and its subject alone. Who draws must see to it that the subject was fixed before anybody
// knew the value.
//
// Sources: RFC 9381 for the VRF; Algorand's seed (Gilad et al., SOSP 2017) for the chain of
// values; Fenwick 1994 for sums of weights.
package beacon

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/canon"
)

// lead is how many epochs before a draw for a whole epoch its value stands. The epoch between
// begins after the value is known, and what is drawn from was fixed before.
const lead = 2

// Calendar numbers epochs: Epoch begins at block Height, and each has Length blocks.
type Calendar struct {
	Epoch  uint64
	Height int64
	Length int64
}

// Check returns an error unless a calendar can be used.
func (c Calendar) Check() error {
	if c.Length < 1 || c.Height < 0 {
		return fmt.Errorf("an epoch of %d blocks from height %d: want at least one block, and no negative height", c.Length, c.Height)
	}
	return nil
}

// At returns the epoch of a block.
func (c Calendar) At(height int64) uint64 {
	return c.Epoch + uint64(max(height-c.Height, 0)/c.Length)
}

// Counts returns the first epoch in which a key counts that is registered in an epoch: its
// owner cannot know any value that it will be used on.
func Counts(registered uint64) uint64 { return registered + lead }

// Fold is what draws for whole epochs follow from, from an epoch on.
type Fold struct {
	From  uint64
	Value canon.Hash
}

// State is the beacon after a block.
type State struct {
	Value  canon.Hash
	Height int64  // of the block that gave the value
	Folds  []Fold // that are still needed, oldest first; at most 3
}

// maxFolds is how many folds are needed at once: that of the epoch of the last value, and of
// the two after it.
const maxFolds = 3

// Begin returns the beacon of a chain that has no value yet.
func Begin(chain string) State {
	v := canon.Sum(canon.DomainBeacon, canon.Encode(func(e *canon.Encoder) { e.String(chain) }))
	return State{Value: v, Folds: []Fold{{Value: v}}}
}

// Check returns an error unless a state may have come about.
func (s *State) Check() error {
	if s.Value.IsZero() || s.Height < 0 {
		return errors.New("the beacon has no value, or one of a negative height")
	}
	if len(s.Folds) < 1 || len(s.Folds) > maxFolds {
		return fmt.Errorf("the beacon has %d folds, want 1 to %d", len(s.Folds), maxFolds)
	}
	for i, f := range s.Folds {
		if f.Value.IsZero() || i > 0 && f.From <= s.Folds[i-1].From {
			return fmt.Errorf("fold %d of the beacon, from epoch %d, is empty or out of order", i, f.From)
		}
	}
	return nil
}

// Input is what the proposer of a block evaluates its VRF on.
func (s *State) Input(height int64) []byte {
	return canon.Encode(func(e *canon.Encoder) {
		e.String("beacon")
		e.Hash(s.Value)
		e.Int(height)
	})
}

// Advance takes the output of a proposer's VRF on the Input of a block. The last value of an
// epoch binds all of its values: it is the epoch's fold.
func (s *State) Advance(c Calendar, height int64, output []byte) error {
	if height <= s.Height {
		return fmt.Errorf("block %d has a value already; the last value is that of block %d", height, s.Height)
	}
	if before, now := c.At(s.Height), c.At(height); before < now {
		s.Folds = append(s.Folds, Fold{Counts(before), s.Value})
		s.Folds = s.Folds[s.at(now):]
	}
	s.Value, s.Height = canon.Sum(canon.DomainBeacon, canon.Encode(func(e *canon.Encoder) {
		e.Hash(s.Value)
		e.Int(height)
		e.Blob(output)
	})), height
	return nil
}

// Whole returns what draws for a whole epoch follow from, in a block of it: the fold of the epoch
// before last.
func (s *State) Whole(c Calendar, height int64) canon.Hash {
	epoch := c.At(height)
	if Counts(c.At(s.Height)) <= epoch && s.Height > 0 { // no value came since
		return s.Value
	}
	return s.Folds[s.at(epoch)].Value
}

// at returns the place of the newest fold that draws of an epoch follow from.
func (s *State) at(epoch uint64) int {
	i, _ := slices.BinarySearchFunc(s.Folds, epoch, func(f Fold, epoch uint64) int {
		if f.From <= epoch {
			return -1
		}
		return 1
	})
	return max(i-1, 0)
}
