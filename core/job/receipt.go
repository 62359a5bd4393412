package job

import (
	"crypto/ed25519"
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/canon"
)

// Acceptance is a provider's signed word that it takes a unit: without it a
// lead could reserve the bond of providers that never agreed.
type Acceptance struct {
	Order    canon.Hash
	Unit     int
	Attempt  int
	Provider string
}

// Receipt is a provider's claim to have computed a unit.
type Receipt struct {
	Order       canon.Hash
	Unit        int
	Attempt     int
	Provider    string
	Start       canon.Hash
	Checkpoints []canon.Hash // state roots at 0, Interval, …, Steps
	FLOPs       uint64
	Data        File // the checkpoints' states
}

// OnlyEnd reports whether in place of the checkpoints only the end is known here (Problem.End).
func (r *Receipt) OnlyEnd() bool { return len(r.Checkpoints) == 1 }

// IndexOf returns the index of a checkpoint with a root, of a receipt of so many segments:
// the first, or the last where no other is known here; −1 if there is none.
func (r *Receipt) IndexOf(root canon.Hash, segments int) int {
	i := slices.Index(r.Checkpoints, root)
	if r.OnlyEnd() && i == 0 {
		return segments
	}
	return i
}

// ID returns the identity of the receipt, which audits are drawn from.
func (r *Receipt) ID() canon.Hash { return canon.Sum(canon.DomainReceipt, canon.Marshal(r)) }

// SignBytes returns what the peer key signs.
func (r *Receipt) SignBytes() []byte {
	id := r.ID()
	return id[:]
}

// SignBytes returns what the peer key signs.
func (a *Acceptance) SignBytes() []byte {
	h := canon.Sum(canon.DomainAccept, canon.Marshal(a))
	return h[:]
}

// verify checks an ed25519 signature by a registered peer key.
func verify(what string, key, message, sig []byte) error {
	if len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, message, sig) {
		return fmt.Errorf("%s is not signed by the provider's peer key", what)
	}
	return nil
}

// Code walks the fields of a.
func (a *Acceptance) Code(w *canon.Codec) {
	w.Hash(&a.Order)
	w.Int(&a.Unit, MaxUnits)
	w.Int(&a.Attempt, maxAttempt)
	w.String(&a.Provider, maxAccount)
}

// Code walks the fields of r.
func (r *Receipt) Code(w *canon.Codec) {
	w.Hash(&r.Order)
	w.Int(&r.Unit, MaxUnits)
	w.Int(&r.Attempt, maxAttempt)
	w.String(&r.Provider, maxAccount)
	w.Hash(&r.Start)
	w.Hashes(&r.Checkpoints, MaxSegments+1)
	w.U64(&r.FLOPs)
	r.Data.Code(w)
}
