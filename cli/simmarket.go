package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/cli/numbers"
	"github.com/tally-network/tally/sim/market"
)

// marketReport is what tally sim market tells.
type marketReport struct {
	*market.Report
	Wall       float64            `json:"wall_s"`
	Attacks    []market.Attack    `json:"attacks"`
	Sweeps     []market.Sweep     `json:"sweeps"`
	Thresholds []market.Threshold `json:"thresholds"`
	Splits     []market.Split     `json:"splits"`
	Shares     []market.Share     `json:"small_books"`
}

// study plays what needs no day.
func (r *marketReport) study(ctx context.Context, runs int, seed uint64, told func(string)) (err error) {
	if r.Attacks, err = market.Catalogue(ctx, runs, seed, told); err != nil {
		return err
	}
	if r.Sweeps, err = market.Sweeps(ctx, runs, seed, told); err != nil {
		return err
	}
	if r.Thresholds, err = market.Thresholds(); err != nil {
		return err
	}
	if r.Splits, err = market.Splits(ctx, runs, seed); err != nil {
		return err
	}
	r.Shares, err = market.Shares(ctx, runs, seed)
	return err
}

func simMarket(e *env) *cobra.Command {
	o := market.Options{Providers: 10_000, Hours: 24, BlockMs: 2_000, Seed: 1}
	runs, attacksAlone := 50, false
	cmd := &cobra.Command{
		Use:   "market",
		Short: "Simulate the economy, and what attacks on it earn",
		Long: `Plays a day of an economy by the chain's own rules: orders meet offers and clearings,
are paid, burnt and credited, while providers learn what to ask, come, leave and are
away, and demand triples for two hours. It tells prices beside those of a market in
which nobody lies, welfare beside the bound of a linear program, how unequal earnings
are, and what a third of the computing power costs. Then it plays a catalogue of
attacks under the rules of a new chain, and says of each whether it gains or loses.`,
		Example: `  tally sim market
  tally sim market --providers 1000000 --orders 1000000 --json
  tally sim market --attacks-only --runs 400`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Orders == 0 {
				o.Orders = o.Providers
			}
			begun := time.Now()
			r := marketReport{Report: &market.Report{Options: o}}
			if !attacksAlone {
				o.Told = func(h market.Hour) {
					fmt.Fprintf(e.err, "hour %2d of %d  %d orders, %d matched, %.0f utally for 10⁹ FLOP\n", h.Hour, o.Hours, h.Posted, h.Matched, h.Auction[2].Price)
				}
				if r.Report, err = market.Day(cmd.Context(), o); err != nil {
					return err
				}
				r.Wall = time.Since(begun).Seconds()
			}
			told := func(what string) { fmt.Fprintln(e.err, what) }
			if err := r.study(cmd.Context(), runs, o.Seed, told); err != nil {
				return err
			}
			return e.show(r, func(w io.Writer) {
				tellDay(w, &r)
				tellAttacks(w, &r)
			})
		},
	}
	f := cmd.Flags()
	f.Var(numbers.Within(&o.Providers, market.LeastProviders, market.MostProviders), "providers", "who computes")
	f.Var(numbers.Within(&o.Orders, 0, market.MostOrders), "orders", "orders of a day (default as many as providers)")
	f.Var(numbers.Within(&o.Hours, 1, 24*7), "hours", "hours that are played")
	f.Var(numbers.Within(&o.BlockMs, 500, 60_000), "block-ms", "protocol time from one block to the next, in ms")
	f.Var(numbers.Within(&o.Seed, 0, math.MaxUint64), "seed", "from which everything follows")
	f.Var(numbers.Within(&runs, 5, 1_000_000), "runs", "games of each attack")
	f.BoolVar(&attacksAlone, "attacks-only", false, "play the attacks, and no day")
	return cmd
}

