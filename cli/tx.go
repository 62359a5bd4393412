package cli

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/cosmos/gogoproto/jsonpb"
	"github.com/cosmos/gogoproto/proto"
	"github.com/spf13/cobra"

	"github.com/cosmos/cosmos-sdk/client"
	"github.com/cosmos/cosmos-sdk/client/flags"
	"github.com/cosmos/cosmos-sdk/client/tx"
	"github.com/cosmos/cosmos-sdk/codec/address"
	authcli "github.com/cosmos/cosmos-sdk/x/auth/client/cli"
	bankcli "github.com/cosmos/cosmos-sdk/x/bank/client/cli"

	chainaddress "github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/auction"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	beaconv1 "github.com/tally-network/tally/gen/tally/beacon/v1"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	reservev1 "github.com/tally-network/tally/gen/tally/reserve/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/seals"
	"github.com/tally-network/tally/p2p"
)

// message is a transaction that a person may want to send; what roles send they
// send by themselves.
type message struct {
	use, short, example string
	build               func(from string, args []string) (proto.Message, error)
}

var messages = map[string][]message{
	"provider": {
		{"deposit AMOUNT", "Add to the stake of the sender's peer", "tally tx provider deposit 50tally --home ~/.tally -y",
			func(from string, args []string) (proto.Message, error) {
				n, err := consume.ParseAmount(args[0])
				return &providerv1.MsgDeposit{Account: from, Amount: uint64(n)}, err
			}},
		{"withdraw AMOUNT", "Take free stake back; it comes after the time of unbonding", "tally tx provider withdraw 50tally --home ~/.tally -y",
			func(from string, args []string) (proto.Message, error) {
				n, err := consume.ParseAmount(args[0])
				return &providerv1.MsgWithdraw{Account: from, Amount: uint64(n)}, err
			}},
		{"declare-owner OWNER", "Say who owns the sender's peer; the owner signs too, and the peer's own address stands for nobody else",
			"tally tx provider declare-owner tally1… --home ~/.tally --generate-only > tx.json # tally1… is the owner\ntally tx sign tx.json --from account --home ~/.tally --sign-mode amino-json > half.json\ntally tx sign half.json --from owner --sign-mode amino-json > whole.json && tally tx broadcast whole.json",
			func(from string, args []string) (proto.Message, error) {
				_, err := chainaddress.Parse(args[0])
				return &providerv1.MsgDeclareOwner{Account: from, Owner: args[0]}, err
			}},
	},
	"work": {
		{"ask ORDER UNIT ATTEMPT CUSTODIAN", "Ask a custodian to show that it keeps what it attested to; the files of an order are unit \"files\"", "tally tx work ask 3f09… 3 0 tally1… --home tally-devnet/consumer -y",
			func(from string, args []string) (proto.Message, error) {
				if args[1] == "files" {
					if args[2] != "0" {
						return nil, fmt.Errorf("attempt %q: files have none; write 0", args[2])
					}
					return &workv1.MsgAsk{Sender: from, Order: args[0], Files: true, Custodian: args[3]}, nil
				}
				unit, err := strconv.ParseUint(args[1], 10, 32)
				if err != nil {
					return nil, fmt.Errorf("unit %q is no number: tally query work units ORDER lists them", args[1])
				}
				attempt, err := strconv.ParseUint(args[2], 10, 32)
				if err != nil {
					return nil, fmt.Errorf("attempt %q is no number: tally query work unit ORDER UNIT shows it", args[2])
				}
				return &workv1.MsgAsk{Sender: from, Order: args[0], Unit: uint32(unit), Attempt: uint32(attempt), Custodian: args[3]}, nil
			}},
	},
	"policy": {
		{"propose FILE", "Propose to change rules; the deposit comes back unless the vote vetoes it or too few take part",
			"tally query block params --json | jq '{title: \"Gas costs more\", summary: \"Blocks are full.\", messages: [{\"@type\": \"/tally.block.v1.MsgUpdateParams\", authority: .authority, params: (.params | .gas_price = \"200\")}]}' > change.json\ntally tx policy propose change.json -y",
			func(from string, args []string) (proto.Message, error) { return readProposal(from, args[0]) }},
		{"vote PROPOSAL OPTION", "Vote yes, no, veto or abstain with the computing power that the sender had when the vote began", "tally tx policy vote 3 yes -y",
			func(from string, args []string) (proto.Message, error) {
				id, err := strconv.ParseUint(args[0], 10, 64)
				if err != nil {
					return nil, fmt.Errorf("proposal %q is no number: tally query policy proposals lists them", args[0])
				}
				option := policyv1.Option_value["OPTION_"+strings.ToUpper(args[1])]
				if option == 0 {
					return nil, fmt.Errorf("option %q: vote yes, no, veto or abstain", args[1])
				}
				return &policyv1.MsgVote{Voter: from, Proposal: id, Option: policyv1.Option(option)}, nil
			}},
	},
	"reserve": {
		{"claim", "Take what the sender has earned in epochs that are over", "tally tx reserve claim --home ~/.tally -y",
			func(from string, _ []string) (proto.Message, error) { return &reservev1.MsgClaim{Account: from}, nil }},
	},
	"beacon": {
		{"set-key FILE", "Prove the beacon's values with another key, which counts two epochs later", "tally tx beacon set-key tally-devnet/validator-0/beacon.pem --home tally-devnet/validator-0 -y # and start it again",
			func(from string, args []string) (proto.Message, error) {
				key, err := p2p.LoadKey(args[0])
				if errors.Is(err, os.ErrNotExist) {
					key, err = p2p.CreateKey(args[0])
				}
				if err != nil {
					return nil, err
				}
				return &beaconv1.MsgSetKey{Account: from, Key: key.Public().(ed25519.PublicKey)}, nil
			}},
	},
	"auction": {
		{"sell LOT...", "Sell capacity at auctions, in place of what was on sale: tier, GFLOP, and the least price of one in utally, 0 where it is sealed", "tally tx auction sell C:5000@800 --home ~/.tally -y",
			func(from string, args []string) (proto.Message, error) {
				lots, err := wire.ParseLots(args)
				return &auctionv1.MsgSell{Provider: from, Lots: lots}, err
			}},
		{"post-clearing FILE", "Post a certificate for the clearing under way", "tally market --certificate clearing.json && tally tx auction post-clearing clearing.json --home tally-devnet/consumer -y",
			func(from string, args []string) (proto.Message, error) {
				m := &auctionv1.MsgPostClearing{}
				err := readMessage(args[0], m)
				m.Poster = from
				return m, err
			}},
		{"take-on ORDER CLEARING", "Say that the sender is there for an order that it has sold capacity to; who does not in time loses a bond", "tally tx auction take-on 3f09… 12 --home ~/.tally -y",
			func(from string, args []string) (proto.Message, error) {
				n, err := strconv.ParseUint(args[1], 10, 64)
				return &auctionv1.MsgTakeOn{Provider: from, Order: args[0], Clearing: n}, err
			}},
		{"withdraw-capacity", "Sell nothing more at auctions; leases go on", "tally tx auction withdraw-capacity --home ~/.tally -y",
			func(from string, _ []string) (proto.Message, error) { return &auctionv1.MsgSell{Provider: from}, nil }},
	},
	"market": {
		{"cancel-order ORDER", "Take back an order that met no offer yet", "tally tx market cancel-order 3f09… --home tally-devnet/consumer -y",
			func(from string, args []string) (proto.Message, error) {
				return &marketv1.MsgCancelOrder{Consumer: from, Order: args[0]}, nil
			}},
		{"withdraw-offer", "Lead no more orders; leases go on", "tally tx market withdraw-offer --home tally-devnet/validator-0 -y",
			func(from string, _ []string) (proto.Message, error) {
				return &marketv1.MsgWithdrawOffer{Validator: from}, nil
			}},
	},
}

