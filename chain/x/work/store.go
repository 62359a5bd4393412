package work

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"cosmossdk.io/collections"
	errorsmod "cosmossdk.io/errors"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/x/work/terms"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
)

// leaseStore is the leases as they are stored, and the indexes of them.
type leaseStore struct {
	// Parts of leases; an absent unit or merge is a blank one.
	terms   terms.Store
	mutable collections.Map[[]byte, []byte]
	merges  collections.Map[part, []byte]
	units   collections.Map[part, []byte]

	// What few events need: the checkpoints of a unit's receipt, whose last the unit
	// holds, what counts of its earlier attempts, and the inputs of a merge.
	checkpoints collections.Map[part, []byte]
	past        collections.Map[collections.Pair[[]byte, uint64], []byte] // by order, unit and attempt: see attemptOf
	inputs      collections.Map[part, []byte]
	asked       collections.Map[string, uint64]                           // open questions to a custodian, in all leases
	slashPaid   collections.Map[collections.Pair[[]byte, string], uint64] // utally out of bonds, by order and account

	changed collections.Map[[]byte, uint64]                          // height of the newest change of a lease that is not settled
	changes collections.KeySet[collections.Pair[uint64, []byte]]     // the same by height, and settled leases until they are pruned
	reaches collections.Item[uint64]                                 // the height since which none that changed is missing
	retired collections.Map[collections.Pair[int64, []byte], uint64] // leases by when they were settled, with that height, until all of one is pruned

	led   collections.Map[string, uint64] // leases that an account leads, and that are not settled
	worth collections.Map[string, uint64] // what these were priced at, together, in utally

	// Indexes: when time must pass for a lease, in which phase it is, who takes part. That for which time could not pass is
	// in late instead.
	wakes   collections.KeySet[wake]
	late    module.Retries[part] // a unit, or itself
	phases  collections.KeySet[collections.Pair[int32, []byte]]
	parties collections.KeySet[collections.Triple[string, bool, []byte]] // account, settled, order
}

// wake is a time, and the order and unit, or itself, for which it must pass.
type wake = collections.Triple[int64, []byte, uint32]

// part names a unit or a round of an order.
type part = collections.Pair[[]byte, uint32]

// newLeaseStore declares the collections of a store of leases.
func newLeaseStore(sb *collections.SchemaBuilder) leaseStore {
	parts := collections.PairKeyCodec(collections.BytesKey, collections.Uint32Key)
	return leaseStore{
		terms:   terms.New(sb, 1, 26, 27),
		mutable: collections.NewMap(sb, collections.NewPrefix(2), "mutable", collections.BytesKey, collections.BytesValue),
		merges:  collections.NewMap(sb, collections.NewPrefix(3), "merges", parts, collections.BytesValue),
		units:   collections.NewMap(sb, collections.NewPrefix(4), "units", parts, collections.BytesValue),
		wakes: collections.NewKeySet(sb, collections.NewPrefix(6), "wakes",
			collections.TripleKeyCodec(collections.Int64Key, collections.BytesKey, collections.Uint32Key)),
		phases: collections.NewKeySet(sb, collections.NewPrefix(7), "phases",
			collections.PairKeyCodec(collections.Int32Key, collections.BytesKey)),
		led:   collections.NewMap(sb, collections.NewPrefix(8), "led", collections.StringKey, collections.Uint64Value),
		worth: collections.NewMap(sb, collections.NewPrefix(29), "worth", collections.StringKey, collections.Uint64Value),
		parties: collections.NewKeySet(sb, collections.NewPrefix(9), "parties",
			collections.TripleKeyCodec(collections.StringKey, collections.BoolKey, collections.BytesKey)),
		late:        module.RetriesOf(sb, 15, parts),
		checkpoints: collections.NewMap(sb, collections.NewPrefix(13), "checkpoints", parts, collections.BytesValue),
		inputs:      collections.NewMap(sb, collections.NewPrefix(14), "inputs", parts, collections.BytesValue),
		past: collections.NewMap(sb, collections.NewPrefix(16), "past",
			collections.PairKeyCodec(collections.BytesKey, collections.Uint64Key), collections.BytesValue),
		slashPaid: collections.NewMap(sb, collections.NewPrefix(17), "slash_paid",
			collections.PairKeyCodec(collections.BytesKey, collections.StringKey), collections.Uint64Value),
		asked:   collections.NewMap(sb, collections.NewPrefix(18), "asked", collections.StringKey, collections.Uint64Value),
		changed: collections.NewMap(sb, collections.NewPrefix(19), "changed", collections.BytesKey, collections.Uint64Value),
		changes: collections.NewKeySet(sb, collections.NewPrefix(23), "changes",
			collections.PairKeyCodec(collections.Uint64Key, collections.BytesKey)),
		reaches: collections.NewItem(sb, collections.NewPrefix(24), "changes_reach", collections.Uint64Value),
		retired: collections.NewMap(sb, collections.NewPrefix(25), "retired",
			collections.PairKeyCodec(collections.Int64Key, collections.BytesKey), collections.Uint64Value),
	}
}

