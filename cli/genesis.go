package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/cosmos/cosmos-sdk/client/flags"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/cli/interrupt"
	"github.com/tally-network/tally/cli/numbers"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/node/consensus"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/founding"
	"github.com/tally-network/tally/node/home"
)

// genesis is tally genesis: the start of a chain.
func genesis(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "genesis", GroupID: "network", Short: "Put a new chain's genesis together",
		Long: `Puts the genesis of a new chain together, in four steps:

  1. each founder writes a file:       tally genesis founder --chain ID --home V > v.json
  2. one of them makes the genesis:    tally genesis new genesis.json --chain ID v.json w.json
  3. money and further founders:       tally genesis add genesis.json tally1…=1000tally
  4. each founder compares the hash:   tally genesis check genesis.json --home V

Then each begins: tally validator --home V --genesis genesis.json --peers ID@HOST:PORT`,
		Example: "  tally genesis check genesis.json --json",
	}
	cmd.AddCommand(genesisFounder(e), genesisNew(e), genesisAdd(e), genesisCheck(e), genesisExport(e), genesisRegistry(e))
	return cmd
}

func genesisFounder(e *env) *cobra.Command {
	var chain, external string
	cmd := &cobra.Command{
		Use: "founder", Short: "Write what a founder's home tells of its keys",
		Long: `Writes to standard output what a genesis needs of a validator's home: public keys, signed
for one chain, and addresses as tally.yaml has them now: where the node (p2p) and the peer
(listen, announce) are reached. A home that is missing is made; so set these, and write
the file again, before you send it.`,
		Example: "  tally genesis founder --chain tally-1 --external-address 203.0.113.7:26656 --home ~/.tally-validator > founder.json",
		Args:    arguments("founder"),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if chain == "" && !home.Exists(e.home) {
				return errors.New("--chain is missing: name the chain that is to be")
			}
			v := newValidatorSettings()
			m := &member{e: e, settings: home.Settings{Role: home.Validator, Chain: chain, Validator: &v}}
			h, err := m.open(cmd)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, h.Close()) }()
			if chain != "" && chain != h.Settings.Chain {
				return fmt.Errorf("%s is of chain %q: name another --home", e.home, h.Settings.Chain)
			}
			f, err := founding.NewFile(h, external)
			if err != nil {
				return err
			}
			text, err := json.MarshalIndent(f, "", "  ")
			if err != nil {
				return err
			}
			return e.show(f, func(w io.Writer) { fmt.Fprintf(w, "%s\n", text) })
		},
	}
	cmd.Flags().StringVar(&chain, "chain", "", "id of the chain")
	cmd.Flags().StringVar(&external, "external-address", "", "host:port at which other nodes reach this one (default p2p of tally.yaml)")
	return cmd
}

// grant adds the flags of what founders get that are added, and of rules.
func grant(to *pflag.FlagSet, g *founding.Grant, rules *[]string) {
	*g = founding.DefaultGrant
	to.Var(numbers.Within(&g.Votes, 1, 1<<40), "votes", "of each added founder, in consensus and on rules")
	to.Var((*money)(&g.Bond), "bond", "of each added founder; without one it gets no seats, and other founders get its part")
	to.Var((*money)(&g.Stake), "stake", "of each added founder, as a peer that leads orders")
	to.Var((*money)(&g.Balance), "balance", "free money of each added founder, beside bond and stake")
	to.StringArrayVar(rules, "set", nil, "set a rule, as block.gas_price=200; docs/spec/rules.md lists them")
}

func genesisNew(e *env) *cobra.Command {
	var f founding.Grant
	var rules []string
	g := app.Genesis{}
	var begins string
	var reserve money
	cmd := &cobra.Command{
		Use: "new FILE FOUNDER...", Short: "Make a genesis with its first founders",
		Long: `Makes the genesis of a chain, with one founder at least. The rules are the defaults,
but for those that --set names. Whoever does it with the same arguments gets the same file.`,
		Example: "  tally genesis new genesis.json --chain tally-1 --time 2026-12-01T12:00:00Z founder.json other.json\n  tally genesis new genesis.json --chain tally-1 founder.json tally1…=1000tally --set block.gas_price=200",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			if g.ChainID == "" {
				return errors.New("--chain is missing: name the chain that is to be")
			}
			g.Time, g.Reserve = time.Now(), uint64(reserve)
			if begins != "" {
				at, err := time.Parse(time.RFC3339, begins)
				if err != nil {
					return fmt.Errorf("--time: write it as 2026-12-01T12:00:00Z: %w", err)
				}
				g.Time = at
			}
			if _, err := os.Stat(args[0]); err == nil {
				return fmt.Errorf("%s is there already: tally genesis add adds to it", args[0])
			}
			d, err := g.Draft()
			if err != nil {
				return err
			}
			return writeGenesis(e, args[0], d, f, rules, args[1:])
		},
	}
	grant(cmd.Flags(), &f, &rules)
	cmd.Flags().StringVar(&g.ChainID, "chain", "", "id of the chain, as tally-1")
	cmd.Flags().StringVar(&begins, "time", "", "when the first block may be, as 2026-12-01T12:00:00Z (default now)")
	cmd.Flags().Var(numbers.Within(&g.Epoch, 0, math.MaxInt64), "epoch-blocks", "blocks between two draws of seats (default 1200)")
	cmd.Flags().Var(&reserve, "reserve", "what rewards are paid out of (default nothing: there are none)")
	return cmd
}

