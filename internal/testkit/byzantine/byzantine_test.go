package byzantine

import (
	"fmt"
	"os"
	"slices"
	"testing"

	cmted25519 "github.com/cometbft/cometbft/crypto/ed25519"
	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// A third of the power cheats in every way at once, and nobody honest loses. make byzantine plays a hundred thousand accounts.
func TestAThirdCheats(t *testing.T) {
	s := Small
	if os.Getenv("TALLY_BYZANTINE") != "" {
		s = Whole
	}
	w := Begin(t, s)
	w.Play()
	t.Logf("\n%s", w.Report())
}

// Validators of equal votes have their turns one after another, so those of a third of the votes may come in a row. Its blocks can leave
// out the same votes each time: in less than half of the blocks of an epoch that has six for each of its members.
func TestTurnsOfAThirdInAnEpoch(t *testing.T) {
	for _, n := range []int{1, 2, 11, 33, 50} {
		var all []*cmttypes.Validator
		theirs := map[string]bool{}
		for i := range 2 * n { // honest members have as many votes together, and one more
			key := chaintest.Named(fmt.Sprint("h", i)).PeerKey()
			all = append(all, cmttypes.NewValidator(cmted25519.PubKey(key), 1_001))
		}
		for i := range n {
			v := cmttypes.NewValidator(cmted25519.PubKey(chaintest.Named(fmt.Sprint("a", i)).PeerKey()), 1_000)
			all, theirs[string(v.Address)] = append(all, v), true
		}
		set := cmttypes.NewValidatorSet(all)
		var turns []bool
		for range 60 * n {
			turns = append(turns, theirs[string(set.GetProposer().Address)])
			set.IncrementProposerPriority(1)
		}
		for from := range len(turns) - 6*n {
			got := 0
			for _, its := range turns[from : from+6*n] {
				if its {
					got++
				}
			}
			if got > 3*n {
				t.Errorf("%d members: %d of %d turns from %d on", n, got, 6*n, from)
			}
		}
		if n > 2 && !slices.Contains(runs(turns), n) {
			t.Errorf("%d members: no %d turns in a row: %v", n, n, runs(turns))
		}
	}
}

// runs returns how often the same comes in a row.
func runs(turns []bool) (out []int) {
	for i, its := range turns {
		switch {
		case !its:
		case i == 0 || !turns[i-1]:
			out = append(out, 1)
		default:
			out[len(out)-1]++
		}
	}
	return out
}