// loaded is a lease and what of it was read: its mutable part, and the units and merges that
// part names. The rest is a skeleton. Of parts that were read it holds the bytes.
type loaded struct {
	job.Lease
	part    job.Part
	mutable []byte

	units, checkpoints, merges, inputs map[int][]byte

	past map[uint64][]byte // by attemptOf
}

// gasUnit is charged for each unit and party of an order that a message is about: its skeleton is
// made and copied, whatever the message reads (tally bench hardening --only cost).
const gasUnit = 40

// skeleton names no part: of the lease, only what is fixed and what is mutable is read.
func skeleton(*job.Lease) (p job.Part) { return p }

// load reads the parts of a lease that touched names, given its skeleton.
func (s *leaseStore) load(ctx context.Context, id canon.Hash, touched func(*job.Lease) job.Part) (*loaded, error) {
	l := &loaded{}
	err := s.terms.Read(ctx, id, &l.Lease)
	if errors.Is(err, collections.ErrNotFound) {
		return nil, errorsmod.Wrap(ErrNoLease, id.String())
	}
	if err == nil {
		l.mutable, err = s.mutable.Get(ctx, id[:])
	}
	if err == nil {
		err = canon.Unmarshal(l.mutable, l.Mutable())
	}
	if err != nil {
		return nil, fmt.Errorf("read lease %s: %w", id, err)
	}
	l.MakeSkeleton()
	module.Charge(ctx, gasUnit*uint64(len(l.Units)+len(l.Providers)+len(l.Auditors)), "skeleton")
	return l, s.readPart(ctx, id, l, touched(&l.Lease))
}

// readPart reads a part of a lease of which the skeleton was read.
func (s *leaseStore) readPart(ctx context.Context, id canon.Hash, l *loaded, part job.Part) error {
	l.part = part
	l.See(part.Units)
	if err := s.fill(ctx, id, l); err != nil {
		return fmt.Errorf("read parts of lease %s: %w", id, err)
	}
	return nil
}

// fill reads the parts of a lease that its part names.
func (s *leaseStore) fill(ctx context.Context, id canon.Hash, l *loaded) (err error) {
	if l.part.SlashPaid {
		err = s.slashPaid.Walk(ctx, collections.NewPrefixedPairRange[[]byte, string](id[:]), func(at collections.Pair[[]byte, string], amount uint64) (bool, error) {
			l.Ledger.SlashPaid = append(l.Ledger.SlashPaid, job.Share{Account: at.K2(), Amount: amount})
			return false, nil
		})
		if err != nil {
			return err
		}
	}
	unit := func(i int, b []byte) error {
		l.Units[i] = job.Unit{}
		return canon.Unmarshal(b, &l.Units[i])
	}
	if l.units, err = read(ctx, s.units, id, l.part.Units, unit); err != nil {
		return err
	}
	if _, err = read(ctx, s.units, id, l.part.Bare, unit); err != nil {
		return err
	}
	l.merges, err = read(ctx, s.merges, id, l.part.Merges, func(r int, b []byte) error {
		return canon.Unmarshal(b, &l.Merges[r])
	})
	if err == nil && !l.part.NoPast {
		err = s.fillPast(ctx, id, l)
	}
	if err != nil || l.part.NoRoots {
		return err
	}
	l.checkpoints, err = read(ctx, s.checkpoints, id, l.part.Units, func(i int, b []byte) error {
		all := hashes{}
		if err := canon.Unmarshal(b, &all); err != nil || l.Units[i].Receipt == nil {
			return errors.Join(err, fmt.Errorf("unit %d has checkpoints and no receipt", i))
		}
		l.Units[i].Receipt.Checkpoints = all
		return nil
	})
	if err != nil {
		return err
	}
	l.inputs, err = read(ctx, s.inputs, id, l.part.Merges, func(r int, b []byte) error {
		all := hashes{}
		err := canon.Unmarshal(b, &all)
		l.Merges[r].Inputs = all
		return err
	})
	return err
}

