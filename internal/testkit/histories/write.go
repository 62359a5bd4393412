package histories

import (
	"crypto/ed25519"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"
	cmted25519 "github.com/cometbft/cometbft/crypto/ed25519"
	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"
	dbm "github.com/cosmos/cosmos-db"

	upgradetypes "github.com/cosmos/cosmos-sdk/x/upgrade/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/x/auction"
	"github.com/tally-network/tally/chain/x/policy"
	"github.com/tally-network/tally/chain/x/seats"
	beaconv1 "github.com/tally-network/tally/gen/tally/beacon/v1"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	"github.com/tally-network/tally/internal/testkit/adversary"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

const (
	tally = worktest.Tally
	purse = 1_000_000 * tally // of each of the folk and the founders
	half  = 50                // blocks before the vote on the upgrade, and after it
	ahead = 30                // blocks from its proposal to its height, more than vote and delay take
	gap   = 30 * time.Second  // what a pause between two blocks counts at most
)

// People beside those of the adversary's world.
var (
	folk     = []string{"alice", "bob", "carol", "dave"}
	founders = []string{"producer", "f1", "f2", "f3", "f4", "f5"}
)

// History is one that was written, and what who plays it again must know.
type History struct {
	*chaintest.History
	Seed    uint64
	Dearer  chaintest.Dearer // the later version
	Planned int64            // from this height on the upgrade is planned
	Upgrade int64            // the first height of the later version
	epoch   int64            // blocks
}

// writer writes a history.
type writer struct {
	*rand.Rand
	*chaintest.Chain
	tb      testing.TB
	live    *adversary.Live
	orders  uint64 // that the folk have posted
	decided uint64 // the first proposal that everybody may vote on as they like
}

// Write writes the history of a seed.
func Write(tb testing.TB, seed uint64) *History {
	tb.Helper()
	r := rand.New(rand.NewPCG(seed, 0x0a11))
	h := &History{Seed: seed, Dearer: chaintest.NewDearer(), epoch: []int64{7, 12, 30, 10_000}[r.IntN(4)]}
	db := dbm.NewMemDB()
	c := chaintest.Open(tb, db, append(adversary.Options(adversary.Plain), rules(r, h.epoch))...)
	h.History = c.Record()
	w := &writer{Rand: r, Chain: c, tb: tb}
	w.ready()
	w.live = adversary.NewLive(tb, c, seed)
	for c.Height() < half {
		w.next()
	}
	w.plan(h)
	for c.Height() < h.Upgrade-1 {
		w.next()
	}
	h.Dearer.Restart(c, db)
	w.ready()
	for c.Height() < h.Upgrade+half {
		w.next()
	}
	return h
}

// rules are those of a chain whose founders decide by votes, in short epochs.
func rules(r *rand.Rand, epoch int64) chaintest.Option {
	allocation := []string{seats.Share, seats.Lots, seats.Proofs}[r.IntN(3)]
	return func(g *app.Genesis) {
		chaintest.Fund(purse, folk...)(g)
		chaintest.Fund(purse, founders...)(g)
		chaintest.MaxGap(gap)(g)
		g.Authority, g.Epoch, g.Reserve = "", epoch, purse
		g.Rewards.EpochMs = (40 * time.Second).Milliseconds()
		g.Auction = auction.DefaultParams()
		g.Auction.PeriodMs, g.Auction.WindowMs, g.Auction.RevealMs = 4_000, 1_000, 1_000
		g.Seats.Params = seats.DefaultParams()
		g.Seats.Params.Allocation = allocation
		g.Seats.Params.RedelegateMs, g.Seats.Params.UnbondingMs = 5_000, 60_000
		g.Policy = policy.DefaultParams()
		g.Policy.Base, g.Policy.Quorum, g.Policy.Deposit = 40_000_000, 12_000_000, 10*tally
		g.Policy.VotingMs, g.Policy.DelayMs = 15_000, 5_000
		g.Validators[0].Votes, g.Validators[0].Bond = 4, 100_000*tally
		for _, name := range founders[1:] {
			v := chaintest.Named(name)
			g.Validators = append(g.Validators, app.Validator{Account: v.String(), ConsensusKey: v.PeerKey(), Votes: 3, Bond: 100_000 * tally})
			g.Keys = append(g.Keys, beaconv1.Key{Account: v.String(), Key: v.VRFKey()})
		}
	}
}

// ready gives the node the keys of all who propose.
func (w *writer) ready() {
	var keys []ed25519.PrivateKey
	for _, name := range founders {
		keys = append(keys, chaintest.Named(name).VRF)
	}
	w.ProveWith(keys...)
}

// next makes a block, of what the people send and what the adversary writes.
func (w *writer) next() chaintest.Block { return w.with(func() {}) }

// with is next of a block in which something besides happens.
func (w *writer) with(besides func()) chaintest.Block {
	w.tb.Helper()
	w.consensus()
	return w.live.Next(func() {
		besides()
		w.proveSeats()
		for range w.IntN(8) {
			w.act()
		}
	})
}

// consensus says who proposes the block, who has signed the one before, and who has signed twice.
func (w *writer) consensus() {
	w.Signed = nil
	for _, m := range w.members() {
		if m.Votes == 0 {
			continue
		}
		v := abci.Validator{Address: cmted25519.PubKey(m.ConsensusKey).Address(), Power: m.Votes}
		flag := cmtproto.BlockIDFlagCommit
		switch {
		case w.proposes(m):
			if w.IntN(4) == 0 {
				w.ProposedBy(v.Address)
			}
		case w.IntN(2) == 0:
			flag = cmtproto.BlockIDFlagAbsent
		case w.IntN(100) == 0:
			w.Misbehavior = append(w.Misbehavior, abci.Misbehavior{
				Type: abci.MisbehaviorType_DUPLICATE_VOTE, Validator: v, Height: w.Height(), Time: w.Now(), TotalVotingPower: 13,
			})
		}
		w.Signed = append(w.Signed, abci.VoteInfo{Validator: v, BlockIdFlag: flag})
	}
	w.Failed = int32(w.IntN(20) / 19)
}

// proposes reports whether a member has its key for the beacon here, and stays a member: all founders but the last do.
func (w *writer) proposes(m seatsv1.Member) bool {
	for _, name := range founders[:len(founders)-1] {
		if chaintest.Named(name).String() == m.Account {
			return true
		}
	}
	return false
}

func (w *writer) members() []seatsv1.Member {
	r, err := seatsv1.NewQueryClient(w).Members(w.tb.Context(), &seatsv1.QueryMembersRequest{})
	if err != nil {
		w.tb.Fatal(err)
	}
	return r.Members
}

// plan has the upgrade voted in, while life goes on.
func (w *writer) plan(h *History) {
	w.decided = math.MaxUint64
	for !w.upgrade(h) {
	}
	for w.Height() < h.Upgrade-1 {
		if w.next(); w.planned() {
			h.Planned = w.Height()
			return
		}
	}
	w.tb.Fatalf("nothing is planned at height %d: %v", w.Height(), w.proposals())
}

// upgrade has the upgrade proposed, and the founders vote for it in the same block: the next may come when the vote is over. It
// reports whether that block has executed all of it: others may propose something before.
func (w *writer) upgrade(h *History) bool {
	alice, id := chaintest.Named(folk[0]), uint64(0)
	for _, p := range w.proposals() {
		id = p.Id + 1
	}
	h.Upgrade = w.Height() + ahead
	m := w.proposal(alice, &upgradetypes.MsgSoftwareUpgrade{
		Authority: address.Policy().String(), Plan: upgradetypes.Plan{Name: h.Dearer.Name(), Height: h.Upgrade, Info: "tally 2"},
	})
	w.with(func() {
		w.Queue(alice, m)
		for _, name := range founders {
			v := chaintest.Named(name)
			w.Queue(v, &policyv1.MsgVote{Voter: v.String(), Proposal: id, Option: policyv1.OPTION_YES})
		}
	})
	for _, p := range w.proposals() {
		if p.Id == id && p.Title == m.Title && p.Tally.Yes >= p.Params.Quorum {
			w.decided = id + 1
			return true
		}
	}
	return false
}

// planned reports whether a vote has planned an upgrade.
func (w *writer) planned() bool {
	r, err := upgradetypes.NewQueryClient(w).CurrentPlan(w.tb.Context(), &upgradetypes.QueryCurrentPlanRequest{})
	if err != nil {
		w.tb.Fatal(err)
	}
	return r.Plan != nil
}
