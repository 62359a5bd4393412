package proof

import "github.com/tally-network/tally/core/canon"

// Commitment fixes what a replica says before any other shows what it says. The receipt names
// order, unit, attempt and provider, so a copied commitment cannot be opened. The salt, which only
// the replica knows, keeps who guesses a result from finding it here. The inner states are
// on no receipt: who has copied a result does not have them.
func Commitment(receipt canon.Hash, inner []canon.Hash, salt canon.Hash) canon.Hash {
	return canon.Sum(canon.DomainCommit, receipt[:], salt[:], canon.Encode(func(e *canon.Encoder) {
		e.Uint(uint64(len(inner)))
		for _, h := range inner {
			e.Hash(h)
		}
	}))
}