// readProposal reads a proposal from a file, whose messages name their types.
func readProposal(from, file string) (proto.Message, error) {
	text, err := bounded.ReadFile(file, maxMessage)
	if err != nil {
		return nil, err
	}
	enc, err := app.NewEncoding()
	if err != nil {
		return nil, err
	}
	m := &policyv1.MsgPropose{}
	if err := enc.Codec.UnmarshalJSON(text, m); err != nil {
		return nil, fmt.Errorf("proposal in %s: %w", file, err)
	}
	m.Proposer = from
	return m, nil
}

// deposited gives a proposal that names no deposit the one that is asked for now.
func deposited(ctx context.Context, node client.Context, p *policyv1.MsgPropose) error {
	r, err := policyv1.NewQueryClient(node).Params(ctx, &policyv1.QueryParamsRequest{})
	if err != nil {
		return fmt.Errorf("the deposit of a proposal: %w", err)
	}
	p.Deposit = r.NextDeposit
	return nil
}

// maxMessage bounds the file of a message in bytes.
const maxMessage = 1 << 16

// readMessage reads a message from a file, as queries print it.
func readMessage(file string, into proto.Message) error {
	text, err := bounded.ReadFile(file, maxMessage)
	if err != nil {
		return err
	}
	if err := jsonpb.Unmarshal(bytes.NewReader(text), into); err != nil {
		return fmt.Errorf("message in %s: %w", file, err)
	}
	return nil
}

