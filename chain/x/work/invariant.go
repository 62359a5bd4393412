package work

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"cosmossdk.io/collections"

	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// Invariant: see the package. Bonds are what disputes reserve of stakes, by account; nil
// if that is not known yet.
func (k *Keeper) Invariant(ctx context.Context, bonds map[string]uint64) error {
	reserved, unanswered := map[string]uint64{}, map[string]uint32{}
	n := indexed{led: map[string]uint64{}, worth: map[string]uint64{}, late: map[string]bool{}}
	err := k.leases.late.Keys(ctx, func(p part) { n.late[lateKey(p)] = true })
	if err != nil {
		return err
	}
	var locked uint64
	asked := map[string]int{}
	err = k.leases.each(ctx, func(id canon.Hash, l *job.Lease) error {
		if err := l.Check(); err != nil {
			return fmt.Errorf("lease %s: %w", id, err)
		}
		for _, s := range l.Reserved() {
			reserved[s.Account] += s.Amount
		}
		locked += l.Locked()
		for _, a := range l.Asked {
			asked[a.Custodian] += a.Open
		}
		for _, c := range l.Disputes {
			if c.Missed {
				unanswered[c.Defender]++
			}
		}
		escrow, err := k.escrow.Escrow(ctx, id)
		if err == nil && escrow != l.Ledger.Escrow {
			err = fmt.Errorf("lease %s has %d utally in escrow, the market holds %d", id, l.Ledger.Escrow, escrow)
		}
		if err != nil {
			return err
		}
		return k.leases.checkEntries(ctx, id, l, &n)
	})
	if err != nil {
		return err
	}
	if err := k.leases.checkIndexes(ctx, n); err != nil {
		return err
	}
	if err := k.record.check(ctx); err != nil {
		return err
	}
	if err := errors.Join(k.checkFees(ctx, locked), k.leases.checkAsked(ctx, asked)); err != nil {
		return err
	}
	return k.checkStakes(ctx, reserved, unanswered, bonds)
}

// checkFees: the module's account holds the fees of all open questions.
func (k *Keeper) checkFees(ctx context.Context, locked uint64) error {
	if held := k.balance(ctx, Name); held != locked {
		return fmt.Errorf("the fees of open questions are %d utally, the account holds %d", locked, held)
	}
	return nil
}

// checkAsked: of every custodian as many questions are open as the leases say.
func (s *leaseStore) checkAsked(ctx context.Context, asked map[string]int) error {
	err := s.asked.Walk(ctx, nil, func(custodian string, n uint64) (bool, error) {
		if asked[custodian] != int(n) {
			return true, fmt.Errorf("%d questions to %s are counted, its leases have %d", n, custodian, asked[custodian])
		}
		delete(asked, custodian)
		return false, nil
	})
	if err == nil && len(asked) > 0 {
		err = fmt.Errorf("%d custodians have open questions that are not counted", len(asked))
	}
	return err
}

// checkStakes: of every peer as much is reserved as the leases and disputes reserve, and
// it owes as many answers as their disputes say.
func (k *Keeper) checkStakes(ctx context.Context, reserved map[string]uint64, unanswered map[string]uint32, bonds map[string]uint64) error {
	seen := map[string]bool{}
	for _, role := range []providerv1.Role{providerv1.ROLE_PROVIDER, providerv1.ROLE_VALIDATOR, providerv1.ROLE_CHALLENGER} {
		peers, err := k.stakes.WithRole(ctx, role)
		if err != nil {
			return err
		}
		for _, p := range peers {
			if seen[p.Account] {
				continue // in another role
			}
			seen[p.Account] = true
			if want := reserved[p.Account] + bonds[p.Account]; p.Reserved < want || p.Reserved > want && bonds != nil {
				return fmt.Errorf("%s has %d utally of stake reserved, its leases and disputes reserve %d", p.Account, p.Reserved, want)
			}
			if p.Unanswered != unanswered[p.Account] {
				return fmt.Errorf("%s owes %d answers in disputes, its leases say %d", p.Account, p.Unanswered, unanswered[p.Account])
			}
			delete(reserved, p.Account)
		}
	}
	if len(reserved) > 0 {
		return fmt.Errorf("leases reserve stake of %s, which is no peer", slices.Sorted(maps.Keys(reserved))[0])
	}
	return nil
}

