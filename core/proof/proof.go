// Package proof holds what makes a claim of training checkable: commitments to
// checkpoints before anybody knows what will be audited, draws that nobody can
// foresee or choose, and the digest by which an auditor shows that it computed.
//
// Proof of learning here is exact: a segment re-executed from its agreed start
// either ends in the committed root or the claim is false. So thresholds and
// distances play no part; data, batch order, hyperparameters and checkpoint
// interval are fixed by the order before the work, which removes what the known
// attacks choose freely.
//
// [Segments] draws what an auditor executes again, [Digest] is its answer, and [Compare] settles
// what replicas disagree about.
//
// Invariants: a draw follows from its seed or VRF output alone, and from nothing that who is
// drawn could choose. An answer binds the auditor's name, so nobody can copy another's.
//
// Sources: Jia et al., Proof-of-Learning (arXiv 2103.05633); Zhang et al. 2022
// and Fang et al. 2023 for the attacks; DKLabs.AI §10.5.
package proof

import (
	"github.com/tally-network/tally/core/beacon"
	"github.com/tally-network/tally/core/canon"
)

// Checkpoints returns the steps at which a unit of the given length commits to
// its state: 0, interval, 2·interval, …, steps.
func Checkpoints(steps, interval int) []int {
	var out []int
	for s := 0; s < steps; s += interval {
		out = append(out, s)
	}
	return append(out, steps)
}

// AuditInput is what an auditor's VRF is evaluated on: the committed receipt.
// Nobody can know the output before the receipt is fixed, and only the auditor
// can before it publishes the proof.
func AuditInput(receipt canon.Hash, auditor string) []byte {
	return canon.Encode(func(e *canon.Encoder) {
		e.String("audit")
		e.Hash(receipt)
		e.String(auditor)
	})
}

// Segments returns the segments that an auditor with this VRF output must
// re-execute.
func Segments(output []byte, segments, audited int) []int {
	return beacon.Lots(output).Pick(segments, audited)
}

// Outcome is what re-executing a segment gives: the state before its last step,
// which no receipt holds, and the one that it leads to. Who has the first has done
// all steps but one. A segment of one step has nothing between two checkpoints:
// before it is the one that it begins with.
type Outcome struct{ Before, End canon.Hash }

// Code walks the fields of o.
func (o *Outcome) Code(w *canon.Codec) {
	w.Hash(&o.Before)
	w.Hash(&o.End)
}

// Digest is an auditor's answer: it binds what its segments gave, as it computed
// them, to its name, so that it cannot be copied. Nobody can know that but who
// computes: it tells who did, once the same is shown of a forced attempt, and to
// everybody who executes the segments again.
func Digest(auditor string, receipt canon.Hash, outcomes []Outcome) canon.Hash {
	return canon.Sum(canon.DomainAudit, canon.Encode(func(e *canon.Encoder) {
		e.String(auditor)
		e.Hash(receipt)
		e.Uint(uint64(len(outcomes)))
		for _, o := range outcomes {
			e.Hash(o.Before)
			e.Hash(o.End)
		}
	}))
}
