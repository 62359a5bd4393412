package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/sim/market"
)

// marketReport is what tally sim market tells.
type marketReport struct {
	*market.Report
	Wall    float64         `json:"wall_s"`
	Attacks []market.Attack `json:"attacks"`
	Splits  []market.Split  `json:"splits"`
	Shares  []market.Share  `json:"small_books"`
	Pays    float64         `json:"false_speed_pays_from_premium"`
}

// study plays what needs no day.
func (r *marketReport) study(ctx context.Context, runs int, seed uint64, told func(string)) (err error) {
	if r.Attacks, err = market.Catalogue(ctx, runs, seed, told); err != nil {
		return err
	}
	if r.Splits, err = market.Splits(ctx, runs, seed); err != nil {
		return err
	}
	if r.Shares, err = market.Shares(ctx, runs, seed); err != nil {
		return err
	}
	r.Pays, err = market.FalseSpeedPays()
	return err
}

func simMarket(e *env) *cobra.Command {
	o := market.Options{Providers: 10_000, Hours: 24, BlockMs: 2_000, Seed: 1}
	runs, attacksAlone := 100, false
	cmd := &cobra.Command{
		Use:   "market",
		Short: "Simulate the economy, and what attacks on it earn",
		Long: `Plays a day of an economy by the chain's own rules: orders meet offers and clearings,
are paid, burnt and credited, while providers learn what to ask, come, leave and are
away, and demand triples for two hours. It tells prices beside those of a market in
which nobody lies, welfare beside the bound of a linear program, how unequal earnings
are, and what a third of the computing power costs. Then it plays a catalogue of
attacks, and fails if one of them pays.`,
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
			if err := e.show(r, func(w io.Writer) { tellEconomy(w, &r) }); err != nil {
				return err
			}
			for i := range r.Attacks {
				err = errors.Join(err, r.Attacks[i].Check())
			}
			return err
		},
	}
	f := cmd.Flags()
	f.Var(within(&o.Providers, market.LeastProviders, market.MostProviders), "providers", "who computes")
	f.Var(within(&o.Orders, 0, market.MostOrders), "orders", "orders of a day (default as many as providers)")
	f.Var(within(&o.Hours, 1, 24*7), "hours", "hours that are played")
	f.Var(within(&o.BlockMs, 500, 60_000), "block-ms", "protocol time from one block to the next, in ms")
	f.Var(within(&o.Seed, 0, math.MaxUint64), "seed", "from which everything follows")
	f.Var(within(&runs, 10, 1_000_000), "runs", "games of each attack")
	f.BoolVar(&attacksAlone, "attacks-only", false, "play the attacks, and no day")
	return cmd
}

func tellEconomy(w io.Writer, r *marketReport) {
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
		fmt.Fprintf(w, "Gini of earnings %.3f; for each verified ut %.0f utally were burnt, and providers earned %.0f\n", r.Gini, r.BurntPerUT, r.PaidPerUT)
		fmt.Fprintf(w, "a third of the power: %.0f ut, for which %.0f tally are burnt, %.1f %% of what was paid in the time\n", r.Third, r.ThirdCosts, 100*r.ThirdOfPaid)
		fmt.Fprintf(w, "%d providers, %d blocks in %.1f s, with %.2f GB of memory\n\n", r.Providers, r.Blocks, r.Wall, float64(r.Memory)/1e9)
	}
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "attack\tgames\tprofit\t95 %\tby")
	for _, a := range r.Attacks {
		fmt.Fprintf(t, "%s\t%d\t%.0f\t± %.0f\t%s\n", a.Name, a.Games, a.Profit, a.Error, a.Strategy)
	}
	_ = t.Flush()
	fmt.Fprintf(w, "Profits are in utally, means over games that the attacker has not seen. A false speed would pay if tier A\nwere paid %.1f %% more than others.\n\n", 100*r.Pays)
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "one seller as several\tgames\tgain\t95 %")
	for _, s := range r.Splits {
		fmt.Fprintf(t, "%s, as %d\t%d\t%.3f %%\t± %.3f\n", s.Rule, s.Names, s.Games, 100*s.Gain, 100*s.Error)
	}
	_ = t.Flush()
	for _, x := range r.Shares {
		fmt.Fprintf(w, "%s clearings of %d small books have %.4f of the greatest welfare, %.2f at worst, and %.3f of the bound\n", x.Method, x.Books, x.OfOptimum, x.Worst, x.OfBound)
	}
}

func price(x float64) string {
	if x == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f", x)
}