// indexed counts the entries that the indexes should have.
type indexed struct {
	wakes, phases, parties, live, settled int

	led   map[string]uint64 // leases by lead
	worth map[string]uint64 // their prices by lead
	late  map[string]bool   // order and unit of what was postponed
}

func lateKey(p part) string { return fmt.Sprintf("%x %d", p.K1(), p.K2()) }

// checkEntries: a lease is in the indexes as it should be.
func (s *leaseStore) checkEntries(ctx context.Context, id canon.Hash, l *job.Lease, n *indexed) error {
	e, parties := entriesOf(id, l, l.Everything().Units), partiesOf(id, l)
	e.wakes = slices.DeleteFunc(e.wakes, func(w wake) bool {
		in, err := s.wakes.Has(ctx, w)
		return err == nil && !in && n.late[lateKey(collections.Join(w.K2(), w.K3()))]
	})
	n.wakes += len(e.wakes)
	if lead := ledBy(l); lead != "" {
		n.led[lead]++
		n.worth[lead] += l.Quote.Price
	}
	n.phases += len(e.phases)
	n.parties += len(parties)
	if l.Phase == job.Settled {
		n.settled++
	} else {
		n.live++
		at, err := s.changed.Get(ctx, id[:])
		if err == nil {
			err = has(ctx, s.changes, []collections.Pair[uint64, []byte]{collections.Join(at, id[:])})
		}
		if err != nil {
			return fmt.Errorf("lease %s is %v, and when it changed is not known: %w", id, l.Phase, err)
		}
	}
	return errors.Join(has(ctx, s.wakes, e.wakes), has(ctx, s.phases, e.phases), has(ctx, s.parties, parties))
}

// has: keys are in an index.
func has[K any](ctx context.Context, index collections.KeySet[K], keys []K) error {
	for _, key := range keys {
		in, err := index.Has(ctx, key)
		if err == nil && !in {
			err = fmt.Errorf("index has no entry %s", index.KeyCodec().Stringify(key))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkIndexes: the indexes have nothing else.
func (s *leaseStore) checkIndexes(ctx context.Context, n indexed) error {
	return errors.Join(
		count(ctx, "wakes", s.wakes, n.wakes), checkLed(ctx, s.led, n.led), checkLed(ctx, s.worth, n.worth),
		count(ctx, "phases", s.phases, n.phases), count(ctx, "parties", s.parties, n.parties),
		count(ctx, "changed", s.changed, n.live), count(ctx, "changes", s.changes, n.live+n.settled),
		s.checkRetired(ctx, n.settled), s.terms.Check(ctx),
	)
}

// checkRetired: every settled lease waits to be pruned, and is known to have changed when it was
// settled. What else waits is pruned in part.
func (s *leaseStore) checkRetired(ctx context.Context, settled int) error {
	err := s.retired.Walk(ctx, nil, func(at collections.Pair[int64, []byte], height uint64) (bool, error) {
		there, err := s.terms.Has(ctx, at.K2())
		if err == nil && there {
			settled--
			err = has(ctx, s.changes, []collections.Pair[uint64, []byte]{collections.Join(height, at.K2())})
		}
		return err != nil, err
	})
	if err == nil && settled != 0 {
		err = fmt.Errorf("of the settled leases %d too few wait to be pruned", settled)
	}
	return err
}

// checkLed: who leads how many leases, and of what price, is what the leases say.
func checkLed(ctx context.Context, counts collections.Map[string, uint64], want map[string]uint64) error {
	err := counts.Walk(ctx, nil, func(account string, n uint64) (bool, error) {
		if want[account] != n {
			return true, fmt.Errorf("%s leads leases, or utally of them, of %d, and is counted with %d", account, want[account], n)
		}
		delete(want, account)
		return false, nil
	})
	if err == nil && len(want) > 0 {
		err = fmt.Errorf("%d leads are not counted", len(want))
	}
	return err
}

func count[K, V any](ctx context.Context, name string, index query.Collection[K, V], want int) error {
	all, err := index.IterateRaw(ctx, nil, nil, collections.OrderAscending)
	if err != nil {
		return err
	}
	defer all.Close()
	n := 0
	for ; all.Valid(); all.Next() {
		n++
	}
	if n != want {
		return fmt.Errorf("index %s has %d entries, want %d", name, n, want)
	}
	return nil
}
