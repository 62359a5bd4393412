package light_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/tally-network/tally/internal/testkit/headers"
	"github.com/tally-network/tally/node/light"
)

var begin = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// at follows a chain at the time of its block at a height.
func at(c *headers.Chain, height int64) *light.Follower {
	return &light.Follower{
		Block: func(_ context.Context, h int64) (*cmttypes.LightBlock, error) { return c.Block(h), nil },
		Now:   func() time.Time { return c.Time(height).Add(time.Second) },
	}
}

// A home that looks every 15 hours follows a set that changes a thousand times, by a quarter each
// time, and ends at a set of which nobody was there at first.
func TestThousandChanges(t *testing.T) {
	const changes = 1000
	c := headers.New("tally-1", 100, 25, begin)
	last := (changes + 1) * c.Blocks
	pin := light.FromLightBlock(c.Block(1))
	var sum light.Stats
	var took time.Duration
	steps := 0
	for pin.Height < last {
		next := min(pin.Height+90*c.Blocks, last)
		to := c.Block(next)
		f := at(c, next)
		node := f.Block
		var made time.Duration // what inventing blocks takes is no part of following
		f.Block = func(ctx context.Context, h int64) (*cmttypes.LightBlock, error) {
			begun := time.Now()
			defer func() { made += time.Since(begun) }()
			return node(ctx, h)
		}
		begun := time.Now()
		w, err := f.Follow(t.Context(), pin, nil, to)
		if err != nil {
			t.Fatal(err)
		}
		took += time.Since(begun) - made
		sum.Headers, sum.Bytes = sum.Headers+w.Headers, sum.Bytes+w.Bytes
		pin, steps = light.FromLightBlock(to), steps+1
		if w.Headers > 250 {
			t.Errorf("90 changes took %d headers", w.Headers)
		}
	}
	t.Logf("%d changes in %d steps: %d headers, %d KiB, %v", changes, steps, sum.Headers, sum.Bytes>>10, took.Round(time.Millisecond))

	// Who has looked within the last epoch jumps. That is what a verification costs that goes by it.
	from := c.Block(last - c.Blocks)
	to := c.Block(last)
	begun := time.Now()
	w, err := at(c, last).Follow(t.Context(), light.FromLightBlock(from), from, to)
	if err != nil || w.Headers != 0 {
		t.Fatalf("%+v, %v", w, err)
	}
	t.Logf("one jump from a block that is there: %v", time.Since(begun).Round(time.Microsecond))
	w, err = at(c, last).Follow(t.Context(), light.FromLightBlock(from), nil, to)
	if err != nil || w.Headers != 1 || w.Bytes > 64<<10 {
		t.Fatalf("%+v, %v", w, err)
	}
	t.Logf("one jump from a trusted block: %d bytes", w.Bytes)
}

// A thousand changes within one trusting period are followed at once.
func TestOneWayOfManyChanges(t *testing.T) {
	c := headers.New("tally-1", 8, 2, begin)
	c.Epoch = 50 * time.Second
	last := 1001 * c.Blocks
	seen := 0
	f := at(c, last)
	f.Progress = func(headers int, _ int64) { seen = headers }
	w, err := f.Follow(t.Context(), light.FromLightBlock(c.Block(1)), nil, c.Block(last))
	if err != nil || w.Headers != seen {
		t.Fatalf("%+v of %d, %v", w, seen, err)
	}
	t.Logf("%+v", w)
}

