package cli

import (
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/node/devnet"
)

func (e *env) devnet() *cobra.Command {
	var c devnet.Config
	var create bool
	var funds money
	cmd := &cobra.Command{
		Use: "devnet", GroupID: "network", Args: cobra.NoArgs,
		Short: "Run a whole network in this process",
		Long: `Runs validators, providers and challengers on 127.0.0.1, with free ports that
DIR/endpoints.json names. The first start fixes what the network is like; later
ones go on where it was, after a crash too. Every role has its home in DIR, from
which it can also run alone: see tally validator, provide and watch.

The home of a consumer, DIR/consumer, holds money to spend: on orders, or for
the stakes of more roles.`,
		Example: `  tally devnet --dir tally-devnet
  tally train order.yaml --wait --home tally-devnet/consumer
  tally query provider peers --home tally-devnet/consumer
  tally tx bank send account tally1… 500000000utally --home tally-devnet/consumer -y`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			c.Funds = uint64(funds)
			if c.Log, err = e.logger(e.err); err != nil {
				return err
			}
			if create {
				if err := devnet.Create(c); err != nil {
					return err
				}
				return e.show(map[string]string{"dir": c.Dir}, func(w io.Writer) {
					fmt.Fprintf(w, "the homes of the network are in %s; tally devnet --dir %s runs it\n", c.Dir, c.Dir)
				})
			}
			return e.runDevnet(cmd, c)
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Dir, "dir", "tally-devnet", "directory of the network")
	f.BoolVar(&create, "create", false, "make the homes and the genesis, and start nothing")
	f.Var(within(&c.Validators, 0, devnet.MaxPeers), "validators", "number of validators (default 4)")
	f.Var(within(&c.Providers, 0, devnet.MaxPeers), "providers", "number of providers (default 4)")
	f.Var(within(&c.Challengers, 0, devnet.MaxPeers), "challengers", "number of challengers (default 1)")
	f.Var(within(&c.Spread, 0, devnet.MaxPeers), "spread", "validators that the providers work under (default 1)")
	f.Var(within(&c.Threads, 0, devnet.MaxPeers), "threads", "threads of each role that computes (default 1)")
	f.BoolVar(&c.Metrics, "metrics", false, "serve Prometheus metrics of each role")
	f.Var(&funds, "funds", "what the consumer has at first (default 1000000tally)")
	f.Var(within(&c.CommitTimeout, 0, time.Hour), "commit-timeout", "pause after a block (default 200ms)")
	f.Var(within(&c.EmptyInterval, 0, time.Hour), "empty-interval", "longest time without a block (default 1s)")
	return cmd
}

func (e *env) runDevnet(cmd *cobra.Command, c devnet.Config) (err error) {
	ctx := cmd.Context()
	c.Observe, c.LeaveConsumer = e.lines(e.progress()).event, true
	n, err := devnet.Start(ctx, c)
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := n.Stop(); err == nil {
			err = stopErr
		}
	}()
	at, whole := n.Endpoints(), n.Config()
	head, err := n.Validators[0].Node.Client().Block(ctx, nil)
	if err != nil {
		return err
	}
	told := struct {
		devnet.Endpoints
		Trust string `json:"trust_root"`
	}{at, hex.EncodeToString(head.Block.ValidatorsHash)}
	err = e.show(told, func(w io.Writer) {
		fmt.Fprintf(w, "network %s is up: %s, %s, %s\n", at.Chain, several(whole.Validators, "validator"), several(whole.Providers, "provider"), several(whole.Challengers, "challenger"))
		fmt.Fprintf(w, "  RPC        %s\n", at.Nodes[0].RPC)
		fmt.Fprintf(w, "  REST       %s\n", at.Nodes[0].REST)
		fmt.Fprintf(w, "  gRPC       %s\n", at.Nodes[0].GRPC)
		fmt.Fprintf(w, "  consumer   %s\n", n.Consumer.Home.Address)
		fmt.Fprintf(w, "  endpoints  %s\n", filepath.Join(n.Dir(), "endpoints.json"))
		fmt.Fprintf(w, "  proofs     tally verify BUNDLE --trust %s\n", told.Trust)
		fmt.Fprintln(w, "Ctrl-C stops it; the same command goes on.")
	})
	if err != nil {
		return err
	}
	return n.Wait(ctx)
}
