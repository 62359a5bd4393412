// Package headers invents chains of which nothing but the signed headers are made, for tests of
// what follows a chain by them.
//
// Call [New], and [Chain.Block] for the block at a height. Blocks are made when they are asked for.
package headers

import (
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/cometbft/cometbft/crypto/ed25519"
	"github.com/cometbft/cometbft/crypto/tmhash"
	cmtbytes "github.com/cometbft/cometbft/libs/bytes"
	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"
	cmtversion "github.com/cometbft/cometbft/proto/tendermint/version"
	cmttypes "github.com/cometbft/cometbft/types"
	"github.com/cometbft/cometbft/version"
)

// Chain is a chain whose validators change with each epoch: those who have been there longest leave,
// and as many new ones come. All have one vote.
type Chain struct {
	ID      string
	Members int           // validators of a set
	Leave   int           // of them with each epoch
	Blocks  int64         // of an epoch
	Epoch   time.Duration // of an epoch
	Begin   time.Time     // of block 0
	State   []byte        // that all headers commit to: 32 bytes
	// Forged is the height from which on another set signs: that of the epoch Colluders, with a history of its own.
	Forged    int64
	Colluders int64

	mu   *sync.Mutex // guards sets and keys, which copies share: many ask at once
	sets map[int64]*cmttypes.ValidatorSet
	keys map[string]ed25519.PrivKey
}

// New returns a chain of epochs of ten minutes and 100 blocks, which began at a time.
func New(id string, members, leave int, begin time.Time) *Chain {
	return &Chain{
		ID: id, Members: members, Leave: leave, Blocks: 100, Epoch: 10 * time.Minute, Begin: begin.UTC(), State: make([]byte, 32),
		mu: &sync.Mutex{}, sets: map[int64]*cmttypes.ValidatorSet{}, keys: map[string]ed25519.PrivKey{},
	}
}

// Time returns when a block is made.
func (c *Chain) Time(height int64) time.Time {
	return c.Begin.Add(time.Duration(height) * (c.Epoch / time.Duration(c.Blocks)))
}

// Set returns the validators that sign the block at a height.
func (c *Chain) Set(height int64) *cmttypes.ValidatorSet {
	epoch := height / c.Blocks
	if c.Forged > 0 && height >= c.Forged {
		epoch = c.Colluders
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.sets[epoch]; s != nil {
		return s
	}
	var all []*cmttypes.Validator
	for i := range c.Members {
		key := ed25519.GenPrivKeyFromSecret(fmt.Appendf(nil, "%s %d", c.ID, epoch*int64(c.Leave)+int64(i)))
		c.keys[string(key.PubKey().Address())] = key
		all = append(all, cmttypes.NewValidator(key.PubKey(), 1))
	}
	s := cmttypes.NewValidatorSet(all)
	c.sets[epoch] = s
	return s
}

// Block returns the block at a height, signed by all of its validators. It names none that it follows.
func (c *Chain) Block(height int64) *cmttypes.LightBlock {
	some := some(height)
	return c.after(cmttypes.BlockID{Hash: some, PartSetHeader: cmttypes.PartSetHeader{Total: 1, Hash: some}}, some, height)
}

// History returns the blocks from one height to another, in order. Each names the one that it follows, and its commit.
func (c *Chain) History(from, to int64) []*cmttypes.LightBlock {
	all := []*cmttypes.LightBlock{c.Block(from)}
	for h := from + 1; h <= to; h++ {
		last := all[len(all)-1].Commit
		all = append(all, c.after(last.BlockID, last.Hash(), h))
	}
	return all
}

func some(height int64) cmtbytes.HexBytes {
	return tmhash.Sum(binary.BigEndian.AppendUint64(nil, uint64(height)))
}

func (c *Chain) after(last cmttypes.BlockID, lastCommit cmtbytes.HexBytes, height int64) *cmttypes.LightBlock {
	set, next, some := c.Set(height), c.Set(height+1), some(height)
	parts := cmttypes.PartSetHeader{Total: 1, Hash: some}
	h := &cmttypes.Header{
		Version: cmtversion.Consensus{Block: version.BlockProtocol}, ChainID: c.ID, Height: height, Time: c.Time(height),
		LastBlockID: last, LastCommitHash: lastCommit, DataHash: some, ConsensusHash: some,
		ValidatorsHash: set.Hash(), NextValidatorsHash: next.Hash(), AppHash: c.State, LastResultsHash: some, EvidenceHash: some,
		ProposerAddress: set.Validators[0].Address,
	}
	id := cmttypes.BlockID{Hash: h.Hash(), PartSetHeader: parts}
	commit := &cmttypes.Commit{Height: height, BlockID: id}
	for i, v := range set.Validators {
		vote := &cmttypes.Vote{
			Type: cmtproto.PrecommitType, Height: height, BlockID: id, Timestamp: h.Time.Add(time.Second),
			ValidatorAddress: v.Address, ValidatorIndex: int32(i),
		}
		c.mu.Lock()
		key := c.keys[string(v.Address)]
		c.mu.Unlock()
		sig, err := key.Sign(cmttypes.VoteSignBytes(c.ID, vote.ToProto()))
		if err != nil {
			panic(err)
		}
		commit.Signatures = append(commit.Signatures, cmttypes.CommitSig{
			BlockIDFlag: cmttypes.BlockIDFlagCommit, ValidatorAddress: v.Address, Timestamp: vote.Timestamp, Signature: sig,
		})
	}
	return &cmttypes.LightBlock{SignedHeader: &cmttypes.SignedHeader{Header: h, Commit: commit}, ValidatorSet: set}
}
