// Package drilling holds the projects whose work counts as drilling, and knows which orders are their tasks.
//
// A partner proposes a project with a deposit. The authority admits it: the account of x/policy, for which computing power
// votes, unless genesis names another. Then the partner's orders that name the project are its tasks, bought, checked,
// disputed and settled like all orders. What they are credited with is drilling, as far as the budget goes.
//
// Nothing happens here at the end of a block. A project has a deposit until it ends, and is forgotten with the last of its
// tasks, so that nobody fills the store for nothing.
//
// Call [NewKeeper] and [NewModule]. x/market tells of orders by [Keeper.Open], [Keeper.Close] and [Keeper.Forget], x/work
// of what they are credited with by [Keeper.Credit].
//
// Invariants: the deposits add up to the balance of the module's account. The tasks of a project add up to what of
// its budget is pending, and are as many as it says. All keep to core/drilling.
//
// Source: docs/spec/drilling.md, docs/adr/0051-drilling.md.
package drilling

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	keycodec "cosmossdk.io/collections/codec"
	"cosmossdk.io/core/store"
	errorsmod "cosmossdk.io/errors"

	"github.com/cosmos/cosmos-sdk/codec"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/drilling"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/power"
	drillingv1 "github.com/tally-network/tally/gen/tally/drilling/v1"
)

// Name is the module's name, and that of the account that holds deposits.
const Name = "drilling"

// Keeper holds projects and tasks.
type Keeper struct {
	Power    // convicts lose drilling and training alike
	bank     Bank
	rules    module.Rules[drillingv1.Params]
	projects collections.Map[uint64, drillingv1.Project]
	next     collections.Sequence
	tasks    collections.Map[collections.Pair[uint64, uint64], drillingv1.Task] // by project and number
	byOrder  collections.Map[[]byte, collections.Pair[uint64, uint64]]
}

// NewKeeper returns a keeper over the given store.
func NewKeeper(cdc codec.BinaryCodec, svc store.KVStoreService, bank Bank, p Power) *Keeper {
	sb := collections.NewSchemaBuilder(svc)
	number := collections.PairKeyCodec(collections.Uint64Key, collections.Uint64Key)
	k := &Keeper{
		Power:    p,
		bank:     bank,
		rules:    module.RulesOf(sb, 0, 1, codec.CollValue[drillingv1.Params](cdc), mayReplace),
		projects: collections.NewMap(sb, collections.NewPrefix(2), "projects", collections.Uint64Key, codec.CollValue[drillingv1.Project](cdc)),
		next:     collections.NewSequence(sb, collections.NewPrefix(3), "next"),
		tasks:    collections.NewMap(sb, collections.NewPrefix(4), "tasks", number, codec.CollValue[drillingv1.Task](cdc)),
		byOrder:  collections.NewMap(sb, collections.NewPrefix(5), "by_order", collections.BytesKey, keycodec.KeyToValueCodec(number)),
	}
	module.Seal(sb)
	return k
}

// CheckParams returns an error that shows what is wrong with the rules.
func CheckParams(p drillingv1.Params) error {
	switch {
	case p.Deposit == 0 || p.Deposit > coin.MaxSupply:
		return fmt.Errorf("a project costs %d utally: want at least 1, or anybody could fill the store, and at most all there is", p.Deposit)
	case p.FloorBps > 10_000:
		return fmt.Errorf("floor_bps %d: want at most 10000, which is everything", p.FloorBps)
	}
	return nil
}

// mayReplace returns an error unless rules may take the place of others.
func mayReplace(old, p drillingv1.Params) error {
	if err := CheckParams(p); err != nil {
		return err
	}
	return module.Within( // a deposit that somebody has; and some of each task is always checked
		module.Bound{Name: "deposit", Old: old.Deposit, New: p.Deposit, Least: 1_000_000, Most: 100_000_000_000},
		module.Bound{Name: "floor_bps", Old: uint64(old.FloorBps), New: uint64(p.FloorBps), Least: 100, Most: 10_000})
}

// Get returns a project, or ErrNoProject.
func (k *Keeper) Get(ctx context.Context, number uint64) (drillingv1.Project, error) {
	p, err := k.projects.Get(ctx, number)
	if errors.Is(err, collections.ErrNotFound) {
		return p, errorsmod.Wrapf(ErrNoProject, "project %d", number)
	}
	return p, err
}

// change applies what core/drilling says to a project.
func change(p *drillingv1.Project, do func(*drilling.Project) error) error {
	c := fromProto(p)
	if err := do(&c); err != nil {
		return err
	}
	p.Status, p.Pending, p.Drilled = drillingv1.Status(c.Status), c.Pending, c.Drilled
	return nil
}

