package evidence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
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
// for it, and writes it to out, which may be the same file. It returns their set. What the
// node says is checked first: one that lies cannot spoil a bundle. What else the bundle holds
// stays as it is, and is not checked.
func Renew(ctx context.Context, chain *client.Client, name, out string) (Trust, error) {
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
	if !bytes.Equal(a.parts[entrySettlement], raw) {
		return Trust{}, wrong("chain %s settled order %s otherwise", chain.ChainID, s.Order.Short())
	}
	was, err := readBlock(b.Read)
	if err != nil {
		return Trust{}, err
	}
	now, err := checkAnchor(a.read, Anybody)
	if err != nil {
		return Trust{}, fmt.Errorf("what the node gives: %w", err)
	}
	if now.chain != was.ChainID {
		return Trust{}, fmt.Errorf("the bundle is of chain %s, the node of %s", was.ChainID, now.chain)
	}
	entries := a.entries()
	for _, e := range b.Entries() {
		if !strings.HasPrefix(e.Name, anchorPrefix) {
			entries = append(entries, bundle.Content{Name: e.Name, Open: func() (io.Reader, error) { return b.Open(e), nil }})
		}
	}
	return a.trust, write(out, entries)
}

// anchorage is what proves a settlement from the newest header: the entries under anchorPrefix,
// and the validators that have signed the header.
type anchorage struct {
	parts map[string][]byte
	trust Trust
}

func (a *anchorage) entries() (out []bundle.Content) {
	for _, name := range slices.Sorted(maps.Keys(a.parts)) {
		out = append(out, bundle.Bytes(name, a.parts[name]))
	}
	return out
}

// read returns an entry of at most limit bytes, as of a bundle.
func (a *anchorage) read(name string, limit int64) ([]byte, error) {
	if b := a.parts[name]; b != nil && int64(len(b)) <= limit {
		return b, nil
	}
	return nil, fmt.Errorf("%s is missing, or has more than %d bytes", name, limit)
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
	settlement, position, err := settlementAmong(ctx, chain, order, all.N)
	if err != nil {
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
	header, err := m.Marshal()
	if err != nil {
		return a, err
	}
	proof, err := (&cmtcrypto.ProofOps{Ops: r.ProofOps.Ops}).Marshal()
	a.parts = map[string][]byte{
		entryBlock: header, entryProof: proof, entryAccumulator: r.Value,
		entryPosition: canon.Marshal(&position), entrySettlement: settlement,
	}
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