func genesisAdd(e *env) *cobra.Command {
	var f founding.Grant
	var rules []string
	cmd := &cobra.Command{
		Use: "add FILE FOUNDER|ADDRESS=AMOUNT...", Short: "Add founders or money to a genesis, or set its rules",
		Long: `Adds to a genesis founders, by the files that tally genesis founder wrote, and money of
accounts: ADDRESS=AMOUNT, on top of what they have. With --set it sets rules. The file stays
as it was unless a chain could begin with what comes of it.`,
		Example: "  tally genesis add genesis.json third.json --votes 50\n  tally genesis add genesis.json tally1…=1000tally\n  tally genesis add genesis.json --set seats.seats=20000",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			d, _, err := readDraft(args[0])
			if err != nil {
				return err
			}
			return writeGenesis(e, args[0], d, f, rules, args[1:])
		},
	}
	grant(cmd.Flags(), &f, &rules)
	return cmd
}

func readDraft(file string) (d *app.Draft, text []byte, err error) {
	if text, err = bounded.ReadFile(file, consensus.MaxGenesis); err != nil {
		return nil, nil, err
	}
	if d, err = app.ReadDraft(text); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	return d, text, nil
}

// writeGenesis adds to a draft, and writes it if a chain could begin with it.
func writeGenesis(e *env, file string, d *app.Draft, g founding.Grant, rules, args []string) error {
	nodes, err := founding.Add(d, g, args)
	if err == nil {
		err = founding.SetRules(d, rules)
	}
	if err != nil {
		return err
	}
	doc, err := d.Verify()
	if err != nil {
		return err
	}
	text, err := app.Text(doc)
	if err != nil {
		return err
	}
	if err := home.WriteFile(file, text, 0o644); err != nil {
		return err
	}
	b, err := founding.NewView(file, d, text)
	if err != nil {
		return err
	}
	b.Nodes = nodes
	return e.show(b, func(w io.Writer) { tellGenesis(w, b) })
}

func genesisCheck(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "check FILE", Short: "Check a genesis, and show what begins with it",
		Long: `Begins the chain of a genesis once, in memory, and shows who would run it and what there
would be. All founders must see the same hash. With the --home of a founder it also says
whether that is among them, with the keys that the home has.`,
		Example: "  tally genesis check genesis.json --home ~/.tally-validator",
		Args:    arguments("check FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, text, err := readDraft(args[0])
			if err != nil {
				return err
			}
			if _, err := interrupt.Run(cmd.Context(), d.Verify); err != nil {
				return fmt.Errorf("%s: no chain could begin with it: %w", args[0], err)
			}
			b, err := founding.NewView(args[0], d, text)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed(flags.FlagHome) {
				if b.Mine, err = founding.FounderOf(e.home, &b.Summary); err != nil {
					return err
				}
			}
			return e.show(b, func(w io.Writer) { tellGenesis(w, b) })
		},
	}
}