func fromProto(p *drillingv1.Project) drilling.Project {
	return drilling.Project{Status: drilling.Status(p.Status), Partner: p.Partner, Budget: p.Budget, Pending: p.Pending, Drilled: p.Drilled}
}

// Open takes an order as a task of the project that it names, if it names one.
func (k *Keeper) Open(ctx context.Context, o *job.Order) error {
	if o.Project == 0 {
		return nil
	}
	rules, err := k.rules.Get(ctx)
	if err != nil {
		return err
	}
	p, err := k.Get(ctx, o.Project)
	if err != nil {
		return err
	}
	var most uint64
	err = change(&p, func(c *drilling.Project) (err error) {
		most, err = c.Take(o, drilling.Rules{FloorBps: uint64(rules.FloorBps)})
		return err
	})
	if err != nil {
		return errorsmod.Wrapf(ErrTask, "project %d: %s", o.Project, err)
	}
	p.Tasks, p.Kept = p.Tasks+1, p.Kept+1
	id := o.ID()
	at := collections.Join(p.Number, p.Tasks)
	t := drillingv1.Task{Order: id.String(), Project: p.Number, Number: p.Tasks, Pending: most}
	return errors.Join(
		k.projects.Set(ctx, p.Number, p), k.tasks.Set(ctx, at, t), k.byOrder.Set(ctx, id[:], at),
		module.Emit(ctx, &drillingv1.EventTask{Project: p.Number, Order: t.Order, Pending: most}),
	)
}

// task changes a task and its project. It reports whether the order is one.
func (k *Keeper) task(ctx context.Context, order canon.Hash, do func(p *drillingv1.Project, t *drillingv1.Task) error) (bool, error) {
	at, err := k.byOrder.Get(ctx, order[:])
	if errors.Is(err, collections.ErrNotFound) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	t, err := k.tasks.Get(ctx, at)
	if err != nil {
		return false, err
	}
	p, err := k.Get(ctx, at.K1())
	if err != nil {
		return false, err
	}
	if err := do(&p, &t); err != nil {
		return false, fmt.Errorf("task %d of project %d: %w", t.Number, p.Number, err)
	}
	return true, errors.Join(k.projects.Set(ctx, p.Number, p), k.tasks.Set(ctx, at, t))
}

// Close lets go of what an order could have come to, once it has left the market.
func (k *Keeper) Close(ctx context.Context, order canon.Hash) error {
	_, err := k.task(ctx, order, func(p *drillingv1.Project, t *drillingv1.Task) error {
		most := t.Pending
		t.Pending = 0
		return change(p, func(c *drilling.Project) error { return c.Leave(most) })
	})
	return err
}

// Credit gives an account computing power for work on an order: drilling if that is a task, and else training.
func (k *Keeper) Credit(ctx context.Context, order canon.Hash, account sdk.AccAddress, flops uint64) error {
	is, err := k.task(ctx, order, func(p *drillingv1.Project, t *drillingv1.Task) error {
		micro := flops / power.MicroUT
		t.Drilled += micro // no overflow: it is part of the budget
		return errors.Join(
			change(p, func(c *drilling.Project) error { return c.Credit(micro) }),
			module.Emit(ctx, &drillingv1.EventDrilled{Project: p.Number, Order: t.Order, Account: account.String(), Drilled: micro}),
		)
	})
	switch {
	case err != nil:
		return err
	case is:
		return k.CreditDrilling(ctx, account, flops)
	}
	return k.Power.Credit(ctx, account, flops)
}

// Forget forgets an order that the book forgets, and with the last of them a project that has ended.
func (k *Keeper) Forget(ctx context.Context, order canon.Hash) error {
	at, err := k.byOrder.Get(ctx, order[:])
	if errors.Is(err, collections.ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	p, err := k.Get(ctx, at.K1())
	if err != nil {
		return err
	}
	p.Kept--
	return errors.Join(k.tasks.Remove(ctx, at), k.byOrder.Remove(ctx, order[:]), k.keep(ctx, p))
}

// keep stores a project, unless it has ended and has no tasks.
func (k *Keeper) keep(ctx context.Context, p drillingv1.Project) error {
	if p.Status == drillingv1.STATUS_ENDED && p.Kept == 0 {
		return k.projects.Remove(ctx, p.Number)
	}
	return k.projects.Set(ctx, p.Number, p)
}

// pay gives the deposit of a project back.
func (k *Keeper) pay(ctx context.Context, p *drillingv1.Project) error {
	partner, err := address.Parse(p.Partner)
	if err != nil {
		return err
	}
	deposit := p.Deposit
	p.Deposit = 0
	if err := k.bank.SendCoinsFromModuleToAccount(ctx, Name, partner, coin.Of(deposit)); err != nil {
		return errorsmod.Wrapf(err, "give the deposit of %d utally back", deposit)
	}
	return nil
}