func (e *env) tx() *cobra.Command {
	cmd := &cobra.Command{
		Use: "tx", GroupID: "chain",
		Short: "Send transactions",
		Long: `Signs and sends transactions. Chain, node and key are those of the home, unless
flags name others. A transaction that would fail is refused at once, and costs
nothing. What it prints otherwise is the node's receipt; tally query wait-tx says
whether a block took the transaction. ORDER is an order's id, or the beginning of it.`,
		Example: `  tally tx bank send account tally1… 5000000utally --home tally-devnet/consumer -y
  tally tx bank send account tally1… 1utally --generate-only > tx.json && tally tx sign tx.json`,
	}
	cmd.AddCommand(
		bankcli.NewTxCmd(address.NewBech32Codec(chainaddress.Prefix)),
		authcli.GetSignCommand(), authcli.GetSignBatchCommand(), authcli.GetMultiSignCommand(), authcli.GetMultiSignBatchCmd(),
		authcli.GetValidateSignaturesCommand(), authcli.GetBroadcastCommand(), authcli.GetEncodeCommand(), authcli.GetDecodeCommand(),
		authcli.GetSimulateCmd(),
	)
	for module, all := range messages {
		group := &cobra.Command{Use: module, Short: "Transactions of the module " + module}
		for _, m := range all {
			group.AddCommand(m.command())
		}
		if module == "auction" {
			for _, s := range sealings {
				group.AddCommand(s.command())
			}
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
		"reserve":             "tally tx reserve claim -y",
		"auction":             "tally tx auction sell C:5000@800 -y",
		"market":              "tally tx market cancel-order 3f09… -y",
	})
}

func (m message) command() *cobra.Command {
	cmd := &cobra.Command{
		Use: m.use, Short: m.short, Example: indent(m.example), Args: arguments(m.use),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := client.GetClientTxContext(cmd)
			if err != nil {
				return err
			}
			for i, name := range strings.Fields(m.use)[1:] {
				if name != "ORDER" {
					continue
				}
				id, err := consume.Find(cmd.Context(), c, "", args[i])
				if err != nil {
					return err
				}
				args[i] = id.String()
			}
			msg, err := m.build(c.GetFromAddress().String(), args)
			if p, ok := msg.(*policyv1.MsgPropose); ok && err == nil && p.Deposit == 0 {
				err = deposited(cmd.Context(), c, p)
			}
			if err != nil {
				return err
			}
			return tx.GenerateOrBroadcastTxCLI(c, cmd.Flags(), msg)
		},
	}
	flags.AddTxFlagsToCmd(cmd)
	return cmd
}

