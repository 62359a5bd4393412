package e2e_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	cmted25519 "github.com/cometbft/cometbft/crypto/ed25519"
	"github.com/cosmos/gogoproto/proto"

	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/coin"
	beaconv1 "github.com/tally-network/tally/gen/tally/beacon/v1"
	powerv1 "github.com/tally-network/tally/gen/tally/power/v1"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	"github.com/tally-network/tally/internal/testkit/nettest"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/home"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/node/runner"
)

// A machine that was not there at the genesis gets seats by the power that providers delegate to it, and proposes
// blocks. Once it has left, it has none, and the chain goes on.
func TestWhoComputedProposesBlocks(t *testing.T) {
	t.Parallel()
	n := nettest.Start(t, nettest.Options{
		Config: func(c *devnet.Config) {
			c.Validators, c.Policy, c.Consensus = 4, devnet.Default().Policy, devnet.Default().Consensus
			c.Consensus.EpochBlocks, c.Consensus.Seats.Seats = 8, 40
			c.Policy.Base, c.Policy.Quorum = seatsBase, seatsBase*2/5
		},
		Spec: func(s *consume.Spec) { // as much as sixteen small orders
			s.Problem.Steps, s.Problem.Interval, s.Problem.Batch, s.Conditions.MaxPrice = 32, 16, 8, 1_000_000_000
		},
	})
	n.Settle(n.Post(nil))
	power, err := powerv1.NewQueryClient(n.Consumer.Env.Chain.Conn).Total(t.Context(), &powerv1.QueryTotalRequest{})
	if err != nil {
		t.Fatal(err)
	}
	// Founders must keep some weight: a draw that leaves less than four members changes nothing.
	if p := power.Power.Effective; p < seatsBase/10 || p > seatsBase*9/10 {
		t.Fatalf("the order gave %d µut: too far from the base of %d", p, seatsBase)
	}
	go keepBusy(t.Context(), n.Consumer.Env)

	h, env := newValidator(t, n)
	from := joinConsensus(t, h, env)
	for _, m := range n.Providers {
		send(t, m.Env, &seatsv1.MsgDelegate{Account: m.Home.Address, Member: h.Address})
	}
	m := awaitMember(t, n, h.Address, "seats", func(m *seatsv1.Member) bool { return m.Votes > 0 })
	status, err := seatsv1.NewQueryClient(n.Consumer.Env.Chain.Conn).Status(t.Context(), &seatsv1.QueryStatusRequest{})
	if err != nil || status.Set.Epoch < from {
		t.Fatalf("seats by the draw of epoch %d, it is drawn from %d on: %v", status.GetSet().Epoch, from, err)
	}
	height := awaitProposal(t, n, h.Address, m.ConsensusKey)
	t.Logf("%d µut of %d gave %d votes; it proposed block %d", power.Power.Effective, seatsBase, m.Votes, height)

	send(t, env, &seatsv1.MsgLeave{Account: h.Address})
	awaitMember(t, n, h.Address, "no seats", func(m *seatsv1.Member) bool { return m.Votes == 0 && m.Status == seatsv1.STATUS_LEFT })
	end := n.Consumer.Env.Chain.Head().Height + 2*n.Config().Consensus.EpochBlocks
	err = n.EachBlock(func(b client.Block) (bool, error) { return b.Height < end, nil })
	if err != nil {
		t.Fatalf("the chain does not go on: %v", err)
	}
	set, err := n.Consumer.Env.Chain.RPC.Validators(t.Context(), &end, nil, nil)
	if err != nil || len(set.Validators) != 4 {
		t.Fatalf("validators %v, %v", set, err)
	}
}

// seatsBase is the power, in µut, that founders stand in for: about twice what the order gives.
const seatsBase = 240

// newValidator makes a validator's home beside a network, as its owner would: by the genesis, and the addresses of nodes.
// Its node runs, and its role works, until the test ends.
func newValidator(t *testing.T, n *nettest.Network) (*home.Home, *role.Env) {
	t.Helper()
	s := home.Settings{Role: home.Validator, Chain: n.Config().Chain, Threads: 1, Validator: &home.ValidatorSettings{
		FeeBps: 500, MaxLeases: 4, CommitTimeout: n.Config().CommitTimeout, EmptyInterval: n.Config().EmptyInterval,
	}}
	for _, m := range n.Validators {
		id, err := m.Home.Identity()
		if err != nil {
			t.Fatal(err)
		}
		s.Validator.Peers = append(s.Validator.Peers, id.NodeID+"@"+m.Home.Settings.Validator.P2P)
	}
	dir := filepath.Join(t.TempDir(), "validator")
	if _, err := home.Create(dir, s); err != nil {
		t.Fatal(err)
	}
	genesis, err := os.ReadFile(filepath.Join(n.Dir(), "genesis.json"))
	if err == nil {
		err = home.SetGenesis(dir, genesis)
	}
	if err != nil {
		t.Fatal(err)
	}
	h, err := home.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), nettest.Patience)
	done := make(chan error, 1)
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the role of the new validator: %v", err)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err = h.StartNode(ctx, nil); err != nil {
		done <- nil
		t.Fatal(err)
	}
	env, err := h.Env(ctx, home.Options{})
	if err != nil {
		done <- nil
		t.Fatal(err)
	}
	pay(t, n.Network, h.Address, n.Config().Registry.MinValidatorStake+newBond+client.FirstFees)
	go func() { done <- runner.Run(ctx, h, env) }()
	return h, env
}

