package work

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	errorsmod "cosmossdk.io/errors"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// record is all settlements, in the order in which they came, as an append-only Merkle tree:
// one trusted header proves any of them, however old (docs/adr/0031-one-record.md).
type record struct {
	settlements collections.Map[[]byte, []byte] // by order
	places      collections.Map[[]byte, []byte] // place, by order
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
		places: collections.NewMap(sb, collections.NewPrefix(22), "places", collections.BytesKey, collections.BytesValue),
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
	return r.putPlace(ctx, s.Order, place{Index: at})
}

// place returns that of a settled order, or ErrNotFound.
func (r *record) place(ctx context.Context, order canon.Hash) (p place, err error) {
	b, err := r.places.Get(ctx, order[:])
	if err != nil {
		return p, err
	}
	return p, canon.Unmarshal(b, &p)
}

func (r *record) putPlace(ctx context.Context, order canon.Hash, p place) error {
	b, err := canon.Encoded(&p)
	if err != nil {
		return err
	}
	return r.places.Set(ctx, order[:], b)
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
	at, err := r.place(ctx, order)
	p.Index = at.Index
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
	if err := r.checkPlaces(ctx, a.N); err != nil {
		return err
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

// checkPlaces: every leaf is an order's, whose settlement is there unless it was pruned.
func (r *record) checkPlaces(ctx context.Context, leaves uint64) error {
	n := uint64(0)
	err := r.places.Walk(ctx, nil, func(raw, b []byte) (bool, error) {
		n++
		var p place
		if err := canon.Unmarshal(b, &p); err != nil {
			return true, err
		}
		has, err := r.settlements.Has(ctx, raw)
		if err == nil && (has != (p.Pruned == 0) || p.Index >= leaves) {
			err = fmt.Errorf("order %x has place %d of %d, was pruned at %d, and its settlement is there: %v", raw, p.Index, leaves, p.Pruned, has)
		}
		return err != nil, err
	})
	if err == nil && n != leaves {
		err = fmt.Errorf("the record has %d leaves, and %d orders have a place", leaves, n)
	}
	return err
}

// enter stores a record: its leaves in order, the settlements of which they are, and where those
// stand that were pruned.
func (r *record) enter(ctx context.Context, leaves, settlements [][]byte, pruned []workv1.PrunedLease) error {
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
		if err := r.putPlace(ctx, s.Order, place{Index: places[wire.SettlementLeaf(b)]}); err != nil {
			return err
		}
	}
	for _, p := range pruned {
		order, err := canon.HashOf(p.Order)
		if err != nil {
			return err
		}
		if err := r.putPlace(ctx, order, place{p.Index, p.At}); err != nil {
			return err
		}
	}
	return nil
}

// pruned hands every order to f whose lease was pruned, by id.
func (r *record) pruned(ctx context.Context, f func(workv1.PrunedLease)) error {
	return r.places.Walk(ctx, nil, func(order, b []byte) (bool, error) {
		var p place
		err := canon.Unmarshal(b, &p)
		if err == nil && p.Pruned != 0 {
			f(workv1.PrunedLease{Order: order, Index: p.Index, At: p.Pruned})
		}
		return err != nil, err
	})
}

// checkRecord returns an error unless each leaf is that of one settlement, or of one that was pruned.
func checkRecord(leaves, settlements [][]byte, pruned []workv1.PrunedLease) error {
	free := map[canon.Hash]int{} // leaves that are no order's yet
	for i, raw := range leaves {
		h, err := canon.HashOf(raw)
		if _, twice := free[h]; err != nil || twice {
			return fmt.Errorf("work genesis: leaf %d of the record is damaged, or there twice", i)
		}
		free[h] = i
	}
	for i, b := range settlements {
		leaf := wire.SettlementLeaf(b)
		if _, in := free[leaf]; !in {
			return fmt.Errorf("work genesis: settlement %d is not in the record", i)
		}
		delete(free, leaf)
	}
	for i, p := range pruned {
		if i > 0 && bytes.Compare(pruned[i-1].Order, p.Order) >= 0 || p.At <= 0 || p.Index >= uint64(len(leaves)) {
			return fmt.Errorf("work genesis: pruned lease %x is out of order, or has no leaf, or no time", p.Order)
		}
		order, err := canon.HashOf(p.Order)
		if err != nil {
			return fmt.Errorf("work genesis: pruned lease %d: %w", i, err)
		}
		leaf := canon.Hash(leaves[p.Index])
		if _, in := free[leaf]; !in {
			return fmt.Errorf("work genesis: the leaf of pruned lease %s is another order's", order)
		}
		delete(free, leaf)
	}
	if len(free) > 0 {
		return fmt.Errorf("work genesis: %d leaves of the record are no order's", len(free))
	}
	return nil
}
