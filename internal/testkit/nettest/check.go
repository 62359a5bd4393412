package nettest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	abci "github.com/cometbft/cometbft/abci/types"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	sdk "github.com/cosmos/cosmos-sdk/types"
	grpctypes "github.com/cosmos/cosmos-sdk/types/grpc"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	supplyv1 "github.com/tally-network/tally/gen/tally/supply/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/devnet"
)

// balances are what every role has.
type balances map[string]balance

type balance struct {
	Free     uint64 // utally
	Fees     uint64 // of transactions, since the chain began
	Stake    uint64
	Reserved uint64 // of the stake
	Record   uint64 // units that count as valid
}

// balances reads what every role has after the next block: what others have seen of the
// newest, this client may not have heard of yet. All of it is read at one height,
// because blocks go on while it is read.
func (n *Network) balances(ctx context.Context) (balances, error) {
	newest := int64(0)
	for _, m := range n.members() {
		newest = max(newest, m.Env.Chain.Head().Height)
	}
	b, err := n.Consumer.Env.Chain.Next(ctx, newest)
	if err != nil {
		return nil, err
	}
	height := b.Height
	if err := n.addFees(ctx, height); err != nil {
		return nil, err
	}
	ctx = metadata.AppendToOutgoingContext(ctx, grpctypes.GRPCBlockHeightHeader, strconv.FormatInt(height, 10))
	out, conn := balances{}, n.Consumer.Env.Chain.Conn
	for _, m := range n.members() {
		account := m.Home.Address
		r, err := banktypes.NewQueryClient(conn).Balance(ctx, &banktypes.QueryBalanceRequest{Address: account, Denom: coin.Denom})
		if err != nil {
			return nil, err
		}
		b := balance{Free: r.Balance.Amount.Uint64(), Fees: n.fees[account]}
		if m != n.Consumer {
			p, err := providerv1.NewQueryClient(conn).Peer(ctx, &providerv1.QueryPeerRequest{Account: account})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.Env.Name, err)
			}
			b.Stake, b.Reserved, b.Record = p.Peer.Stake, p.Peer.Reserved, p.Peer.Record
		}
		out[account] = b
	}
	return out, nil
}

// members returns everybody.
func (n *Network) members() []*devnet.Member {
	return slices.Concat(n.Validators, n.Providers, n.Challengers, []*devnet.Member{n.Consumer})
}

// addFees adds the fees of the blocks up to height that are not in n.fees yet.
func (n *Network) addFees(ctx context.Context, height int64) error {
	for ; n.feesTo < height; n.feesTo++ {
		next := n.feesTo + 1
		r, err := n.Consumer.Env.Chain.RPC.BlockResults(ctx, &next)
		if err != nil {
			return fmt.Errorf("fees of block %d: %w", next, err)
		}
		for _, tx := range r.TxsResults {
			for _, e := range tx.Events {
				if err := addFee(n.fees, e); err != nil {
					return fmt.Errorf("fees of block %d: %w", next, err)
				}
			}
		}
	}
	return nil
}

// addFee adds the fee that an event of a transaction tells of, if it is such an event.
func addFee(fees map[string]uint64, e abci.Event) error {
	var payer, amount string
	for _, a := range e.Attributes {
		switch a.Key {
		case sdk.AttributeKeyFeePayer:
			payer = a.Value
		case sdk.AttributeKeyFee:
			amount = a.Value
		}
	}
	if e.Type != sdk.EventTypeTx || payer == "" {
		return nil
	}
	paid, err := sdk.ParseCoinsNormalized(amount)
	fees[payer] += paid.AmountOf(coin.Denom).Uint64()
	return err
}

// Moved tells Settle of money that a role got, or lost, outside of the lease.
func (n *Network) Moved(name string, utally int64) {
	account := n.Member(name).Home.Address
	b := n.before[account]
	b.Free = uint64(int64(b.Free) + utally)
	n.before[account] = b
}

