package seats_test

import (
	"fmt"
	"testing"

	cmted25519 "github.com/cometbft/cometbft/crypto/ed25519"
	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/tally-network/tally/chain/x/seats"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// BenchmarkTurns plays ten thousand turns of a hundred members, of which finding one plays at most as many.
func BenchmarkTurns(b *testing.B) {
	var all []*cmttypes.Validator
	for i := range 100 {
		all = append(all, cmttypes.NewValidator(cmted25519.PubKey(chaintest.Named(fmt.Sprint("v", i)).PeerKey()), int64(i*i+1)))
	}
	set := cmttypes.NewValidatorSet(all)
	for b.Loop() {
		if _, err := seats.Turned(set, 10_000, seats.Forever); err != nil {
			b.Fatal(err)
		}
	}
}
