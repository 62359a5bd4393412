package seats_test

import (
	"crypto/ed25519"
	"math/rand/v2"
	"testing"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/x/policy"
	"github.com/tally-network/tally/chain/x/seats"
	beaconv1 "github.com/tally-network/tally/gen/tally/beacon/v1"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// seven are members that have nothing but power.
var seven = []string{"producer", "f1", "f2", "f3", "f4", "f5", "f6"}

// equals is a network of seven members with equal votes and bonds for all seats, whose power alone counts before long.
func equals(g *app.Genesis) {
	const bond = 100_000 * tally
	g.Epoch = 12
	g.Seats.Params, g.Policy = seats.DefaultParams(), policy.DefaultParams()
	g.Policy.Base, g.Policy.Quorum = 1_000_000, 300_000
	g.Validators[0].Votes, g.Validators[0].Bond = 1, bond
	for _, n := range seven[1:] {
		v := chaintest.Named(n)
		g.Validators = append(g.Validators, app.Validator{Account: v.String(), ConsensusKey: v.PeerKey(), Votes: 1, Bond: bond})
		g.Keys = append(g.Keys, beaconv1.Key{Account: v.String(), Key: v.VRFKey()})
	}
}

// Over a hundred epochs in which power moves, members propose as many blocks as their parts of the power say.
//
// A block that is drawn by these parts would give a χ² of six degrees of freedom above 12.59 in one case of twenty.
// Turns that follow one another are even nearer.
func TestBlocksFollowPower(t *testing.T) {
	const epochs, most = 100, 12.59
	c := chaintest.New(t, chaintest.Fund(1_000_000*tally, "bob"), equals)
	var keys []ed25519.PrivateKey
	for _, n := range seven {
		keys = append(keys, chaintest.Named(n).VRF)
	}
	c.ProveWith(keys...)
	r := follow(t, c)
	ended := map[uint64][]float64{} // parts of the power at the end of each epoch
	seated := map[int64]uint64{}    // height at which a set begins → epoch of its draw
	counts := map[string]float64{}
	var now []float64 // parts of the power that the set follows; nil: those of the genesis
	expected := make([]float64, len(seven))
	step := func(what func() chaintest.Block) {
		height := c.Height() + 1
		if e := seated[height]; e > 0 {
			now = ended[e-2]
		}
		proposer := r.sets[height].GetProposer().Address
		c.ProposedBy(proposer)
		b := what()
		for i := range now {
			expected[i] += now[i]
		}
		if now != nil {
			counts[r.names[string(proposer)]]++
		}
		for _, e := range chaintest.Events[*seatsv1.EventSeated](t, b) {
			seated[b.Height+2] = e.Epoch
		}
		r.after(t, b)
		ended[status(t, c).Epoch] = parts(t, c)
	}
	chance := rand.New(rand.NewPCG(1, 2))
	lowest, highest := 1.0, 0.0
	for e := range uint64(epochs) {
		for i := range seven { // at first all; then one gets a tenth of what there is
			if e > 0 && i > 0 {
				break
			}
			to, uts := chaintest.Named(seven[i]), uint64(100)
			if e > 0 {
				to, uts = chaintest.Named(seven[chance.IntN(len(seven))]), all(t, c)/10
			}
			step(func() chaintest.Block { credit(t, c, to, uts); return c.Last() })
		}
		for status(t, c).Epoch == e {
			step(func() chaintest.Block { return busy(c) })
		}
		for _, p := range now {
			lowest, highest = min(lowest, p), max(highest, p)
		}
	}
	chi := 0.0
	for i, n := range seven {
		got := counts[chaintest.Named(n).String()]
		chi += (got - expected[i]) * (got - expected[i]) / expected[i]
		t.Logf("%-8s proposed %4.0f blocks, its power says %6.1f", n, got, expected[i])
	}
	t.Logf("χ² = %.3f; parts of the power from %.3f to %.3f", chi, lowest, highest)
	if chi > most {
		t.Errorf("χ² = %.2f, more than %.2f", chi, most)
	}
	if now == nil || highest < 2*lowest {
		t.Error("power has not moved: the test says nothing")
	}
}

// parts returns the parts of the seven of their power.
func parts(t *testing.T, c *chaintest.Chain) []float64 {
	t.Helper()
	out, sum := make([]float64, len(seven)), 0.0
	for i := range seven {
		out[i] = float64(effective(t, c, seven[i]))
		sum += out[i]
	}
	for i := range out {
		out[i] /= max(sum, 1)
	}
	return out
}

// all returns the power of the seven, in ut.
func all(t *testing.T, c *chaintest.Chain) (uts uint64) {
	t.Helper()
	for _, n := range seven {
		uts += effective(t, c, n) / 1_000_000
	}
	return uts
}

func effective(t *testing.T, c *chaintest.Chain, name string) uint64 {
	t.Helper()
	h, err := c.Power.Hour(c.Ctx())
	if err != nil {
		t.Fatal(err)
	}
	own, err := c.Power.Of(c.Ctx(), chaintest.Named(name).Address)
	if err != nil {
		t.Fatal(err)
	}
	return own.Effective(h)
}
