package auction

import (
	"errors"
	"fmt"

	"github.com/tally-network/tally/core/canon"
)

// Rule says who trades, and what is paid.
type Rule uint8

// The rules.
const (
	Midpoint    Rule = iota // a task pays the mean of what is asked of it and what it would pay
	Critical                // a task pays the least with which it would still have won
	McAfee                  // single units: one price, or one trade fewer; what is left over is a surplus
	SBBA                    // single units: one price, sometimes one trade fewer, and nothing is left over
	Exponential             // single units: a price that is drawn, so that it says little of any bid
	Literal                 // the seed's, as it is printed: to compare with, not to use
	rules
)

func (r Rule) String() string {
	if r >= rules {
		return fmt.Sprintf("rule %d", uint8(r))
	}
	return [...]string{"midpoint", "critical", "mcafee", "sbba", "exponential", "literal"}[r]
}

// Single says whether a rule is one for single units, each kind by itself.
func (r Rule) Single() bool { return r == McAfee || r == SBBA || r == Exponential }

// Fewest returns how many buyers and sellers a kind needs before a rule can trade any of it.
func (r Rule) Fewest() (buyers, sellers int) {
	switch r {
	case McAfee:
		return 2, 2
	case SBBA:
		return 1, 2
	}
	return 1, 1
}

// Grid is the prices that Exponential draws from: Least, Least+Step, and so on.
type Grid struct {
	Least, Step uint64 // utally
	Count       int
}

const (
	maxGrid    = 1024
	maxAgeing  = 5 * bps
	maxEpsilon = 100_000 // thousandths
)

// Params are the rules of an auction. They are fixed before it begins.
type Params struct {
	Rule    Rule
	AgeStep uint32 // bps that each lost clearing adds to a task's density; its money stays as it is
	AgeMost uint32 // lost clearings that count

	Grid    Grid       // of Exponential
	Epsilon uint32     // of Exponential, in thousandths: how much one bid may change the odds of a price
	Seed    canon.Hash // of rules for single units: a value that nobody knew when the last bid was fixed
}

// ErrRule is returned for rules that contradict themselves, or cannot clear a book.
var ErrRule = errors.New("this rule does not apply")

// Check returns an error unless the rules can be used.
func (p Params) Check() error {
	switch {
	case p.Rule >= rules:
		return fmt.Errorf("%w: %s, there are %d", ErrRule, p.Rule, rules)
	case uint64(p.AgeStep)*uint64(p.AgeMost) > maxAgeing:
		return fmt.Errorf("%w: ageing adds %d·%d bps, at most %d", ErrRule, p.AgeStep, p.AgeMost, maxAgeing)
	case p.Rule != Exponential:
		return nil
	case p.Epsilon == 0 || p.Epsilon > maxEpsilon:
		return fmt.Errorf("%w: ε of %d/1000, from 1 to %d", ErrRule, p.Epsilon, maxEpsilon)
	case p.Grid.Count < 1 || p.Grid.Count > maxGrid || p.Grid.Step > MaxBudget || p.Grid.Least > MaxBudget:
		return fmt.Errorf("%w: %d prices from %d by %d, at most %d prices", ErrRule, p.Grid.Count, p.Grid.Least, p.Grid.Step, maxGrid)
	}
	return nil
}

// applies returns an error unless the rules can clear a book.
func (p Params) applies(b *Book) error {
	if err := p.Check(); err != nil {
		return err
	}
	if p.Rule.Single() && !b.single() {
		return fmt.Errorf("%w: %s wants one unit in each bid, and no handicaps", ErrRule, p.Rule)
	}
	return nil
}

// ageing is by what the density of a task is multiplied, in bps. Prices of single units know no age.
func (p Params) ageing(age uint32) uint64 {
	if p.Rule.Single() {
		return bps
	}
	return bps + uint64(p.AgeStep)*uint64(min(age, p.AgeMost))
}
