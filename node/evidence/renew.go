package evidence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	cmtcrypto "github.com/cometbft/cometbft/proto/tendermint/crypto"
	cmtrpc "github.com/cometbft/cometbft/rpc/client"
	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/format/bundle"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/node/client"
)

// Renew anchors a bundle in the newest block, so that trust in today's validators is enough
// for it, and returns their set. What else the bundle holds stays as it is, and is not checked.
func Renew(ctx context.Context, chain *client.Client, name string) (Trust, error) {
	file, size, err := bounded.Open(name)
	if err != nil {
		return Trust{}, err
	}
	defer file.Close()
	b, err := bundle.Open(stoppable{ctx, file}, size)
	if err != nil {
		return Trust{}, err
	}
	raw, err := b.Read(entrySettlement, maxSettlement)
	if err != nil {
		return Trust{}, err
	}
	var s job.Settlement
	if err := canon.Unmarshal(raw, &s); err != nil {
		return Trust{}, wrong("settlement: %v", err)
	}
	a, err := newAnchorage(ctx, chain, s.Order)
	if err != nil {
		return Trust{}, err
	}
	if !bytes.Equal(a.settlement, raw) {
		return Trust{}, wrong("chain %s settled order %s otherwise", chain.ChainID, s.Order.Short())
	}
	entries := a.entries()
	for _, e := range b.Entries() {
		if !strings.HasPrefix(e.Name, anchorPrefix) {
			entries = append(entries, bundle.Content{Name: e.Name, Open: func() (io.Reader, error) { return b.Open(e), nil }})
		}
	}
	return a.trust, write(name, entries)
}

// anchorage is what proves a settlement from the newest header, and the validators that have
// signed that.
type anchorage struct {
	block, proof, accumulator, position, settlement []byte // of the entries
	trust                                           Trust
}

func (a *anchorage) entries() []bundle.Content {
	return []bundle.Content{
		bundle.Bytes(entryBlock, a.block), bundle.Bytes(entryProof, a.proof), bundle.Bytes(entryAccumulator, a.accumulator),
		bundle.Bytes(entryPosition, a.position), bundle.Bytes(entrySettlement, a.settlement),
	}
}

func newAnchorage(ctx context.Context, chain *client.Client, order canon.Hash) (a anchorage, err error) {
	q, err := chain.RPC.ABCIQueryWithOptions(ctx, "/store/"+wire.RecordStore+"/key", wire.AccumulatorKey(), cmtrpc.ABCIQueryOptions{Prove: true})
	if err != nil {
		return a, fmt.Errorf("record of settlements: %w", err)
	}
	r := &q.Response
	if r.Code != 0 || len(r.Value) == 0 || r.ProofOps == nil {
		return a, fmt.Errorf("record of settlements: the node gives no proof of it: %s", r.Log)
	}
	var all canon.Accumulator
	if err := canon.Unmarshal(r.Value, &all); err != nil {
		return a, fmt.Errorf("record of settlements: %w", err)
	}
	var position canon.Position
	if a.settlement, position, err = settlementAmong(ctx, chain, order, all.N); err != nil {
		return a, err
	}
	// The state after block h is committed to by the header of block h+1.
	height := r.Height + 1
	if _, err := chain.Next(ctx, height); err != nil { // and its commit is known one block later
		return a, err
	}
	block, err := blockAt(ctx, chain, height)
	if err != nil {
		return a, err
	}
	copy(a.trust[:], block.ValidatorsHash)
	m, err := block.ToProto()
	if err != nil {
		return a, err
	}
	if a.block, err = m.Marshal(); err != nil {
		return a, err
	}
	a.accumulator, a.position = r.Value, canon.Marshal(&position)
	a.proof, err = (&cmtcrypto.ProofOps{Ops: r.ProofOps.Ops}).Marshal()
	return a, err
}

// settlementAmong asks for a settlement, and where it stands among the first so many.
func settlementAmong(ctx context.Context, chain *client.Client, order canon.Hash, count uint64) (b []byte, p canon.Position, err error) {
	q := workv1.NewQueryClient(chain.Conn)
	s, err := q.Settlement(ctx, &workv1.QuerySettlementRequest{Order: order.String()})
	if err != nil {
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
	return s.Value, p, nil
}

// maxValidators is the largest page that a node gives.
const maxValidators = 100

func blockAt(ctx context.Context, chain *client.Client, height int64) (*cmttypes.LightBlock, error) {
	commit, err := chain.RPC.Commit(ctx, &height)
	if err != nil {
		return nil, fmt.Errorf("commit of block %d: %w", height, err)
	}
	var all []*cmttypes.Validator
	perPage := maxValidators
	for page := 1; ; page++ {
		r, err := chain.RPC.Validators(ctx, &height, &page, &perPage)
		if err != nil {
			return nil, fmt.Errorf("validators of block %d: %w", height, err)
		}
		if all = append(all, r.Validators...); len(all) >= r.Total || len(r.Validators) == 0 {
			break
		}
	}
	set, err := cmttypes.ValidatorSetFromExistingValidators(all)
	if err != nil {
		return nil, fmt.Errorf("validators of block %d: %w", height, err)
	}
	return &cmttypes.LightBlock{SignedHeader: &commit.SignedHeader, ValidatorSet: set}, nil
}

// write writes the file whole or not at all.
func write(name string, entries []bundle.Content) (err error) {
	slices.SortFunc(entries, func(a, b bundle.Content) int { return strings.Compare(a.Name, b.Name) })
	tmp := name + ".tmp"
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := os.Create(tmp)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(tmp))
		}
	}()
	if err := errors.Join(bundle.Write(f, entries), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return os.Rename(tmp, name)
}
