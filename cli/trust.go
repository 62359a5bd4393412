package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/node/light"
)

// trust is tally trust: the blocks that a home trusts.
func trust(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "trust", GroupID: "orders", Short: "List the blocks that you trust, pin one, and follow its chain",
		Long:    "Lists the block that the home has pinned of each chain, and until when that chain can be\nfollowed from it.",
		Example: "  tally trust --json\n  tally trust pin --home tally-devnet/consumer\n  tally trust follow --home tally-devnet/consumer",
		RunE: func(*cobra.Command, []string) error {
			all, err := light.List(e.home)
			if err != nil {
				return err
			}
			return e.show(append([]light.TrustedBlock{}, all...), func(w io.Writer) {
				if light.Tell(w, all...); len(all) == 0 {
					fmt.Fprintf(w, "%s has pinned no block: tally trust pin pins one of your own node, or of a file\n", e.home)
				}
			})
		},
		Args: unknown, Annotations: map[string]string{alsoRuns: "yes"},
	}
	cmd.AddCommand((&reader{e: e}).pin(), (&reader{e: e}).follow())
	return cmd
}

func (r *reader) pin() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "pin", Short: "Pin a node's newest block, or that of a file",
		Long: `Notes a block in the home as one that you trust: the newest of a node, which is believed,
so let it be your own; or the one in --file, as tally trust pin --json printed it for
somebody whom you believe. It takes the place of the chain's block before. tally verify
checks bundles by it, and tally verify --refresh follows the chain from it.`,
		Example: "  tally trust pin --home tally-devnet/consumer\n  tally trust pin --file block.json", Args: arguments("pin"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			var t light.TrustedBlock
			if file != "" {
				t, err = light.Read(file)
			} else {
				err = r.asks(func(ctx context.Context, _ []string) (err error) {
					t, err = light.Newest(ctx, r.role.Chain)
					return err
				})(cmd, args)
			}
			if err == nil {
				err = light.Pin(r.e.home, t)
			}
			if err != nil {
				return err
			}
			return r.e.show(t, func(w io.Writer) { light.Tell(w, t) })
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "file that holds the block, in place of a node")
	r.flags(cmd.Flags())
	return cmd
}

func (r *reader) follow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "follow", Short: "Follow a chain from its pinned block to the newest, and pin that",
		Long: `Follows the chain from the block that the home has pinned of it, which must be less than
16 hours old, and pins the newest. The node may lie: each step is signed by more than a
third of the validators that are trusted before it.`,
		Example: "  tally trust follow --endpoints tally-devnet/endpoints.json", Args: arguments("follow"),
		RunE: r.asks(func(ctx context.Context, _ []string) error {
			t, _, err := light.FollowPinned(ctx, r.e.home, r.role.Chain, light.Progress(r.e.err))
			if err != nil {
				return err
			}
			return r.e.show(t, func(w io.Writer) { light.Tell(w, t) })
		}),
	}
	r.flags(cmd.Flags())
	return cmd
}
