package evidence

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	cmtmath "github.com/cometbft/cometbft/libs/math"
	cmtcrypto "github.com/cometbft/cometbft/proto/tendermint/crypto"
	cmtrpc "github.com/cometbft/cometbft/rpc/client"
	cmttypes "github.com/cometbft/cometbft/types"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/format/bundle"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/internal/replace"
	"github.com/tally-network/tally/node/client"
)

// Nobody believes no validator set, but those that follow from one that is believed.
func Nobody(Trust) bool { return false }

// Renew anchors a bundle in the newest block, so that trust in today's validators is enough
// for it, and writes it to out, which may be the same file. It returns their set.
//
// The node may lie. So its header is taken only if believed says so of the validators that
// signed it, or if more than a third of those that anchored the bundle so far signed it,
// too. The rest of the bundle stays as it is, and is not checked.
func Renew(ctx context.Context, chain *client.Client, name, out string, believed func(Trust) bool) (Trust, error) {
	file, size, err := bounded.Open(name)
	if err != nil {
		return Trust{}, err
	}
	defer file.Close()
	b, err := bundle.Open(stoppable{ctx, file}, size)
	if err != nil {
		return Trust{}, err
	}
	was, err := checkAnchor(b.Read, Anybody)
	if err != nil {
		return Trust{}, err
	}
	held, err := b.Read(entrySettlement, maxSettlement)
	if err != nil {
		return Trust{}, err
	}
	parts, err := newAnchorage(ctx, chain, was.settlement.Order, held)
	if err != nil {
		return Trust{}, err
	}
	is, err := checkAnchor(parts.read, Anybody)
	if err != nil {
		return Trust{}, fmt.Errorf("what the node gives: %w", err)
	}
	if err := was.follows(&is, believed); err != nil {
		return Trust{}, err
	}
	entries := parts.entries()
	for _, e := range b.Entries() {
		if !strings.HasPrefix(e.Name, anchorPrefix) {
			entries = append(entries, bundle.Content{Name: e.Name, Open: func() (io.Reader, error) { return b.Open(e), nil }})
		}
	}
	return is.signers, write(out, entries)
}

// follows returns an error unless anchor b may stand in place of a.
func (a *anchor) follows(b *anchor, believed func(Trust) bool) error {
	switch {
	case b.chain != a.chain:
		return fmt.Errorf("the bundle is of chain %s, the node of %s", a.chain, b.chain)
	case b.leaf != a.leaf:
		return fmt.Errorf("chain %s settled order %s otherwise than the bundle says", b.chain, a.settlement.Order.Short())
	case b.block.Height < a.block.Height:
		return fmt.Errorf("the bundle is anchored in block %d, and the node is at %d: ask it again later, or another", a.block.Height, b.block.Height)
	case believed(b.signers):
		return nil
	}
	if err := a.block.ValidatorSet.VerifyCommitLightTrusting(b.chain, b.block.Commit, cmtmath.Fraction{Numerator: 1, Denominator: 3}); err != nil {
		return fmt.Errorf("block %d is signed by validator set %s, and by too few of those that anchored the bundle: name the set with --trust if you believe it (%w)", b.block.Height, b.signers, err)
	}
	return nil
}

// anchorage is what proves a settlement from the newest header: the entries under anchorPrefix.
type anchorage map[string][]byte

func (a anchorage) entries() (out []bundle.Content) {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		out = append(out, bundle.Bytes(name, a[name]))
	}
	return out
}

// read returns an entry of at most limit bytes, as of a bundle.
func (a anchorage) read(name string, limit int64) ([]byte, error) {
	if b := a[name]; b != nil && int64(len(b)) <= limit {
		return b, nil
	}
	return nil, fmt.Errorf("%s is missing, or has more than %d bytes", name, limit)
}

