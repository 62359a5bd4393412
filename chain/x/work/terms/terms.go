// Package terms stores what of a lease is fixed when it begins, and the parties that it draws from, each
// list of these once for all leases that have it. In a quiet network all leases share a few such pools: one
// of two thousand parties is stored, and read again, for the cost of two roots.
//
// [Store.Enter] stores those of a lease that begins, [Store.Read] reads them, and [Store.Forget] removes
// them, with pools that no other lease has.
//
// Invariants ([Store.Check]): a pool is what its root says, and counts the leases that have it. Pools that
// were read are shared, and nobody changes one. Reading a pool takes no gas, for nodes differ in what they
// have read already: whoever reads charges for parties.
//
// Source: docs/adr/0052-who-takes-part.md.
package terms

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	lru "github.com/hashicorp/golang-lru/v2"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
)

// Store has the terms of leases, by order.
type Store struct {
	collections.Map[[]byte, []byte] // see terms

	pools collections.Map[[]byte, []byte] // by root
	uses  collections.Map[[]byte, uint64] // leases, by root of a pool
	read  *lru.Cache[canon.Hash, job.Pool]
}

// maxRead bounds the pools that are kept decoded, each of up to 300 KB.
const maxRead = 256

// New declares the collections of a store, under three prefixes.
func New(sb *collections.SchemaBuilder, terms, pools, uses int) Store {
	read, err := lru.New[canon.Hash, job.Pool](maxRead)
	if err != nil {
		panic(err) // of a size below 1 alone
	}
	return Store{
		Map:   collections.NewMap(sb, collections.NewPrefix(terms), "terms", collections.BytesKey, collections.BytesValue),
		pools: collections.NewMap(sb, collections.NewPrefix(pools), "pools", collections.BytesKey, collections.BytesValue),
		uses:  collections.NewMap(sb, collections.NewPrefix(uses), "pool_uses", collections.BytesKey, collections.Uint64Value),
		read:  read,
	}
}

// terms are the fixed part of a lease, and the roots of its pools.
type terms struct {
	providers, auditors canon.Hash
	fixed               []byte
}

// maxFixed bounds the bytes of a fixed part: an order, rules and a quote.
const maxFixed = 1 << 16

// Code walks the fields.
func (t *terms) Code(w *canon.Codec) {
	w.Hash(&t.providers)
	w.Hash(&t.auditors)
	w.Blob(&t.fixed, maxFixed)
}

// of returns the terms of a lease.
func (s *Store) of(ctx context.Context, id []byte) (t terms, err error) {
	b, err := s.Get(ctx, id)
	if err == nil {
		err = canon.Unmarshal(b, &t)
	}
	return t, err
}

// Enter stores the terms of a lease that begins.
func (s *Store) Enter(ctx context.Context, id canon.Hash, l *job.Lease) (err error) {
	var t terms
	if t.fixed, err = canon.Encoded(l.Fixed()); err == nil {
		t.providers, err = s.use(ctx, l.Providers)
	}
	if err == nil {
		t.auditors, err = s.use(ctx, l.Auditors)
	}
	if err != nil {
		return err
	}
	b, err := canon.Encoded(&t)
	if err != nil {
		return err
	}
	return s.Set(ctx, id[:], b)
}

// Read reads the terms of a lease into l; collections.ErrNotFound, if there are none.
func (s *Store) Read(ctx context.Context, id canon.Hash, l *job.Lease) error {
	t, err := s.of(ctx, id[:])
	if err == nil {
		err = canon.Unmarshal(t.fixed, l.Fixed())
	}
	if err == nil {
		l.Providers, err = s.pool(ctx, t.providers)
	}
	if err == nil {
		l.Auditors, err = s.pool(ctx, t.auditors)
	}
	return err
}

// Forget removes the terms of a lease.
func (s *Store) Forget(ctx context.Context, id canon.Hash) error {
	t, err := s.of(ctx, id[:])
	if err != nil {
		return err
	}
	return errors.Join(s.release(ctx, t.providers), s.release(ctx, t.auditors), s.Remove(ctx, id[:]))
}

// use stores a pool, unless it is there, and counts one lease more that has it. It returns its root.
func (s *Store) use(ctx context.Context, p job.Pool) (canon.Hash, error) {
	b, err := canon.Encoded(&p)
	if err != nil {
		return canon.Hash{}, err
	}
	root := canon.Sum(canon.DomainPool, b)
	n, err := s.uses.Get(ctx, root[:])
	if errors.Is(err, collections.ErrNotFound) {
		n, err = 0, s.pools.Set(ctx, root[:], b)
	}
	if err != nil {
		return canon.Hash{}, err
	}
	return root, s.uses.Set(ctx, root[:], n+1)
}

// release counts one lease less, and removes a pool that no lease has any more.
func (s *Store) release(ctx context.Context, root canon.Hash) error {
	n, err := s.uses.Get(ctx, root[:])
	if err != nil {
		return err
	}
	if n > 1 {
		return s.uses.Set(ctx, root[:], n-1)
	}
	return errors.Join(s.uses.Remove(ctx, root[:]), s.pools.Remove(ctx, root[:]))
}

// pool returns the pool of a root.
func (s *Store) pool(ctx context.Context, root canon.Hash) (p job.Pool, err error) {
	if p, ok := s.read.Get(root); ok {
		return p, nil
	}
	free := sdk.UnwrapSDKContext(ctx).WithGasMeter(storetypes.NewInfiniteGasMeter())
	b, err := s.pools.Get(free, root[:])
	if err == nil {
		err = canon.Unmarshal(b, &p)
	}
	if err != nil {
		return nil, fmt.Errorf("pool %s: %w", root.Short(), err)
	}
	s.read.Add(root, p)
	return p, nil
}

// Pools returns how many pools are stored.
func (s *Store) Pools(ctx context.Context) (n int, err error) {
	err = s.pools.Walk(ctx, nil, func([]byte, []byte) (bool, error) { n++; return false, nil })
	return n, err
}

// Check returns an error unless the store has the pools of its leases and no others.
func (s *Store) Check(ctx context.Context) error {
	used := map[canon.Hash]uint64{}
	err := s.Walk(ctx, nil, func(id, _ []byte) (bool, error) {
		t, err := s.of(ctx, id)
		used[t.providers]++
		used[t.auditors]++
		return err != nil, err
	})
	if err != nil {
		return err
	}
	n := 0
	err = s.pools.Walk(ctx, nil, func(at, b []byte) (bool, error) {
		n++
		root := canon.Sum(canon.DomainPool, b)
		if string(at) != string(root[:]) {
			return true, fmt.Errorf("the pool at %x has root %s", at, root.Short())
		}
		uses, err := s.uses.Get(ctx, at)
		if err == nil && uses != used[root] {
			err = fmt.Errorf("%d leases have pool %s, %d are counted", used[root], root.Short(), uses)
		}
		return err != nil, err
	})
	if err == nil && n != len(used) {
		err = fmt.Errorf("%d pools are stored, leases have %d", n, len(used))
	}
	return err
}
