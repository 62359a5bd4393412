package drilling

import (
	"context"
	"errors"
	"fmt"

	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"

	"cosmossdk.io/collections"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/canon"
	drillingv1 "github.com/tally-network/tally/gen/tally/drilling/v1"
)

// DefaultGenesis has no projects. One costs 100 tally while it stands, and 5 % of each task are checked at least.
func DefaultGenesis() *drillingv1.GenesisState {
	return &drillingv1.GenesisState{Params: drillingv1.Params{Deposit: 100_000_000, FloorBps: 500}, Next: 1}
}

// ValidateGenesis checks a state before import.
func ValidateGenesis(g *drillingv1.GenesisState) error {
	if err := errors.Join(CheckParams(g.Params), module.CheckAuthority(g.Authority)); err != nil {
		return fmt.Errorf("drilling genesis: %w", err)
	}
	sums, total := map[uint64]*sum{}, uint64(0)
	for i := range g.Projects {
		p := &g.Projects[i]
		if i > 0 && p.Number <= g.Projects[i-1].Number || p.Number == 0 || p.Number >= g.Next {
			return fmt.Errorf("drilling genesis: project %d: want each once, by number from 1, below %d", p.Number, g.Next)
		}
		_, err := address.Parse(p.Partner)
		if err := errors.Join(err, checkTexts(p), checkProject(p)); err != nil {
			return fmt.Errorf("drilling genesis: project %d: %w", p.Number, err)
		}
		if p.Deposit > coin.MaxSupply-total {
			return fmt.Errorf("drilling genesis: more than %d utally in deposits", coin.MaxSupply)
		}
		total += p.Deposit
		sums[p.Number] = &sum{}
	}
	orders := map[string]bool{}
	for i, t := range g.Tasks {
		if _, err := canon.ParseHash(t.Order); err != nil || orders[t.Order] || sums[t.Project] == nil {
			return fmt.Errorf("drilling genesis: task %d is of order %.80q and project %d: want an order once, of a project", i, t.Order, t.Project)
		}
		if i > 0 && t.Project == g.Tasks[i-1].Project && t.Number <= g.Tasks[i-1].Number || i > 0 && t.Project < g.Tasks[i-1].Project {
			return fmt.Errorf("drilling genesis: task %d of project %d is out of order", t.Number, t.Project)
		}
		orders[t.Order] = true
		if err := sums[t.Project].add(t); err != nil {
			return fmt.Errorf("drilling genesis: %w", err)
		}
	}
	for i := range g.Projects {
		if err := sums[g.Projects[i].Number].fit(&g.Projects[i]); err != nil {
			return fmt.Errorf("drilling genesis: %w", err)
		}
	}
	return nil
}

// checkProject returns an error unless a project keeps to core/drilling, and has a deposit just while it stands.
func checkProject(p *drillingv1.Project) error {
	c := fromProto(p)
	if err := c.Check(); err != nil {
		return err
	}
	if ended := p.Status == drillingv1.STATUS_ENDED; ended != (p.Deposit == 0) || ended && p.Kept == 0 {
		return fmt.Errorf("it is %v with a deposit of %d utally and %d tasks", c.Status, p.Deposit, p.Kept)
	}
	return nil
}

// sum adds the tasks of a project up.
type sum struct{ pending, drilled, kept, last uint64 }

func (s *sum) add(t drillingv1.Task) error {
	pending, drilled := s.pending+t.Pending, s.drilled+t.Drilled
	if pending < s.pending || drilled < s.drilled || t.Number == 0 {
		return fmt.Errorf("task %d of project %d: more than can be counted", t.Number, t.Project)
	}
	s.pending, s.drilled, s.kept, s.last = pending, drilled, s.kept+1, max(s.last, t.Number)
	return nil
}

// fit returns an error unless a project says the same of its tasks. What was credited for those that are forgotten stays.
func (s *sum) fit(p *drillingv1.Project) error {
	if s.pending != p.Pending || s.drilled > p.Drilled || s.kept != p.Kept || s.last > p.Tasks {
		return fmt.Errorf("project %d says pending %d, drilled %d, tasks %d, kept %d; its tasks say %+v", p.Number, p.Pending, p.Drilled, p.Tasks, p.Kept, *s)
	}
	return nil
}

