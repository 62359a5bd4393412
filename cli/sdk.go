package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cosmossdk.io/math"

	"github.com/cosmos/cosmos-sdk/client"
	"github.com/cosmos/cosmos-sdk/client/flags"
	"github.com/cosmos/cosmos-sdk/crypto/keyring"
	sdk "github.com/cosmos/cosmos-sdk/types"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/coin"
	nodeclient "github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/home"
)

// sdkVerbs are those whose commands are the Cosmos SDK's own.
var sdkVerbs = map[string]bool{"keys": true, "tx": true, "query": true}

// sendsTx marks a command of another verb that sends a transaction as those of tally tx do.
const sendsTx = "tx"

// alsoRuns marks a command that holds others and does something by itself.
const alsoRuns = "runs"

// denominations lets the SDK's commands take amounts in tally.
var denominations = sync.OnceValue(func() error {
	for i, denom := range []string{coin.Display, coin.Denom} {
		if err := sdk.RegisterDenom(denom, math.LegacyNewDecWithPrec(1, int64(coin.Exponent*i))); err != nil {
			return err
		}
	}
	return nil
})

// prepare gives the SDK's commands what they expect: a client of the chain that
// the home's settings name, and the home's keyring.
func (e *env) prepare(cmd *cobra.Command) error {
	verb := cmd
	for verb.HasParent() && verb.Parent().HasParent() {
		verb = verb.Parent()
	}
	sends := verb.Name() == "tx" || cmd.Annotations[sendsTx] != ""
	if !sdkVerbs[verb.Name()] && !sends || cmd.HasSubCommands() && cmd.Annotations[alsoRuns] == "" {
		return nil
	}
	enc, err := app.NewEncoding()
	if err != nil {
		return err
	}
	sdk.GetConfig().Seal() // keys parse waits for it
	if err := denominations(); err != nil {
		return err
	}
	c := client.Context{}.
		WithCodec(enc.Codec).
		WithInterfaceRegistry(enc.Registry).
		WithLegacyAmino(enc.Amino).
		WithTxConfig(enc.Tx).
		WithAccountRetriever(authtypes.AccountRetriever{}).
		WithInput(e.in).
		WithOutput(e.out).
		WithHomeDir(e.home).
		WithCmdContext(cmd.Context())
	own := uint64(0)
	if home.Exists(e.home) {
		s, err := home.LoadSettings(e.home)
		if err != nil {
			return err
		}
		rpc, err := client.NewClientFromNode(s.Node.RPC)
		if err != nil {
			return fmt.Errorf("node %s: %w", s.Node.RPC, err)
		}
		own = s.GasPrice
		c = c.WithChainID(s.Chain).WithNodeURI(s.Node.RPC).WithClient(rpc)
		if from := cmd.Flags().Lookup(flags.FlagFrom); sends && from != nil && !from.Changed {
			if err := from.Value.Set(home.AccountName); err != nil {
				return err
			}
		}
	}
	// A home's own keyring needs nobody to type its passphrase.
	backend := cmd.Flags().Lookup(flags.FlagKeyringBackend)
	if backend != nil && !backend.Changed && !cmd.Flags().Changed(flags.FlagKeyringDir) {
		kr, err := home.Keyring(e.home, enc.Codec)
		switch {
		case err == nil:
			c = c.WithKeyring(kr)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	if err := presets(cmd, e.json, asks(e.in)); err != nil {
		return err
	}
	if err := client.SetCmdClientContextHandler(c, cmd); err != nil || !sends {
		return err
	}
	if err := pay(cmd, own); err != nil {
		return err
	}
	return follow(e, cmd)
}

// pay has a transaction pay what the chain asks for gas, and at least own utally for 10⁶, unless a flag says what it pays.
func pay(cmd *cobra.Command, own uint64) error {
	f, c := cmd.Flags(), client.GetClientContextFromCmd(cmd)
	if prices := f.Lookup(flags.FlagGasPrices); prices == nil || prices.Changed || f.Changed(flags.FlagFees) {
		return nil
	}
	price := max(own, gasPrice)
	if c.Client != nil && !c.Offline {
		asked, err := nodeclient.GasPrice(cmd.Context(), c, own)
		var dear *nodeclient.PriceError
		switch {
		case errors.As(err, &dear):
			return err
		case err == nil: // else the command says that nobody answers
			price = asked
		}
	}
	return f.Set(flags.FlagGasPrices, fmt.Sprintf("%d.%06d%s", price/1e6, price%1e6, coin.Denom))
}

// errUnasked says that nobody can be asked whether to send a transaction.
var errUnasked = errors.New("nobody is asked with --json, or without a terminal: add -y to send the transaction")

// asks reports whether somebody may answer there: on a terminal, or through a pipe or a file.
func asks(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return true
	}
	s, err := f.Stat()
	return err == nil && (s.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0 || s.Mode().IsRegular() || isatty.IsTerminal(f.Fd()))
}

// neverAsks are the SDK's verbs that send nothing, or what was signed to be sent.
var neverAsks = map[string]bool{
	"broadcast": true, "decode": true, "encode": true, "multi-sign": true, "multisign-batch": true, "sign": true, "sign-batch": true,
	"simulate": true, "validate-signatures": true,
}

// presets sets what the SDK's commands do if no flag says otherwise.
func presets(cmd *cobra.Command, json, asks bool) error {
	f, values := cmd.Flags(), map[string]string{}
	if json {
		values[flags.FlagOutput] = flags.OutputFormatJSON
	}
	if yes := f.Lookup(flags.FlagSkipConfirmation); (json || !asks) && yes != nil && !yes.Changed && !neverAsks[cmd.Name()] && !f.Changed(flags.FlagGenerateOnly) && !f.Changed(flags.FlagDryRun) {
		return errUnasked
	}
	for name, value := range values {
		if flag := f.Lookup(name); flag == nil || flag.Changed {
			continue
		}
		if err := f.Set(name, value); err != nil {
			return err
		}
	}
	return nil
}

// What the SDK's commands pay if no flag says otherwise.
const (
	gasPrice = 100 // utally for 10⁶ gas, where no node tells: what a new chain asks for
	gasLimit = "1000000"

	gasAdjustment = "1.5" // of --gas auto: the transaction that is tried has no fee, whose payment takes gas
)

// adopt makes the SDK's commands a verb of ours: the file keyring and enough gas by
// default, and an example for each, from the table.
func adopt(cmd *cobra.Command, examples map[string]string) *cobra.Command {
	for _, sub := range cmd.Commands() {
		adopt(sub, examples)
	}
	for _, set := range []func(string) *pflag.Flag{cmd.Flags().Lookup, cmd.PersistentFlags().Lookup} {
		if f := set(flags.FlagKeyringBackend); f != nil {
			f.DefValue = keyring.BackendFile
			_ = f.Value.Set(keyring.BackendFile)
		}
		if f := set(flags.FlagGas); f != nil {
			f.DefValue = gasLimit
			_ = f.Value.Set(gasLimit)
		}
		if f := set(flags.FlagGasAdjustment); f != nil {
			f.DefValue = gasAdjustment
			_ = f.Value.Set(gasAdjustment)
		}
	}
	if example := examples[cmd.Name()]; example != "" {
		cmd.Example = indent(example)
	}
	cmd.Long = ours.Replace(cmd.Long)
	cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = ours.Replace(f.Usage) })
	return cmd
}

// ours puts our names where the SDK's texts have those of another program.
var ours = strings.NewReplacer("<appd>", "tally", "uatom", "utally", "cosmos1", "tally1", "simd ", "tally ")

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")
}
