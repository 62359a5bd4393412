package byzantine

import (
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"
	cmted25519 "github.com/cometbft/cometbft/crypto/ed25519"
	"github.com/cometbft/cometbft/evidence"
	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"
	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// mostRounds is how many turns may pass in a block.
const mostRounds = 8

// comet is CometBFT without its network: its sets, its turns, its votes, and its check of evidence.
type comet struct {
	t          testing.TB
	behaviours map[string]behaviour // by consensus address
	censored   map[string]bool      // consensus addresses of those whose votes are left out

	sets  []*cmttypes.ValidatorSet // by height; those of the next two heights are known
	times map[int64]time.Time
	told  []abci.Misbehavior // that the next block tells of

	round, failed int32 // in which the next block is decided, and the one before was
	epoch         func(height int64) uint64
	look          func(chaintest.Block)
	left          int // votes that the next block leaves out
	passed, out   int // turns that were let pass, and votes that were left out, in all
}

// behaviour is what a validator of the adversary's does in consensus, beside what all of them do: they let every second turn pass, and
// leave votes that they have seen out of their blocks.
type behaviour struct {
	absent func(epoch uint64) bool // it does not sign
}

// follow begins with the set that a chain has after its first block.
func follow(t testing.TB, c *chaintest.Chain, first []*cmttypes.Validator) *comet {
	genesis := cmttypes.NewValidatorSet(first)
	second := genesis.CopyIncrementProposerPriority(1)
	x := &comet{
		t: t, behaviours: map[string]behaviour{}, censored: map[string]bool{}, times: map[int64]time.Time{c.Height(): c.Now()},
		sets: []*cmttypes.ValidatorSet{nil, genesis, second, second.CopyIncrementProposerPriority(1)},
	}
	c.Comet = x
	return x
}

// Before implements chaintest.Comet.
func (x *comet) Before(c *chaintest.Chain) {
	next := c.Height() + 1
	turns := x.sets[next].Copy()
	for x.round = 0; x.round < mostRounds && x.letsPass(turns.GetProposer().Address, next); x.round++ {
		turns.IncrementProposerPriority(1)
	}
	proposer := turns.GetProposer().Address
	c.ProposedBy(proposer)
	c.Failed, c.Misbehavior = x.failed, x.told
	c.Signed = x.votes(next-1, proposer)
}

// letsPass reports whether a validator lets its turn pass. With its key it would look at the value; a hash decides as well.
func (x *comet) letsPass(consensus []byte, height int64) bool {
	h := sha256.Sum256(fmt.Appendf(nil, "%x %d", consensus, height))
	_, theirs := x.behaviours[string(consensus)]
	return theirs && h[0]%2 == 0
}

// votes returns how the set of a block has signed it, as the next proposer has it. Without two thirds there would be no next block.
func (x *comet) votes(height int64, proposer []byte) (out []abci.VoteInfo) {
	set := x.sets[height]
	missing := int64(0)
	for _, v := range set.Validators {
		flag := cmtproto.BlockIDFlagCommit
		if absent := x.behaviours[string(v.Address)].absent; absent != nil && absent(x.epoch(height)) {
			flag = cmtproto.BlockIDFlagAbsent
			missing += v.VotingPower
		}
		out = append(out, abci.VoteInfo{Validator: abci.Validator{Address: v.Address, Power: v.VotingPower}, BlockIdFlag: flag})
	}
	if 3*missing >= set.TotalVotingPower() {
		x.t.Fatalf("height %d: the chain halts: %d of %d votes are missing", height, missing, set.TotalVotingPower())
	}
	_, theirs := x.behaviours[string(proposer)]
	x.left = 0
	for i, v := range out {
		if theirs && x.censored[string(v.Validator.Address)] && 3*(missing+v.Validator.Power) < set.TotalVotingPower() {
			out[i].BlockIdFlag = cmtproto.BlockIDFlagAbsent
			missing += v.Validator.Power
			x.left++
		}
	}
	return out
}

// After implements chaintest.Comet: what a block has changed acts two heights later.
func (x *comet) After(b chaintest.Block) {
	changes, err := cmttypes.PB2TM.ValidatorUpdates(b.ValidatorUpdates)
	if err != nil {
		x.t.Fatalf("height %d: %v", b.Height, err)
	}
	next := x.sets[len(x.sets)-1].Copy()
	if err := next.UpdateWithChangeSet(changes); err != nil {
		x.t.Fatalf("height %d: CometBFT would stop: %v", b.Height, err)
	}
	next.IncrementProposerPriority(1)
	x.sets, x.times[b.Height] = append(x.sets, next), b.Time
	x.failed, x.told = x.round, nil
	x.passed, x.out = x.passed+int(x.round), x.out+x.left
	if x.look != nil {
		x.look(b)
	}
}

// ballot is a vote for a block, signed by some key in the name of a validator.
func ballot(by ed25519.PrivateKey, of []byte, height int64, block string) *cmttypes.Vote {
	h := sha256.Sum256([]byte(block))
	v := &cmttypes.Vote{
		Type: cmtproto.PrecommitType, Height: height, ValidatorAddress: of, ValidatorIndex: 0,
		BlockID: cmttypes.BlockID{Hash: h[:], PartSetHeader: cmttypes.PartSetHeader{Total: 1, Hash: h[:]}},
	}
	v.Signature = ed25519.Sign(by, cmttypes.VoteSignBytes(chaintest.ChainID, v.ToProto()))
	return v
}

// report gives CometBFT two votes as evidence, which the next block tells of if they prove that their validator has signed twice.
func (x *comet) report(a, b *cmttypes.Vote) error {
	if a.Height < 1 || a.Height >= int64(len(x.sets)) {
		return errors.New("no such height")
	}
	set := x.sets[a.Height]
	e, err := cmttypes.NewDuplicateVoteEvidence(a, b, x.times[a.Height], set)
	if err == nil {
		err = e.ValidateBasic()
	}
	if err == nil {
		err = evidence.VerifyDuplicateVote(e, chaintest.ChainID, set)
	}
	if err == nil {
		x.told = append(x.told, e.ABCI()...)
	}
	return err
}

// consensus returns the address of a consensus key.
func consensus(key ed25519.PrivateKey) []byte {
	return cmted25519.PubKey(key.Public().(ed25519.PublicKey)).Address()
}
