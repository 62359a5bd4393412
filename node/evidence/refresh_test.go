package evidence

import (
	"bytes"
	"errors"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/internal/testkit/headers"
	"github.com/tally-network/tally/node/light"
)

var begin = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// rotating is a node of a chain whose validators change, of one settled order, and the chain's headers.
func rotating(t *testing.T, settlement []byte, height int64) (*node, *headers.Chain) {
	t.Helper()
	n, state := newState(t, "tally-1", settlement, height)
	c := headers.New("tally-1", 100, 25, begin)
	c.State = state
	n.block, n.at = c.Block(height), c.Block
	return n, c
}

func refresh(t *testing.T, n *node, file string, roots *Roots) (*Fresh, error) {
	t.Helper()
	f, size, err := bounded.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return roots.Refresh(t.Context(), n.dial(t), f, size)
}

// size is what a bundle's anchor has in bytes.
func (a anchorage) size() (n int) {
	for _, b := range a {
		n += len(b)
	}
	return n
}

// A bundle from before a thousand changes of the set is anchored anew by whoever has pinned a block
// of late, in less than a second and 64 KiB, whatever became of those that signed it.
func TestRefreshAfterThousandChanges(t *testing.T) {
	const changes = 1000
	settlement := canon.Marshal(&job.Settlement{Price: 7})
	old, _ := rotating(t, settlement, 50)
	file := old.anchored(t)
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, after := range []int64{0, changes} {
		n, c := rotating(t, settlement, 60+after*100)
		pin := light.FromLightBlock(c.Block(max(1, n.block.Height-150)))
		roots := &Roots{Home: t.TempDir(), Now: func() time.Time { return c.Time(n.block.Height + 1) }}
		if err := light.Pin(roots.Home, pin); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		f, err := refresh(t, n, file, roots)
		took := time.Since(begun)
		if err != nil || f == nil || f.Block != light.FromLightBlock(n.block) || !strings.Contains(f.By, "pinned") {
			t.Fatalf("%+v, %v", f, err)
		}
		if got, err := light.Pinned(roots.Home, "tally-1"); err != nil || got != f.Block {
			t.Errorf("the home has pinned %v, %v", got, err)
		}
		if more := f.Stats.Bytes; after > 0 && more+int64(f.parts.size()) > 64<<10 {
			t.Errorf("it took %d bytes to follow, and %d are the anchor", more, f.parts.size())
		}
		t.Logf("after %d changes: %d headers of %d bytes to follow, an anchor of %d bytes, %v", after, f.Stats.Headers, f.Stats.Bytes, f.parts.size(), took.Round(time.Millisecond))
	}
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(before, after) {
		t.Errorf("checking a bundle changed it: %v", err)
	}
}