// InitGenesis stores a state. The bank's genesis holds the deposits already.
func (k *Keeper) InitGenesis(ctx context.Context, g *drillingv1.GenesisState) error {
	if err := errors.Join(k.rules.Init(ctx, g.Params, g.Authority), k.next.Set(ctx, g.Next)); err != nil {
		return err
	}
	for _, p := range g.Projects {
		if err := k.projects.Set(ctx, p.Number, p); err != nil {
			return err
		}
	}
	for _, t := range g.Tasks {
		id, err := canon.ParseHash(t.Order)
		if err != nil {
			return err
		}
		at := collections.Join(t.Project, t.Number)
		if err := errors.Join(k.tasks.Set(ctx, at, t), k.byOrder.Set(ctx, id[:], at)); err != nil {
			return err
		}
	}
	return k.Invariant(ctx)
}

// ExportGenesis is the inverse of InitGenesis.
func (k *Keeper) ExportGenesis(ctx context.Context) (*drillingv1.GenesisState, error) {
	params, err := k.rules.Get(ctx)
	if err != nil {
		return nil, err
	}
	g := &drillingv1.GenesisState{Params: params}
	if g.Authority, err = k.rules.Authority(ctx); err != nil {
		return nil, err
	}
	if g.Next, err = k.next.Peek(ctx); err != nil {
		return nil, err
	}
	return g, errors.Join(
		k.projects.Walk(ctx, nil, func(_ uint64, p drillingv1.Project) (bool, error) {
			g.Projects = append(g.Projects, p)
			return false, nil
		}),
		k.tasks.Walk(ctx, nil, func(_ collections.Pair[uint64, uint64], t drillingv1.Task) (bool, error) {
			g.Tasks = append(g.Tasks, t)
			return false, nil
		}),
	)
}

// Invariant: projects keep to core/drilling, their tasks add up, each is indexed by its order and nothing else is, and
// the deposits add up to the module's balance.
func (k *Keeper) Invariant(ctx context.Context) error {
	sums, tasks, deposits := map[uint64]*sum{}, 0, uint64(0)
	err := k.tasks.Walk(ctx, nil, func(at collections.Pair[uint64, uint64], t drillingv1.Task) (bool, error) {
		id, err := canon.ParseHash(t.Order)
		if err != nil {
			return true, err
		}
		named, err := k.byOrder.Get(ctx, id[:])
		if err != nil || named.K1() != at.K1() || named.K2() != at.K2() || t.Project != at.K1() || t.Number != at.K2() {
			return true, errors.Join(err, fmt.Errorf("task %d of project %d is indexed otherwise", at.K2(), at.K1()))
		}
		if sums[t.Project] == nil {
			sums[t.Project] = &sum{}
		}
		tasks++
		return false, sums[t.Project].add(t)
	})
	if err != nil {
		return err
	}
	indexed := 0
	err = k.byOrder.Walk(ctx, nil, func([]byte, collections.Pair[uint64, uint64]) (bool, error) {
		indexed++
		return false, nil
	})
	if err != nil || indexed != tasks {
		return errors.Join(err, fmt.Errorf("%d tasks, and %d orders are indexed", tasks, indexed))
	}
	err = k.projects.Walk(ctx, nil, func(n uint64, p drillingv1.Project) (bool, error) {
		deposits += p.Deposit
		own := sums[n]
		if own == nil {
			own = &sum{}
		}
		delete(sums, n)
		return false, errors.Join(checkProject(&p), own.fit(&p))
	})
	if err != nil {
		return err
	}
	if len(sums) > 0 {
		return fmt.Errorf("%d projects have tasks, and do not exist", len(sums))
	}
	if held := k.bank.GetBalance(ctx, authtypes.NewModuleAddress(Name), coin.Denom).Amount.Uint64(); held != deposits {
		return fmt.Errorf("deposits add up to %d utally, but the account holds %d", deposits, held)
	}
	return nil
}