// What does not follow from the trusted block is refused, after few questions.
func TestNodesThatLie(t *testing.T) {
	const last = 4000 // 40 changes
	type bend func(c *headers.Chain, h int64, b *cmttypes.LightBlock) (*cmttypes.LightBlock, error)
	for name, lie := range map[string]struct {
		chain func(c *headers.Chain) // what the node has in place of the chain
		bend  bend                   // of each block but the newest
		from  int64                  // height of the trusted block
		now   int64                  // height at which the clock is
		most  int                    // headers that are asked for
		want  string
	}{
		"the truth":                   {most: 120},
		"another history":             {chain: func(c *headers.Chain) { c.Forged, c.Colluders = 2, 1e6 }, most: 40, want: "does not follow"},
		"an expired trusted block":    {now: 20_000, want: "tally trust pin"},
		"colluders after they left":   {chain: func(c *headers.Chain) { c.Forged, c.Colluders = 3900, 0 }, now: 20_000, want: "may be followed from for 16 hours"},
		"colluders with stakes still": {chain: func(c *headers.Chain) { c.Forged, c.Colluders = 3900, 0 }, most: 1},
		"a header of the future":      {now: 3000, most: 120, want: "from the future"},
		"a block before it":           {from: 5000, now: 5000, want: "before the trusted block"},
		"another header": {bend: func(c *headers.Chain, h int64, b *cmttypes.LightBlock) (*cmttypes.LightBlock, error) {
			b.AppHash = make([]byte, 31)
			return b, nil
		}, most: 2, want: "does not follow"},
		"another height": {bend: func(c *headers.Chain, h int64, b *cmttypes.LightBlock) (*cmttypes.LightBlock, error) {
			return c.Block(h + 1), nil
		}, most: 1, want: "gives block"},
		"another set": {bend: func(c *headers.Chain, h int64, b *cmttypes.LightBlock) (*cmttypes.LightBlock, error) {
			b.ValidatorSet = c.Set(1e6)
			return b, nil
		}, most: 1, want: "does not follow"},
		"no set": {bend: func(c *headers.Chain, h int64, b *cmttypes.LightBlock) (*cmttypes.LightBlock, error) {
			b.ValidatorSet = nil
			return b, nil
		}, most: 1, want: "does not follow"},
		"no header": {bend: func(c *headers.Chain, h int64, b *cmttypes.LightBlock) (*cmttypes.LightBlock, error) {
			b.SignedHeader = nil
			return b, nil
		}, most: 1, want: "does not follow"},
		"no block": {bend: func(c *headers.Chain, h int64, b *cmttypes.LightBlock) (*cmttypes.LightBlock, error) {
			return nil, errors.New("height is not available")
		}, want: "not available"},
		"half the signatures": {bend: func(c *headers.Chain, h int64, b *cmttypes.LightBlock) (*cmttypes.LightBlock, error) {
			for i := range len(b.Commit.Signatures) / 2 {
				b.Commit.Signatures[i] = cmttypes.NewCommitSigAbsent()
			}
			return b, nil
		}, most: 40, want: "does not follow"},
		"signatures cut off": {bend: func(c *headers.Chain, h int64, b *cmttypes.LightBlock) (*cmttypes.LightBlock, error) {
			b.Commit.Signatures = b.Commit.Signatures[:4]
			return b, nil
		}, most: 40, want: "does not follow"},
		"another's signatures": {bend: func(c *headers.Chain, h int64, b *cmttypes.LightBlock) (*cmttypes.LightBlock, error) {
			for i := range b.Commit.Signatures {
				b.Commit.Signatures[i].Signature = make([]byte, 64)
			}
			return b, nil
		}, most: 40, want: "does not follow"},
	} {
		t.Run(name, func(t *testing.T) {
			honest, node := headers.New("tally-1", 16, 4, begin), headers.New("tally-1", 16, 4, begin)
			if lie.chain != nil {
				lie.chain(node)
			}
			from, now := max(lie.from, 1), int64(last)
			if lie.now > 0 {
				now = lie.now
			}
			f := at(node, now)
			if lie.bend != nil {
				f.Block = func(_ context.Context, h int64) (*cmttypes.LightBlock, error) {
					return lie.bend(node, h, node.Block(h))
				}
			}
			w, err := f.Follow(t.Context(), light.FromLightBlock(honest.Block(from)), nil, node.Block(last))
			if w.Headers > lie.most {
				t.Errorf("it took %d headers, more than %d", w.Headers, lie.most)
			}
			if lie.want == "" && err == nil {
				return
			}
			if lie.want == "" || err == nil || !strings.Contains(err.Error(), lie.want) {
				t.Errorf("%v, want %q", err, lie.want)
			}
		})
	}
}

// A trusted block tells no other time and no other sets than its header, however it came to be trusted.
func TestTrustedBlocksAreTheirHeaders(t *testing.T) {
	c := headers.New("tally-1", 4, 1, begin)
	own := light.FromLightBlock(c.Block(7))
	for name, change := range map[string]func(b *light.TrustedBlock){
		"a later time": func(b *light.TrustedBlock) { b.Time = b.Time.Add(time.Second) },
		"another set":  func(b *light.TrustedBlock) { b.Validators[0]++ },
		"another next": func(b *light.TrustedBlock) { b.NextValidators[0]++ },
	} {
		from := own
		change(&from)
		for _, held := range []*cmttypes.LightBlock{nil, c.Block(7)} {
			for _, to := range []int64{7, 9} {
				if _, err := at(c, 9).Follow(t.Context(), from, held, c.Block(to)); err == nil || !strings.Contains(err.Error(), "pin it anew") {
					t.Errorf("%s, to %d: %v", name, to, err)
				}
			}
		}
	}
	own.Time = own.Time.Add(1000 * time.Hour)
	if _, err := at(c, 9).Follow(t.Context(), own, nil, c.Block(9)); err == nil || !strings.Contains(err.Error(), "is to come") {
		t.Errorf("of a time to come: %v", err)
	}
}

