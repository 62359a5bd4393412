package seats_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"
	cmted25519 "github.com/cometbft/cometbft/crypto/ed25519"
	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"
	"pgregory.net/rapid"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/x/seats"
	"github.com/tally-network/tally/core/power"
	"github.com/tally-network/tally/core/sortition"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// history is a chain with people who do anything, and what must hold of it.
type history struct {
	t    *testing.T
	c    *chaintest.Chain
	sets *rotation
	last []sortition.Seat  // the newest set
	from map[string]uint64 // epoch from which who has joined or returned may have votes
	away map[string]bool   // consensus addresses of those who sign nothing
}

var people = []string{"alice", "carol", "bob", "f1", "f2", "f3", "f4"} // the producer of all blocks stays

// Whatever members do, invariants hold; each set is within a quarter of the one before, and CometBFT takes it; and who
// joins in an epoch has no votes of the draws before the epoch after the next.
func TestRandomHistories(t *testing.T) {
	rapid.Check(few(t, 4), func(rt *rapid.T) {
		allocation := rapid.SampledFrom([]string{seats.Share, seats.Lots}).Draw(rt, "allocation")
		c := chaintest.New(t, network(crowd(20, 500), rules(func(p *seatsv1.Params) { p.Allocation = allocation }), func(g *app.Genesis) {
			g.Epoch = rapid.Int64Range(3, 13).Draw(rt, "epoch") // absence is judged in some
			for i := range 5 {
				g.Validators[i].Votes = rapid.Int64Range(1, 30).Draw(rt, "votes")
			}
		})...)
		h := &history{t: t, c: c, sets: follow(t, c), from: map[string]uint64{}, away: map[string]bool{}}
		for _, s := range status(t, c).Set.Seats {
			h.last = append(h.last, sortition.Seat{Member: s.Member, Votes: s.Votes})
		}
		for status(t, c).Epoch < 60 {
			h.act(rt)
			h.check(c.Last())
			if rapid.IntRange(0, 3).Draw(rt, "idle") == 0 {
				h.sign()
				h.check(c.NextBlock(rapid.SampledFrom([]time.Duration{time.Second, time.Hour, 8 * 24 * time.Hour}).Draw(rt, "gap")))
			}
		}
	})
}

// act makes a block in which somebody does something.
func (h *history) act(rt *rapid.T) {
	c, who := h.c, chaintest.Named(rapid.SampledFrom(people).Draw(rt, "who"))
	to := chaintest.Named(rapid.SampledFrom(people).Draw(rt, "to"))
	amount := rapid.Uint64Range(1, 20_000).Draw(rt, "amount") * tally
	h.sign()
	var m sdk.Msg
	switch rapid.IntRange(0, 11).Draw(rt, "what") {
	case 0, 1:
		m = join(who, amount)
	case 2:
		m = &seatsv1.MsgBond{Account: who.String(), Amount: amount}
	case 3:
		m = &seatsv1.MsgUnbond{Account: who.String(), Amount: amount}
	case 4:
		m = &seatsv1.MsgDelegate{Account: who.String(), Member: to.String()}
	case 5:
		m = &seatsv1.MsgUnjail{Account: who.String()}
	case 6:
		if rapid.IntRange(0, 2).Draw(rt, "leaves") == 0 {
			m = &seatsv1.MsgLeave{Account: who.String()}
		}
	case 7:
		h.do(func(ctx sdk.Context) error {
			return c.Power.Credit(ctx, who.Address, rapid.Uint64Range(1, 40).Draw(rt, "uts")*power.UT)
		})
		return
	case 8:
		if rapid.IntRange(0, 9).Draw(rt, "forfeits") == 0 {
			h.do(func(ctx sdk.Context) error { return c.Power.Forfeit(ctx, who.Address) })
			return
		}
	case 9:
		all := slices.DeleteFunc(members(h.t, c), func(m seatsv1.Member) bool { return m.Account == chaintest.Named("producer").String() })
		if rapid.IntRange(0, 19).Draw(rt, "accused") == 0 {
			accuse(c, abci.MisbehaviorType_DUPLICATE_VOTE, consensusAddress(rapid.SampledFrom(all).Draw(rt, "accused")))
		}
	case 10:
		for _, m := range members(h.t, c) {
			h.away[string(consensusAddress(m))] = rapid.IntRange(0, 5).Draw(rt, "away") == 0
		}
	}
	if m == nil {
		busy(c)
		return
	}
	before := member0(h.t, c, who)
	c.Queue(who, m)
	b := c.NextBlock(time.Second)
	after := member0(h.t, c, who)
	if b.TxResults[0].Code == 0 && after.Account != "" && after.FromEpoch != before.FromEpoch { // it may be forgotten in this block
		if h.from[who.String()] = after.FromEpoch; after.FromEpoch != status(h.t, c).Epoch+2 {
			h.t.Fatalf("%v in epoch %d: %v", m, status(h.t, c).Epoch, after)
		}
	}
}

func (h *history) do(f func(sdk.Context) error) {
	if err := h.c.Do(f); err != nil {
		h.t.Fatal(err)
	}
}

// sign says who of the set that CometBFT had at the block before has signed it.
func (h *history) sign() {
	h.c.Signed = nil
	for _, v := range h.sets.sets[h.c.Height()].Validators {
		flag := cmtproto.BlockIDFlagCommit
		if h.away[string(v.Address)] {
			flag = cmtproto.BlockIDFlagAbsent
		}
		h.c.Signed = append(h.c.Signed, abci.VoteInfo{Validator: abci.Validator{Address: v.Address, Power: v.VotingPower}, BlockIdFlag: flag})
	}
}

// check compares a block with what must hold.
func (h *history) check(b chaintest.Block) {
	h.t.Helper()
	h.sets.after(h.t, b)
	h.sets.compare(h.t, h.c, b.Height)
	for _, e := range abandoned(h.t, b) {
		if !strings.Contains(e.Reason, "would") {
			h.t.Fatalf("a draw breaks: %v", e)
		}
	}
	for _, e := range chaintest.Events[*seatsv1.EventSeated](h.t, b) {
		var set []sortition.Seat
		for _, s := range e.Seats {
			set = append(set, sortition.Seat{Member: s.Member, Votes: s.Votes})
			had := slices.ContainsFunc(h.last, func(x sortition.Seat) bool { return x.Member == s.Member })
			if e.Epoch < h.from[s.Member] && !had {
				h.t.Fatalf("%s is drawn from epoch %d, and seated in %d", s.Member, h.from[s.Member], e.Epoch)
			}
		}
		if !sortition.Within(h.last, set) {
			h.t.Fatalf("more than a quarter changes hands: from %v to %v", h.last, set)
		}
		h.last = set
	}
}

// member0 returns a member, empty if there is none.
func member0(t *testing.T, c *chaintest.Chain, who chaintest.Account) seatsv1.Member {
	t.Helper()
	m, err := seatsv1.NewQueryClient(c).Member(t.Context(), &seatsv1.QueryMemberRequest{Account: who.String()})
	if err != nil {
		return seatsv1.Member{}
	}
	return m.Member
}

// consensusAddress returns what CometBFT calls a member.
func consensusAddress(m seatsv1.Member) []byte { return cmted25519.PubKey(m.ConsensusKey).Address() }
