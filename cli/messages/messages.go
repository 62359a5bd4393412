// Package messages has the transactions that a person may want to send. What roles send they send by themselves.
//
// Call [All] for those of tally tx, by module, and [Projects] for those of tally drill project. [Message.Build] makes one of what
// somebody typed.
//
// Invariant: an example of each is a whole command. Whether a message is sound the chain says.
package messages

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

	"github.com/cosmos/cosmos-sdk/client"

	chainaddress "github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/job"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	beaconv1 "github.com/tally-network/tally/gen/tally/beacon/v1"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
	probev1 "github.com/tally-network/tally/gen/tally/probe/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	reservev1 "github.com/tally-network/tally/gen/tally/reserve/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/probe"
	"github.com/tally-network/tally/p2p"
)

// Message is a transaction. An argument that Use calls ORDER is the whole id of one.
type Message struct {
	Use, Short, Example string
	Build               func(ctx context.Context, by Sender, args []string) (proto.Message, error)
}

// Sender is who sends, by which node.
type Sender struct {
	client.Context
	Account string
}

// All are the messages of tally tx, by module.
var All = map[string][]Message{
	"provider": {
		{"deposit AMOUNT", "Add to the stake of the sender's peer", "tally tx provider deposit 50tally --home ~/.tally -y",
			func(_ context.Context, by Sender, args []string) (proto.Message, error) {
				n, err := consume.ParseAmount(args[0])
				return &providerv1.MsgDeposit{Account: by.Account, Amount: uint64(n)}, err
			}},
		{"withdraw AMOUNT", "Take free stake back; it comes after the time of unbonding", "tally tx provider withdraw 50tally --home ~/.tally -y",
			func(_ context.Context, by Sender, args []string) (proto.Message, error) {
				n, err := consume.ParseAmount(args[0])
				return &providerv1.MsgWithdraw{Account: by.Account, Amount: uint64(n)}, err
			}},
		{"declare-owner OWNER", "Say who owns the sender's peer; the owner signs too, and the peer's own address stands for nobody else",
			"tally tx provider declare-owner tally1… --home ~/.tally --generate-only > tx.json # tally1… is the owner\ntally tx sign tx.json --from account --home ~/.tally --sign-mode amino-json > half.json\ntally tx sign half.json --from owner --sign-mode amino-json > whole.json && tally tx broadcast whole.json",
			func(_ context.Context, by Sender, args []string) (proto.Message, error) {
				_, err := chainaddress.Parse(args[0])
				return &providerv1.MsgDeclareOwner{Account: by.Account, Owner: args[0]}, err
			}},
	},
	"work": {
		{"ask ORDER UNIT ATTEMPT CUSTODIAN", "Ask a custodian to show that it keeps what it attested to; the files of an order are unit \"files\"", "tally tx work ask 3f09… 3 0 tally1… --home tally-devnet/consumer -y",
			func(_ context.Context, by Sender, args []string) (proto.Message, error) {
				if args[1] == "files" {
					if args[2] != "0" {
						return nil, fmt.Errorf("attempt %q: files have none; write 0", args[2])
					}
					return &workv1.MsgAsk{Sender: by.Account, Order: args[0], Files: true, Custodian: args[3]}, nil
				}
				unit, err := strconv.ParseUint(args[1], 10, 32)
				if err != nil {
					return nil, fmt.Errorf("unit %q is no number: tally query work units ORDER lists them", args[1])
				}
				attempt, err := strconv.ParseUint(args[2], 10, 32)
				if err != nil {
					return nil, fmt.Errorf("attempt %q is no number: tally query work unit ORDER UNIT shows it", args[2])
				}
				return &workv1.MsgAsk{Sender: by.Account, Order: args[0], Unit: uint32(unit), Attempt: uint32(attempt), Custodian: args[3]}, nil
			}},
		{"stop ORDER", "End training after a merged round: what is under way is finished and paid, the rest of the price comes back", "tally tx work stop 3f09… --home tally-devnet/consumer -y",
			func(ctx context.Context, by Sender, args []string) (proto.Message, error) {
				if by.Client != nil && !by.Offline { // else the chain says whether it may be
					r, err := marketv1.NewQueryClient(by).Order(ctx, &marketv1.QueryOrderRequest{Order: args[0]})
					if err == nil {
						err = stoppable(&r.Order, by.Account)
					}
					if err == nil {
						err = underWay(ctx, by, args[0])
					}
					if err != nil {
						return nil, fmt.Errorf("order %.16s: %w", args[0], err)
					}
				}
				return &workv1.MsgStop{Consumer: by.Account, Order: args[0]}, nil
			}},
	},
	"probe": {
		{"open", "Have the chain measure the sender's speed anew; a running provider with --probe orders and computes what it takes", "tally tx probe open --home ~/.tally -y",
			func(ctx context.Context, by Sender, _ []string) (proto.Message, error) {
				busy, err := probe.UnderWay(ctx, by, by.Account)
				if busy {
					err = errors.New("a probe of this account is under way, and would show nothing any more: wait until its order is settled; tally order ls --home shows it, and tally tx market cancel-order takes back one that nobody has taken")
				}
				return &probev1.MsgOpen{Account: by.Account}, err
			}},
	},
	"policy": {
		{"propose CHANGE...", "Propose to change rules: MODULE.RULE=VALUE, or a file with all of it; the deposit comes back unless the vote vetoes it or too few take part",
			"tally tx policy propose block.gas_price=200 -y\n# or with a title and reasons of your own:\ntally query block params --json | jq '{title: \"Gas costs more\", summary: \"Blocks are full.\", messages: [{\"@type\": \"/tally.block.v1.MsgUpdateParams\", authority: .authority, params: (.params | .gas_price = \"200\")}]}' > change.json\ntally tx policy propose change.json -y",
			func(ctx context.Context, by Sender, args []string) (proto.Message, error) {
				m, err := proposalTyped(ctx, by, args)
				if err != nil {
					return nil, err
				}
				return propose(ctx, by, m)
			}},
		{"vote PROPOSAL OPTION", "Vote yes, no, veto or abstain with the computing power that the sender had when the vote began", "tally tx policy vote 3 yes -y",
			func(_ context.Context, by Sender, args []string) (proto.Message, error) {
				id, err := strconv.ParseUint(args[0], 10, 64)
				if err != nil {
					return nil, fmt.Errorf("proposal %q is no number: tally query policy proposals lists them", args[0])
				}
				option := policyv1.Option_value["OPTION_"+strings.ToUpper(args[1])]
				if option == 0 {
					return nil, fmt.Errorf("option %q: vote yes, no, veto or abstain", args[1])
				}
				return &policyv1.MsgVote{Voter: by.Account, Proposal: id, Option: policyv1.Option(option)}, nil
			}},
	},
	"reserve": {
		{"claim", "Take what the sender has earned in epochs that are over", "tally tx reserve claim --home ~/.tally -y",
			func(_ context.Context, by Sender, _ []string) (proto.Message, error) {
				return &reservev1.MsgClaim{Account: by.Account}, nil
			}},
	},
	"seats": seats,
	"beacon": {
		{"set-key FILE", "Prove the beacon's values with another key, which counts two epochs later", "tally tx beacon set-key tally-devnet/validator-0/beacon.pem --home tally-devnet/validator-0 -y # and start it again",
			func(_ context.Context, by Sender, args []string) (proto.Message, error) {
				key, err := p2p.LoadKey(args[0])
				if errors.Is(err, os.ErrNotExist) {
					key, err = p2p.CreateKey(args[0])
				}
				if err != nil {
					return nil, err
				}
				return &beaconv1.MsgSetKey{Account: by.Account, Key: key.Public().(ed25519.PublicKey)}, nil
			}},
	},
	"auction": {
		{"sell LOT...", "Sell capacity at auctions, in place of what was on sale: tier, GFLOP, and the least price of one in utally, 0 where it is sealed",
			"tally tx auction sell C:5000@800 --home ~/.tally -y",
			func(_ context.Context, by Sender, args []string) (proto.Message, error) {
				lots, err := wire.ParseLots(args)
				return &auctionv1.MsgSell{Provider: by.Account, Lots: lots}, err
			}},
		{"post-clearing FILE", "Post a certificate for the clearing under way", "tally market --certificate clearing.json && tally tx auction post-clearing clearing.json --home tally-devnet/consumer -y",
			func(_ context.Context, by Sender, args []string) (proto.Message, error) {
				m := &auctionv1.MsgPostClearing{}
				err := readMessage(args[0], m)
				m.Poster = by.Account
				return m, err
			}},
		sealAsk, sealBid, revealAsk, revealBid,
		{"take-on ORDER CLEARING", "Say that the sender is there for an order that it has sold capacity to; who does not in time loses a bond. tally provide does it by itself",
			"tally query auction sales tally1… && tally tx auction take-on 3f09… 12 --home ~/.tally -y",
			func(_ context.Context, by Sender, args []string) (proto.Message, error) {
				n, err := strconv.ParseUint(args[1], 10, 64)
				if err != nil {
					return nil, fmt.Errorf("clearing %q is no number: tally query auction sales %s shows it", args[1], by.Account)
				}
				return &auctionv1.MsgTakeOn{Provider: by.Account, Order: args[0], Clearing: n}, nil
			}},
		{"withdraw-capacity", "Sell nothing more at auctions; leases go on. A provider that runs with --sell leaves it so until it is started anew", "tally tx auction withdraw-capacity --home ~/.tally -y",
			func(_ context.Context, by Sender, _ []string) (proto.Message, error) {
				return &auctionv1.MsgSell{Provider: by.Account}, nil
			}},
	},
	"market": {
		{"cancel-order ORDER", "Take back an order that met no offer yet", "tally tx market cancel-order 3f09… --home tally-devnet/consumer -y",
			func(_ context.Context, by Sender, args []string) (proto.Message, error) {
				return &marketv1.MsgCancelOrder{Consumer: by.Account, Order: args[0]}, nil
			}},
		{"withdraw-offer", "Lead no more orders; leases go on", "tally tx market withdraw-offer --home tally-devnet/validator-0 -y",
			func(_ context.Context, by Sender, _ []string) (proto.Message, error) {
				return &marketv1.MsgWithdrawOffer{Validator: by.Account}, nil
			}},
	},
}