// What the user trusts decides whether a newer block anchors a bundle, and from where it is followed.
func TestRefresh(t *testing.T) {
	const now = 2050 // 20 changes after the bundle
	settlement := canon.Marshal(&job.Settlement{Price: 7})
	_, c := rotating(t, settlement, 50)
	old := Trust(c.Set(50).Hash())
	for name, x := range map[string]struct {
		pin      int64 // 0: none
		forged   bool  // it is of another chain of that name
		seen     bool  // by the home
		named    func(Trust) bool
		at       int64 // the height at which the clock is; 0: now
		bend     func(n *node, c *headers.Chain)
		by, want string
	}{
		"nothing is trusted":           {},
		"a pinned block":               {pin: 1950, by: "block 1950, pinned in"},
		"a pin before the bundle":      {pin: 1, by: "block 1, pinned in"},
		"the home has seen the set":    {seen: true, by: "home"},
		"the bundle's set is named":    {named: old.Is, by: "--trust"},
		"today's set is named":         {named: Trust(c.Set(now).Hash()).Is, by: "--trust"},
		"another set is named":         {pin: 1950, named: Trust{}.Is, want: "names neither"},
		"an expired pin":               {pin: 1, at: 9_700, want: "tally trust pin"},
		"an expired pin, a set seen":   {pin: 1, seen: true, at: 9_620, by: "home"},
		"the set seen, long ago":       {seen: true, at: 20_000, want: "may be followed from for 16 hours"},
		"a pin of another chain":       {pin: 1950, forged: true, want: "does not follow"},
		"a pin that is yet to come":    {pin: 2060, want: "is to come"},
		"a chain that others continue": {pin: 1, bend: func(n *node, c *headers.Chain) { c.Forged, c.Colluders = 2, 1e6; n.block = c.Block(now) }, want: "does not follow"},
		"a block that is not signed": {pin: 1950, bend: func(n *node, _ *headers.Chain) {
			for i := range n.block.Commit.Signatures {
				n.block.Commit.Signatures[i].Signature = make([]byte, 64)
			}
			n.at = func(int64) *cmttypes.LightBlock { return n.block }
		}, want: "what the node gives"},
		"the node has lost its past": {pin: 1, bend: func(n *node, _ *headers.Chain) { n.at = func(int64) *cmttypes.LightBlock { return n.block } }, want: "gives block 2050 for block 1"},
		"sets without end":           {pin: 1, bend: func(n *node, _ *headers.Chain) { n.most = math.MaxInt32 }, want: "more than 100 on a page"},
	} {
		t.Run(name, func(t *testing.T) {
			first, _ := rotating(t, settlement, 50)
			file := first.anchored(t)
			n, c := rotating(t, settlement, now)
			when := c.Time(max(x.at, now) + 1)
			roots := &Roots{Named: x.named, By: "--trust", Home: t.TempDir(), Now: func() time.Time { return when }}
			if x.pin > 0 {
				of := c
				if x.forged {
					_, of = rotating(t, []byte("another"), now)
					of.Forged, of.Colluders = 1, 1e6
				}
				if err := light.Pin(roots.Home, light.FromLightBlock(of.Block(x.pin))); err != nil {
					t.Fatal(err)
				}
			}
			if x.seen {
				if err := Remember(roots.Home, old); err != nil {
					t.Fatal(err)
				}
			}
			if x.bend != nil {
				x.bend(n, c)
			}
			pinned, _ := roots.pinned("tally-1")
			f, err := refresh(t, n, file, roots)
			if x.want != "" || err != nil {
				if again, _ := roots.pinned("tally-1"); again != pinned {
					t.Error("what was refused is pinned")
				}
				if x.want == "" || err == nil || !strings.Contains(err.Error(), x.want) {
					t.Errorf("%v, want %q", err, x.want)
				}
				return
			}
			if x.by == "" {
				if f != nil {
					t.Errorf("nothing is trusted, and it is anchored by %+v", f)
				}
				return
			}
			if want := strings.Replace(x.by, "home", roots.Home, 1); f == nil || !strings.HasPrefix(f.By, want) || f.Block.Height != now {
				t.Fatalf("%+v, want %s", f, x.by)
			}
			if a, err := roots.anchor(f)(nil); err != nil || a.block.Height != now || a.settlement.Price != 7 {
				t.Errorf("%+v, %v", a, err)
			}
		})
	}
}

// Without asking anybody, a pinned block anchors what it signs itself, and for a time what its set signs.
func TestPinsAnchor(t *testing.T) {
	c := headers.New("tally-1", 4, 1, begin)
	home := t.TempDir()
	when := c.Time(100)
	roots := &Roots{Home: home, Now: func() time.Time { return when }}
	pin := light.FromLightBlock(c.Block(99)) // the last of its epoch
	if err := light.Pin(home, pin); err != nil {
		t.Fatal(err)
	}
	other := *c
	other.ID = "tally-2"
	for _, x := range []struct {
		block           light.TrustedBlock
		soon, afterward bool
	}{
		{pin, true, true}, {light.FromLightBlock(c.Block(50)), true, false}, {light.FromLightBlock(c.Block(150)), true, false},
		{light.FromLightBlock(c.Block(250)), false, false}, {light.FromLightBlock(other.Block(99)), false, false}, {light.TrustedBlock{}, false, false},
	} {
		when = c.Time(100)
		soon, err := roots.Anchors(x.block)
		when = c.Time(100).Add(light.TrustingPeriod)
		afterward, late := roots.Anchors(x.block)
		if err := errors.Join(err, late); err != nil || (soon != "") != x.soon || (afterward != "") != x.afterward {
			t.Errorf("%v: %q, %q, %v", x.block, soon, afterward, err)
		}
	}
}
