package power

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/core/power"
	powerv1 "github.com/tally-network/tally/gen/tally/power/v1"
)

// maxSwept bounds how many earlier records a block removes.
const maxSwept = 64

// past tells the power of moments that somebody has marked. A record is copied when it first changes after
// the newest mark: so nothing is copied when a mark is made, and a record at most once for each.
type past struct {
	marks   collections.Map[uint64, int64] // hours of those that somebody still asks for
	last    collections.Item[uint64]       // the newest that was ever made
	earlier collections.Map[collections.Pair[sdk.AccAddress, uint64], powerv1.Record]
	byMark  collections.KeySet[collections.Pair[uint64, sdk.AccAddress]] // the same, in the order in which they can go
}

// Mark makes this moment one whose power can be told, until Unmark. It returns the power of all accounts now.
func (k *Keeper) Mark(ctx context.Context) (mark, total uint64, err error) {
	h, err := k.Hour(ctx)
	if err != nil {
		return 0, 0, err
	}
	all, err := k.together(ctx)
	if err != nil {
		return 0, 0, err
	}
	if mark, err = k.past.newest(ctx); err != nil {
		return 0, 0, err
	}
	mark++
	return mark, all.Effective(h), errors.Join(k.past.marks.Set(ctx, mark, int64(h)), k.past.last.Set(ctx, mark))
}

// Unmark says that nobody asks for a moment any more.
func (k *Keeper) Unmark(ctx context.Context, mark uint64) error {
	return k.past.marks.Remove(ctx, mark)
}

// At returns the power that an account had at a mark, without what was credited or decayed since. An account
// that was convicted since has none.
func (k *Keeper) At(ctx context.Context, account sdk.AccAddress, mark uint64) (uint64, error) {
	h, err := k.past.marks.Get(ctx, mark)
	if err != nil {
		return 0, fmt.Errorf("mark %d: %w", mark, err)
	}
	own, err := k.Of(ctx, account)
	if err != nil {
		return 0, err
	}
	since := collections.NewPrefixedPairRange[sdk.AccAddress, uint64](account).StartInclusive(mark)
	err = k.past.earlier.Walk(ctx, since, func(_ collections.Pair[sdk.AccAddress, uint64], r powerv1.Record) (bool, error) {
		own, err = FromProto(&r)
		return true, err
	})
	return own.Effective(power.Hour(h)), err
}

// newest returns the newest mark that was ever made, 0 if there was none.
func (p *past) newest(ctx context.Context) (uint64, error) {
	last, err := p.last.Get(ctx)
	if errors.Is(err, collections.ErrNotFound) {
		return 0, nil
	}
	return last, err
}

// oldest returns the oldest mark that somebody asks for.
func (p *past) oldest(ctx context.Context) (mark uint64, found bool, err error) {
	err = p.marks.Walk(ctx, nil, func(m uint64, _ int64) (bool, error) {
		mark, found = m, true
		return true, nil
	})
	return mark, found, err
}

// keep keeps a record as it is before a change, unless that was done since the newest mark.
func (p *past) keep(ctx context.Context, account sdk.AccAddress, own powerv1.Record) error {
	if _, asked, err := p.oldest(ctx); err != nil || !asked {
		return err
	}
	last, err := p.newest(ctx)
	if err != nil {
		return err
	}
	if had, err := p.earlier.Has(ctx, collections.Join(account, last)); err != nil || had {
		return err
	}
	return p.set(ctx, account, last, own)
}

func (p *past) set(ctx context.Context, account sdk.AccAddress, mark uint64, r powerv1.Record) error {
	return errors.Join(p.earlier.Set(ctx, collections.Join(account, mark), r), p.byMark.Set(ctx, collections.Join(mark, account)))
}

// forfeit takes away what an account had at any mark. Its record was kept since the newest.
func (p *past) forfeit(ctx context.Context, account sdk.AccAddress) error {
	var marks []uint64
	of := collections.NewPrefixedPairRange[sdk.AccAddress, uint64](account)
	err := p.earlier.Walk(ctx, of, func(at collections.Pair[sdk.AccAddress, uint64], _ powerv1.Record) (bool, error) {
		marks = append(marks, at.K2())
		return false, nil
	})
	for _, m := range marks {
		err = errors.Join(err, p.earlier.Set(ctx, collections.Join(account, m), powerv1.Record{Account: account.String()}))
	}
	return err
}

