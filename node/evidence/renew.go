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

	cmtcrypto "github.com/cometbft/cometbft/proto/tendermint/crypto"
	cmtrpc "github.com/cometbft/cometbft/rpc/client"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/format/bundle"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/internal/replace"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/light"
)

// Renew anchors a bundle in the newest block, so that trust in today's validators is enough
// for it, and writes it to out, which may be the same file. It returns their set.
//
// The node may lie. So its block must follow, by skipping, from one that the user trusts, or else
// from the one that anchored the bundle so far; or the user has named the set that signed it. The
// rest of the bundle stays as it is, and is not checked.
func Renew(ctx context.Context, chain *client.Client, name, out string, roots *Roots) (Trust, error) {
	file, size, err := bounded.Open(name)
	if err != nil {
		return Trust{}, err
	}
	defer file.Close()
	b, err := bundle.Open(stoppable{ctx, file}, size)
	if err != nil {
		return Trust{}, err
	}
	f, err := roots.fresh(ctx, chain, b, true)
	if err != nil {
		return Trust{}, err
	}
	entries := f.parts.entries()
	for _, e := range b.Entries() {
		if !strings.HasPrefix(e.Name, anchorPrefix) {
			entries = append(entries, bundle.Content{Name: e.Name, Open: func() (io.Reader, error) { return b.Open(e), nil }})
		}
	}
	return Trust(f.Block.Validators), write(out, entries)
}

// Fresh is what anchors a bundle, or an extract, in a newer block than it names itself.
type Fresh struct {
	By    string             // what the block is trusted by
	Block light.TrustedBlock // the newest of a node
	Stats light.Stats        // from what is trusted to it

	parts anchorage
}

// Check is Check by what the user trusts, and by f if it is not nil. The proof says what anchors it.
func (r *Roots) Check(ctx context.Context, f *Fresh, src io.ReaderAt, size int64, exec engine.Executor) (*Proof, error) {
	p, err := check(ctx, src, size, r.anchor(f), exec)
	if err == nil {
		p.By, err = r.by(f, p.Anchor)
	}
	return p, err
}

// CheckExtract is CheckExtract, as Check.
func (r *Roots) CheckExtract(f *Fresh, src io.ReaderAt, size int64) (*Record, error) {
	x, err := checkExtract(src, size, r.anchor(f))
	if err == nil {
		x.By, err = r.by(f, x.Anchor)
	}
	return x, err
}

// anchor returns what checks what the validators signed for: by f, or else as a bundle says.
func (r *Roots) anchor(f *Fresh) func(*bundle.Bundle) (anchor, error) {
	switch {
	case f != nil:
		return func(*bundle.Bundle) (anchor, error) { return checkAnchor(f.parts.read, Trust(f.Block.Validators).Is) }
	case r.Named != nil:
		return ofBundle(r.Named)
	}
	return ofBundle(Anybody)
}

func (r *Roots) by(f *Fresh, b light.TrustedBlock) (string, error) {
	if f != nil {
		return f.By, nil
	}
	return r.Anchors(b)
}

// ofBundle returns what checks a bundle's own anchor.
func ofBundle(believed func(Trust) bool) func(*bundle.Bundle) (anchor, error) {
	return func(b *bundle.Bundle) (anchor, error) { return checkAnchor(b.Read, believed) }
}

// Refresh anchors a bundle, or an extract, in the newest block of a node, which must follow from what
// the user trusts: from the block that their home has pinned, or else from that of the bundle.
// It returns nil if they trust neither. The file stays as it is: who checks a proof leaves it as it
// was handed over, and Renew rewrites it.
func (r *Roots) Refresh(ctx context.Context, chain *client.Client, src io.ReaderAt, size int64) (*Fresh, error) {
	b, err := bundle.Open(stoppable{ctx, src}, size)
	if err != nil {
		return nil, err
	}
	return r.fresh(ctx, chain, b, false)
}

// fresh anchors a bundle anew. If asIs, the block that anchors it so far is trusted where no other is.
func (r *Roots) fresh(ctx context.Context, chain *client.Client, b *bundle.Bundle, asIs bool) (*Fresh, error) {
	was, err := checkAnchor(b.Read, Anybody)
	if err != nil {
		return nil, err
	}
	from, by, err := r.begin(&was)
	if by == "" && asIs && (err == nil || errors.Is(err, light.ErrExpired)) {
		from, by, err = light.FromLightBlock(was.block), "the block that anchored the bundle before", nil
	}
	if err != nil || by == "" && r.Named == nil {
		return nil, err
	}
	held, err := b.Read(entrySettlement, maxSettlement)
	if err != nil {
		return nil, err
	}
	parts, err := newAnchorage(ctx, chain, was.settlement.Order, held)
	if err != nil {
		return nil, err
	}
	is, err := checkAnchor(parts.read, Anybody)
	if err != nil {
		return nil, fmt.Errorf("what the node gives: %w", err)
	}
	if err := was.replaced(&is); err != nil {
		return nil, err
	}
	f := &Fresh{By: by, Block: light.FromLightBlock(is.block), parts: parts}
	switch {
	case r.Named != nil && r.Named(is.signers):
		f.By = r.By
		return f, nil
	case by == "":
		return nil, fmt.Errorf("%s names neither validator set %s, which signed the bundle, nor %s, which signed block %d: name either with --trust, if you believe it", r.By, was.signers, is.signers, is.block.Height)
	}
	way := light.NewFollower(chain)
	way.Now, way.Progress = r.now, r.Progress
	own := was.block
	if from != light.FromLightBlock(own) {
		own = nil
	}
	if f.Stats, err = way.Follow(ctx, from, own, is.block); err != nil {
		return nil, err
	}
	if pin, err := r.pinned(from.Chain); err != nil || pin != from {
		return f, err
	}
	return f, light.Pin(r.Home, f.Block) // the next way is shorter, and begins in time
}

// begin returns from which block a bundle's chain is followed, and what that is trusted by, "" if
// there is none.
func (r *Roots) begin(was *anchor) (from light.TrustedBlock, by string, err error) {
	var expired error
	if r.Named == nil {
		pin, err := r.pinned(was.chain)
		if err != nil {
			return from, "", err
		}
		if pin.Height > 0 {
			if expired = pin.CheckAge(r.now()); expired == nil {
				return pin, r.pinnedBy(pin), nil
			}
		}
	}
	from = light.FromLightBlock(was.block)
	if by, err = r.Anchors(from); by == "" && err == nil {
		err = expired
	}
	return from, by, err
}

// replaced returns an error unless anchor b is of the same settlement, and no older.
func (a *anchor) replaced(b *anchor) error {
	switch {
	case b.chain != a.chain:
		return fmt.Errorf("the bundle is of chain %s, the node of %s: ask a node of %[1]s", a.chain, b.chain)
	case b.leaf != a.leaf:
		return fmt.Errorf("chain %s settled order %s otherwise than the bundle says", b.chain, a.settlement.Order.Short())
	case b.block.Height < a.block.Height:
		return fmt.Errorf("the bundle is anchored in block %d, and the node is at %d: ask it again later, or another", a.block.Height, b.block.Height)
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
	block, err := light.Block(ctx, chain, height)
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

// maxAhead is by how many blocks a node's proof may be newer than what it told before.
const maxAhead = 100

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
