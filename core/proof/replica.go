package proof

import (
	"slices"

	"github.com/tally-network/tally/core/canon"
)

// Replica is a provider's signed word on one level of a computation that several
// do independently: it was given Input and gave Output.
type Replica struct {
	Provider      string
	Input, Output canon.Hash
}

// Claim is what replicas that agree say of a level: what its program makes of an
// input. All who say it share one dispute.
type Claim struct {
	Level         int
	Input, Output canon.Hash
}

// Decided tells the outcome of the dispute about a claim: whether it is right,
// and whether that is known yet.
type Decided func(Claim) (right, known bool)

// Finding is what replicas come to.
type Finding struct {
	Accepted bool       // every level has one right output, by at least as many replicas as asked for
	Output   canon.Hash // of the last level that has one
	Levels   int        // how many have
	Open     []Claim    // to be disputed before anything more can be said
	Wrong    []string   // who has given a wrong output, in the order of levels and replicas
	Idle     []string   // whose input was not the level's: their work does not count, and is not held against them
}

// Compare settles a chain of levels of which each was computed by replicas, from
// the input of the first. Where all outputs of a level are equal, that is its
// output: wrong only if all replicas colluded. Where they differ, no majority
// counts. A replica is judged on the input that it was given: one that made the
// right thing of a wrong input is idle, never wrong.
//
// Source: DCI network, section on security levels; protocols of replication with
// a referee in place of a vote.
func Compare(input canon.Hash, levels [][]Replica, replicas int, decided Decided) Finding {
	f := Finding{Output: input, Accepted: true}
	for level, all := range levels {
		var claims []Claim
		count := 0
		for _, r := range all {
			c := Claim{level, r.Input, r.Output}
			switch {
			case r.Input != f.Output:
				f.Idle = append(f.Idle, r.Provider)
				continue
			case !slices.Contains(claims, c):
				claims = append(claims, c)
			}
			count++
		}
		right := claims
		if len(claims) > 1 {
			right = f.settle(all, claims, decided)
		}
		if len(right) != 1 || count < replicas {
			f.Accepted = false
			return f
		}
		f.Output = right[0].Output
		f.Levels++
	}
	return f
}

// settle tells which of several claims about one level is right, as far as that
// is known, and notes who made the others.
func (f *Finding) settle(all []Replica, claims []Claim, decided Decided) (right []Claim) {
	var wrong []Claim
	for _, c := range claims {
		ok, known := decided(c)
		switch {
		case !known:
			f.Open = append(f.Open, c)
		case ok:
			right = append(right, c)
		default:
			wrong = append(wrong, c)
		}
	}
	for _, r := range all {
		if slices.Contains(wrong, Claim{claims[0].Level, r.Input, r.Output}) {
			f.Wrong = append(f.Wrong, r.Provider)
		}
	}
	if len(f.Open) > 0 {
		return nil
	}
	return right
}
