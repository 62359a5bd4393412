package seats_test

import (
	"flag"
	"fmt"
	"strconv"
	"testing"

	abci "github.com/cometbft/cometbft/abci/types"
	cmted25519 "github.com/cometbft/cometbft/crypto/ed25519"
	cmttypes "github.com/cometbft/cometbft/types"
	"pgregory.net/rapid"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/x/seats"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// rotation is the sets of CometBFT beside a chain, updated as its state/execution.go does.
type rotation struct {
	sets  []*cmttypes.ValidatorSet // by height; those of the next two heights are known
	names map[string]string        // consensus address → account
}

// follow begins with the set that a chain has after its first block.
func follow(t testing.TB, c *chaintest.Chain) *rotation {
	t.Helper()
	r := &rotation{names: map[string]string{}}
	r.learn(t, c)
	genesis := cmttypes.NewValidatorSet(seated(t, c))
	r.sets = []*cmttypes.ValidatorSet{nil, genesis.Copy(), genesis.CopyIncrementProposerPriority(1)}
	r.after(t, chaintest.Block{ResponseFinalizeBlock: &abci.ResponseFinalizeBlock{}})
	return r
}

// seated returns who has votes, as CometBFT wants it.
func seated(t testing.TB, c *chaintest.Chain) (out []*cmttypes.Validator) {
	t.Helper()
	for _, m := range members(t, c) {
		if m.Votes > 0 {
			out = append(out, cmttypes.NewValidator(cmted25519.PubKey(m.ConsensusKey), m.Votes))
		}
	}
	return out
}

func members(t testing.TB, c *chaintest.Chain) []seatsv1.Member {
	t.Helper()
	all, err := seatsv1.NewQueryClient(c).Members(t.Context(), &seatsv1.QueryMembersRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return all.Members
}

func (r *rotation) learn(t testing.TB, c *chaintest.Chain) {
	t.Helper()
	for _, m := range members(t, c) {
		r.names[string(cmted25519.PubKey(m.ConsensusKey).Address())] = m.Account
	}
}

// after takes what a block has changed: it acts two heights later.
func (r *rotation) after(t testing.TB, b chaintest.Block) {
	t.Helper()
	changes, err := cmttypes.PB2TM.ValidatorUpdates(b.ValidatorUpdates)
	if err != nil {
		t.Fatal(err)
	}
	next := r.sets[len(r.sets)-1].Copy()
	if err := next.UpdateWithChangeSet(changes); err != nil {
		t.Fatalf("height %d: CometBFT would stop: %v", b.Height, err)
	}
	next.IncrementProposerPriority(1)
	r.sets = append(r.sets, next)
}

// compare compares the turns of the block before, this one and the two after it.
func (r *rotation) compare(t testing.TB, c *chaintest.Chain, now int64) {
	t.Helper()
	r.learn(t, c)
	for height := max(now-1, 1); height <= now+2; height++ {
		got, err := c.Seats.Turns(c.Ctx(), height, 3)
		if err != nil || len(got) != 3 {
			t.Fatalf("turns of height %d at %d: %v (%v)", height, now, got, err)
		}
		comet := r.sets[height].Copy()
		for round, who := range got {
			if want := r.names[string(comet.GetProposer().Address)]; who.String() != want {
				t.Fatalf("height %d, round %d, seen at %d: %s, and CometBFT has %s", height, round, now, who, want)
			}
			comet.IncrementProposerPriority(1)
		}
	}
}

// The rotation of a chain that nobody changes is CometBFT's, and repeats itself.
func TestTurnsOfGenesisAreCometBFTs(t *testing.T) {
	for _, votes := range [][]int64{{1}, {1, 1, 1, 1}, {10, 10, 20}, {3, 4, 5, 7, 1}, {1, 100}, {6, 9, 15, 30}} {
		checkGenesisTurns(t, votes, 300)
	}
	rapid.Check(t, func(rt *rapid.T) {
		votes := rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(1, 20), rapid.Int64Range(1, 500)), 1, 12).Draw(rt, "votes")
		checkGenesisTurns(rt, votes, 100)
	})
}

func checkGenesisTurns(t rapid.TB, votes []int64, heights int64) {
	t.Helper()
	ctx, k, g := alone(t, votes)
	var all []*cmttypes.Validator
	names, sum := map[string]string{}, int64(0)
	for _, m := range g.Members {
		all = append(all, cmttypes.NewValidator(cmted25519.PubKey(m.ConsensusKey), m.Votes))
		names[string(cmted25519.PubKey(m.ConsensusKey).Address())] = m.Account
		sum += m.Votes
	}
	if sum < 200 { // twice around
		heights = 2*sum + 20
	}
	comet := cmttypes.NewValidatorSet(all)
	for height := int64(1); height <= heights; height++ {
		for _, again := range []int64{0, sum, 1_000_000 * sum} {
			got, err := k.Turns(ctx, height+again, 3)
			if err != nil || len(got) != 3 {
				t.Fatalf("votes %v, height %d: %v (%v)", votes, height+again, got, err)
			}
			next := comet.Copy()
			for round, who := range got {
				if want := names[string(next.GetProposer().Address)]; who.String() != want {
					t.Fatalf("votes %v, height %d, round %d: %s, want %s", votes, height+again, round, who, want)
				}
				next.IncrementProposerPriority(1)
			}
		}
		comet.IncrementProposerPriority(1)
	}
}

