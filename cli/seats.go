package cli

import (
	"errors"

	"github.com/spf13/cobra"

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
			return r.e.show(v, v.Tell)
		},
	}
	r.flags(cmd.Flags())
	return cmd
}
