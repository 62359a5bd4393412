package seats

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	abci "github.com/cometbft/cometbft/abci/types"
	cmted25519 "github.com/cometbft/cometbft/crypto/ed25519"
	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"
	cmttypes "github.com/cometbft/cometbft/types"

	"cosmossdk.io/collections"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/sortition"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
)

const (
	// maxTotal is CometBFT's limit on the votes of a validator set.
	maxTotal = math.MaxInt64 / 8

	// maxTurns bounds what finding a turn costs: turns that are played, times validators.
	maxTurns = 1 << 20
)

// scaled is a step towards a target, of which votes are parts of so many seats, as those of the step are if it has come there.
type scaled struct {
	to, target []sortition.Seat
	scale      uint64
}

func (s scaled) of() uint64 {
	if slices.Equal(s.to, s.target) {
		return s.scale
	}
	return 0
}

// seat makes a set the one that follows in the block after the next, and returns what CometBFT must change. A reason, if there
// is one, tells why it is not on the way to the draw.
func (k draws) seat(ctx context.Context, d *seatsv1.Draw, from []sortition.Seat, step scaled, reason string) (updates []abci.ValidatorUpdate, err error) {
	p, err := k.rules.Get(ctx)
	if err != nil {
		return nil, err
	}
	set, err := k.current(ctx)
	if err != nil {
		return nil, err
	}
	to := step.to
	var changes []*cmttypes.Validator
	change := func(account string, votes uint64) error {
		m, err := k.byName(ctx, account)
		if err != nil {
			return err
		}
		if !covered(&p, &m, set) { // whatever becomes of them: the next set's may be of another scale
			m.UncoveredMs = module.Now(ctx)
			if err := k.put(ctx, m); err != nil {
				return err
			}
		}
		if m.Votes == int64(votes) {
			return nil
		}
		m.Votes = int64(votes)
		changes = append(changes, cmttypes.NewValidator(cmted25519.PubKey(m.ConsensusKey), m.Votes))
		updates = append(updates, abci.Ed25519ValidatorUpdate(m.ConsensusKey, m.Votes))
		return k.put(ctx, m)
	}
	for i, j := 0, 0; i < len(from) || j < len(to); { // both ascend by member
		switch {
		case j == len(to) || i < len(from) && from[i].Member < to[j].Member:
			err = errors.Join(err, change(from[i].Member, 0))
			i++
		default:
			if i < len(from) && from[i].Member == to[j].Member {
				i++
			}
			err = errors.Join(err, change(to[j].Member, to[j].Votes))
			j++
		}
	}
	if err != nil {
		return nil, err
	}
	next, err := k.rotate(ctx, changes)
	if err != nil {
		return nil, err
	}
	next.Seats, next.Epoch, next.Weight, next.Missing, next.Scale = seatsToProto(to), d.Epoch, d.Weight, d.Missing, step.of()
	if reason != "" {
		err = module.Emit(ctx, &seatsv1.EventDrawAbandoned{Epoch: d.Epoch, Reason: reason})
	}
	return updates, errors.Join(err, k.sets.Set(ctx, next.Height, next), k.dropSets(ctx),
		module.Emit(ctx, &seatsv1.EventSeated{Epoch: d.Epoch, Seats: next.Seats, Weight: d.Weight, Missing: d.Missing}))
}

// rotation is who has votes, and whose turn it is to propose.
type rotation struct {
	sets collections.Map[int64, seatsv1.Set] // the newest, by the height from which they hold
}

// current returns the newest set. Its first block may be the one after the next.
func (k rotation) current(ctx context.Context) (set seatsv1.Set, err error) {
	err = k.sets.Walk(ctx, new(collections.Range[int64]).Descending(), func(_ int64, s seatsv1.Set) (bool, error) {
		set = s
		return true, nil
	})
	return set, err
}

