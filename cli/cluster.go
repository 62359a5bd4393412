package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/cli/numbers"
	"github.com/tally-network/tally/core/cluster"
	"github.com/tally-network/tally/node/clusters"
	"github.com/tally-network/tally/node/market"
)

func (r *reader) clusters() *cobra.Command {
	most := 8
	cmd := &cobra.Command{
		Use: "cluster [ACCOUNT]", GroupID: "network", Args: cobra.MaximumNArgs(1),
		Short: "Advise providers which validator to work under",
		Long: `Shows which validator each provider does best to work under, or why that is so for
one of them. A place costs what a unit of work waits there: for what is moved, over the link
to the validator; for machines of another speed than most of those that it leads; for
orders that another region may not have.

How fast links are, peers have seen by what they fetched from each other, and they are asked.
It is advice: nothing on chain follows from it. The home's own account believes what it has
seen itself, and of others' links the slower of what both ends say.`,
		Example: "  tally cluster --endpoints tally-devnet/endpoints.json\n  tally cluster tally1… --json | jq .advised.validator\n  tally provide --validator tally1…  # follows it",
		RunE: r.asks(func(ctx context.Context, args []string) error {
			who := ""
			if len(args) > 0 {
				who = args[0]
			}
			v, err := clusters.Look(ctx, r.role.Chain.Conn, r.account, who)
			if err != nil {
				return err
			}
			if who == "" {
				return r.e.show(v, func(w io.Writer) { tellClusters(w, v, most) })
			}
			i := slices.IndexFunc(v.Providers, func(p clusters.Provider) bool { return p.Account == who })
			return r.e.show(v.Providers[i], func(w io.Writer) { tellPlace(w, &v.Providers[i]) })
		}),
	}
	r.flags(cmd.Flags())
	cmd.Flags().Var(numbers.Within(&most, 1, market.Most), "limit", "lines of a list")
	return cmd
}

func tellClusters(w io.Writer, v *clusters.View, most int) {
	if len(v.Validators) == 0 {
		fmt.Fprintln(w, "No clusters: no validator offers anything at present")
		return
	}
	fmt.Fprintf(w, "Clusters, by what %d of %s told\n", v.Told, numbers.Several(v.Asked, "peer"))
	table(w, "VALIDATOR\tROOM\tPROVIDERS\tADVISED", len(v.Validators), most, func(i int) string {
		x := &v.Validators[i]
		return fmt.Sprintf("%s\t%d\t%d\t%d", x.Account, x.Room, x.Now, x.Advised)
	})
	moving := slices.DeleteFunc(slices.Clone(v.Providers), func(p clusters.Provider) bool { return p.Now.Validator == p.Advised.Validator })
	if len(moving) == 0 {
		fmt.Fprintf(w, "Nobody gains enough by another validator: a unit waits %v in all\n", micros(v.Before))
		return
	}
	fmt.Fprintf(w, "Advised to move: a unit waits %v in all, and would wait %v\n", micros(v.Before), micros(v.After))
	table(w, "PROVIDER\tTIER\tREGION\tGAINS\tTO", len(moving), most, func(i int) string {
		p := &moving[i]
		return fmt.Sprintf("%s\t%s\t%s\t%v\t%s", p.Account, p.Tier, p.Region, time.Duration(p.Gain())*time.Microsecond, p.Advised.Validator)
	})
}

func tellPlace(w io.Writer, p *clusters.Provider) {
	const none = "none that is known"
	tell := func(name string, x *cluster.Place) {
		if x.Validator == "" {
			fmt.Fprintf(w, "%s nobody\n", name)
			return
		}
		fmt.Fprintf(w, "%s %s: a unit waits %v\n", name, x.Validator, micros(x.Cost.Sum()))
		link := "nothing is known of the link"
		if x.Link != (cluster.Link{}) {
			link = fmt.Sprintf("round trip %v, %.4g MB/s", micros(x.Link.RTT), float64(x.Link.Rate)/1e6)
		}
		fmt.Fprintf(w, "  link     %v: %s\n", micros(x.Cost.Exchange), link)
		fmt.Fprintf(w, "  machines %v: others compute %.4g GFLOP/s, it is of tier %s\n", micros(x.Cost.Wait), float64(x.Cluster.Speed)/1e9, p.Tier)
		fmt.Fprintf(w, "  region   %v: others are in %s, it is in %s\n", micros(x.Cost.Abroad), cmp.Or(x.Cluster.Region, none), cmp.Or(p.Region, none))
	}
	tell("under  ", &p.Now)
	if p.Now.Validator == p.Advised.Validator {
		fmt.Fprintln(w, "It is where it does best, or gains too little elsewhere")
		return
	}
	tell("advised", &p.Advised)
	fmt.Fprintf(w, "It would follow by: tally provide --validator %s\n", p.Advised.Validator)
}

func micros(n uint64) time.Duration { return time.Duration(n) * time.Microsecond }