// attemptOf numbers the attempts of all units, those of one unit beside one another.
func attemptOf(unit, attempt int) uint64 { return uint64(unit)<<32 | uint64(attempt) }

// fillPast reads what counts of the earlier attempts of the units that a part names.
func (s *leaseStore) fillPast(ctx context.Context, id canon.Hash, l *loaded) error {
	l.past = map[uint64][]byte{}
	for run := range runs(l.part.Units) {
		within := collections.NewPrefixedPairRange[[]byte, uint64](id[:]).
			StartInclusive(attemptOf(run[0], 0)).EndExclusive(attemptOf(run[len(run)-1]+1, 0))
		err := s.past.Walk(ctx, within, func(at collections.Pair[[]byte, uint64], b []byte) (bool, error) {
			var p job.Past
			err := canon.Unmarshal(b, &p)
			unit := int(at.K2() >> 32)
			l.past[at.K2()], l.Past[unit] = b, append(l.Past[unit], p)
			return false, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// savePast stores the earlier attempts of a unit of which something counts, and removes
// those of which nothing does any more.
func (s *leaseStore) savePast(ctx context.Context, id canon.Hash, before *loaded, unit int, after []job.Past) error {
	stays := map[uint64]bool{}
	for i := range after {
		n := attemptOf(unit, after[i].Attempt())
		stays[n] = true
		if err := write(ctx, s.past, collections.Join(id[:], n), before.past[n], nil, &after[i]); err != nil {
			return err
		}
	}
	if len(before.Past) == 0 {
		return nil // a new lease
	}
	for i := range before.Past[unit] {
		if n := attemptOf(unit, before.Past[unit][i].Attempt()); !stays[n] {
			if err := s.past.Remove(ctx, collections.Join(id[:], n)); err != nil {
				return err
			}
		}
	}
	return nil
}

// runs returns numbers in order by those that lie beside one another.
func runs(numbers []int) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		for lo := 0; lo < len(numbers); {
			hi := lo + 1
			for hi < len(numbers) && numbers[hi] == numbers[hi-1]+1 {
				hi++
			}
			if !yield(numbers[lo:hi]) {
				return
			}
			lo = hi
		}
	}
}

// hashes are a stored part: the checkpoints of a receipt, or the inputs of a merge.
type hashes []canon.Hash

// Code walks the list.
func (h *hashes) Code(w *canon.Codec) { w.Hashes((*[]canon.Hash)(h), job.MaxUnits) }

// read hands those parts of an order that are there to f, and returns their bytes.
func read(ctx context.Context, m collections.Map[part, []byte], id canon.Hash, which []int, f func(int, []byte) error) (map[int][]byte, error) {
	raw := map[int][]byte{}
	for run := range runs(which) {
		within := collections.NewPrefixedPairRange[[]byte, uint32](id[:]).StartInclusive(uint32(run[0])).EndExclusive(uint32(run[len(run)-1] + 1))
		err := m.Walk(ctx, within, func(at part, b []byte) (bool, error) {
			i := int(at.K2())
			raw[i] = b
			return false, f(i, b)
		})
		if err != nil {
			return nil, err
		}
	}
	return raw, nil
}

// What an absent part stands for.
var (
	blankUnit  = canon.Marshal(&job.Unit{Status: job.Open})
	blankMerge = canon.Marshal(&job.Merge{})
)

// save stores what has changed between before and after.
func (s *leaseStore) save(ctx context.Context, id canon.Hash, before *loaded, after *job.Lease) error {
	mutable, err := canon.Encoded(after.Mutable())
	if err != nil {
		return fmt.Errorf("store lease %s: %w", id, err)
	}
	if !bytes.Equal(mutable, before.mutable) {
		if err := s.mutable.Set(ctx, id[:], mutable); err != nil {
			return err
		}
	}
	if err := s.saveSlashPaid(ctx, id, before.Ledger.SlashPaid, after.Ledger.SlashPaid); err != nil {
		return fmt.Errorf("store who was paid in lease %s: %w", id, err)
	}
	for _, i := range before.part.Units {
		at := collections.Join(id[:], uint32(i))
		err := s.saveUnit(ctx, at, before, &after.Order.Problem, &after.Units[i])
		if !before.part.NoPast {
			err = errors.Join(err, s.savePast(ctx, id, before, i, after.Past[i]))
		}
		if err != nil {
			return fmt.Errorf("store unit %d of lease %s: %w", i, id, err)
		}
	}
	for _, r := range before.part.Merges {
		m := after.Merges[r]
		inputs := m.Inputs
		m.Inputs = nil
		at := collections.Join(id[:], uint32(r))
		err := errors.Join(
			write(ctx, s.merges, at, before.merges[r], blankMerge, &m),
			s.saveList(ctx, s.inputs, at, before.inputs[r], inputs, m.Root.IsZero()),
		)
		if err != nil {
			return fmt.Errorf("store merge %d of lease %s: %w", r, id, err)
		}
	}
	return nil
}

// saveSlashPaid adds what accounts were paid between before and after.
func (s *leaseStore) saveSlashPaid(ctx context.Context, id canon.Hash, before, after []job.Share) error {
	known := map[string]uint64{}
	for _, share := range before {
		known[share.Account] = share.Amount
	}
	for _, share := range after {
		more := share.Amount - known[share.Account]
		if more == 0 {
			continue
		}
		at := collections.Join(id[:], share.Account)
		paid, err := s.slashPaid.Get(ctx, at)
		if err != nil && !errors.Is(err, collections.ErrNotFound) {
			return err
		}
		if err := s.slashPaid.Set(ctx, at, paid+more); err != nil {
			return err
		}
	}
	return nil
}

func (s *leaseStore) saveUnit(ctx context.Context, at part, before *loaded, p *job.Problem, u *job.Unit) error {
	i := int(at.K2())
	bare, checkpoints := u.Split(p)
	return errors.Join(
		write(ctx, s.units, at, before.units[i], blankUnit, &bare),
		s.saveList(ctx, s.checkpoints, at, before.checkpoints[i], checkpoints, u.Receipt == nil),
	)
}

// saveList stores a list unless it is what was read, or was not read: nil. It removes
// the list of what is gone.
func (s *leaseStore) saveList(ctx context.Context, m collections.Map[part, []byte], at part, raw []byte, list hashes, gone bool) error {
	switch {
	case gone:
		has, err := m.Has(ctx, at)
		if err != nil || !has {
			return err
		}
		return m.Remove(ctx, at)
	case list == nil:
		return nil
	}
	b, err := canon.Encoded(&list)
	if err != nil || bytes.Equal(b, raw) {
		return err
	}
	return m.Set(ctx, at, b)
}

// write stores one part unless it is what was read. What is blank again is removed.
func write[K any](ctx context.Context, m collections.Map[K, []byte], at K, old, blank []byte, v canon.Coded) error {
	b, err := canon.Encoded(v)
	if err != nil {
		return err
	}
	if old == nil {
		old = blank
	}
	switch {
	case bytes.Equal(b, old):
		return nil
	case bytes.Equal(b, blank):
		return m.Remove(ctx, at)
	}
	return m.Set(ctx, at, b)
}

// each hands every lease, whole, to f.
func (s *leaseStore) each(ctx context.Context, f func(canon.Hash, *job.Lease) error) error {
	return s.terms.Walk(ctx, nil, func(raw, _ []byte) (bool, error) {
		id, err := canon.HashOf(raw)
		if err != nil {
			return true, err
		}
		l, err := s.load(ctx, id, (*job.Lease).Everything)
		if err != nil {
			return true, err
		}
		return false, f(id, &l.Lease)
	})
}
