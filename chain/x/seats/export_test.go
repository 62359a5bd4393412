package seats

import (
	"math"

	cmttypes "github.com/cometbft/cometbft/types"

	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
)

// Turned returns what a set that a draw has made becomes after some heights, and nil if these are more than most
// allows.
func Turned(set *cmttypes.ValidatorSet, heights, most int64) (*cmttypes.ValidatorSet, error) {
	rotation, err := encode(set)
	if err != nil {
		return nil, err
	}
	return turned(&seatsv1.Set{Height: 1, Epoch: 1, Rotation: rotation}, 1+heights, most)
}

// Forever is as many turns as may be.
const Forever = math.MaxInt64

// MayReplace tells what a vote may set.
var MayReplace = mayReplace
