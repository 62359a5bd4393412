package work

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"reflect"
	"slices"

	"cosmossdk.io/collections"
	errorsmod "cosmossdk.io/errors"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
)

// loaded is a lease and what of it was read: its mutable part, and the units and merges that
// part names. The rest is a skeleton. Of parts that were read it holds the bytes.
type loaded struct {
	job.Lease
	part    job.Part
	mutable []byte

	units, checkpoints, merges, inputs map[int][]byte

	past map[uint64][]byte // by attemptOf
}

// gasUnit is charged for each unit of an order that a message is about: its skeleton is
// made and copied, whatever the message reads (tally bench hardening --only cost).
const gasUnit = 40

// skeleton names no part: of the lease, only what is fixed and what is mutable is read.
func skeleton(*job.Lease) (p job.Part) { return p }

// load reads the parts of a lease that touched names, given its skeleton.
func (k *Keeper) load(ctx context.Context, id canon.Hash, touched func(*job.Lease) job.Part) (*loaded, error) {
	l := &loaded{}
	fixed, err := k.fixed.Get(ctx, id[:])
	if errors.Is(err, collections.ErrNotFound) {
		return nil, errorsmod.Wrap(ErrNoLease, id.String())
	}
	if err != nil {
		return nil, err
	}
	if l.mutable, err = k.mutable.Get(ctx, id[:]); err != nil {
		return nil, err
	}
	if err := errors.Join(canon.Unmarshal(fixed, l.Fixed()), canon.Unmarshal(l.mutable, l.Mutable())); err != nil {
		return nil, fmt.Errorf("read lease %s: %w", id, err)
	}
	l.MakeSkeleton()
	module.Charge(ctx, gasUnit*uint64(len(l.Units)), "skeleton")
	l.part = touched(&l.Lease)
	l.See(l.part.Units)
	if err := k.fill(ctx, id, l); err != nil {
		return nil, fmt.Errorf("read parts of lease %s: %w", id, err)
	}
	return l, nil
}