func genesisExport(e *env) *cobra.Command {
	var height int64
	var chain string
	cmd := &cobra.Command{
		Use: "export FILE", Short: "Write the genesis with which a chain goes on from a node's state",
		Long: `Writes a genesis from the state of a validator's node, which must not run: accounts, orders,
leases, disputes, power and seats. A chain that begins with it goes on with the next block,
in new homes. Upgrades need no export: they go on with the same chain.`,
		Example: "  tally genesis export genesis.json --chain tally-2 --home ~/.tally-validator",
		Args:    arguments("export FILE"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if _, err := os.Stat(args[0]); err == nil {
				return fmt.Errorf("%s is there already: name another file", args[0])
			}
			h, err := home.Open(e.home)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, h.Close()) }()
			doc, err := interrupt.Run(cmd.Context(), func() (*cmttypes.GenesisDoc, error) { return h.Export(height, chain) })
			if err != nil {
				return err
			}
			text, err := app.Text(doc)
			if err != nil {
				return err
			}
			d, err := app.ReadDraft(text)
			if err != nil {
				return err
			}
			return writeGenesis(e, args[0], d, founding.Grant{}, nil, nil)
		},
	}
	cmd.Flags().Var(numbers.Within(&height, 0, math.MaxInt64), "height", "block after which the state is (default the newest)")
	cmd.Flags().StringVar(&chain, "chain", "", "id of the chain that begins (default that of the home)")
	return cmd
}

func tellGenesis(w io.Writer, b *founding.View) {
	fmt.Fprintf(w, "%s: chain %s, from %s on\n", b.File, b.ChainID, b.Time.Format(time.RFC3339))
	fmt.Fprintf(w, "sha256 %s\n", b.Hash)
	fmt.Fprintf(w, "%v exist: %v are held for rewards, %v are bonds and stakes, the rest is that of %s\n",
		consume.Amount(b.Supply), consume.Amount(b.Reserve), consume.Amount(b.Locked), numbers.Several(b.Accounts, "account"))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nfounder\tvotes\tbond\tstake\t")
	for _, f := range b.Founders {
		note := ""
		if f.Account == b.Mine {
			note = "this home"
		}
		fmt.Fprintf(t, "%s\t%d\t%v\t%v\t%s\n", f.Account, f.Votes, consume.Amount(f.Bond), consume.Amount(f.Stake), note)
	}
	_ = t.Flush()
	if len(b.Rules) > 0 {
		fmt.Fprintln(w, "\nRules that are not the default:")
		for _, r := range b.Rules {
			fmt.Fprintf(w, "  %s\n", r)
		}
	}
	if len(b.Others) > 0 {
		fmt.Fprintf(w, "\nLook at these parts of the file too, which are not the default: %s\n", strings.Join(b.Others, ", "))
	}
	if len(b.Nodes) > 0 {
		fmt.Fprintf(w, "\nNodes of those that were added: --peers %s\n", strings.Join(b.Nodes, ","))
	}
}

func genesisRegistry(e *env) *cobra.Command {
	var p founding.PublicChain
	var out string
	cmd := &cobra.Command{
		Use: "registry FILE", Short: "Write what chain registries, wallets and explorers read",
		Long: `Writes the files that make a chain known: chain.json and assetlist.json for the Cosmos
chain registry, keplr.json for wallets (suggestChain), explorer.json for ping.pub's explorer.`,
		Example: "  tally genesis registry genesis.json --out registry --name tally --rpc https://rpc.example.org --rest https://rest.example.org",
		Args:    arguments("registry FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			d, _, err := readDraft(args[0])
			if err != nil {
				return err
			}
			b, err := d.Summary()
			if err != nil {
				return err
			}
			files, err := founding.RegistryFiles(&b, p)
			if err != nil {
				return err
			}
			if err := os.MkdirAll(out, 0o755); err != nil {
				return err
			}
			names := slices.Sorted(maps.Keys(files))
			for _, name := range names {
				if err := home.WriteFile(filepath.Join(out, name), files[name], 0o644); err != nil {
					return err
				}
			}
			return e.show(map[string]any{"dir": out, "files": names}, func(w io.Writer) {
				fmt.Fprintf(w, "%s: %s\n", out, strings.Join(names, ", "))
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&out, "out", "registry", "directory for the files")
	f.StringVar(&p.Name, "name", "tally", "the chain's name in the registry: small letters and digits")
	f.StringVar(&p.Network, "network", "mainnet", "mainnet, testnet or devnet")
	f.StringSliceVar(&p.RPC, "rpc", nil, "public RPC, as https://host")
	f.StringSliceVar(&p.REST, "rest", nil, "public REST, as https://host")
	f.StringSliceVar(&p.GRPC, "grpc", nil, "public gRPC, as host:port")
	f.StringSliceVar(&p.Peers, "peers", nil, "nodes to dial, as ID@HOST:PORT")
	f.StringVar(&p.Genesis, "genesis-url", "", "where the genesis file is")
	f.StringVar(&p.Site, "website", "", "the project's site")
	f.StringVar(&p.Explorer, "explorer", "", "the chain's page at an explorer")
	return cmd
}
