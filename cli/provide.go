package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/cli/numbers"
	"github.com/tally-network/tally/cli/speak"
	"github.com/tally-network/tally/node/home"
	"github.com/tally-network/tally/node/light"
	"github.com/tally-network/tally/node/role"
)

func (e *env) provide() *cobra.Command {
	prices := &home.ProviderSettings{UnitPrice: home.UnitPrice, BytePrice: home.BytePrice}
	m := &member{e: e, settings: home.Settings{Role: home.Provider, Provider: prices}}
	var nice int
	cmd := &cobra.Command{
		Use: "provide", GroupID: "network", Args: cobra.NoArgs,
		Short: "Sell the computation of this machine",
		Long: `Makes this machine a provider, and works until Ctrl-C. The first call makes a
home with a new account, says which address needs how much money for the stake,
and waits for it; then it registers and computes what validators assign. While it
is given nothing, it says why. Flags are written to tally.yaml in the home once
they have worked, so later calls need none.

--nice and --threads leave the machine usable meanwhile.`,
		Example: `  tally provide --endpoints tally-devnet/endpoints.json
  tally provide --rpc http://203.0.113.7:26657 --grpc 203.0.113.7:9090 --price 800 --threads 2 --nice 10
  tally provide --region DE --tag gdpr --memory-gb 16  # what orders may ask for
  tally provide --sell C:5000@800                 # at auctions, too: 5000 GFLOP for 800 utally each or more
  tally provide --probe 1m                        # have the chain measure this machine: orders ask for tiers and speeds
  tally provide --also challenger                 # later: challenge others, too`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if nice != 0 {
				if err := setNice(nice); err != nil {
					return fmt.Errorf("--nice %d: %w", nice, err)
				}
			}
			return m.serve(cmd)
		},
	}
	m.flags(cmd.Flags())
	f := cmd.Flags()
	f.Var(numbers.Within(&prices.UnitPrice, 0, wire.MaxPrice), "price", "price of computation, in utally per GFLOP")
	f.Var(numbers.Within(&prices.BytePrice, 0, wire.MaxPrice), "byte-price", "price of data moved, in utally per GB")
	f.StringVar(&prices.Region, "region", "", "country in which this machine computes, as DE; orders may ask for it")
	f.StringSliceVar(&prices.Tags, "tag", nil, "rules that you keep, as gdpr; orders may ask for them")
	f.StringVar(&prices.Privacy, "privacy", "", "what you promise of an order's files: public, discreet or enclosed")
	f.StringSliceVar(&prices.Sell, "sell", nil, "capacity on sale at auctions: tier, GFLOP, and the least price of one in utally, as C:5000@800")
	f.Var(numbers.Within(&prices.Probe, 0, home.MostProbe), "probe", "have the chain measure how fast this machine is, each month, for at least so long, as 1m: tiers above the lowest follow from that")
	f.StringVar(&prices.Validator, "validator", "", "address of the validator to work under (default the one that takes the smallest fee and has the most providers, of those that tally cluster would advise)")
	f.Var(numbers.Within(&nice, 0, 19), "nice", "let other programs go first: 1 to 19")
	return cmd
}

// serveModels is the verb of a provider that serves language models, and nothing else meanwhile.
func serveModels(e *env, env *speak.Env) *cobra.Command {
	m := &member{e: e, settings: home.Settings{Role: home.Provider}}
	cmd, do := env.Serve(func() int { return m.settings.Threads })
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := do.Open(cmd.Context(), args); err != nil {
			return err
		}
		defer do.Close()
		m.only = do.Run
		return m.serve(cmd)
	}
	m.flags(cmd.Flags())
	return cmd
}

// consumer adds the flags that say where the network is, and returns what opens a consumer's home there, for a verb that buys replies.
func consumer(e *env) func(f *pflag.FlagSet) speak.OpenConsumer {
	return func(f *pflag.FlagSet) speak.OpenConsumer {
		m := &member{e: e, settings: home.Settings{Role: home.Consumer}}
		at := pflag.NewFlagSet("network", pflag.ContinueOnError) // the verb's other flags are no settings of the home, though some are called alike
		at.StringVar(&m.endpoints, "endpoints", "", "endpoints.json of a devnet to join")
		nodeFlags(at, &m.settings.Node, "join by")
		f.AddFlagSet(at)
		return func(ctx context.Context) (*home.Home, *role.Env, error) { return m.openConsumer(ctx, at) }
	}
}

// openConsumer opens the home, and what works with the network. If the home trusts a block, the node must show headers that follow from it.
func (m *member) openConsumer(ctx context.Context, at *pflag.FlagSet) (*home.Home, *role.Env, error) {
	plain := &cobra.Command{}
	plain.SetContext(ctx)
	plain.Flags().AddFlagSet(at)
	h, err := m.open(plain)
	if err != nil {
		return nil, nil, err
	}
	r, err := m.reachConsumer(ctx, h)
	if err != nil {
		return nil, nil, errors.Join(err, h.Close())
	}
	return h, r, nil
}

func (m *member) reachConsumer(ctx context.Context, h *home.Home) (*role.Env, error) {
	log, err := m.e.logger(m.e.err)
	if err != nil {
		return nil, err
	}
	r, err := m.connect(ctx, h, home.Options{Log: log})
	if err != nil {
		return nil, err
	}
	if _, err := light.Pinned(h.Dir, r.Chain.ChainID); err == nil {
		if _, _, err := light.FollowPinned(ctx, h.Dir, r.Chain, light.Progress(m.e.err)); err != nil {
			return nil, err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return r, m.keep(h)
}
