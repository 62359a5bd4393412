package evidence

import (
	"bytes"
	"fmt"
	"net/url"

	cmtcrypto "github.com/cometbft/cometbft/proto/tendermint/crypto"
	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"
	cmttypes "github.com/cometbft/cometbft/types"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/cosmos/cosmos-sdk/store/v2/rootmulti"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/node/light"
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

// Is reports whether other is t. Check wants it, or Anybody.
func (t Trust) Is(other Trust) bool { return t == other }

// Anybody believes every validator set. What is checked with it is consistent;
// whoever wrote the bundle may have invented it all.
func Anybody(Trust) bool { return true }

// Limits on an anchor, in bytes; light.MaxMembers is that of its validators as of its signatures,
// in number: more do not sign blocks of this kind of chain. A member of an empty message
// takes a hundred times its two bytes, so numbers are counted before anything is
// decoded.
const (
	maxBlock      = 4 << 20
	maxSettlement = 4 << 20
	maxPeaks      = 4 << 10           // of the accumulator, and of a path
	maxProof      = maxPeaks + 64<<10 // which holds the accumulator
	maxSteps      = 8                 // of a proof, through stores
)

// anchor is what the validators signed for.
type anchor struct {
	block      *cmttypes.LightBlock
	settlement job.Settlement
	leaf       canon.Hash // of the settlement
	chain      string
	signers    Trust
}

// checkAnchor returns what the validators signed for, if they are believed.
// Nothing else of a bundle is looked at before.
func checkAnchor(read func(string, int64) ([]byte, error), believed func(Trust) bool) (a anchor, err error) {
	block, err := readBlock(read)
	if err != nil {
		return a, err
	}
	a.block = block
	if len(block.ValidatorsHash) != len(a.signers) {
		return a, wrong("its header names no validator set")
	}
	if a.signers, a.chain = Trust(block.ValidatorsHash), block.ChainID; !believed(a.signers) {
		return a, wrong("it is signed by validator set %s, which is not the one that you trust", a.signers)
	}
	if err := block.ValidateBasic(a.chain); err != nil { // header, commit and set belong together
		return a, wrong("block %d: %v", block.Height, err)
	}
	if err := block.ValidatorSet.VerifyCommit(a.chain, block.Commit.BlockID, block.Height, block.Commit); err != nil {
		return a, wrong("block %d is not signed by more than two thirds: %v", block.Height, err)
	}
	all, err := readAccumulator(read, block)
	if err != nil {
		return a, err
	}
	value, err := read(entrySettlement, maxSettlement)
	if err != nil {
		return a, err
	}
	raw, err := read(entryPosition, maxPeaks)
	if err != nil {
		return a, err
	}
	var at canon.Position
	if err := canon.Unmarshal(raw, &at); err != nil {
		return a, wrong("position: %v", err)
	}
	a.leaf = wire.SettlementLeaf(value)
	if err := all.Verify(a.leaf, at); err != nil {
		return a, wrong("the settlement is not among the %d of block %d: %v", all.N, block.Height-1, err)
	}
	if err := canon.Unmarshal(value, &a.settlement); err != nil {
		return a, wrong("settlement: %v", err)
	}
	return a, nil
}

// readAccumulator returns the accumulator of all settlements that a block's header commits to.
func readAccumulator(read func(string, int64) ([]byte, error), block *cmttypes.LightBlock) (a canon.Accumulator, err error) {
	value, err := read(entryAccumulator, maxPeaks)
	if err != nil {
		return a, err
	}
	raw, err := read(entryProof, maxProof)
	if err != nil {
		return a, err
	}
	if n, err := members(raw, []protowire.Number{1}); err != nil || n == 0 || n > maxSteps {
		return a, wrong("proof: %d steps, want 1 to %d (%v)", n, maxSteps, err)
	}
	var ops cmtcrypto.ProofOps
	if err := strict(raw, &ops); err != nil {
		return a, wrong("proof: %v", err)
	}
	path := fmt.Sprintf("/%s/%s", wire.RecordStore, url.PathEscape(string(wire.AccumulatorKey())))
	if err := rootmulti.DefaultProofRuntime().VerifyValue(&ops, block.AppHash, path, value); err != nil {
		return a, wrong("the record of settlements is not in the state of block %d: %v", block.Height-1, err)
	}
	if err := canon.Unmarshal(value, &a); err != nil {
		return a, wrong("record of settlements: %v", err)
	}
	return a, nil
}

func readBlock(read func(string, int64) ([]byte, error)) (*cmttypes.LightBlock, error) {
	raw, err := read(entryBlock, maxBlock)
	if err != nil {
		return nil, err
	}
	for _, list := range []struct {
		what string
		path []protowire.Number
	}{{"signatures", []protowire.Number{1, 2, 4}}, {"validators", []protowire.Number{2, 1}}} {
		n, err := members(raw, list.path)
		if err != nil {
			return nil, wrong("block: %v", err)
		}
		if n > light.MaxMembers {
			return nil, wrong("block: %d %s, limit %d", n, list.what, light.MaxMembers)
		}
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

// members counts the members of the list at a path of field numbers of a
// protobuf message, and allocates nothing.
func members(b []byte, path []protowire.Number) (n int, err error) {
	for len(b) > 0 {
		num, typ, size := protowire.ConsumeField(b)
		if size < 0 {
			return n, protowire.ParseError(size)
		}
		if num == path[0] && typ == protowire.BytesType {
			if len(path) == 1 {
				n++
			} else {
				_, _, tag := protowire.ConsumeTag(b)
				inner, _ := protowire.ConsumeBytes(b[tag:])
				more, err := members(inner, path[1:])
				if n += more; err != nil {
					return n, err
				}
			}
		}
		b = b[size:]
	}
	return n, nil
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