// Hold returns an error unless everybody has what it had at first, with what it got since and less its fees; got is by account.
func (n *Network) Hold(got map[string]int64) error {
	now, err := n.balances(n.ctx)
	if err != nil {
		return err
	}
	for account, before := range n.before {
		after := now[account]
		fees := after.Fees - before.Fees
		if want := int64(before.Free) + got[account] - int64(fees); int64(after.Free) != want {
			return fmt.Errorf("%s has %d utally after fees of %d; it had %d, got %d, and should have %d", n.Name(account), after.Free, fees, before.Free, got[account], want)
		}
		if after.Reserved != 0 {
			return fmt.Errorf("%d utally of %s are still reserved", after.Reserved, n.Name(account))
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.broken
}

// guard asks after every block whether all money is accounted for.
func (n *Network) guard() {
	for height := int64(0); ; {
		b, err := n.Consumer.Env.Chain.Next(n.ctx, height)
		if err != nil {
			return
		}
		height = b.Height
		if err := n.supply(n.Consumer.Env.Chain); err != nil && n.ctx.Err() == nil {
			n.mu.Lock()
			if n.broken == nil {
				n.broken = fmt.Errorf("height %d: %w", height, err)
			}
			n.mu.Unlock()
		}
	}
}

func (n *Network) supply(c *client.Client) error {
	r, err := supplyv1.NewQueryClient(c.Conn).Check(n.ctx, &supplyv1.QueryCheckRequest{})
	if err != nil {
		return fmt.Errorf("supply: %w", err)
	}
	if !r.Ok {
		return fmt.Errorf("supply is not intact: %v", r)
	}
	return nil
}

// Check returns an error unless everything holds that must when an order, the
// only one so far, is settled.
func (n *Network) Check(l *job.Lease) error {
	n.mu.Lock()
	broken := n.broken
	n.mu.Unlock()
	if broken != nil {
		return broken
	}
	for _, m := range n.Validators {
		if err := n.supply(m.Env.Chain); err != nil {
			return fmt.Errorf("%s: %w", m.Env.Name, err)
		}
	}
	if l.Phase != job.Settled || l.Ledger.Escrow != 0 {
		return fmt.Errorf("the lease is %v with %d utally in escrow", l.Phase, l.Ledger.Escrow)
	}
	l, err := n.Consumer.Env.Leases.Fill(n.ctx, l, l.Everything())
	if err != nil {
		return err
	}
	if err := l.Check(); err != nil {
		return err
	}
	if err := n.checkBalances(l); err != nil {
		return err
	}
	if l.Reason != "" {
		return nil // it ended early
	}
	want, err := n.Draft.Honest(n.ctx)
	if err != nil {
		return err
	}
	if got := l.FinalRoot(); got != want {
		return fmt.Errorf("the final root is %v, an honest run ends with %v", got.Short(), want.Short())
	}
	return nil
}

// checkBalances compares what everybody got and lost with the lease's ledger.
func (n *Network) checkBalances(l *job.Lease) error {
	now, err := n.balances(n.ctx)
	if err != nil {
		return err
	}
	got, done := map[string]uint64{}, map[string]uint64{}
	for i := range l.Units {
		if u := &l.Units[i]; u.Status == job.Accepted {
			done[u.Provider]++
			for _, r := range u.Replicas {
				done[r.Provider]++
			}
		}
	}
	lost, err := lostChallenges(n.ctx, n.Consumer.Env.Chain.Conn, got)
	if err != nil {
		return err
	}
	for _, s := range slices.Concat(l.Ledger.Paid, l.Ledger.SlashPaid, l.Ledger.Prizes) {
		got[s.Account] += s.Amount
	}
	var slashed uint64
	for account, before := range n.before {
		after, want := now[account], before.Free+got[account]
		if account == l.Order.Consumer {
			want -= l.Quote.Price + l.Deposit - l.Ledger.Refund - l.Ledger.Insured
		}
		want -= after.Fees - before.Fees
		if after.Free != want {
			return fmt.Errorf("%s has %d utally after fees of %d; it had %d and should have %d",
				n.Name(account), after.Free, after.Fees-before.Fees, before.Free, want)
		}
		if after.Record != before.Record+done[account] {
			return fmt.Errorf("%d units of %s count; %d did before, and %d were accepted", after.Record, n.Name(account), before.Record, done[account])
		}
		if after.Reserved != 0 {
			return fmt.Errorf("%d utally of %s are still reserved", after.Reserved, n.Name(account))
		}
		slashed += before.Stake - after.Stake
	}
	if slashed != l.Ledger.Slashed+lost {
		return fmt.Errorf("stakes have shrunk by %d utally, %d were slashed, and %d lost by challenging what is true", slashed, l.Ledger.Slashed, lost)
	}
	return n.checkPool(l)
}

// lostChallenges returns the stake that challengers of true work have lost, and adds to got what
// those have who defended it.
func lostChallenges(ctx context.Context, conn grpc.ClientConnInterface, got map[string]uint64) (lost uint64, err error) {
	r, err := disputev1.NewQueryClient(conn).Disputes(ctx, &disputev1.QueryDisputesRequest{})
	if err != nil {
		return 0, err
	}
	for _, d := range r.Disputes {
		if p := &d.Parties; d.Loser == disputev1.SIDE_CHALLENGER && p.ChallengerPurse == disputev1.PURSE_STAKE {
			won, _ := dispute.Forfeit(p.Bond)
			got[cmp.Or(p.DefenderSubstitute, p.Defender)] += won
			lost += p.Bond
		}
	}
	return lost, nil
}

// checkPool compares the jackpot pool, which was empty, with what the lease paid into
// it and got out of it.
func (n *Network) checkPool(l *job.Lease) error {
	r, err := workv1.NewQueryClient(n.Consumer.Env.Chain.Conn).Params(n.ctx, &workv1.QueryParamsRequest{})
	if err != nil {
		return err
	}
	left := l.Ledger.Tax
	for _, s := range l.Ledger.Prizes {
		left -= s.Amount
	}
	if r.Pool != left {
		return fmt.Errorf("the jackpot pool has %d utally, tax less prizes are %d", r.Pool, left)
	}
	return nil
}