// Nothing stands for the block that is trusted but itself.
func TestSameHeight(t *testing.T) {
	c, other := headers.New("tally-1", 4, 1, begin), headers.New("tally-1", 4, 1, begin)
	other.State = make([]byte, 32)
	other.State[0] = 1
	from := light.FromLightBlock(c.Block(7))
	if w, err := at(c, 7).Follow(t.Context(), from, nil, c.Block(7)); err != nil || w.Headers != 0 {
		t.Errorf("its own block: %+v, %v", w, err)
	}
	if _, err := at(c, 7).Follow(t.Context(), from, nil, other.Block(7)); err == nil || !strings.Contains(err.Error(), "another block 7") {
		t.Errorf("another block of its height: %v", err)
	}
	if _, err := at(c, 9).Follow(t.Context(), from, other.Block(7), c.Block(9)); err == nil {
		t.Error("another block of its height stood for the one that is trusted")
	}
	if _, err := at(c, 9).Follow(t.Context(), from, nil, &cmttypes.LightBlock{}); err == nil {
		t.Error("an empty block follows")
	}
}

// A chain that never lets one jump far is followed within bounds, and until it is told to end.
func TestBounds(t *testing.T) {
	c := headers.New("tally-1", 4, 4, begin) // nobody stays
	c.Blocks, c.Epoch = 1, time.Millisecond
	w, err := at(c, 1e6).Follow(t.Context(), light.FromLightBlock(c.Block(1)), nil, c.Block(1e6))
	if err == nil || !strings.Contains(err.Error(), "were not enough") || w.Headers > 2048 {
		t.Errorf("%+v, %v", w, err)
	}
	large := headers.New("tally-1", 3000, 3000, begin)
	large.Blocks, large.Epoch = 1, time.Millisecond
	one := large.Block(2)
	f := at(large, 1e9)
	f.Block = func(_ context.Context, h int64) (*cmttypes.LightBlock, error) { // a large set at each height, of which few are signed
		b := *one
		header := *one.Header
		header.Height = h
		commit := *one.Commit
		commit.Height, commit.BlockID.Hash = h, header.Hash()
		b.SignedHeader = &cmttypes.SignedHeader{Header: &header, Commit: &commit}
		return &b, nil
	}
	w, err = f.Follow(t.Context(), light.FromLightBlock(large.Block(1)), large.Block(1), large.Block(math.MaxInt32))
	if err == nil || w.Bytes > 66<<20 {
		t.Errorf("%+v, %v", w, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	f = at(c, 1e6)
	f.Progress = func(headers int, _ int64) {
		if headers == 10 {
			stop()
		}
	}
	w, err = f.Follow(ctx, light.FromLightBlock(c.Block(1)), nil, c.Block(1e6))
	if !errors.Is(err, context.Canceled) || w.Headers != 10 {
		t.Errorf("%+v, %v", w, err)
	}
}

// BenchmarkFollow is one trusting period, by the number of validators.
func BenchmarkFollow(b *testing.B) {
	for _, members := range []int{4, 100} {
		b.Run(fmt.Sprint(members), func(b *testing.B) {
			c := headers.New("tally-1", members, members/4, begin)
			last := 95 * c.Blocks
			blocks := map[int64]*cmttypes.LightBlock{}
			f := at(c, last)
			f.Block = func(_ context.Context, h int64) (*cmttypes.LightBlock, error) {
				if blocks[h] == nil {
					blocks[h] = c.Block(h)
				}
				return blocks[h], nil
			}
			from, to := light.FromLightBlock(c.Block(1)), c.Block(last)
			var w light.Stats
			var err error
			for b.Loop() {
				if w, err = f.Follow(b.Context(), from, nil, to); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(w.Headers), "headers")
			b.ReportMetric(float64(w.Bytes), "bytes")
		})
	}
}
