package light

import (
	"context"
	"fmt"

	"github.com/cometbft/cometbft/crypto/ed25519"
	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/tally-network/tally/node/client"
)

const (
	// MaxMembers bounds the validators of a set, as the signatures of a commit.
	MaxMembers = cmttypes.MaxVotesCount
	maxPage    = 100 // validators that a node gives at once
)

// Block asks a node for a signed header, with the validators that signed it. It is not checked.
func Block(ctx context.Context, chain *client.Client, height int64) (*cmttypes.LightBlock, error) {
	commit, err := chain.Headers.Commit(ctx, &height)
	if err != nil {
		return nil, fmt.Errorf("commit of block %d: %w", height, err)
	}
	if commit.Header == nil || commit.Commit == nil {
		return nil, fmt.Errorf("commit of block %d: the node gives none: ask another", height)
	}
	if n := len(commit.Commit.Signatures); n > MaxMembers {
		return nil, fmt.Errorf("commit of block %d: the node gives %d signatures, limit %d: ask another", height, n, MaxMembers)
	}
	var all []*cmttypes.Validator
	perPage := maxPage
	for page := 1; page <= MaxMembers/maxPage; page++ {
		r, err := chain.Headers.Validators(ctx, &height, &page, &perPage)
		if err != nil {
			return nil, fmt.Errorf("validators of block %d: %w", height, err)
		}
		all = append(all, r.Validators...)
		if len(r.Validators) > maxPage || r.Total > MaxMembers {
			return nil, fmt.Errorf("validators of block %d: the node gives more than %d on a page, or %d in all: ask another", height, maxPage, MaxMembers)
		}
		if len(all) >= r.Total || len(r.Validators) == 0 {
			break
		}
	}
	names := map[string]bool{} // CometBFT panics at keys of another length, and at one validator twice
	for _, v := range all {
		if v == nil || v.PubKey == nil || v.PubKey.Type() != ed25519.KeyType || len(v.PubKey.Bytes()) != ed25519.PubKeySize || names[string(v.PubKey.Bytes())] {
			return nil, fmt.Errorf("validators of block %d: the node leaves one empty, tells it twice or with no ed25519 key: ask another", height)
		}
		names[string(v.PubKey.Bytes())] = true
	}
	set, err := cmttypes.ValidatorSetFromExistingValidators(all)
	if err != nil {
		return nil, fmt.Errorf("validators of block %d: ask another node (%w)", height, err)
	}
	return &cmttypes.LightBlock{SignedHeader: &commit.SignedHeader, ValidatorSet: set}, nil
}

// Newest asks a node for its newest block, and checks that the validators that it names have signed
// it. Whoever does not trust the node follows the chain by FollowPinned.
func Newest(ctx context.Context, chain *client.Client) (TrustedBlock, error) {
	b, err := newest(ctx, chain)
	return FromLightBlock(b), err
}

func newest(ctx context.Context, chain *client.Client) (*cmttypes.LightBlock, error) {
	height := chain.Head().Height
	if _, err := chain.Next(ctx, height); err != nil { // its commit is known one block later
		return nil, err
	}
	b, err := Block(ctx, chain, height)
	if err != nil {
		return nil, err
	}
	if err := check(b, chain.ChainID, height); err != nil {
		return nil, err
	}
	if err := b.ValidatorSet.VerifyCommitLight(b.ChainID, b.Commit.BlockID, b.Height, b.Commit); err != nil {
		return nil, fmt.Errorf("block %d is not signed by more than two thirds: ask another node (%w)", height, err)
	}
	return b, nil
}

// check returns an error unless a block is one of a chain and a height, and its parts belong together.
func check(b *cmttypes.LightBlock, chain string, height int64) error {
	if err := b.ValidateBasic(chain); err != nil {
		return fmt.Errorf("block %d, as the node gives it: ask another (%w)", height, err)
	}
	if b.Height != height {
		return fmt.Errorf("the node gives block %d for block %d: ask another", b.Height, height)
	}
	return nil
}