// newBond stands behind all 40 seats, in utally.
const newBond = 400_000_000

// joinConsensus waits until a node has caught up and its role is registered, and joins by the keys of its home. It
// returns the epoch from which the account is drawn.
func joinConsensus(t *testing.T, h *home.Home, env *role.Env) (from uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), nettest.Patience)
	defer cancel()
	for height := int64(0); ; {
		status, err := env.Chain.RPC.Status(ctx)
		if err != nil {
			t.Fatal(err)
		}
		peer, err := runner.Registered(ctx, env)
		if err == nil && peer != nil && !status.SyncInfo.CatchingUp {
			break
		}
		b, err := env.Chain.Next(ctx, height)
		if err != nil {
			t.Fatalf("waiting for the new node: %v", err)
		}
		height = b.Height
	}
	account, err := address.Parse(h.Address)
	if err != nil {
		t.Fatal(err)
	}
	p, err := home.ProvePossession(h.Dir, env.Chain.ChainID, account)
	if err != nil {
		t.Fatal(err)
	}
	send(t, env, &seatsv1.MsgJoin{Account: h.Address, ConsensusKey: p.ConsensusKey, ProofOfPossession: p.Signature, BeaconKey: p.BeaconKey, Bond: newBond})
	r, err := seatsv1.NewQueryClient(env.Chain.Conn).Member(ctx, &seatsv1.QueryMemberRequest{Account: h.Address})
	if err != nil || r.Member.Bond != newBond || r.Member.Votes != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	return r.Member.FromEpoch
}

// awaitMember waits until a member of consensus is as wanted.
func awaitMember(t *testing.T, n *nettest.Network, account, what string, want func(*seatsv1.Member) bool) (m seatsv1.Member) {
	t.Helper()
	q := seatsv1.NewQueryClient(n.Consumer.Env.Chain.Conn)
	err := n.EachBlock(func(client.Block) (bool, error) {
		r, err := q.Member(t.Context(), &seatsv1.QueryMemberRequest{Account: account})
		if err != nil {
			return false, err
		}
		m = r.Member
		return !want(&m), nil
	})
	if err != nil {
		t.Fatalf("waiting for %s: %v; %+v", what, err, m)
	}
	return m
}

// awaitProposal waits for a block that an account proposed, with its proof of the beacon's value first.
func awaitProposal(t *testing.T, n *nettest.Network, account string, key []byte) (height int64) {
	t.Helper()
	enc, err := app.NewEncoding()
	if err != nil {
		t.Fatal(err)
	}
	err = n.EachBlock(func(b client.Block) (bool, error) {
		r, err := n.Consumer.Env.Chain.RPC.Block(t.Context(), &b.Height)
		if err != nil {
			return false, err
		}
		if !bytes.Equal(r.Block.ProposerAddress, cmted25519.PubKey(key).Address()) || len(r.Block.Txs) == 0 {
			return true, nil
		}
		tx, err := enc.Tx.TxDecoder()(r.Block.Txs[0])
		if err != nil {
			return false, err
		}
		proof, ok := tx.GetMsgs()[0].(*beaconv1.MsgProve)
		if !ok || proof.Account != account {
			t.Errorf("block %d begins with %v", b.Height, tx.GetMsgs())
		}
		height = b.Height
		return false, nil
	})
	if err != nil {
		t.Fatalf("waiting for a block of %s: %v", account, err)
	}
	return height
}

// keepBusy sends transfers until ctx is done: an idle chain draws nothing.
func keepBusy(ctx context.Context, env *role.Env) {
	for ctx.Err() == nil {
		m := &banktypes.MsgSend{FromAddress: env.Account.Address, ToAddress: env.Account.Address, Amount: coin.Of(1)}
		if _, err := env.Account.Send(ctx, m); err != nil {
			time.Sleep(50 * time.Millisecond)
		}
	}
}

func send(t *testing.T, env *role.Env, m proto.Message) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), nettest.Patience)
	defer cancel()
	if _, err := env.Account.Send(ctx, m); err != nil {
		t.Fatal(err)
	}
}