// sweep removes earlier records that nobody can ask for, some in each block.
func (p *past) sweep(ctx context.Context) error {
	oldest, asked, err := p.oldest(ctx)
	if err != nil {
		return err
	}
	var gone []collections.Pair[uint64, sdk.AccAddress]
	err = p.byMark.Walk(ctx, nil, func(at collections.Pair[uint64, sdk.AccAddress]) (bool, error) {
		if asked && at.K1() >= oldest {
			return true, nil
		}
		gone = append(gone, at)
		return len(gone) == maxSwept, nil
	})
	for _, at := range gone {
		err = errors.Join(err, p.byMark.Remove(ctx, at), p.earlier.Remove(ctx, collections.Join(at.K2(), at.K1())))
	}
	return err
}

// load imports marks and earlier records.
func (p *past) load(ctx context.Context, g *powerv1.GenesisState) error {
	if g.LastMark > 0 {
		if err := p.last.Set(ctx, g.LastMark); err != nil {
			return err
		}
	}
	for _, m := range g.Marks {
		if m.Id < 1 || m.Id > g.LastMark || m.Hour < 0 {
			return fmt.Errorf("power genesis: mark %d of hour %d, and the last is %d", m.Id, m.Hour, g.LastMark)
		}
		if _, err := power.HourAt(m.Hour*3_600_000, 0); err != nil || m.Hour > 1<<32 {
			return fmt.Errorf("power genesis: mark %d: %w", m.Id, power.ErrTime)
		}
		if err := p.marks.Set(ctx, m.Id, m.Hour); err != nil {
			return err
		}
	}
	for i := range g.Earlier {
		e := &g.Earlier[i]
		account, err := address.Parse(e.Record.Account)
		if err == nil && (e.Mark < 1 || e.Mark > g.LastMark) {
			err = fmt.Errorf("it is as of mark %d, and the last is %d", e.Mark, g.LastMark)
		}
		if err == nil {
			_, err = FromProto(&e.Record)
		}
		if err != nil {
			return fmt.Errorf("power genesis: earlier record %d: %w", i, err)
		}
		if err := p.set(ctx, account, e.Mark, e.Record); err != nil {
			return err
		}
	}
	return nil
}

// save exports marks and earlier records.
func (p *past) save(ctx context.Context, g *powerv1.GenesisState) (err error) {
	if g.LastMark, err = p.newest(ctx); err != nil {
		return err
	}
	return errors.Join(
		p.marks.Walk(ctx, nil, func(m uint64, h int64) (bool, error) {
			g.Marks = append(g.Marks, powerv1.Mark{Id: m, Hour: h})
			return false, nil
		}),
		p.earlier.Walk(ctx, nil, func(at collections.Pair[sdk.AccAddress, uint64], r powerv1.Record) (bool, error) {
			g.Earlier = append(g.Earlier, powerv1.Earlier{Mark: at.K2(), Record: r})
			return false, nil
		}))
}

// check returns an error unless earlier records and their order agree.
func (p *past) check(ctx context.Context) error {
	listed, kept := 0, 0
	last, err := p.newest(ctx)
	if err != nil {
		return err
	}
	err = p.byMark.Walk(ctx, nil, func(at collections.Pair[uint64, sdk.AccAddress]) (bool, error) {
		listed++
		had, err := p.earlier.Has(ctx, collections.Join(at.K2(), at.K1()))
		if err == nil && (!had || at.K1() > last) {
			err = fmt.Errorf("the record of %s as of mark %d is not there, or the mark is after %d", at.K2(), at.K1(), last)
		}
		return err != nil, err
	})
	err = errors.Join(err, p.earlier.Walk(ctx, nil, func(collections.Pair[sdk.AccAddress, uint64], powerv1.Record) (bool, error) {
		kept++
		return false, nil
	}))
	if err == nil && listed != kept {
		err = fmt.Errorf("%d earlier records are kept, and %d listed", kept, listed)
	}
	return err
}
