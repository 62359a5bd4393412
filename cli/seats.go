package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/seat"
)

func (r *reader) seats() *cobra.Command {
	cmd := &cobra.Command{
		Use: "seats", GroupID: "network", Args: cobra.NoArgs,
		Short: "Show who runs consensus, and by what computing power",
		Long: `Shows who takes part in consensus: the votes that each member has, its computing power
with that of whoever delegates to it, and its bond. A draw in each epoch gives seats by
power. The set moves there by a quarter of its votes in an epoch at most. A vote is a
seat; on the way, votes are finer: they add up to 2^20, so look at the share.

Until the members' power reaches a base, what is missing of it belongs to the founders.

Take part by tally tx seats join, or let your power count for a member by tally tx
seats delegate.`,
		Example: "  tally seats --home tally-devnet/consumer\n  tally seats --endpoints tally-devnet/endpoints.json --json | jq '.members[].share'",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := r.dial(cmd.Context()); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, r.close()) }()
			v, err := seat.Look(cmd.Context(), r.role.Chain.Conn)
			if err != nil {
				return err
			}
			return r.e.show(v, func(w io.Writer) { tellSeats(w, v) })
		},
	}
	r.flags(cmd.Flags())
	return cmd
}

func tellSeats(w io.Writer, v *seat.View) {
	fmt.Fprintf(w, "Epoch %d; the last draw was in epoch %d\n", v.Epoch, v.Drawn)
	if v.Weight > 0 {
		fmt.Fprintf(w, "The set follows from %s, of which %s are missing of a base of %s and belong to the founders that are eligible\n", ut(v.Weight), ut(v.Missing), ut(v.Base))
	} else {
		fmt.Fprintln(w, "The set is that of the genesis")
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nmember\tvotes\tshare\tpower\tbond\t")
	for _, m := range v.Members {
		note := ""
		if m.Founder {
			note = "founder"
		}
		switch {
		case m.Status != "active":
			note = strings.TrimSpace(note + " " + m.Status)
		case m.From > v.Epoch:
			note = fmt.Sprintf("drawn from epoch %d on", m.From)
		}
		fmt.Fprintf(t, "%s\t%d\t%.1f %%\t%s\t%v\t%s\n", m.Account, m.Votes, 100*m.Share, ut(m.Power), consume.Amount(m.Bond), note)
	}
	_ = t.Flush()
	c := &v.Third
	fmt.Fprintf(w, "\nA third of the votes takes bonds of %v and %s of training, for which %v are burnt, at least. ", consume.Amount(c.Bond), ut(c.Training), consume.Amount(c.Burn))
	if c.Escrow == 0 {
		fmt.Fprintln(w, "Nothing is in escrow")
		return
	}
	fmt.Fprintf(w, "Orders hold %v in escrow: a third costs %.3g times that\n", consume.Amount(c.Escrow), c.Times)
}