// underWay returns an error for an order of which nothing can be spared any more, or not yet.
func underWay(ctx context.Context, by Sender, order string) error {
	r, err := workv1.NewQueryClient(by).Lease(ctx, &workv1.QueryLeaseRequest{Order: order})
	switch {
	case err != nil:
		return err
	case r.Lease.Phase != workv1.PHASE_ACTIVE:
		return fmt.Errorf("it is %s already: no more of it is given out", wire.NameOf(r.Lease.Phase))
	case r.Lease.Round == 0:
		return errors.New("none of its rounds is merged yet, so there would be no model: stop it after the first; tally order show tells")
	}
	return nil
}

// stoppable returns an error for an order that its account cannot stop, as far as the book of orders tells.
func stoppable(b *marketv1.BookedOrder, account string) error {
	switch kind, status := b.Order.Problem.Kind, b.Posting.Status; {
	case b.Order.Consumer != account:
		return fmt.Errorf("it is of %s, who alone can stop it, and not of %s: name the home of its consumer with --home", b.Order.Consumer, account)
	case kind != job.Training:
		return fmt.Errorf("it is a %s, which nobody can stop: half of its results are none", kind)
	case status == marketv1.STATUS_OPEN:
		return errors.New("it has not begun: tally tx market cancel-order takes it back")
	case status != marketv1.STATUS_LEASED:
		return fmt.Errorf("it is %s: there is nothing to stop", wire.NameOf(status))
	}
	return nil
}