// newAnchorage asks a node for what proves the settlement of an order. Once the chain has pruned its
// value, that of a bundle stands for it, if held is not nil.
func newAnchorage(ctx context.Context, chain *client.Client, order canon.Hash, held []byte) (anchorage, error) {
	q, err := chain.RPC.ABCIQueryWithOptions(ctx, "/store/"+wire.RecordStore+"/key", wire.AccumulatorKey(), cmtrpc.ABCIQueryOptions{Prove: true})
	if err != nil {
		return nil, fmt.Errorf("record of settlements: %w", err)
	}
	r := &q.Response
	if r.Code != 0 || len(r.Value) == 0 || r.ProofOps == nil {
		return nil, fmt.Errorf("record of settlements: the node gives no proof of it: %s", r.Log)
	}
	var all canon.Accumulator
	if err := canon.Unmarshal(r.Value, &all); err != nil {
		return nil, fmt.Errorf("record of settlements: %w", err)
	}
	settlement, position, err := settlementAmong(ctx, chain, order, all.N, held)
	if err != nil {
		return nil, err
	}
	// The state after block h is committed to by the header of block h+1.
	height := r.Height + 1
	if head := chain.Head().Height; r.Height > head+maxAhead {
		return nil, fmt.Errorf("the node proves the state of block %d, and its newest block is %d: ask another", r.Height, head)
	}
	if _, err := chain.Next(ctx, height); err != nil { // and its commit is known one block later
		return nil, err
	}
	block, err := blockAt(ctx, chain, height)
	if err != nil {
		return nil, err
	}
	m, err := block.ToProto()
	if err != nil {
		return nil, err
	}
	header, err := m.Marshal()
	if err != nil {
		return nil, err
	}
	proof, err := (&cmtcrypto.ProofOps{Ops: r.ProofOps.Ops}).Marshal()
	if err != nil {
		return nil, err
	}
	return anchorage{
		entryBlock: header, entryProof: proof, entryAccumulator: r.Value,
		entryPosition: canon.Marshal(&position), entrySettlement: settlement,
	}, nil
}

// settlementAmong asks for a settlement, and where it stands among the first so many. What is held
// of it stands for what the chain has no more.
func settlementAmong(ctx context.Context, chain *client.Client, order canon.Hash, count uint64, held []byte) (b []byte, p canon.Position, err error) {
	q := workv1.NewQueryClient(chain.Conn)
	s, err := q.Settlement(ctx, &workv1.QuerySettlementRequest{Order: order.String()})
	switch {
	case err == nil:
		held = s.Value
	case held == nil || status.Code(err) != codes.NotFound:
		return nil, p, fmt.Errorf("settlement of order %s: %w", order.Short(), err)
	}
	path, err := q.Path(ctx, &workv1.QueryPathRequest{Order: order.String(), Count: count})
	if err != nil {
		return nil, p, fmt.Errorf("path of order %s: %w", order.Short(), err)
	}
	p.Index = path.Index
	for _, raw := range path.Path {
		h, err := canon.HashOf(raw)
		if err != nil {
			return nil, p, fmt.Errorf("path of order %s: %w", order.Short(), err)
		}
		p.Path = append(p.Path, h)
	}
	return held, p, nil
}

const (
	maxPage  = 100 // validators that a node gives at once
	maxAhead = 100 // blocks by which a node's proof may be newer than what it told before
)

// blockAt returns a signed header with the validators that signed it.
func blockAt(ctx context.Context, chain *client.Client, height int64) (*cmttypes.LightBlock, error) {
	commit, err := chain.RPC.Commit(ctx, &height)
	if err != nil {
		return nil, fmt.Errorf("commit of block %d: %w", height, err)
	}
	if commit.Header == nil || commit.Commit == nil {
		return nil, fmt.Errorf("commit of block %d: the node gives none", height)
	}
	var all []*cmttypes.Validator
	perPage := maxPage
	for page := 1; ; page++ {
		r, err := chain.RPC.Validators(ctx, &height, &page, &perPage)
		if err != nil {
			return nil, fmt.Errorf("validators of block %d: %w", height, err)
		}
		all = append(all, r.Validators...)
		if len(r.Validators) > maxPage || len(all) > maxMembers {
			return nil, fmt.Errorf("validators of block %d: the node gives more than %d on a page, or %d in all", height, maxPage, maxMembers)
		}
		if len(all) >= r.Total || len(r.Validators) == 0 {
			break
		}
	}
	set, err := cmttypes.ValidatorSetFromExistingValidators(all)
	if err != nil {
		return nil, fmt.Errorf("validators of block %d: %w", height, err)
	}
	return &cmttypes.LightBlock{SignedHeader: &commit.SignedHeader, ValidatorSet: set}, nil
}

// write writes a bundle of the entries, whole or not at all.
func write(name string, entries []bundle.Content) error {
	slices.SortFunc(entries, func(a, b bundle.Content) int { return strings.Compare(a.Name, b.Name) })
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	err := replace.With(name, func(f *os.File) error { return errors.Join(bundle.Write(f, entries), f.Sync()) })
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