func tellDay(w io.Writer, r *marketReport) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	if len(r.Hours) > 0 {
		fmt.Fprintln(t, "hour\torders\tmatched\texpired\ttaken on\tbook\tA\tB\tC\tC if nobody lied\twelfare of a clearing\t")
		for _, h := range r.Hours {
			share := "–"
			if h.Bound > 0 {
				share = fmt.Sprintf("%.1f %% of the bound", 100*h.Cleared/h.Bound)
			}
			fmt.Fprintf(t, "%d\t%d\t%d\t%d\t%.0f %%\t%s\t%s\t%s\t%s\t%s\t%s\t\n", h.Hour, h.Posted, h.Matched, h.Expired, 100*h.Used,
				price(h.Book.Price), price(h.Auction[0].Price), price(h.Auction[1].Price), price(h.Auction[2].Price), price(h.Competitive[2]), share)
		}
		_ = t.Flush()
		fmt.Fprintf(w, "Prices are utally for 10⁹ FLOP: of leases, and of batches of tiers A, B and C, with wages, burn and tax. Work\ntaken on is a part of what all can compute in the hour.\n\n")
		for _, x := range r.Earnings {
			fmt.Fprintf(w, "%-9s  %7d providers have earned %.1f tally each, beyond what work cost them\n", x.Manner, x.Providers, x.Mean)
		}
		fmt.Fprintf(w, "buyers that bid what it is worth: %.0f %% served, a gain of %.1f %%; that bid less: %.0f %% served, %.1f %%\n",
			100*r.Truthful.Served, 100*r.Truthful.Gain, 100*r.Shading.Served, 100*r.Shading.Gain)
		fmt.Fprintf(w, "what learning providers ask over their cost spreads by %.2f after an hour, by %.2f in the end\n", r.Hours[0].Spread, r.Hours[len(r.Hours)-1].Spread)
		fmt.Fprintf(w, "Gini of earnings %.3f; for each verified ut %.0f utally were burnt, and providers earned %.0f\n", r.Gini, r.BurntPerUT, r.PaidPerUT)
		fmt.Fprintf(w, "a third of the power: %.0f ut, for which %.0f tally are burnt, %.1f %% of what was paid in the time\n", r.Third, r.ThirdCosts, 100*r.ThirdOfPaid)
		fmt.Fprintf(w, "%d providers, %d blocks in %.1f s, with %.2f GB of memory\n\n", r.Providers, r.Blocks, r.Wall, float64(r.Memory)/1e9)
	}
}

func tellAttacks(w io.Writer, r *marketReport) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "attack\tprofit\t95 %\tverdict\tby what it chose")
	for _, a := range r.Attacks {
		fmt.Fprintf(t, "%s\t%s\t± %s\t%s\t%s\n", a.Name, amount(a.Mean), amount(a.Error), a.Verdict, cmp.Or(a.Strategy, "–"))
	}
	_ = t.Flush()
	fmt.Fprintf(w, "Profits are utally over being honest, means of %d games under the rules of a new chain, which the attacker has\nnot seen. It loses or gains where the whole 95 %% interval does. The first rule of price, midpoint, is the default.\n\n", r.Attacks[0].Games)
	tellSweeps(w, r.Sweeps)
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "attack\tpays from\tof")
	for _, x := range r.Thresholds {
		fmt.Fprintf(t, "%s\t%s\t%s\n", x.Attack, amount(x.PaysFrom), x.Parameter)
	}
	_ = t.Flush()
	fmt.Fprintln(w)
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "one seller as several\tgain\t95 %\tverdict")
	for _, s := range r.Splits {
		fmt.Fprintf(t, "%s, as %d\t%.3f %%\t± %.3f\t%s\n", s.At, s.Names, 100*s.Gain, 100*s.Error, s.Verdict)
	}
	_ = t.Flush()
	fmt.Fprintln(w)
	for _, x := range r.Shares {
		fmt.Fprintf(w, "%s clearings of %d small books have %.4f of the greatest welfare, %.2f at worst, and %.3f of the bound\n", x.Method, x.Books, x.OfOptimum, x.Worst, x.OfBound)
	}
}

// tellSweeps puts sweeps of one parameter into one table.
func tellSweeps(w io.Writer, all []market.Sweep) {
	marks := map[market.Verdict]string{market.Gains: "+", market.Loses: "-", market.Undecided: "?", market.Zero: " "}
	said := map[string]bool{}
	for i := range all {
		parameter := all[i].Parameter
		if said[parameter] {
			continue
		}
		said[parameter] = true
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintf(t, "by %s", parameter)
		for _, p := range all[i].Points {
			fmt.Fprintf(t, "\t%s", amount(p.At))
		}
		fmt.Fprintln(t, "\tpays at")
		for _, s := range all[i:] {
			if s.Parameter != parameter {
				continue
			}
			fmt.Fprint(t, s.Attack)
			for _, p := range s.Points {
				fmt.Fprintf(t, "\t%s %s", amount(p.Mean), marks[p.Verdict])
			}
			fmt.Fprintf(t, "\t%s\n", pays(&s))
		}
		_ = t.Flush()
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "+ gains, - loses, ? undecided; --json has the intervals.\n\n")
}

// pays says at which values an attack pays.
func pays(s *market.Sweep) string {
	var at []string
	for _, x := range s.Pays() {
		at = append(at, amount(x))
	}
	if len(at) == 0 {
		return "none"
	}
	return strings.Join(at, ", ")
}

// amount is a number with as many places as matter.
func amount(x float64) string {
	switch {
	case math.Abs(x) < 5e-4:
		return "0"
	case x == math.Trunc(x) || math.Abs(x) >= 100:
		return fmt.Sprintf("%.0f", x)
	case math.Abs(x) >= 1:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.3f", x)
}

func price(x float64) string {
	if x == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f", x)
}
