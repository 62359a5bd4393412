package cli

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/cli/interrupt"
	"github.com/tally-network/tally/cli/numbers"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/consume/split"
	"github.com/tally-network/tally/node/home"
	"github.com/tally-network/tally/node/market"
)

func (r *reader) cost() *cobra.Command {
	var allow []string
	memory, threads := uint64(defaultMemoryMB), 0
	cmd := &cobra.Command{
		Use: "cost ORDER.yaml", GroupID: "orders",
		Short: "Show what an order would cost now, by parts and by assurance",
		Long: `Reads an order file, makes the order, and asks what each offer would take for it with all
of its providers: their pay, wages of auditors and custodians, the validator's fee, what is
burnt, and the tax for forced errors. LEAST is the lowest maxPrice that it takes, with
fewer and cheaper providers. Then it asks the same with other assurances: audited,
watched, and computed by two or three. Nothing is posted, and no money is needed.

Of an order with auction: true it tells what a clearing of what is bid now would come to.
There the maximum price is a bid; for standing offers it does not count. Of an order with
split it tells which validators the parts would go to, and what each and all would cost.`,
		Example: "  tally cost order.yaml --home tally-devnet/consumer\n  tally cost order.yaml --endpoints tally-devnet/endpoints.json --json",
		Args:    arguments("cost ORDER.yaml"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			ctx := cmd.Context()
			s, err := consume.ReadOrder(args[0], allow...)
			if err != nil {
				return err
			}
			if err := r.dial(ctx); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, r.close()) }()
			d, err := interrupt.Run(ctx, func() (*split.Drafted, error) {
				return split.Read(ctx, s, engine.Bounded(cpu.New(threads), memory<<20))
			})
			if err != nil {
				return err
			}
			if d.Split != nil {
				o, err := split.Foresee(ctx, split.OnChain{Env: r.role}, d.Split, true)
				if err != nil {
					return err
				}
				return r.e.show(o, o.Tell)
			}
			c, err := market.Cost(ctx, r.role, s.Source(), d.Whole)
			if err != nil {
				return err
			}
			return r.e.show(c, func(w io.Writer) { tellCosts(w, c) })
		},
	}
	r.flags(cmd.Flags())
	allowFlag(cmd, &allow)
	cmd.Flags().Var(numbers.Within(&threads, 0, home.MaxThreads), "threads", "threads that compute (default one per processor)")
	cmd.Flags().Var(numbers.Within(&memory, 1, maxMemoryMB), "memory-mb", "refuse orders whose programs need more memory than this")
	return cmd
}

func tellCosts(w io.Writer, c *market.Costs) {
	fmt.Fprintf(w, "An order that starts from %s: %s GFLOP, for at most %v as it is written, and a deposit of %v that is returned\n",
		c.Order, numbers.Text(c.FLOPs/1e9), consume.Amount(c.MaxPrice), consume.Amount(c.Deposit))
	for i := range c.Variants {
		v := &c.Variants[i]
		as := ""
		if v.Own {
			as = ", as it is written"
		}
		fmt.Fprintf(w, "%s%s\n", v.Assurance, as)
		switch {
		case v.Refused != "":
			fmt.Fprintf(w, "  not possible: %s\n", v.Refused)
		case v.Auction != nil:
			v.Auction.Tell(w)
		case len(v.Offers) == 0:
			fmt.Fprintln(w, "  no offers: no validator sells computation at present")
		default:
			tellAsked(w, v, c.MaxPrice)
		}
	}
	took := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)).Round(time.Second) }
	if g := c.Time; g != nil {
		fmt.Fprintf(w, "Time: %v of computing at the best offer, by the measured speed of %s, %.4g GFLOP/s together; windows hold it up for %v at least\n",
			took(g.Compute), numbers.Several(g.Measured, "provider"), float64(g.Speed)/1e9, took(g.Windows))
	} else if c.Variants[0].Auction == nil {
		fmt.Fprintln(w, "Time: not known, for no provider of the best offer has worked for ten minutes, or been probed")
	}
}

func tellAsked(w io.Writer, v *market.Variant, most uint64) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  PRICE\tLEAST\tPAY\tWAGES\tFEE\tBURN\tTAX\tPROVIDERS\tVALIDATOR\t")
	for _, o := range v.Offers {
		verdict := ""
		switch {
		case o.Validator == v.Best && o.Least > most:
			verdict = "best, above maxPrice"
		case o.Validator == v.Best:
			verdict = "best"
		case o.Obstacle != "":
			verdict = "cannot: " + o.Obstacle
		}
		fmt.Fprintf(t, "  %v\t%v\t%v\t%v\t%v\t%v\t%v\t%d\t%s\t%s\n", consume.Amount(o.Price), consume.Amount(o.Least), consume.Amount(o.Pay), consume.Amount(o.Wages),
			consume.Amount(o.Fee), consume.Amount(o.Burn), consume.Amount(o.Tax), o.Providers, o.Validator, verdict)
	}
	_ = t.Flush()
}
