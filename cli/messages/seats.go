package messages

import (
	"bytes"
	"context"
	"fmt"

	"github.com/cosmos/gogoproto/proto"

	chainaddress "github.com/tally-network/tally/chain/address"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/home"
)

// seats are the messages of consensus: who takes part, and for whom power counts.
var seats = []Message{
	{"join BOND", "Have the node of this home take part in consensus, with a bond; draws count it two epochs later", "tally tx seats join 1000tally --home ~/.tally-validator -y",
		func(ctx context.Context, by Sender, args []string) (proto.Message, error) {
			n, err := consume.ParseAmount(args[0])
			if err != nil {
				return nil, err
			}
			return join(ctx, by, uint64(n))
		}},
	{"bond AMOUNT", "Add to the sender's bond, so that it may have more seats", "tally tx seats bond 500tally --home ~/.tally-validator -y",
		func(_ context.Context, by Sender, args []string) (proto.Message, error) {
			n, err := consume.ParseAmount(args[0])
			return &seatsv1.MsgBond{Account: by.Account, Amount: uint64(n)}, err
		}},
	{"unbond AMOUNT", "Take a part of the bond back; it comes after the time of unbonding", "tally tx seats unbond 500tally --home ~/.tally-validator -y",
		func(_ context.Context, by Sender, args []string) (proto.Message, error) {
			n, err := consume.ParseAmount(args[0])
			return &seatsv1.MsgUnbond{Account: by.Account, Amount: uint64(n)}, err
		}},
	{"leave", "Give up all seats from the next draw on, and take the bond back after the time of unbonding. Keep the node running until tally seats shows none", "tally tx seats leave --home ~/.tally-validator -y",
		func(_ context.Context, by Sender, _ []string) (proto.Message, error) {
			return &seatsv1.MsgLeave{Account: by.Account}, nil
		}},
	{"unjail", "Take part again after the node missed too many blocks", "tally tx seats unjail --home ~/.tally-validator -y",
		func(_ context.Context, by Sender, _ []string) (proto.Message, error) {
			return &seatsv1.MsgUnjail{Account: by.Account}, nil
		}},
	{"delegate MEMBER", "Have the sender's computing power count for a member of consensus, two epochs later; none for nobody", "tally tx seats delegate tally1… --home ~/.tally -y",
		func(_ context.Context, by Sender, args []string) (proto.Message, error) {
			if args[0] == "none" {
				return &seatsv1.MsgDelegate{Account: by.Account}, nil
			}
			_, err := chainaddress.Parse(args[0])
			return &seatsv1.MsgDelegate{Account: by.Account, Member: args[0]}, err
		}},
}

// join has the keys of the home sign, if its node follows the chain.
func join(ctx context.Context, by Sender, bond uint64) (proto.Message, error) {
	if !home.Exists(by.HomeDir) {
		return nil, fmt.Errorf("%s: %w: tally validator makes one, with a node that can take part", by.HomeDir, home.ErrNone)
	}
	account, err := chainaddress.Parse(by.Account)
	if err != nil {
		return nil, err
	}
	p, err := home.ProvePossession(by.HomeDir, by.ChainID, account)
	if err != nil {
		return nil, err
	}
	node, err := by.GetNode()
	if err != nil {
		return nil, err
	}
	status, err := node.Status(ctx)
	switch {
	case err != nil:
		return nil, fmt.Errorf("ask the node of this home whether it follows the chain: %w", err)
	case !bytes.Equal(status.ValidatorInfo.PubKey.Bytes(), p.ConsensusKey):
		return nil, fmt.Errorf("the node that was asked is another one: start tally validator --home %s, and join by its node", by.HomeDir)
	case status.SyncInfo.CatchingUp:
		return nil, fmt.Errorf("the node is at height %d and still catching up: join once it has the newest blocks", status.SyncInfo.LatestBlockHeight)
	}
	return &seatsv1.MsgJoin{
		Account: by.Account, ConsensusKey: p.ConsensusKey, ProofOfPossession: p.Signature, BeaconKey: p.BeaconKey, Bond: bond,
	}, nil
}