// sealing is a transaction about a sealed bid, whose secret the home keeps.
type sealing struct {
	use, short, example string
	build               func(at sealedAt, args []string) (proto.Message, error)
}

// sealedAt is who bids, from which home, and how far the clearing under way is.
type sealedAt struct {
	client.Context
	account string
	home    seals.Dir
	order   string
	*auctionv1.QuerySealResponse
}

var sealings = []sealing{
	{"seal-ask TIER PRICE", "Sell a lot in the clearing under way at a secret price of a unit or more, in utally; tally provide --sell does it by itself",
		"tally tx auction sell C:1000000@0 -y # on sale by sealed bids alone\ntally tx auction seal-ask C 800 --home ~/.tally -y\ntally tx auction reveal --home ~/.tally -y # once nobody can bid any more",
		func(at sealedAt, args []string) (proto.Message, error) {
			return at.seal("", args[0], args[1])
		}},
	{"seal-bid ORDER PRICE", "Bid for an order in the clearing under way a secret price of a unit at most, in utally; tally batch does it by itself", "tally tx auction seal-bid 3f09… 1200 --home ~/.tally -y\ntally tx auction reveal-bid 3f09… --home ~/.tally -y # once nobody can bid any more",
		func(at sealedAt, args []string) (proto.Message, error) {
			return at.seal(args[0], "", args[1])
		}},
	{"reveal", "Reveal the ask that the home has sealed, and get the deposit back", "tally tx auction reveal --home ~/.tally -y",
		func(at sealedAt, _ []string) (proto.Message, error) { return at.reveal() }},
	{"reveal-bid ORDER", "Reveal the bid for an order that the home has sealed, and get the deposit back", "tally tx auction reveal-bid 3f09… --home ~/.tally -y",
		func(at sealedAt, _ []string) (proto.Message, error) { return at.reveal() }},
}

func (at sealedAt) seal(order, tier, text string) (proto.Message, error) {
	price, err := strconv.ParseUint(text, 10, 64)
	switch p := at.Progress; {
	case err != nil || price < 1 || price > auction.MaxAsk:
		return nil, fmt.Errorf("price %q: want a number of utally for 10⁹ operations, from 1 to %d", text, uint64(auction.MaxAsk))
	case p == nil:
		return nil, fmt.Errorf("no clearing is under way: tally market shows when the next one begins")
	case p.RevealsUntil == 0:
		return nil, fmt.Errorf("bids of clearing %d are open: what an order locks and what is on sale are the bids", p.Number)
	case at.Seal != nil:
		return nil, fmt.Errorf("a bid is sealed already in clearing %d, and stands", p.Number)
	}
	return at.home.Seal(at.ChainID, at.account, at.Progress.Number, order, tier, price)
}

func (at sealedAt) reveal() (proto.Message, error) {
	if at.Seal == nil {
		return nil, fmt.Errorf("%s has sealed no such bid in the clearing under way", at.account)
	}
	return at.home.Open(at.Progress.Number, at.Seal)
}

func (s sealing) command() *cobra.Command {
	cmd := &cobra.Command{
		Use: s.use, Short: s.short, Example: indent(s.example), Args: arguments(s.use),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := client.GetClientTxContext(cmd)
			if err != nil {
				return err
			}
			at := sealedAt{Context: c, account: c.GetFromAddress().String(), home: seals.In(c.HomeDir)}
			if strings.Contains(s.use, "ORDER") {
				id, err := consume.Find(cmd.Context(), c, "", args[0])
				if err != nil {
					return err
				}
				at.order, args[0] = id.String(), id.String()
			}
			at.QuerySealResponse, err = auctionv1.NewQueryClient(c).Seal(cmd.Context(), &auctionv1.QuerySealRequest{Bidder: at.account, Order: at.order})
			if err != nil {
				return err
			}
			msg, err := s.build(at, args)
			if err != nil {
				return err
			}
			return tx.GenerateOrBroadcastTxCLI(c, cmd.Flags(), msg)
		},
	}
	flags.AddTxFlagsToCmd(cmd)
	return cmd
}