// alone returns a keeper whose genesis set has votes, without a chain.
func alone(t rapid.TB, votes []int64) (sdk.Context, *seats.Keeper, *seatsv1.GenesisState) {
	t.Helper()
	g := &seatsv1.GenesisState{Params: seats.DefaultParams()}
	for i, n := range votes {
		v := chaintest.Named(fmt.Sprint("v", i))
		g.Members = append(g.Members, seatsv1.Member{Account: v.String(), ConsensusKey: v.PeerKey(), Votes: n, Status: seatsv1.STATUS_ACTIVE})
	}
	ctx, svc, cdc := chaintest.Store(discard{})
	k := seats.NewKeeper(cdc, svc, seats.Needs{}, "insurance")
	if err := k.InitGenesis(ctx, g); err != nil {
		t.Fatal(err)
	}
	return ctx, k, g
}

// discard lets a property make stores.
type discard struct{ testing.TB }

// Helper does nothing.
func (discard) Helper() {}

// However a set came about, later heights have the turns that CometBFT finds one by one.
func TestTurnsAfterChangesAreCometBFTs(t *testing.T) {
	votes := rapid.OneOf(rapid.Int64Range(1, 3), rapid.Int64Range(1, 10_000), rapid.Int64Range(1, 1<<20))
	rapid.Check(t, func(t *rapid.T) {
		key := func(i int) cmted25519.PubKey { return cmted25519.PubKey(chaintest.Named(fmt.Sprint("v", i)).PeerKey()) }
		set := cmttypes.NewValidatorSet([]*cmttypes.Validator{cmttypes.NewValidator(key(0), votes.Draw(t, "first"))})
		for range rapid.IntRange(1, 12).Draw(t, "changes") {
			var changes []*cmttypes.Validator
			for i := range 8 {
				_, had := set.GetByAddress(key(i).Address())
				switch rapid.IntRange(0, 3).Draw(t, "what") {
				case 0:
					changes = append(changes, cmttypes.NewValidator(key(i), votes.Draw(t, "votes")))
				case 1:
					if had != nil && i > 0 {
						changes = append(changes, cmttypes.NewValidator(key(i), 0))
					}
				}
			}
			if err := set.UpdateWithChangeSet(changes); err != nil {
				t.Fatal(err)
			}
			set.IncrementProposerPriority(1)
			checkTurned(t, set)
			for range rapid.IntRange(0, 9).Draw(t, "heights") {
				set.IncrementProposerPriority(1)
			}
		}
	})
}

// checkTurned compares what a set becomes with what it becomes step by step.
func checkTurned(t rapid.TB, set *cmttypes.ValidatorSet) {
	t.Helper()
	step := set.Copy()
	for heights := range int64(40) {
		got, err := seats.Turned(set, heights, seats.Forever)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range got.Validators {
			if want := step.Validators[i]; v.ProposerPriority != want.ProposerPriority || v.Address.String() != want.Address.String() {
				t.Fatalf("%d heights after %v: %v, want %v", heights, set, got, step)
			}
		}
		step.IncrementProposerPriority(1)
	}
}

// few makes a property that makes chains hold in some examples.
func few(t *testing.T, examples int) *testing.T {
	t.Helper()
	checks := flag.Lookup("rapid.checks").Value
	usual := checks.String()
	if err := checks.Set(strconv.Itoa(examples)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = checks.Set(usual) })
	return t
}

// What would take too long to find out is not known, instead of stopping blocks.
func TestTurnsAreBounded(t *testing.T) {
	ctx, k, _ := alone(t, []int64{1 << 50, 1<<50 + 1})
	for height, want := range map[int64]int{1: 1, 1 << 10: 1, 1 << 40: 0, 1 << 62: 0, 0: 0, -1: 0} {
		if who, err := k.Turns(ctx, height, 1); len(who) != want || err != nil {
			t.Errorf("height %d: %v (%v)", height, who, err)
		}
	}
}

// Turns are CometBFT's at every height, while members come, gain, lose and vanish.
func TestTurnsAcrossSets(t *testing.T) {
	sets := 0
	rapid.Check(few(t, 5), func(rt *rapid.T) {
		c := chaintest.New(t, network(func(g *app.Genesis) {
			for i := range g.Validators {
				g.Validators[i].Votes = rapid.Int64Range(1, 300).Draw(rt, "votes")
			}
		})...)
		names := []string{"alice", "carol", "f1", "f2", "f3", "f4"}
		r := follow(t, c)
		step := func(b chaintest.Block) {
			if r.after(t, b); len(b.ValidatorUpdates) > 0 {
				sets++
			}
			r.compare(t, c, b.Height)
		}
		for range 12 {
			who := chaintest.Named(rapid.SampledFrom(names).Draw(rt, "who"))
			bond := rapid.Uint64Range(1, 10_000).Draw(rt, "bond") * 10 * tally
			c.Queue(who, join(who, bond))
			c.Queue(who, &seatsv1.MsgBond{Account: who.String(), Amount: bond})
			if rapid.IntRange(0, 5).Draw(rt, "leaves") == 0 {
				c.Queue(who, &seatsv1.MsgLeave{Account: who.String()})
			}
			step(c.NextBlock(1e9))
			credit(t, c, who, rapid.Uint64Range(1, 60).Draw(rt, "power"))
			step(c.Last())
			for range epoch {
				step(busy(c))
			}
		}
	})
	if sets == 0 {
		t.Fatal("no set has changed")
	}
}
