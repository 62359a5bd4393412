package work

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	errorsmod "cosmossdk.io/errors"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
)

// record is all settlements, in the order in which they came, as an append-only Merkle tree:
// one trusted header proves any of them, however old (docs/adr/0031-one-record.md).
type record struct {
	settlements collections.Map[[]byte, []byte] // by order
	places      collections.Map[[]byte, uint64] // in the tree, by order
	accumulator collections.Item[[]byte]
	complete    collections.Map[subtree, []byte]
}

// subtree names the complete subtree that is so many-th of those over 2^level leaves.
type subtree = collections.Pair[uint32, uint64]

func newRecord(sb *collections.SchemaBuilder) record {
	return record{
		settlements: collections.NewMap(sb, collections.NewPrefix(5), "settlements", collections.BytesKey, collections.BytesValue),
		accumulator: collections.NewItem(sb, collections.NewPrefix(wire.AccumulatorPrefix), "accumulator", collections.BytesValue),
		complete: collections.NewMap(sb, collections.NewPrefix(21), "complete",
			collections.PairKeyCodec(collections.Uint32Key, collections.Uint64Key), collections.BytesValue),
		places: collections.NewMap(sb, collections.NewPrefix(22), "places", collections.BytesKey, collections.Uint64Value),
	}
}

// read returns the accumulator; one without leaves before the first settlement.
func (r *record) read(ctx context.Context) (a canon.Accumulator, err error) {
	b, err := r.accumulator.Get(ctx)
	if errors.Is(err, collections.ErrNotFound) {
		return a, nil
	}
	if err != nil {
		return a, err
	}
	return a, canon.Unmarshal(b, &a)
}

// add appends a settlement.
func (r *record) add(ctx context.Context, s *job.Settlement) error {
	b, err := canon.Encoded(s)
	if err != nil {
		return fmt.Errorf("store the settlement of %s: %w", s.Order, err)
	}
	if err := r.settlements.Set(ctx, s.Order[:], b); err != nil {
		return err
	}
	at, err := r.append(ctx, wire.SettlementLeaf(b))
	if err != nil {
		return err
	}
	return r.places.Set(ctx, s.Order[:], at)
}

// append adds a leaf, and returns its place.
func (r *record) append(ctx context.Context, leaf canon.Hash) (at uint64, err error) {
	a, err := r.read(ctx)
	if err != nil {
		return 0, err
	}
	at = a.N
	for level, h := range a.Append(leaf) {
		if err := r.complete.Set(ctx, collections.Join(uint32(level), at>>level), h[:]); err != nil {
			return 0, err
		}
	}
	b, err := canon.Encoded(&a)
	if err != nil {
		return 0, fmt.Errorf("store the record of settlements: %w", err)
	}
	return at, r.accumulator.Set(ctx, b)
}

// settlement returns that of an order, as it is stored.
func (r *record) settlement(ctx context.Context, order canon.Hash) (s job.Settlement, b []byte, err error) {
	b, err = r.settlements.Get(ctx, order[:])
	if errors.Is(err, collections.ErrNotFound) {
		return s, nil, errorsmod.Wrapf(ErrNoLease, "order %s is not settled", order)
	}
	if err != nil {
		return s, nil, err
	}
	return s, b, canon.Unmarshal(b, &s)
}

// position returns where an order's settlement stands among the first count of all.
func (r *record) position(ctx context.Context, order canon.Hash, count uint64) (p canon.Position, err error) {
	p.Index, err = r.places.Get(ctx, order[:])
	if errors.Is(err, collections.ErrNotFound) || err == nil && p.Index >= count {
		return p, errorsmod.Wrapf(ErrNoLease, "order %s is not among the first %d that were settled", order, count)
	}
	if err == nil {
		p.Path, err = canon.PathAmong(count, p.Index, func(level uint8, number uint64) (canon.Hash, error) {
			return r.top(ctx, level, number)
		})
	}
	return p, err
}

func (r *record) top(ctx context.Context, level uint8, number uint64) (canon.Hash, error) {
	b, err := r.complete.Get(ctx, collections.Join(uint32(level), number))
	if err != nil {
		return canon.Hash{}, err
	}
	return canon.HashOf(b)
}

// leaves hands every leaf to f, in order.
func (r *record) leaves(ctx context.Context, f func(canon.Hash) error) error {
	return r.complete.Walk(ctx, collections.NewPrefixedPairRange[uint32, uint64](0), func(_ subtree, b []byte) (bool, error) {
		h, err := canon.HashOf(b)
		if err == nil {
			err = f(h)
		}
		return err != nil, err
	})
}

// check: the accumulator is that of the leaves, and every settlement is one of them.
func (r *record) check(ctx context.Context) error {
	var again canon.Accumulator
	err := r.leaves(ctx, func(leaf canon.Hash) error {
		again.Append(leaf)
		return nil
	})
	if err != nil {
		return err
	}
	a, err := r.read(ctx)
	if err != nil {
		return err
	}
	if a.N != again.N || a.Root() != again.Root() {
		return fmt.Errorf("the record has %d settlements under root %s, its leaves are %d under %s", a.N, a.Root(), again.N, again.Root())
	}
	return r.settlements.Walk(ctx, nil, func(raw, b []byte) (bool, error) {
		var s job.Settlement
		err := canon.Unmarshal(b, &s)
		id, also := canon.HashOf(raw)
		if err = errors.Join(err, also); err == nil {
			var p canon.Position
			if p, err = r.position(ctx, id, a.N); err == nil {
				err = a.Verify(wire.SettlementLeaf(b), p)
			}
		}
		if err != nil {
			err = fmt.Errorf("settlement of %x: %w", raw, err)
		}
		return err != nil, err
	})
}

// enter stores a record: its leaves in order, and the settlements of which they are.
func (r *record) enter(ctx context.Context, leaves, settlements [][]byte) error {
	places := map[canon.Hash]uint64{}
	for _, raw := range leaves {
		h, err := canon.HashOf(raw)
		if err != nil {
			return err
		}
		if places[h], err = r.append(ctx, h); err != nil {
			return err
		}
	}
	for _, b := range settlements {
		var s job.Settlement
		if err := canon.Unmarshal(b, &s); err != nil {
			return err
		}
		if err := r.settlements.Set(ctx, s.Order[:], b); err != nil {
			return err
		}
		if err := r.places.Set(ctx, s.Order[:], places[wire.SettlementLeaf(b)]); err != nil {
			return err
		}
	}
	return nil
}

// checkRecord returns an error unless each settlement is a leaf.
func checkRecord(leaves, settlements [][]byte) error {
	known := map[canon.Hash]bool{}
	for i, raw := range leaves {
		h, err := canon.HashOf(raw)
		if err != nil || known[h] {
			return fmt.Errorf("work genesis: leaf %d of the record is damaged, or there twice", i)
		}
		known[h] = true
	}
	for i, b := range settlements {
		if !known[wire.SettlementLeaf(b)] {
			return fmt.Errorf("work genesis: settlement %d is not in the record", i)
		}
	}
	return nil
}