// rotate returns the set that CometBFT makes of the newest one and of changes, at the height from which it holds.
func (k rotation) rotate(ctx context.Context, changes []*cmttypes.Validator) (seatsv1.Set, error) {
	set, err := k.current(ctx)
	if err != nil {
		return set, err
	}
	height := sdk.UnwrapSDKContext(ctx).BlockHeight() + 2
	comet, err := turned(&set, height-1, math.MaxInt64)
	if err != nil {
		return set, err
	}
	if err := comet.UpdateWithChangeSet(changes); err != nil {
		return set, err
	}
	comet.IncrementProposerPriority(1)
	rotation, err := encode(comet)
	return seatsv1.Set{Height: height, Rotation: rotation}, err
}

// wind plays the turns of the newest set up to now, so that no later block has those of many epochs to play.
func (k rotation) wind(ctx context.Context) error {
	set, err := k.current(ctx)
	if err != nil || set.Height > sdk.UnwrapSDKContext(ctx).BlockHeight()+1 {
		return err
	}
	next, err := k.rotate(ctx, nil)
	if err != nil {
		return err
	}
	set.Height, set.Rotation = next.Height, next.Rotation
	return errors.Join(k.sets.Set(ctx, set.Height, set), k.dropSets(ctx))
}

// dropSets removes sets of which no turn is asked for any more: of the block before this one some are.
func (k rotation) dropSets(ctx context.Context) error {
	var heights []int64
	err := k.sets.Walk(ctx, nil, func(h int64, _ seatsv1.Set) (bool, error) {
		heights = append(heights, h)
		return false, nil
	})
	for i := range len(heights) - 1 {
		if heights[i+1] < sdk.UnwrapSDKContext(ctx).BlockHeight() {
			err = errors.Join(err, k.sets.Remove(ctx, heights[i]))
		}
	}
	return err
}

// Turns returns who proposes in the first n rounds of a block, as CometBFT's rotation has it. There is none if the
// turns before are too many to play.
func (k *Keeper) Turns(ctx context.Context, height int64, n int) (out []sdk.AccAddress, err error) {
	var set seatsv1.Set
	upTo := new(collections.Range[int64]).EndInclusive(height).Descending()
	err = k.sets.Walk(ctx, upTo, func(_ int64, s seatsv1.Set) (bool, error) {
		set = s
		return true, nil
	})
	if err != nil || set.Height == 0 {
		return nil, err
	}
	comet, err := turned(&set, height, maxTurns)
	if err != nil || comet == nil {
		return nil, err
	}
	for range n {
		account, err := k.Account(ctx, comet.GetProposer().Address)
		if err != nil {
			return nil, err
		}
		out = append(out, account)
		comet.IncrementProposerPriority(1)
	}
	return out, nil
}

// turned returns a set as CometBFT has it at a height, nil if too many turns lie between. The first set of a chain
// repeats itself after as many turns as there are votes, divided by what all have in common.
func turned(set *seatsv1.Set, height, most int64) (*cmttypes.ValidatorSet, error) {
	comet, err := decode(set.Rotation)
	if err != nil {
		return nil, err
	}
	turns := height - set.Height
	if set.Epoch == 0 {
		common := int64(0)
		for _, s := range set.Seats {
			common = gcd(int64(s.Votes), common)
		}
		turns %= comet.TotalVotingPower() / max(common, 1)
	}
	if turns < 0 || turns > most/int64(len(comet.Validators)) {
		return nil, nil
	}
	for range turns { // one by one: at each height CometBFT may even priorities out
		comet.IncrementProposerPriority(1)
	}
	return comet, nil
}

// byName returns the member of an account that is written as text.
func (k *Keeper) byName(ctx context.Context, account string) (seatsv1.Member, error) {
	a, err := address.Parse(account)
	if err != nil {
		return seatsv1.Member{}, err
	}
	return k.Get(ctx, a)
}

func encode(set *cmttypes.ValidatorSet) ([]byte, error) {
	p, err := set.ToProto()
	if err != nil {
		return nil, err
	}
	return p.Marshal()
}

func decode(rotation []byte) (*cmttypes.ValidatorSet, error) {
	p := &cmtproto.ValidatorSet{}
	if err := p.Unmarshal(rotation); err != nil {
		return nil, fmt.Errorf("read the rotation of a set: %w", err)
	}
	return cmttypes.ValidatorSetFromProto(p)
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
