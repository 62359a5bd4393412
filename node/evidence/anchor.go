package evidence

import (
	"bytes"
	"fmt"
	"net/url"

	cmtcrypto "github.com/cometbft/cometbft/proto/tendermint/crypto"
	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"
	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/cosmos/cosmos-sdk/store/v2/rootmulti"

	"github.com/tally-network/tally/chain/x/work"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
)

// Trust is what a verifier believes in: the hash of a chain's validator set.
type Trust [32]byte

// ParseTrust reads 64 hexadecimal digits.
func ParseTrust(s string) (Trust, error) {
	h, err := canon.ParseHash(s)
	if err != nil {
		return Trust{}, fmt.Errorf("trust root: %w", err)
	}
	return Trust(h), nil
}

// String returns t in hexadecimal.
func (t Trust) String() string { return canon.Hash(t).String() }

// checkAnchor returns the settlement that the validators signed for, and the
// chain that it belongs to.
func checkAnchor(read func(string) ([]byte, error), trust Trust) (s job.Settlement, chain string, err error) {
	block, err := readBlock(read)
	if err != nil {
		return s, "", err
	}
	if !bytes.Equal(block.ValidatorsHash, trust[:]) {
		return s, "", wrong("it is signed by validator set %X, you trust %s", []byte(block.ValidatorsHash), trust)
	}
	chain = block.ChainID
	if err := block.ValidateBasic(chain); err != nil { // header, commit and set belong together
		return s, "", wrong("block %d: %v", block.Height, err)
	}
	if err := block.ValidatorSet.VerifyCommit(chain, block.Commit.BlockID, block.Height, block.Commit); err != nil {
		return s, "", wrong("block %d is not signed by more than two thirds: %v", block.Height, err)
	}
	value, err := read(entrySettlement)
	if err != nil {
		return s, "", err
	}
	if err := canon.Unmarshal(value, &s); err != nil {
		return s, "", wrong("settlement: %v", err)
	}
	raw, err := read(entryProof)
	if err != nil {
		return s, "", err
	}
	var ops cmtcrypto.ProofOps
	if err := strict(raw, &ops); err != nil {
		return s, "", wrong("proof: %v", err)
	}
	path := fmt.Sprintf("/%s/%s", work.Name, url.PathEscape(string(work.SettlementKey(s.Order))))
	if err := rootmulti.DefaultProofRuntime().VerifyValue(&ops, block.AppHash, path, value); err != nil {
		return s, "", wrong("the settlement is not in the state of block %d: %v", block.Height-1, err)
	}
	return s, chain, nil
}

func readBlock(read func(string) ([]byte, error)) (*cmttypes.LightBlock, error) {
	raw, err := read(entryBlock)
	if err != nil {
		return nil, err
	}
	var m cmtproto.LightBlock
	if err := strict(raw, &m); err != nil {
		return nil, wrong("block: %v", err)
	}
	b, err := cmttypes.LightBlockFromProto(&m)
	if err != nil {
		return nil, wrong("block: %v", err)
	}
	if b.SignedHeader == nil || b.Header == nil || b.Commit == nil || b.ValidatorSet == nil {
		return nil, wrong("block: a part is missing")
	}
	return b, nil
}

// message is a protobuf message.
type message interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// strict reads a protobuf message that must encode to the same bytes again.
func strict(b []byte, m message) error {
	if err := m.Unmarshal(b); err != nil {
		return err
	}
	again, err := m.Marshal()
	if err == nil && !bytes.Equal(again, b) {
		err = fmt.Errorf("%d bytes encode again as %d others", len(b), len(again))
	}
	return err
}
