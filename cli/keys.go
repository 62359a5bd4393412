package cli

import (
	"github.com/spf13/cobra"

	"github.com/cosmos/cosmos-sdk/client/keys"
)

func (e *env) keys() *cobra.Command {
	cmd := adopt(keys.Commands(), map[string]string{
		"keys":           "tally keys add alice\ntally keys list --json",
		"add":            "tally keys add alice\ntally keys add alice --recover",
		"delete":         "tally keys delete alice -y",
		"export":         "tally keys export account --home tally-devnet/consumer",
		"import":         "tally keys import alice alice.armor",
		"import-hex":     "tally keys import-hex alice",
		"list":           "tally keys list --home tally-devnet/consumer",
		"list-key-types": "tally keys list-key-types",
		"migrate":        "tally keys migrate",
		"mnemonic":       "tally keys mnemonic",
		"parse":          "tally keys parse tally1…",
		"rename":         "tally keys rename alice bob",
		"show":           "tally keys show account -a --home tally-devnet/consumer",
	})
	cmd.GroupID = "chain"
	cmd.Short = "Keep the keys of accounts"
	cmd.Long = `Keeps the keys of accounts in the directory named by --home, encrypted under a
passphrase (the file backend; others by --keyring-backend). The keyring of a
role's home opens with the passphrase that lies beside it.`
	return cmd
}
