// Package drilling says which work counts as drilling: that of projects which the network has voted for.
//
// A [Project] has a budget. [Project.Take] takes an order as its task, or says why it does not. While that is in
// the market, all that it may come to is held of the budget. [Project.Leave] lets go of it, and [Project.Credit]
// counts what was credited.
//
// Work is counted in millionths of a ut. Invariants ([Project.Check]): what tasks may come to and what was credited
// never exceed the budget. Every task is checked, at least in the part that the rules ask for.
//
// Sources: MatrixAI §3.3.2 and §3.4; BOINC's workunits and adaptive replication; docs/spec/drilling.md.
package drilling

import (
	"errors"
	"fmt"

	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/money"
	"github.com/tally-network/tally/core/power"
)

// MaxBudget bounds a budget, in ut: a year of ten thousand machines of 10 TFLOPS.
const MaxBudget = 10_000_000_000_000

// Rules are what tasks must keep to.
type Rules struct {
	FloorBps uint64 // least part of a task's runs that is checked, in 1/10000
}

// Status is where a project stands.
type Status uint8

// The stations of a project, in order.
const (
	Proposed Status = iota + 1 // it waits to be admitted
	Admitted                   // it takes tasks
	Ended                      // it takes none any more
)

// String returns the status in words.
func (s Status) String() string {
	return [...]string{"unknown", "proposed", "admitted", "ended"}[min(s, Ended)]
}

// Project is what of a project decides about its tasks. Work is in millionths of a ut.
type Project struct {
	Status  Status
	Partner string // whose orders its tasks are
	Budget  uint64 // that may count as drilling
	Pending uint64 // that tasks in the market may come to
	Drilled uint64 // that was credited
}

// Admit lets a project take tasks.
func (p *Project) Admit() error {
	if p.Status != Proposed {
		return fmt.Errorf("it is %v: only what is proposed is admitted", p.Status)
	}
	p.Status = Admitted
	return nil
}

// End ends a project. Tasks that it has taken go on, and count.
func (p *Project) End() error {
	if p.Status == Ended {
		return errors.New("it has ended already")
	}
	p.Status = Ended
	return nil
}

// Take takes an order as a task, and returns what that may come to.
func (p *Project) Take(o *job.Order, r Rules) (uint64, error) {
	switch {
	case p.Status != Admitted:
		return 0, fmt.Errorf("it is %v: only an admitted project takes tasks (tally drill project admit)", p.Status)
	case o.Consumer != p.Partner:
		return 0, fmt.Errorf("its tasks are published by %s, not by %s", p.Partner, o.Consumer)
	case !o.Problem.Independent():
		return 0, fmt.Errorf("a task is a batch, whose runs need no state: this is %s", o.Problem.Kind)
	case !o.Conditions.Credit:
		return 0, errors.New("a task says credit: true, so that all its work is credited")
	}
	if err := r.checked(o); err != nil {
		return 0, err
	}
	most, err := Most(o)
	if err != nil {
		return 0, err
	}
	if left := p.Left(); most > left {
		return 0, fmt.Errorf("the task may come to %d millionths of a ut, and %d are left of its budget: publish a smaller one, or propose a new project", most, left)
	}
	p.Pending += most
	return most, nil
}

// checked returns an error unless so much of each unit is executed more than once.
func (r Rules) checked(o *job.Order) error {
	c, runs := &o.Conditions, o.Problem.Segments()
	drawn := c.AuditSegments
	switch {
	case c.Replicas > 0:
		drawn = runs // all are compared
	case c.AuditFloor > 0:
		drawn = c.AuditFloor
	}
	if uint64(drawn)*10_000 < r.FloorBps*uint64(runs) {
		return fmt.Errorf("of %d runs of a unit %d are checked at least, want %d/10000 of them: set assurance.replicas, or raise the rate or the floor of audits", runs, drawn, r.FloorBps)
	}
	return nil
}

// Most returns what an order comes to if all of it is credited, rounded up.
func Most(o *job.Order) (uint64, error) {
	flops, err := money.Times(o.Problem.UnitFLOPs(), o.Problem.Units()*o.Conditions.Copies())
	if err != nil {
		return 0, fmt.Errorf("more work than can be counted: %w", err)
	}
	return (flops-1)/power.MicroUT + 1, nil // a checked order costs something
}

// Left returns what is left of the budget.
func (p *Project) Left() uint64 { return p.Budget - p.Pending - p.Drilled }

// Leave lets go of what a task could have come to: it has left the market.
func (p *Project) Leave(most uint64) error {
	if most > p.Pending {
		return fmt.Errorf("a task of %d leaves, and %d are pending", most, p.Pending)
	}
	p.Pending -= most
	return nil
}

// Credit counts work on a task that has left.
func (p *Project) Credit(micro uint64) error {
	if left := p.Left(); micro > left {
		return fmt.Errorf("%d are credited, and %d are left of the budget", micro, left)
	}
	p.Drilled += micro
	return nil
}

// Check returns an error unless the invariants hold.
func (p *Project) Check() error {
	used, err := money.Sum(p.Pending, p.Drilled)
	switch {
	case p.Status < Proposed || p.Status > Ended:
		return fmt.Errorf("status %d does not exist", p.Status)
	case err != nil || used > p.Budget || p.Budget > MaxBudget*1_000_000:
		return fmt.Errorf("%d pending and %d drilled of a budget of %d", p.Pending, p.Drilled, p.Budget)
	case p.Status == Proposed && used > 0:
		return errors.New("it has tasks before it is admitted")
	}
	return nil
}
