package auction

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// Kinds is how many kinds of resource there are at most: classes of models, say, each in seconds of computing.
const Kinds = 8

// Limits of what is bid. With them no sum below leaves 64 bits.
const (
	MaxTraders = 1 << 20 // tasks, and as many providers
	MaxBudget  = 1 << 48 // utally
	MaxUnits   = 1 << 40 // of one kind, of one task or provider
	MaxAsk     = 1 << 40 // utally for a unit
	MaxBudgets = 1 << 62 // utally, of all tasks together
	bps        = 10_000
)

// ErrBid is returned for a bid that no auction takes.
var ErrBid = errors.New("this bid cannot be taken")

// Vector has a number for each kind of resource.
type Vector [Kinds]uint64

// Task is a buyer: it gets all that it demands, or nothing.
type Task struct {
	ID     [32]byte
	Demand Vector // units
	Budget uint64 // utally, for everything
	Fee    uint64 // utally of it that go to the network, whoever computes the task
	Age    uint32 // how many clearings it has lost
}

// net is what a task pays for resources at most.
func (t *Task) net() uint64 { return t.Budget - t.Fee }

// Provider is a seller. Its units can be sold apart.
type Provider struct {
	ID       [32]byte
	Capacity Vector // units
	Ask      Vector // utally for a unit, at least
	Handicap uint32 // bps by which its asks count for more than they are, since it may fail
	Ability  uint32 // bps of the best; of the seed's rule alone
}

// lot is what a provider sells of one kind.
type lot struct {
	units uint64
	ask   uint64 // for each
	score uint64 // the ask as it is compared with others, and with budgets
}

func (p *Provider) lot(kind int) lot {
	ask := p.Ask[kind]
	return lot{p.Capacity[kind], ask, Score(ask, p.Handicap)}
}

// Book is all that is bid, in the order of IDs. Others refer to tasks and providers by their places in it.
type Book struct {
	Tasks     []Task
	Providers []Provider

	lots    [Kinds][]lot // of each provider: going through one kind touches no other
	supply  Vector       // units of each kind
	sellers [Kinds]int   // providers that have any
	budgets uint64       // of all tasks
	plural  bool         // a bid is of more than one unit, or has a handicap

	demand, capacity Vector // the greatest of each kind, and the greatest budget: of the seed's rule alone
	budget           uint64
}

// NewBook checks bids and puts them in the order of their IDs. It keeps the slices.
func NewBook(tasks []Task, providers []Provider) (*Book, error) {
	if len(tasks) > MaxTraders || len(providers) > MaxTraders {
		return nil, fmt.Errorf("%w: %d tasks and %d providers, there may be %d of each", ErrBid, len(tasks), len(providers), MaxTraders)
	}
	b := &Book{Tasks: tasks, Providers: providers}
	slices.SortFunc(b.Tasks, func(x, y Task) int { return bytes.Compare(x.ID[:], y.ID[:]) })
	slices.SortFunc(b.Providers, func(x, y Provider) int { return bytes.Compare(x.ID[:], y.ID[:]) })
	for i := range b.Tasks {
		if i > 0 && b.Tasks[i-1].ID == b.Tasks[i].ID {
			return nil, fmt.Errorf("%w: task %x bids twice", ErrBid, b.Tasks[i].ID[:4])
		}
		if err := b.addTask(&b.Tasks[i]); err != nil {
			return nil, fmt.Errorf("%w: task %x: %w", ErrBid, b.Tasks[i].ID[:4], err)
		}
	}
	for kind := range b.lots {
		b.lots[kind] = make([]lot, len(b.Providers))
	}
	for j := range b.Providers {
		if j > 0 && b.Providers[j-1].ID == b.Providers[j].ID {
			return nil, fmt.Errorf("%w: provider %x bids twice", ErrBid, b.Providers[j].ID[:4])
		}
		if err := b.addProvider(j); err != nil {
			return nil, fmt.Errorf("%w: provider %x: %w", ErrBid, b.Providers[j].ID[:4], err)
		}
	}
	return b, nil
}

func (b *Book) addTask(t *Task) error {
	switch {
	case t.Budget > MaxBudget:
		return fmt.Errorf("a budget of %d utally, at most %d", t.Budget, uint64(MaxBudget))
	case t.Fee > t.Budget:
		return fmt.Errorf("a fee of %d utally, and a budget of %d", t.Fee, t.Budget)
	case t.Demand == Vector{}:
		return errors.New("it demands nothing")
	}
	var units uint64
	for k, q := range t.Demand {
		units += q
		if q > MaxUnits {
			return fmt.Errorf("%d units of kind %d, at most %d", q, k, uint64(MaxUnits))
		}
		b.demand[k] = max(b.demand[k], q)
	}
	b.plural = b.plural || units > 1
	b.budget = max(b.budget, t.Budget)
	if b.budgets += t.Budget; b.budgets > MaxBudgets {
		return fmt.Errorf("budgets of more than %d utally together", uint64(MaxBudgets))
	}
	return nil
}

func (b *Book) addProvider(j int) error {
	p := &b.Providers[j]
	if p.Handicap > bps || p.Ability > bps {
		return fmt.Errorf("a handicap of %d and an ability of %d, at most %d", p.Handicap, p.Ability, bps)
	}
	var units uint64
	for k, q := range p.Capacity {
		units += q
		switch {
		case q > MaxUnits:
			return fmt.Errorf("%d units of kind %d, at most %d", q, k, uint64(MaxUnits))
		case q > 0 && (p.Ask[k] == 0 || p.Ask[k] > MaxAsk):
			return fmt.Errorf("an ask of %d utally for kind %d: from 1 to %d", p.Ask[k], k, uint64(MaxAsk))
		case q > 0:
			b.sellers[k]++
		}
		b.lots[k][j] = p.lot(k)
		b.supply[k] += q
		b.capacity[k] = max(b.capacity[k], q)
	}
	b.plural = b.plural || units > 1 || p.Handicap > 0
	return nil
}

// single says whether each bid is of a single unit.
func (b *Book) single() bool { return !b.plural }
