package evidence

import (
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
	"github.com/cosmos/gogoproto/proto"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/format/bundle"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	"github.com/tally-network/tally/node/blobs"
	"github.com/tally-network/tally/node/role"
)

// Collect gathers the bundle of a settled lease from the chain and the lease's
// parties, and writes it to a file. It returns the hash of the validator set
// that signed for it. progress, if not nil, sees how many of all entries are
// there.
func Collect(ctx context.Context, env *role.Env, l *job.Lease, name string, progress func(done, all int)) (Trust, error) {
	if l.Phase != job.Settled {
		return Trust{}, fmt.Errorf("order %s is %v: a bundle can be made when it is settled", l.Order.ID().Short(), l.Phase)
	}
	l, err := env.Leases.Fill(ctx, l, l.Everything())
	if err != nil {
		return Trust{}, err
	}
	c := &collection{env: env, lease: l, progress: progress, all: len(fixed(l)) + len(states(l))}
	if err := c.anchor(ctx); err != nil {
		return Trust{}, err
	}
	c.add(bundle.Bytes(entryRecord, l.Record()))
	if err := c.order(ctx); err != nil {
		return Trust{}, err
	}
	for _, f := range l.Order.Problem.Files {
		ref, err := env.Blobs.Fetch(ctx, l, f, blobs.Holders(l)...)
		if err != nil {
			return Trust{}, err
		}
		c.add(bundle.Content{Name: fileEntry(f.Role), Open: func() (io.Reader, error) { return env.Store.Get(ref) }})
	}
	for _, root := range states(l) {
		s, err := env.States.Get(ctx, l, root)
		if err != nil {
			return Trust{}, err
		}
		_, ref, err := env.States.Put(l.Order.ID(), s)
		if err != nil {
			return Trust{}, err
		}
		c.add(bundle.Content{Name: stateEntry(root), Open: func() (io.Reader, error) { return env.Store.Get(ref) }})
	}
	return c.trust, c.write(name)
}

// orderEvent is the type of the event that a posted order leaves.
var orderEvent = proto.MessageName(&marketv1.EventPosted{})

type collection struct {
	env      *role.Env
	lease    *job.Lease
	entries  []bundle.Content
	trust    Trust
	progress func(done, all int)
	all      int
}

func (c *collection) add(e bundle.Content) {
	c.entries = append(c.entries, e)
	if c.progress != nil {
		c.progress(len(c.entries), c.all)
	}
}

// anchor adds the settlement, its proof, and the header that commits to it.
func (c *collection) anchor(ctx context.Context) error {
	rpc := c.env.Chain.RPC
	key := wire.SettlementKey(c.lease.Order.ID())
	q, err := rpc.ABCIQueryWithOptions(ctx, "/store/"+wire.SettlementStore+"/key", key, cmtrpc.ABCIQueryOptions{Prove: true})
	if err != nil {
		return fmt.Errorf("settlement: %w", err)
	}
	if q.Response.Code != 0 || len(q.Response.Value) == 0 || q.Response.ProofOps == nil {
		return fmt.Errorf("settlement: the node gives no proof of it: %s", q.Response.Log)
	}
	// The state after block h is committed to by the header of block h+1.
	height := q.Response.Height + 1
	if _, err := c.env.Chain.Next(ctx, height); err != nil { // and its commit is known one block later
		return err
	}
	block, err := c.block(ctx, height)
	if err != nil {
		return err
	}
	copy(c.trust[:], block.ValidatorsHash)
	m, err := block.ToProto()
	if err != nil {
		return err
	}
	raw, err := m.Marshal()
	if err != nil {
		return err
	}
	proof, err := (&cmtcrypto.ProofOps{Ops: q.Response.ProofOps.Ops}).Marshal()
	if err != nil {
		return err
	}
	c.add(bundle.Bytes(entryBlock, raw))
	c.add(bundle.Bytes(entryProof, proof))
	c.add(bundle.Bytes(entrySettlement, q.Response.Value))
	return nil
}

// maxValidators is the largest page that a node gives.
const maxValidators = 100

func (c *collection) block(ctx context.Context, height int64) (*cmttypes.LightBlock, error) {
	commit, err := c.env.Chain.RPC.Commit(ctx, &height)
	if err != nil {
		return nil, fmt.Errorf("commit of block %d: %w", height, err)
	}
	var all []*cmttypes.Validator
	perPage := maxValidators
	for page := 1; ; page++ {
		r, err := c.env.Chain.RPC.Validators(ctx, &height, &page, &perPage)
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

// order adds the transaction that posted the order.
func (c *collection) order(ctx context.Context) error {
	id := c.lease.Order.ID().String()
	r, err := c.env.Chain.RPC.TxSearch(ctx, fmt.Sprintf(`%s.order='"%s"'`, orderEvent, id), false, nil, nil, "asc")
	if err != nil {
		return fmt.Errorf("transaction of order %s: %w", id, err)
	}
	if len(r.Txs) == 0 {
		return fmt.Errorf("the node does not know the transaction that posted order %s", id)
	}
	number, err := c.env.Chain.AccountNumber(ctx, c.lease.Order.Consumer)
	if err != nil {
		return err
	}
	c.add(bundle.Bytes(entryOrder, r.Txs[0].Tx))
	c.add(bundle.Bytes(entryNumber, fmt.Append(nil, number)))
	return nil
}

// write writes the file whole or not at all.
func (c *collection) write(name string) (err error) {
	slices.SortFunc(c.entries, func(a, b bundle.Content) int { return strings.Compare(a.Name, b.Name) })
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
	if err := errors.Join(bundle.Write(f, c.entries), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return os.Rename(tmp, name)
}