// fill reads the parts of a lease that its part names.
func (k *Keeper) fill(ctx context.Context, id canon.Hash, l *loaded) (err error) {
	if l.part.SlashPaid {
		err = k.slashPaid.Walk(ctx, collections.NewPrefixedPairRange[[]byte, string](id[:]), func(at collections.Pair[[]byte, string], amount uint64) (bool, error) {
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
	if l.units, err = read(ctx, k.units, id, l.part.Units, unit); err != nil {
		return err
	}
	if _, err = read(ctx, k.units, id, l.part.Bare, unit); err != nil {
		return err
	}
	l.merges, err = read(ctx, k.merges, id, l.part.Merges, func(r int, b []byte) error {
		return canon.Unmarshal(b, &l.Merges[r])
	})
	if err == nil && !l.part.NoPast {
		err = k.fillPast(ctx, id, l)
	}
	if err != nil || l.part.NoRoots {
		return err
	}
	l.checkpoints, err = read(ctx, k.checkpoints, id, l.part.Units, func(i int, b []byte) error {
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
	l.inputs, err = read(ctx, k.inputs, id, l.part.Merges, func(r int, b []byte) error {
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
func (k *Keeper) fillPast(ctx context.Context, id canon.Hash, l *loaded) error {
	l.past = map[uint64][]byte{}
	for run := range runs(l.part.Units) {
		within := collections.NewPrefixedPairRange[[]byte, uint64](id[:]).
			StartInclusive(attemptOf(run[0], 0)).EndExclusive(attemptOf(run[len(run)-1]+1, 0))
		err := k.past.Walk(ctx, within, func(at collections.Pair[[]byte, uint64], b []byte) (bool, error) {
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
func (k *Keeper) savePast(ctx context.Context, id canon.Hash, before *loaded, unit int, after []job.Past) error {
	stays := map[uint64]bool{}
	for i := range after {
		n := attemptOf(unit, after[i].Attempt())
		stays[n] = true
		if err := write(ctx, k.past, collections.Join(id[:], n), before.past[n], nil, &after[i]); err != nil {
			return err
		}
	}
	if len(before.Past) == 0 {
		return nil // a new lease
	}
	for i := range before.Past[unit] {
		if n := attemptOf(unit, before.Past[unit][i].Attempt()); !stays[n] {
			if err := k.past.Remove(ctx, collections.Join(id[:], n)); err != nil {
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
func (k *Keeper) save(ctx context.Context, id canon.Hash, before *loaded, after *job.Lease) error {
	mutable, err := canon.Encoded(after.Mutable())
	if err != nil {
		return fmt.Errorf("store lease %s: %w", id, err)
	}
	if !bytes.Equal(mutable, before.mutable) {
		if err := k.mutable.Set(ctx, id[:], mutable); err != nil {
			return err
		}
	}
	if err := k.saveSlashPaid(ctx, id, before.Ledger.SlashPaid, after.Ledger.SlashPaid); err != nil {
		return fmt.Errorf("store who was paid in lease %s: %w", id, err)
	}
	for _, i := range before.part.Units {
		at := collections.Join(id[:], uint32(i))
		err := k.saveUnit(ctx, at, before, &after.Units[i])
		if !before.part.NoPast {
			err = errors.Join(err, k.savePast(ctx, id, before, i, after.Past[i]))
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
			write(ctx, k.merges, at, before.merges[r], blankMerge, &m),
			k.saveList(ctx, k.inputs, at, before.inputs[r], inputs, m.Root.IsZero()),
		)
		if err != nil {
			return fmt.Errorf("store merge %d of lease %s: %w", r, id, err)
		}
	}
	return nil
}

// saveSlashPaid adds what accounts were paid between before and after.
func (k *Keeper) saveSlashPaid(ctx context.Context, id canon.Hash, before, after []job.Share) error {
	known := map[string]uint64{}
	for _, s := range before {
		known[s.Account] = s.Amount
	}
	for _, s := range after {
		more := s.Amount - known[s.Account]
		if more == 0 {
			continue
		}
		at := collections.Join(id[:], s.Account)
		paid, err := k.slashPaid.Get(ctx, at)
		if err != nil && !errors.Is(err, collections.ErrNotFound) {
			return err
		}
		if err := k.slashPaid.Set(ctx, at, paid+more); err != nil {
			return err
		}
	}
	return nil
}

func (k *Keeper) saveUnit(ctx context.Context, at part, before *loaded, u *job.Unit) error {
	i := int(at.K2())
	bare, checkpoints := u.Split()
	return errors.Join(
		write(ctx, k.units, at, before.units[i], blankUnit, &bare),
		k.saveList(ctx, k.checkpoints, at, before.checkpoints[i], checkpoints, u.Receipt == nil),
	)
}

// saveList stores a list unless it is what was read, or was not read: nil. It removes
// the list of what is gone.
func (k *Keeper) saveList(ctx context.Context, m collections.Map[part, []byte], at part, raw []byte, list hashes, gone bool) error {
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

// enter stores a lease that is not in the store, with its indexes.
func (k *Keeper) enter(ctx context.Context, id canon.Hash, l *job.Lease) error {
	fixed, err := canon.Encoded(l.Fixed())
	if err != nil {
		return fmt.Errorf("store lease %s: %w", id, err)
	}
	if err := k.fixed.Set(ctx, id[:], fixed); err != nil {
		return err
	}
	whole := l.Everything()
	if err := k.save(ctx, id, &loaded{part: whole}, l); err != nil {
		return err
	}
	return k.index(ctx, id, nil, l, whole.Units)
}

// itself stands for a lease beside its units in the index of times.
const itself = math.MaxUint32

// index keeps the indexes when a lease and the given units change; before is nil for a
// new one.
func (k *Keeper) index(ctx context.Context, id canon.Hash, before, after *job.Lease, units []int) error {
	was, is := entriesOf(id, before, units), entriesOf(id, after, units)
	if err := k.countAsked(ctx, before, after); err != nil {
		return err
	}
	err := errors.Join(move(ctx, k.wakes, was.wakes, is.wakes), move(ctx, k.leads, was.leads, is.leads), move(ctx, k.phases, was.phases, is.phases))
	if before == nil || before.Phase != after.Phase {
		err = errors.Join(err, move(ctx, k.parties, partiesOf(id, before), partiesOf(id, after)))
	}
	if after.Phase == job.Settled {
		return errors.Join(err, k.changed.Remove(ctx, id[:]))
	}
	return errors.Join(err, k.changed.Set(ctx, id[:], uint64(sdk.UnwrapSDKContext(ctx).BlockHeight())))
}

// countAsked counts the open questions to custodians over all leases.
func (k *Keeper) countAsked(ctx context.Context, before, after *job.Lease) error {
	var was []job.Asked
	if before != nil {
		was = before.Asked
	}
	change := map[string]int{}
	for _, a := range was {
		change[a.Custodian] -= a.Open
	}
	for _, a := range after.Asked {
		change[a.Custodian] += a.Open
	}
	for _, custodian := range slices.Sorted(maps.Keys(change)) {
		if change[custodian] == 0 {
			continue
		}
		open, err := k.openOf(ctx, custodian)
		if err != nil {
			return err
		}
		if open += change[custodian]; open > 0 {
			err = k.asked.Set(ctx, custodian, uint64(open))
		} else {
			err = k.asked.Remove(ctx, custodian)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// openOf returns how many questions to a custodian are open, in all leases.
func (k *Keeper) openOf(ctx context.Context, custodian string) (int, error) {
	n, err := k.asked.Get(ctx, custodian)
	if errors.Is(err, collections.ErrNotFound) {
		return 0, nil
	}
	return int(n), err
}

// entries are a lease's keys in the indexes that change often.
type entries struct {
	wakes  []wake
	leads  []collections.Pair[string, []byte]
	phases []collections.Pair[int32, []byte]
}

func entriesOf(id canon.Hash, l *job.Lease, units []int) (e entries) {
	if l == nil {
		return e
	}
	e.phases = append(e.phases, collections.Join(int32(l.Phase), id[:]))
	add := func(at int64, which uint32) {
		if at != job.Never {
			e.wakes = append(e.wakes, collections.Join3(at, id[:], which))
		}
	}
	add(l.WakeSelf(), itself)
	for _, i := range units {
		add(l.WakeUnit(i), uint32(i))
	}
	if lead := l.Lead(); lead != "" && l.Phase != job.Settled {
		e.leads = append(e.leads, collections.Join(lead, id[:]))
	}
	return e
}

// partiesOf returns a lease's keys in the index of participants.
func partiesOf(id canon.Hash, l *job.Lease) (out []collections.Triple[string, bool, []byte]) {
	if l == nil {
		return nil
	}
	for _, account := range participants(l) {
		out = append(out, collections.Join3(account, l.Phase == job.Settled, id[:]))
	}
	return out
}

// move replaces keys of an index by others; those that stay cost nothing.
func move[K any](ctx context.Context, index collections.KeySet[K], from, to []K) error {
	if reflect.DeepEqual(from, to) {
		return nil
	}
	for _, key := range from {
		if err := index.Remove(ctx, key); err != nil {
			return err
		}
	}
	for _, key := range to {
		if err := index.Set(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// participants returns the accounts that take part in a lease: its consumer,
// its providers, and the validators that lead, may lead, audit or keep.
func participants(l *job.Lease) []string {
	out := []string{l.Order.Consumer}
	for _, d := range l.Leads {
		out = append(out, d.Account)
	}
	for _, p := range l.Providers {
		out = append(out, p.Account)
	}
	for _, p := range l.Auditors { // the custodians are among them
		out = append(out, p.Account)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
