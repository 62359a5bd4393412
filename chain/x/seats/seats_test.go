package seats_test

import (
	"crypto/ed25519"
	"testing"

	sdk "github.com/cosmos/cosmos-sdk/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/policy"
	"github.com/tally-network/tally/chain/x/seats"
	"github.com/tally-network/tally/core/power"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

const (
	tally = 1_000_000
	epoch = 6  // blocks
	base  = 40 // ut that the founders stand in for, of the network under test

)

// network is a chain of five founders with equal votes and bonds, in short epochs.
func network(options ...chaintest.Option) []chaintest.Option {
	return append([]chaintest.Option{
		chaintest.Fund(1_000_000*tally, "alice", "bob", "carol"),
		func(g *app.Genesis) {
			g.Epoch = epoch
			g.Seats.Params = seats.DefaultParams()
			g.Seats.Params.RedelegateMs = 0 // tests do not wait for a day
			g.Policy = policy.DefaultParams()
			g.Policy.Base, g.Policy.Quorum = base*1_000_000, base*300_000
			g.Validators[0].Votes, g.Validators[0].Bond = 1, 100_000*tally
			for _, n := range founders[1:] {
				v := chaintest.Named(n)
				g.Validators = append(g.Validators, app.Validator{Account: v.String(), ConsensusKey: v.PeerKey(), Votes: 1, Bond: 100_000 * tally})
			}
		},
	}, options...)
}

var founders = []string{"producer", "f1", "f2", "f3", "f4"}

// pass makes blocks that something happens in, until an epoch has passed.
func pass(t *testing.T, c *chaintest.Chain, epochs int) (seated []*seatsv1.EventSeated) {
	t.Helper()
	for range epochs * epoch {
		seated = append(seated, chaintest.Events[*seatsv1.EventSeated](t, busy(c))...)
	}
	return seated
}

// busy makes a block that something happens in.
func busy(c *chaintest.Chain) chaintest.Block {
	bob := chaintest.Named("bob")
	return c.Deliver(bob, &banktypes.MsgSend{FromAddress: bob.String(), ToAddress: bob.String(), Amount: coin.Of(1)})
}

// join returns the message by which an account joins.
func join(who chaintest.Account, bond uint64) *seatsv1.MsgJoin {
	return &seatsv1.MsgJoin{
		Account: who.String(), ConsensusKey: who.PeerKey(), BeaconKey: who.VRFKey(), Bond: bond,
		ProofOfPossession: ed25519.Sign(who.Peer, wire.ProofOfPossession(chaintest.ChainID, who.Address)),
	}
}

func votes(set []seatsv1.Seat, who chaintest.Account) uint64 {
	for _, s := range set {
		if s.Member == who.String() {
			return s.Votes
		}
	}
	return 0
}

func total(set []seatsv1.Seat) (sum uint64) {
	for _, s := range set {
		sum += s.Votes
	}
	return sum
}

func credit(t *testing.T, c *chaintest.Chain, who chaintest.Account, uts uint64) {
	t.Helper()
	if err := c.Do(func(ctx sdk.Context) error { return c.Power.Credit(ctx, who.Address, uts*power.UT) }); err != nil {
		t.Fatal(err)
	}
}

func status(t *testing.T, c *chaintest.Chain) *seatsv1.QueryStatusResponse {
	t.Helper()
	s, err := seatsv1.NewQueryClient(c).Status(t.Context(), &seatsv1.QueryStatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func member(t *testing.T, c *chaintest.Chain, who chaintest.Account) *seatsv1.QueryMemberResponse {
	t.Helper()
	m, err := seatsv1.NewQueryClient(c).Member(t.Context(), &seatsv1.QueryMemberRequest{Account: who.String()})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Who has computed proposes as often as its power is of all, or of the base. The set moves there in steps of a quarter.
func TestSeatsFollowPower(t *testing.T) {
	c, alice := chaintest.New(t, network()...), chaintest.Named("alice")
	credit(t, c, alice, 20) // 12 ut that count, of 40
	joined := c.Deliver(alice, join(alice, 100_000*tally))
	from := member(t, c, alice).Member.FromEpoch
	if now := status(t, c).Epoch; from != now+2 {
		t.Fatalf("joined in epoch %d, drawn from %d", now, from)
	}
	var last *seatsv1.EventSeated
	had := uint64(0)
	for _, e := range pass(t, c, 8) {
		got := votes(e.Seats, alice)
		if e.Epoch < from && got > 0 {
			t.Fatalf("joined in block %d, seated in epoch %d, before %d", joined.Height, e.Epoch, from)
		}
		if 4*got > total(e.Seats)+4*had*total(e.Seats)/10_000+4 {
			t.Fatalf("epoch %d: from %d of 10,000 to %d of %d votes at once", e.Epoch, had, got, total(e.Seats))
		}
		had, last = got*10_000/total(e.Seats), e
	}
	if last.Weight != 40_000_000 || last.Missing != 28_000_000 {
		t.Fatalf("of %d µut founders had %d", last.Weight, last.Missing)
	}
	for _, n := range founders {
		if got := votes(last.Seats, chaintest.Named(n)); got != 1_400 {
			t.Errorf("%s has %d seats", n, got)
		}
	}
	if got := votes(last.Seats, alice); got != 3_000 {
		t.Errorf("alice has %d seats", got)
	}
}

// Power counts for whom it is delegated to, once, from the epoch after the next on.
func TestDelegatedPowerCountsOnce(t *testing.T) {
	c, alice, carol := chaintest.New(t, network()...), chaintest.Named("alice"), chaintest.Named("carol")
	c.Deliver(alice, join(alice, 100_000*tally))
	f1 := chaintest.Named("f1")
	credit(t, c, carol, 10) // 6 ut that count: 1,500 seats
	c.Deliver(carol, &seatsv1.MsgDelegate{Account: carol.String(), Member: alice.String()})
	seated := pass(t, c, 5)
	if got := votes(seated[len(seated)-1].Seats, alice); got != 1_500 {
		t.Fatalf("alice has %d seats by carol's power", got)
	}
	c.Deliver(carol, &seatsv1.MsgDelegate{Account: carol.String(), Member: f1.String()})
	moved := status(t, c).Epoch
	for _, e := range pass(t, c, 4) {
		a, f := votes(e.Seats, alice), votes(e.Seats, f1)
		if e.Epoch < moved+2 && (a != 1_500 || f != 1_700) || e.Epoch >= moved+2 && (a != 0 || f != 3_200) {
			t.Errorf("moved in epoch %d: in epoch %d alice has %d seats, and f1 %d", moved, e.Epoch, a, f)
		}
	}
	credit(t, c, carol, 10)
	c.Deliver(carol, &seatsv1.MsgDelegate{Account: carol.String()})
	seated = pass(t, c, 4)
	if last := seated[len(seated)-1]; last.Missing != 40_000_000 || votes(last.Seats, f1) != 2_000 {
		t.Errorf("power that counts for nobody: %v", last)
	}
}

// Nobody has more seats than its bond stands behind.
func TestBondsStandBehindSeats(t *testing.T) {
	c, alice := chaintest.New(t, network()...), chaintest.Named("alice")
	credit(t, c, alice, 20)
	c.Refuse(seats.ErrBond, alice, join(alice, 10*tally-1))
	c.Deliver(alice, join(alice, 1_000*tally))
	seated := pass(t, c, 4)
	if got := votes(seated[len(seated)-1].Seats, alice); got != 100 {
		t.Fatalf("%d seats by a bond for 100", got)
	}
	c.Deliver(alice, &seatsv1.MsgBond{Account: alice.String(), Amount: 500 * tally})
	seated = pass(t, c, 1)
	if got := votes(seated[len(seated)-1].Seats, alice); got != 150 {
		t.Fatalf("%d seats by a bond for 150", got)
	}
	c.Refuse(seats.ErrBond, alice, &seatsv1.MsgUnbond{Account: alice.String(), Amount: 1_500 * tally})
	c.Deliver(alice, &seatsv1.MsgUnbond{Account: alice.String(), Amount: 1_400 * tally})
	seated = pass(t, c, 1)
	if got := votes(seated[len(seated)-1].Seats, alice); got != 10 {
		t.Fatalf("%d seats by a bond for 10", got)
	}
}

// A consensus key joins by its own word, for one account and one chain.
func TestJoinAsksForPossession(t *testing.T) {
	c := chaintest.New(t, network()...)
	alice, carol, f1 := chaintest.Named("alice"), chaintest.Named("carol"), chaintest.Named("f1")
	for name, bend := range map[string]func(*seatsv1.MsgJoin){
		"of nobody":           func(m *seatsv1.MsgJoin) { m.ProofOfPossession = nil },
		"for another account": func(m *seatsv1.MsgJoin) { m.Account = carol.String() },
		"on another chain": func(m *seatsv1.MsgJoin) {
			m.ProofOfPossession = ed25519.Sign(alice.Peer, wire.ProofOfPossession("x", alice.Address))
		},
		"as a peer": func(m *seatsv1.MsgJoin) {
			m.ProofOfPossession = ed25519.Sign(alice.Peer, wire.Statement(chaintest.ChainID, alice.Address))
		},
		"with another's key":    func(m *seatsv1.MsgJoin) { m.ConsensusKey = f1.PeerKey() },
		"with a key of no size": func(m *seatsv1.MsgJoin) { m.ConsensusKey = m.ConsensusKey[:31] },
		"with a weak key":       func(m *seatsv1.MsgJoin) { m.ConsensusKey = make([]byte, 32) },
	} {
		m := join(alice, 100*tally)
		bend(m)
		by := alice
		if m.Account != alice.String() {
			by = carol
		}
		t.Log(name, c.Refuse(seats.ErrKey, by, m))
	}
	taken := join(alice, 100*tally)
	taken.ConsensusKey, taken.ProofOfPossession = f1.PeerKey(), ed25519.Sign(f1.Peer, wire.ProofOfPossession(chaintest.ChainID, alice.Address))
	t.Log(c.Refuse(seats.ErrKey, alice, taken))
	c.Deliver(alice, join(alice, 100*tally))
	t.Log(c.Refuse(seats.ErrStatus, alice, join(alice, 100*tally)))
	c.Refuse(seats.ErrMember, carol, &seatsv1.MsgBond{Account: carol.String(), Amount: 1})
	c.Refuse(seats.ErrMember, carol, &seatsv1.MsgDelegate{Account: carol.String(), Member: chaintest.Named("nobody").String()})
}