// proposalTyped makes a proposal of what was typed: rules, or the file of one.
func proposalTyped(ctx context.Context, by Sender, args []string) (*policyv1.MsgPropose, error) {
	all, typed, err := assignments(args)
	if !typed && len(args) == 1 {
		return readProposal(args[0])
	}
	if err != nil {
		return nil, err
	}
	return proposalOf(all, func(module string) (map[string]any, error) { return RulesOf(ctx, by, module) })
}

// readProposal reads a proposal from a file, whose messages name their types.
func readProposal(file string) (*policyv1.MsgPropose, error) {
	text, err := bounded.ReadFile(file, maxMessage)
	if err != nil {
		return nil, fmt.Errorf("%w; name a file, or rules as block.gas_price=200", err)
	}
	enc, err := app.NewEncoding()
	if err != nil {
		return nil, err
	}
	m := &policyv1.MsgPropose{}
	if err := enc.Codec.UnmarshalJSON(text, m); err != nil {
		return nil, fmt.Errorf("proposal in %s: %w", file, err)
	}
	return m, nil
}

// propose gives a proposal its sender and, if it names none, the deposit that is asked for now.
func propose(ctx context.Context, by Sender, m *policyv1.MsgPropose) (proto.Message, error) {
	m.Proposer = by.Account
	if m.Deposit > 0 {
		return m, nil
	}
	r, err := policyv1.NewQueryClient(by).Params(ctx, &policyv1.QueryParamsRequest{})
	if err != nil {
		return nil, fmt.Errorf("the deposit of a proposal: %w", err)
	}
	m.Deposit = r.NextDeposit
	return m, nil
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
