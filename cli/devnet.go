package cli

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/cli/lines"
	"github.com/tally-network/tally/cli/numbers"
	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/life"
)

func (e *env) devnet() *cobra.Command {
	var c devnet.Config
	var create, lives bool
	var funds money
	people := life.Options{Seed: 1, Buyers: 6, Guests: 3}
	cmd := &cobra.Command{
		Use: "devnet", GroupID: "network", Args: cobra.NoArgs,
		Short: "Run a whole network in this process",
		Long: `Runs validators, providers and challengers on 127.0.0.1, with free ports that
DIR/endpoints.json names. The first start fixes what the network is like; later
ones go on where it was, after a crash too. Every role has its home in DIR, from
which it can also run alone: see tally validator, provide and watch.

The home of a consumer, DIR/consumer, holds money to spend: on orders, or for
the stakes of more roles.

With --life people live there: buyers order training, batches and drilling, providers
come, go without a word, and leave with their stake. Every few seconds all tokens and all
computing power are counted, and each result is compared with that of an honest run. What
does not add up ends it with an error. With --for it ends by itself, and prints what came
of all.`,
		Example: `  tally devnet --dir tally-devnet
  tally devnet --dir tally-life --life --for 10m
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
			if !lives {
				return e.runDevnet(cmd, c, nil)
			}
			return e.runDevnet(cmd, c, &people)
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Dir, "dir", "tally-devnet", "directory of the network")
	f.BoolVar(&create, "create", false, "make the homes and the genesis, and start nothing")
	f.Var(numbers.Within(&c.Validators, 0, devnet.MaxPeers), "validators", "number of validators (default 4)")
	f.Var(numbers.Within(&c.Providers, 0, devnet.MaxPeers), "providers", "number of providers (default 4)")
	f.Var(numbers.Within(&c.Challengers, 0, devnet.MaxPeers), "challengers", "number of challengers (default 1)")
	f.Var(numbers.Within(&c.Spread, 0, devnet.MaxPeers), "spread", "validators that the providers work under (default 1)")
	f.Var(numbers.Within(&c.Threads, 0, devnet.MaxPeers), "threads", "threads of each role that computes (default 1)")
	f.BoolVar(&c.Metrics, "metrics", false, "serve Prometheus metrics of each role")
	f.Var(&funds, "funds", "what the consumer has at first")
	f.Lookup("funds").DefValue = "1000000tally"
	f.Var(numbers.Within(&c.CommitTimeout, 0, time.Hour), "commit-timeout", "pause after a block (default 200ms)")
	f.Var(numbers.Within(&c.EmptyInterval, 0, time.Hour), "empty-interval", "longest time without a block (default 1s)")
	f.BoolVar(&lives, "life", false, "let people live there, and count whether everything adds up")
	f.Var(numbers.Within(&people.For, 0, maxLife), "for", "how long they begin anything (default until Ctrl-C)")
	f.Var(numbers.Within(&people.Seed, 0, math.MaxUint64), "seed", "of what they intend")
	f.Var(numbers.Within(&people.Buyers, 1, life.MaxBuyers), "buyers", "who order; of two or more, the first publishes tasks of a project of drilling")
	f.Var(numbers.Within(&people.Guests, 0, life.MaxGuests), "guests", "providers that come and go, beside the others")
	return cmd
}

// maxLife bounds how long people live.
const maxLife = 365 * 24 * time.Hour

// runDevnet runs a network until its end, and lets people live there if there are some.
func (e *env) runDevnet(cmd *cobra.Command, c devnet.Config, people *life.Options) (err error) {
	ctx := cmd.Context()
	c.LeaveConsumer = true
	if people == nil { // of many orders at once nobody reads every step
		c.Observe = lines.To(e.progress()).Event
	}
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
	show := e.show
	if people != nil { // what came of all is the one value that is printed
		show = func(_ any, tell func(io.Writer)) error { tell(e.progress()); return nil }
	}
	err = show(told, func(w io.Writer) {
		fmt.Fprintf(w, "network %s is up: %s, %s, %s\n", at.Chain, numbers.Several(whole.Validators, "validator"), numbers.Several(whole.Providers, "provider"), numbers.Several(whole.Challengers, "challenger"))
		fmt.Fprintf(w, "  RPC        %s\n", at.Nodes[0].RPC)
		fmt.Fprintf(w, "  REST       %s\n", at.Nodes[0].REST)
		fmt.Fprintf(w, "  gRPC       %s\n", at.Nodes[0].GRPC)
		fmt.Fprintf(w, "  consumer   %s\n", n.Consumer.Home.Address)
		fmt.Fprintf(w, "  endpoints  %s\n", filepath.Join(n.Dir(), "endpoints.json"))
		consumer := filepath.Join(n.Dir(), "consumer")
		fmt.Fprintf(w, "  proofs     tally trust pin --home %s\n             tally verify BUNDLE --refresh --home %s\n", consumer, consumer)
		fmt.Fprintf(w, "             or --trust %s, which is today's validators: draws change them within minutes\n", told.Trust)
		fmt.Fprintln(w, "Ctrl-C stops it; the same command goes on.")
	})
	if err != nil {
		return err
	}
	if people == nil {
		return n.Wait(ctx)
	}
	return live(ctx, e, n, *people)
}

// live lets people live on a network, and shows what came of it.
func live(ctx context.Context, e *env, n *devnet.Network, people life.Options) error {
	lines := e.progress()
	people.Tell = func(r life.Report) error {
		_, err := fmt.Fprintln(lines, time.Now().Format(time.TimeOnly), &r)
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() { stop(n.Wait(ctx)) }()
	r, err := life.Run(ctx, n, people)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause // a role has failed
	}
	return errors.Join(err, e.show(r, r.Tell))
}
