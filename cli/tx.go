package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/cosmos/cosmos-sdk/client"
	"github.com/cosmos/cosmos-sdk/client/flags"
	"github.com/cosmos/cosmos-sdk/client/tx"
	"github.com/cosmos/cosmos-sdk/codec/address"
	authcli "github.com/cosmos/cosmos-sdk/x/auth/client/cli"
	bankcli "github.com/cosmos/cosmos-sdk/x/bank/client/cli"

	chainaddress "github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/cli/messages"
	"github.com/tally-network/tally/node/consume"
)

func (e *env) tx() *cobra.Command {
	cmd := &cobra.Command{
		Use: "tx", GroupID: "chain",
		Short: "Send transactions",
		Long: `Signs and sends transactions. Chain, node and key are those of the home, unless
flags name others. A transaction that would fail is refused at once, and costs
nothing. Otherwise it waits until a block has taken the transaction, and tells what came of it.
ORDER is an order's id, or the beginning of it.`,
		Example: `  tally tx bank send account tally1… 5000000utally --home tally-devnet/consumer -y
  tally tx bank send account tally1… 1utally --generate-only > tx.json && tally tx sign tx.json`,
	}
	cmd.AddCommand(
		bankcli.NewTxCmd(address.NewBech32Codec(chainaddress.Prefix)),
		authcli.GetSignCommand(), authcli.GetSignBatchCommand(), authcli.GetMultiSignCommand(), authcli.GetMultiSignBatchCmd(),
		authcli.GetValidateSignaturesCommand(), authcli.GetBroadcastCommand(), authcli.GetEncodeCommand(), authcli.GetDecodeCommand(),
		authcli.GetSimulateCmd(),
	)
	for module, all := range messages.All {
		group := &cobra.Command{Use: module, Short: "Transactions of the module " + module}
		for _, m := range all {
			group.AddCommand(transaction(m))
		}
		cmd.AddCommand(group)
	}
	return adopt(cmd, map[string]string{
		"bank":                "tally tx bank send account tally1… 5000000utally -y",
		"send":                "tally tx bank send account tally1… 5000000utally --home tally-devnet/consumer -y",
		"multi-send":          "tally tx bank multi-send account tally1… tally1… 5000000utally -y",
		"sign":                "tally tx sign tx.json --from alice > signed.json",
		"sign-batch":          "tally tx sign-batch txs.json --from alice",
		"multi-sign":          "tally tx multi-sign tx.json both alice.json bob.json",
		"multisign-batch":     "tally tx multisign-batch txs.json both alice.json bob.json",
		"validate-signatures": "tally tx validate-signatures signed.json",
		"broadcast":           "tally tx broadcast signed.json",
		"encode":              "tally tx encode signed.json",
		"decode":              "tally tx decode CoYBCoMB…",
		"simulate":            "tally tx simulate tx.json --from alice",
		"provider":            "tally tx provider deposit 50tally -y",
		"work":                "tally tx work ask 3f09… 3 0 tally1… -y",
		"beacon":              "tally tx beacon set-key beacon.pem -y",
		"policy":              "tally tx policy vote 3 yes -y",
		"probe":               "tally tx probe open --home ~/.tally -y",
		"reserve":             "tally tx reserve claim -y",
		"seats":               "tally tx seats join 1000tally -y",
		"auction":             "tally tx auction sell C:5000@800 -y",
		"market":              "tally tx market cancel-order 3f09… -y",
	})
}

// transaction is a command that sends a message.
func transaction(m messages.Message) *cobra.Command {
	cmd := &cobra.Command{
		Use: m.Use, Short: m.Short, Example: indent(m.Example), Args: arguments(m.Use),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := client.GetClientTxContext(cmd)
			if err != nil {
				return err
			}
			for i, name := range strings.Fields(m.Use)[1:] {
				if name != "ORDER" {
					continue
				}
				id, err := consume.Find(cmd.Context(), c, "", args[i])
				if err != nil {
					return err
				}
				args[i] = id.String()
			}
			msg, err := m.Build(cmd.Context(), messages.Sender{Context: c, Account: c.GetFromAddress().String()}, args)
			if err != nil {
				return err
			}
			return tx.GenerateOrBroadcastTxCLI(c, cmd.Flags(), msg)
		},
	}
	flags.AddTxFlagsToCmd(cmd)
	return cmd
}
