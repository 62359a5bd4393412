package cli

import (
	"github.com/spf13/cobra"

	"github.com/tally-network/tally/node/home"
)

func (e *env) watch() *cobra.Command {
	m := &member{e: e, settings: home.Settings{Role: home.Challenger}}
	cmd := &cobra.Command{
		Use: "watch", GroupID: "network", Args: cobra.NoArgs,
		Short: "Challenge wrong work, for a reward",
		Long: `Makes this machine a challenger, and works until Ctrl-C: it re-executes the work of
every lease and disputes what is wrong. The chain slashes whoever is wrong, and
the challenger gets a share. The first call makes a home, as tally provide does.`,
		Example: `  tally watch --endpoints tally-devnet/endpoints.json --home ~/.tally-watch`,
		RunE:    func(cmd *cobra.Command, _ []string) error { return m.serve(cmd) },
	}
	m.flags(cmd.Flags())
	return cmd
}
