package histories

import (
	"crypto/ed25519"
	"encoding/hex"
	"slices"

	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	"github.com/cosmos/cosmos-sdk/x/feegrant"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/vrf"
	"github.com/tally-network/tally/chain/wire"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	beaconv1 "github.com/tally-network/tally/gen/tally/beacon/v1"
	blockv1 "github.com/tally-network/tally/gen/tally/block/v1"
	drillingv1 "github.com/tally-network/tally/gen/tally/drilling/v1"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
	probev1 "github.com/tally-network/tally/gen/tally/probe/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	reservev1 "github.com/tally-network/tally/gen/tally/reserve/v1"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// acts are what the people do beside orders: each returns a message and who sends it. None of them minds whether it is refused.
var acts []func(*writer) (chaintest.Account, sdk.Msg)

func init() { // acts read what is there
	acts = slices.Concat(ofMoney(), ofPeers(), ofMarkets(), ofVotes(), ofSeats(), ofSessions())
}

// act queues what somebody does.
func (w *writer) act() {
	who, m := acts[w.IntN(len(acts))](w)
	if m == nil {
		return
	}
	if d, ok := m.(*providerv1.MsgDeclareOwner); ok && d.Account != d.Owner {
		w.QueueOf([]chaintest.Account{who, chaintest.Named(folk[0])}, m)
		return
	}
	if w.IntN(8) == 0 {
		w.QueueWithFee(who, w.Fee()+w.Uint64N(9), m)
		return
	}
	w.Queue(who, m)
}

func (w *writer) one(names ...string) chaintest.Account {
	return chaintest.Named(names[w.IntN(len(names))])
}

// amount is one that most people have.
func (w *writer) amount() uint64 { return w.Uint64N(2_000*tally) << (w.IntN(6) / 5 * 20) }

func ofMoney() []func(*writer) (chaintest.Account, sdk.Msg) {
	return []func(*writer) (chaintest.Account, sdk.Msg){
		func(w *writer) (chaintest.Account, sdk.Msg) {
			from := w.one(folk...)
			return from, banktypes.NewMsgSend(from.Address, w.one(folk...).Address, coin.Of(1+w.amount()))
		},
		func(w *writer) (chaintest.Account, sdk.Msg) {
			from, n := w.one(folk...), 1+w.amount()
			return from, &banktypes.MsgMultiSend{
				Inputs: []banktypes.Input{banktypes.NewInput(from.Address, coin.Of(2*n))},
				Outputs: []banktypes.Output{
					banktypes.NewOutput(w.one(folk...).Address, coin.Of(n)), banktypes.NewOutput(w.one(founders...).Address, coin.Of(n)),
				},
			}
		},
		func(w *writer) (chaintest.Account, sdk.Msg) {
			from := w.one(folk...)
			m, err := feegrant.NewMsgGrantAllowance(&feegrant.BasicAllowance{SpendLimit: coin.Of(1 + w.amount())}, from.Address, w.one(folk...).Address)
			if err != nil {
				w.tb.Fatal(err)
			}
			return from, m
		},
		func(w *writer) (chaintest.Account, sdk.Msg) {
			from := w.one(folk...)
			m := feegrant.NewMsgRevokeAllowance(from.Address, w.one(folk...).Address)
			return from, &m
		},
		func(w *writer) (chaintest.Account, sdk.Msg) {
			who := w.one(slices.Concat(worktest.Providers, founders, folk)...)
			return who, &reservev1.MsgClaim{Account: who.String()}
		},
	}
}

func ofPeers() []func(*writer) (chaintest.Account, sdk.Msg) {
	peers := slices.Concat(folk, worktest.Validators, worktest.Providers, worktest.Rivals)
	return []func(*writer) (chaintest.Account, sdk.Msg){
		func(w *writer) (chaintest.Account, sdk.Msg) {
			who, role := w.one(folk...), providerv1.Role(1+w.IntN(3))
			l := providerv1.Listing{}
			if role == providerv1.ROLE_PROVIDER {
				l = providerv1.Listing{Validator: w.one(worktest.Validators...).String(), UnitPrice: 1 + w.Uint64N(5_000)}
			}
			return who, who.Register(role, w.amount(), l)
		},
		func(w *writer) (chaintest.Account, sdk.Msg) {
			who := w.one(peers...)
			return who, &providerv1.MsgDeposit{Account: who.String(), Amount: 1 + w.amount()}
		},
		func(w *writer) (chaintest.Account, sdk.Msg) {
			who := w.one(peers...)
			return who, &providerv1.MsgWithdraw{Account: who.String(), Amount: 1 + w.amount()}
		},
		func(w *writer) (chaintest.Account, sdk.Msg) {
			who := w.one(slices.Concat(folk, worktest.Rivals)...)
			return who, &providerv1.MsgUpdate{
				Account: who.String(), Roles: []providerv1.Role{providerv1.ROLE_PROVIDER},
				Listing: providerv1.Listing{Validator: w.one(worktest.Validators...).String(), UnitPrice: 1 + w.Uint64N(5_000)},
			}
		},
		func(w *writer) (chaintest.Account, sdk.Msg) {
			who := w.one(peers...)
			return who, &providerv1.MsgDeclareOwner{Account: who.String(), Owner: chaintest.Named(folk[0]).String()}
		},
		func(w *writer) (chaintest.Account, sdk.Msg) {
			who := w.one(peers...)
			return who, &probev1.MsgOpen{Account: who.String()}
		},
	}
}

func ofMarkets() []func(*writer) (chaintest.Account, sdk.Msg) {
	partner := worktest.Consumer
	return []func(*writer) (chaintest.Account, sdk.Msg){
		func(w *writer) (chaintest.Account, sdk.Msg) {
			who := w.one(worktest.Validators...)
			return who, &marketv1.MsgPostOffer{Validator: who.String(), FeeBps: w.Uint32N(1_200), MaxLeases: w.Uint32N(9)}
		},
		func(w *writer) (chaintest.Account, sdk.Msg) {
			who := w.one(worktest.Validators[2:]...) // else nobody leads
			return who, &marketv1.MsgWithdrawOffer{Validator: who.String()}
		},
		func(w *writer) (chaintest.Account, sdk.Msg) {
			w.orders++
			o := worktest.Task(1 + w.Uint64N(3))
			o.Nonce = 1<<40 + w.orders
			return partner, worktest.Post(o)
		},
		func(w *writer) (chaintest.Account, sdk.Msg) {
			w.orders++
			return partner, worktest.Post(worktest.Auctioned(1<<40+w.orders, 1+w.IntN(4), (1+w.Uint64N(20))*tally))
		},
		func(w *writer) (chaintest.Account, sdk.Msg) {
			who := w.one(slices.Concat(worktest.Providers, worktest.Rivals)...)
			return who, &auctionv1.MsgSell{Provider: who.String(), Lots: []auctionv1.Lot{{Tier: "C", Units: 1 + w.Uint64N(100), Ask: 1 + w.Uint64N(2_000)}}}
		},
		(*writer).takesOn,
		func(w *writer) (chaintest.Account, sdk.Msg) {
			return partner, &drillingv1.MsgRegisterProject{Partner: partner.String(), Name: "folding", Summary: "shapes", Contact: "https://example.org", BudgetUt: 1 + w.Uint64N(9)}
		},
		func(w *writer) (chaintest.Account, sdk.Msg) {
			return partner, &drillingv1.MsgEndProject{Sender: partner.String(), Project: 3 + w.Uint64N(9)}
		},
	}
}

// takesOn is what somebody says who has sold capacity.
func (w *writer) takesOn() (who chaintest.Account, m sdk.Msg) {
	r, err := auctionv1.NewQueryClient(w).Demands(w.tb.Context(), &auctionv1.QueryDemandsRequest{})
	if err != nil {
		w.tb.Fatal(err)
	}
	for _, name := range slices.Concat(worktest.Providers, worktest.Rivals) {
		who = chaintest.Named(name)
		for _, d := range r.Demands {
			if d.Sale != nil && slices.ContainsFunc(d.Sale.Sellers, func(s auctionv1.Sold) bool { return s.Provider == who.String() }) && w.IntN(2) == 0 {
				return who, &auctionv1.MsgTakeOn{Provider: who.String(), Clearing: d.Sale.Clearing, Order: hex.EncodeToString(d.Order)}
			}
		}
	}
	return who, nil
}

func ofVotes() []func(*writer) (chaintest.Account, sdk.Msg) {
	vote := func(w *writer) (who chaintest.Account, m sdk.Msg) {
		who = w.one(founders...)
		if w.IntN(6) == 0 {
			who = w.one(slices.Concat(folk, worktest.Providers)...)
		}
		all := slices.DeleteFunc(w.proposals(), func(p policyv1.Proposal) bool {
			return p.Status != policyv1.STATUS_VOTING || p.Id < w.decided
		})
		if len(all) == 0 {
			return who, nil
		}
		option := policyv1.OPTION_YES
		if w.IntN(4) == 0 {
			option = policyv1.Option(1 + w.IntN(4))
		}
		return who, &policyv1.MsgVote{Voter: who.String(), Proposal: all[w.IntN(len(all))].Id, Option: option}
	}
	propose := func(w *writer) (chaintest.Account, sdk.Msg) {
		who := w.one(folk...)
		return who, w.proposal(who, w.change())
	}
	return []func(*writer) (chaintest.Account, sdk.Msg){propose, vote, vote, vote, vote}
}

// change is what a vote may decide, or may not.
func (w *writer) change() sdk.Msg {
	authority := address.Policy().String()
	switch w.IntN(5) {
	case 0:
		p, err := w.Block.Params(w.Ctx())
		if err != nil {
			w.tb.Fatal(err)
		}
		p.GasPrice += w.Uint64N(3)
		return &blockv1.MsgUpdateParams{Authority: authority, Params: p}
	case 1:
		r, err := seatsv1.NewQueryClient(w).Params(w.tb.Context(), &seatsv1.QueryParamsRequest{})
		if err != nil {
			w.tb.Fatal(err)
		}
		r.Params.CommissionBps = w.Uint32N(6_000) // above 5,000 it fails
		return &seatsv1.MsgUpdateParams{Authority: authority, Params: r.Params}
	case 2:
		return &drillingv1.MsgEndProject{Sender: authority, Project: 1 + w.Uint64N(3)}
	}
	return &drillingv1.MsgAdmitProject{Authority: authority, Project: 1 + w.Uint64N(3)}
}

// proposal is one to do what a message says.
func (w *writer) proposal(who chaintest.Account, m sdk.Msg) *policyv1.MsgPropose {
	packed, err := codectypes.NewAnyWithValue(m)
	if err != nil {
		w.tb.Fatal(err)
	}
	r, err := policyv1.NewQueryClient(w).Params(w.tb.Context(), &policyv1.QueryParamsRequest{})
	if err != nil {
		w.tb.Fatal(err)
	}
	return &policyv1.MsgPropose{
		Proposer: who.String(), Title: sdk.MsgTypeURL(m), Summary: "It shall be so.", Deposit: r.NextDeposit, Messages: []*codectypes.Any{packed},
	}
}

func (w *writer) proposals() []policyv1.Proposal {
	r, err := policyv1.NewQueryClient(w).Proposals(w.tb.Context(), &policyv1.QueryProposalsRequest{})
	if err != nil {
		w.tb.Fatal(err)
	}
	return r.Proposals
}

func ofSeats() []func(*writer) (chaintest.Account, sdk.Msg) {
	guests := slices.Concat(folk, founders[len(founders)-1:]) // of those who propose, none comes or goes
	return []func(*writer) (chaintest.Account, sdk.Msg){
		func(w *writer) (chaintest.Account, sdk.Msg) {
			who := w.one(guests...)
			return who, &seatsv1.MsgJoin{
				Account: who.String(), ConsensusKey: who.PeerKey(), BeaconKey: who.VRFKey(), Bond: 50 * w.amount(),
				ProofOfPossession: ed25519.Sign(who.Peer, wire.ProofOfPossession(chaintest.ChainID, who.Address)),
			}
		},
		func(w *writer) (chaintest.Account, sdk.Msg) {
			who := w.one(guests...)
			return who, &seatsv1.MsgBond{Account: who.String(), Amount: 1 + w.amount()}
		},
		func(w *writer) (chaintest.Account, sdk.Msg) {
			who := w.one(guests...)
			return who, &seatsv1.MsgUnbond{Account: who.String(), Amount: 1 + w.amount()}
		},
		func(w *writer) (chaintest.Account, sdk.Msg) {
			who := w.one(slices.Concat(folk, worktest.Providers)...)
			return who, &seatsv1.MsgDelegate{Account: who.String(), Member: w.one(slices.Concat(folk, founders)...).String()}
		},
		func(w *writer) (chaintest.Account, sdk.Msg) {
			who := w.one(guests...)
			return who, &seatsv1.MsgUnjail{Account: who.String()}
		},
		func(w *writer) (chaintest.Account, sdk.Msg) {
			who := w.one(guests...)
			return who, &seatsv1.MsgLeave{Account: who.String()}
		},
		func(w *writer) (chaintest.Account, sdk.Msg) {
			who := w.one(guests...)
			return who, &beaconv1.MsgSetKey{Account: who.String(), Key: w.one(folk...).VRFKey()}
		},
	}
}

// proveSeats shows the outputs of members' VRFs for the draw under way, where the rules ask for them. Some are late, or come again.
func (w *writer) proveSeats() {
	r, err := seatsv1.NewQueryClient(w).Status(w.tb.Context(), &seatsv1.QueryStatusRequest{})
	if err != nil {
		w.tb.Fatal(err)
	}
	if r.Draw == nil {
		return
	}
	for _, name := range slices.Concat(founders, folk) {
		who := chaintest.Named(name)
		_, pi, err := vrf.Prove(who.VRF, wire.SeatInput(r.Draw.Value, r.Draw.Epoch))
		if err != nil {
			w.tb.Fatal(err)
		}
		if w.IntN(3) > 0 {
			w.Queue(who, &seatsv1.MsgProve{Account: who.String(), Epoch: r.Draw.Epoch, Proof: pi})
		}
	}
}
