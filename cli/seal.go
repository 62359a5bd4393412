package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cosmos/gogoproto/proto"
	"github.com/spf13/cobra"

	"github.com/cosmos/cosmos-sdk/client"
	"github.com/cosmos/cosmos-sdk/client/flags"
	"github.com/cosmos/cosmos-sdk/client/tx"

	"github.com/tally-network/tally/core/auction"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/seals"
)

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
	{"seal-bid ORDER PRICE", "Bid for an order in the clearing under way a secret price of a unit at most, in utally; tally batch does it by itself",
		"tally tx auction seal-bid 3f09… 1200 --home ~/.tally -y\ntally tx auction reveal-bid 3f09… --home ~/.tally -y # once nobody can bid any more",
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
