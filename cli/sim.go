package cli

import (
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/cli/numbers"
	"github.com/tally-network/tally/sim"
)

func (e *env) sim() *cobra.Command {
	cmd := &cobra.Command{
		Use: "sim", GroupID: "other",
		Short:   "Play orders with dishonest people, to see what an attack earns",
		Example: "  tally sim adversaries --runs 500",
	}
	cmd.AddCommand(e.simAdversaries(), e.simCoalitions(), simMarket(e))
	return cmd
}

func (e *env) simAdversaries() *cobra.Command {
	o := sim.Options{Runs: 200, Seed: 1}
	var only string
	cmd := &cobra.Command{
		Use:   "adversaries",
		Short: "Play attacks against the assurance that an order can ask for",
		Long: `Plays whole orders in which somebody cheats, many times each, by the rules that
the chain applies and with real training steps and disputes. Forgeries meet every
policy of assurance, other attacks the one that concerns them. For each it tells
the mean profit of the attackers in utally, how many honest people lost a bond,
how often a wrong result was accepted, and how often the formula of the policy
says. It fails if an attack pays, an honest bond is lost, or chance does not
explain the difference between measurement and formula.`,
		Example: `  tally sim adversaries
  tally sim adversaries --only 'interpolation|silence' --runs 1000 --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if o.Only, err = regexp.Compile(only); err != nil {
				return fmt.Errorf("--only: %w", err)
			}
			o.Told = func(done, all int, name string) { fmt.Fprintf(e.err, "%3d of %d  %s\n", done, all, name) }
			rows, err := sim.Adversaries(cmd.Context(), o)
			if err != nil {
				return err
			}
			if err := e.show(rows, func(w io.Writer) { tellAdversaries(w, rows) }); err != nil {
				return err
			}
			for _, r := range rows {
				err = errors.Join(err, r.Check())
			}
			return err
		},
	}
	f := cmd.Flags()
	f.Var(numbers.Within(&o.Runs, 1, 1_000_000), "runs", "orders played for each attack and policy")
	f.Var(numbers.Within(&o.Seed, 0, math.MaxUint64), "seed", "from which everything follows")
	f.StringVar(&only, "only", "", "attacks whose name matches this regular expression")
	return cmd
}

func (e *env) simCoalitions() *cobra.Command {
	s := sim.Search{Budget: 1000, Seed: 1}
	var only string
	cmd := &cobra.Command{
		Use:   "coalitions",
		Short: "Search for what pays people of several roles who act as one",
		Long: `Lets every coalition of consumer, lead, provider, auditor, custodian and challenger,
of up to four of them, search for its best response to all others, who are honest.
Orders are played by the chain's own rules, with forced attempts as common as these
allow, and one honest challenger that looks at a quarter of everything. For each
coalition it tells the best that was found within the budget: the mean profit over
following the protocol, in utally an order, measured in orders that the search has
not seen. It fails if something pays.`,
		Example: `  tally sim coalitions --budget 2000
  tally sim coalitions --only 'lead . provider' --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if s.Only, err = regexp.Compile(only); err != nil {
				return fmt.Errorf("--only: %w", err)
			}
			s.Told = func(done, all int, name string) { fmt.Fprintf(e.err, "%2d of %d  %s\n", done, all, name) }
			found, err := sim.Coalitions(cmd.Context(), s)
			if err != nil {
				return err
			}
			if err := e.show(found, func(w io.Writer) { tellCoalitions(w, found) }); err != nil {
				return err
			}
			for _, f := range found {
				err = errors.Join(err, f.Check())
			}
			return err
		},
	}
	f := cmd.Flags()
	f.Var(numbers.Within(&s.Budget, sim.LeastBudget, 1_000_000), "budget", "orders played for each coalition")
	f.Var(numbers.Within(&s.Seed, 0, math.MaxUint64), "seed", "from which everything follows")
	f.StringVar(&only, "only", "", "coalitions whose name matches this regular expression")
	return cmd
}

func tellCoalitions(w io.Writer, found []sim.Found) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "coalition\torders\tstrategies\tprofit\t± error\tby")
	for _, f := range found {
		fmt.Fprintf(t, "%s\t%d\t%d\t%10.0f\t%.0f\t%s\n", f.Coalition, f.Orders, f.Tried, f.Profit, f.Error, f.Strategy)
	}
	_ = t.Flush()
	if len(found) > 0 {
		fmt.Fprintf(w, "\nProfits are in utally an order, over following the protocol; a unit pays %.0f.\n", found[0].UnitPay)
	}
}

func tellAdversaries(w io.Writer, rows []sim.Row) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "attack\tpolicy\taccomplices\tprofit\thonest slashed\twrong accepted\tformula")
	name := ""
	for _, r := range rows {
		shown := ""
		if r.Name != name {
			name, shown = r.Name, r.Name
		}
		fmt.Fprintf(t, "%s\t%s\t%3.0f %%\t%10.0f\t%d\t%.3f\t%.3f\n", shown, r.Policy, 100*r.Dishonest, r.ExpectedProfit, r.HonestSlashed, r.Accepted, r.Predicted)
	}
	_ = t.Flush()
	if len(rows) > 0 {
		fmt.Fprintf(w, "\nProfits are in utally, means of %d orders; a unit pays %.0f.\n", rows[0].Runs, rows[0].UnitPay)
	}
}
