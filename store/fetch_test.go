package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ipfs/go-cid"
)

// sourceFunc lets a test be a source.
type sourceFunc func(context.Context, cid.Cid) ([]byte, error)

func (f sourceFunc) Block(ctx context.Context, c cid.Cid) ([]byte, error) { return f(ctx, c) }

type counting struct {
	Source
	n atomic.Int64
}

func (c *counting) Block(ctx context.Context, id cid.Cid) ([]byte, error) {
	c.n.Add(1)
	return c.Source.Block(ctx, id)
}

var errAway = errors.New("nobody home")

var (
	away = sourceFunc(func(context.Context, cid.Cid) ([]byte, error) { return nil, errAway })
	liar = sourceFunc(func(_ context.Context, c cid.Cid) ([]byte, error) { return noise(99, 100), nil })
)

func flipping(from Source) Source {
	return sourceFunc(func(ctx context.Context, c cid.Cid) ([]byte, error) {
		b, err := from.Block(ctx, c)
		if err == nil && len(b) > 0 {
			b[len(b)/2] ^= 4
		}
		return b, err
	})
}

func TestFetchAmongBadSources(t *testing.T) {
	origin := open(t, t.TempDir(), roomy)
	blob := noise(10, 3*BlockSize+3)
	r := mustPut(t, origin, "", blob)
	long := sourceFunc(func(context.Context, cid.Cid) ([]byte, error) { return make([]byte, 4*BlockSize), nil })
	liars := map[string]Source{"liar": liar, "flipping": flipping(origin), "long": long}
	for seed := range uint64(25) {
		names := []string{"away", "liar", "flipping", "long", "origin"}
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		asked := map[string]*counting{}
		var sources []Source
		for _, n := range names {
			switch n {
			case "away":
				sources = append(sources, away)
			case "origin":
				sources = append(sources, origin)
			default:
				asked[n] = &counting{Source: liars[n]}
				sources = append(sources, asked[n])
			}
		}
		s := open(t, t.TempDir(), roomy)
		var last int64
		var dropped []Source
		err := s.Fetch(t.Context(), Request{
			Ref: r, Pin: "lease-1", Sources: sources,
			Progress: func(done, total int64) {
				if done <= last || total != r.Size {
					t.Errorf("progress %d after %d of %d", done, last, total)
				}
				last = done
			},
			Dropped: func(src Source, err error) {
				if err == nil || slices.Contains(dropped, src) {
					t.Errorf("dropped %v again: %v", src, err)
				}
				dropped = append(dropped, src)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		wantBlob(t, s, r, blob)
		if last != r.Size {
			t.Fatalf("progress ended at %d", last)
		}
		for n, src := range asked {
			// Blocks already in flight when it was found out are its last.
			if got := src.n.Load(); got > fetchesInFlight || (got > 0) != slices.Contains(dropped, Source(src)) {
				t.Fatalf("%s was asked %d times, dropped: %v", n, got, dropped)
			}
		}
		if _, err := s.GC(); err != nil {
			t.Fatal(err)
		}
		wantBlob(t, s, r, blob)
	}
}

// A source that answers late has its own share of the blocks to give; the others go on
// without it.
func TestSlowSourceHoldsUpItsShare(t *testing.T) {
	origin := open(t, t.TempDir(), roomy)
	blob := noise(12, 40*BlockSize)
	r := mustPut(t, origin, "", blob)
	var late, others atomic.Int32
	enough := make(chan struct{})
	slow := sourceFunc(func(ctx context.Context, c cid.Cid) ([]byte, error) {
		if late.Add(1); c == r.CID {
			return origin.Block(ctx, c)
		}
		select {
		case <-enough:
		case <-time.After(30 * time.Second): // never, unless all wait for it
			t.Error("the others' blocks wait for the slow source")
		}
		return origin.Block(ctx, c)
	})
	quick := sourceFunc(func(ctx context.Context, c cid.Cid) ([]byte, error) {
		if others.Add(1) == 40-fetchesInFlight {
			close(enough)
		}
		return origin.Block(ctx, c)
	})
	s := open(t, t.TempDir(), roomy)
	if err := s.Fetch(t.Context(), Request{Ref: r, Sources: []Source{slow, quick}}); err != nil {
		t.Fatal(err)
	}
	wantBlob(t, s, r, blob)
	if n := late.Load(); n > fetchesInFlight+1 {
		t.Errorf("the slow source was asked %d times", n)
	}
}

// A source that stalls costs its time once: then the others are asked first, the spare
// ones too. It is not waited for, whatever it does.
func TestStalledSourceIsPassedBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		origin := open(t, t.TempDir(), roomy)
		blob := noise(13, 40*BlockSize)
		r := mustPut(t, origin, "", blob)
		stalled := sourceFunc(func(ctx context.Context, _ cid.Cid) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		for name, q := range map[string]Request{
			"beside another": {Sources: []Source{stalled, origin}},
			"alone":          {Sources: []Source{stalled}, Spare: []Source{stalled, away, liar, origin}},
		} {
			s := open(t, t.TempDir(), roomy)
			told := 0
			q.Ref, q.Stalled = r, func(Source) { told++ }
			begun := time.Now()
			if err := s.Fetch(t.Context(), q); err != nil {
				t.Fatal(err)
			}
			wantBlob(t, s, r, blob)
			if took := time.Since(begun); took > 4*hedge {
				t.Errorf("%s: it took %v", name, took)
			}
			if told == 0 || told > 4*fetchesInFlight {
				t.Errorf("%s: told %d times that a source stalled", name, told)
			}
		}
	})
}

// Spare sources are not troubled where the others give everything, however slowly: who
// was hedged against and won has longer.
func TestSlowSourcesKeepTheirWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		origin := open(t, t.TempDir(), roomy)
		r := mustPut(t, origin, "", noise(14, 40*BlockSize))
		slow := sourceFunc(func(ctx context.Context, c cid.Cid) ([]byte, error) {
			time.Sleep(hedge + time.Millisecond)
			return origin.Block(ctx, c)
		})
		spare := &counting{Source: sourceFunc(func(ctx context.Context, c cid.Cid) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})}
		s := open(t, t.TempDir(), roomy)
		if err := s.Fetch(t.Context(), Request{Ref: r, Sources: []Source{slow}, Spare: []Source{spare}}); err != nil {
			t.Fatal(err)
		}
		if n := spare.n.Load(); n > 1 {
			t.Errorf("the spare source was asked %d times", n)
		}
		quick := &counting{Source: away}
		s = open(t, t.TempDir(), roomy)
		if err := s.Fetch(t.Context(), Request{Ref: r, Sources: []Source{origin}, Spare: []Source{quick}}); err != nil {
			t.Fatal(err)
		}
		if n := quick.n.Load(); n != 0 {
			t.Errorf("the spare source was asked %d times, though nothing was late", n)
		}
	})
}

func TestFetchResumes(t *testing.T) {
	dir := t.TempDir()
	origin := open(t, t.TempDir(), roomy)
	blob := noise(11, 6*BlockSize)
	r := mustPut(t, origin, "", blob)
	var mu sync.Mutex
	given := map[cid.Cid]int{}
	left := 3
	flaky := sourceFunc(func(ctx context.Context, c cid.Cid) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() != nil { // of a fetch that has ended meanwhile
			return nil, ctx.Err()
		}
		if left == 0 {
			time.Sleep(50 * time.Millisecond) // what was given has arrived by then
			return nil, errAway
		}
		left--
		given[c]++
		return origin.Block(ctx, c)
	})
	for tries := 0; ; tries++ {
		s := open(t, dir, roomy) // as after a restart
		err := s.Fetch(t.Context(), Request{Ref: r, Pin: "lease-1", Sources: []Source{flaky}})
		if _, err := s.GC(); err != nil {
			t.Fatal(err)
		}
		if err == nil {
			wantBlob(t, s, r, blob)
			break
		}
		if !errors.Is(err, errAway) || tries > 3 {
			t.Fatal(err)
		}
		left = 3
	}
	for c, n := range given {
		if n != 1 {
			t.Errorf("%s was transferred %d times", c, n)
		}
	}
}

// A stranger named another order's data as a file of its own. What is here for that one was
// pinned for both, and handed out. Under a name counts only what its own sources give.
func TestFetchTakesNothingFromOtherPins(t *testing.T) {
	origin := open(t, t.TempDir(), roomy)
	for _, size := range []int{100, 3*BlockSize + 1} {
		dir := t.TempDir()
		s := open(t, dir, roomy)
		secret := noise(16, size)
		r := mustPut(t, s, "lease-1", secret)
		whole := mustPut(t, origin, "", secret)
		sums, err := origin.members(whole)
		if err != nil {
			t.Fatal(err)
		}
		covered := func() (n int) {
			for _, d := range append(sums, r.Sum()) {
				if slices.Contains(s.PinnedBy(d.CID()), "lease-2") {
					n++
				}
			}
			return n
		}
		if err := s.Fetch(t.Context(), Request{Ref: r, Pin: "lease-2", Sources: []Source{away}}); !errors.Is(err, errAway) || covered() != 0 {
			t.Fatalf("%d bytes: %v, %d blocks are pinned for who gave none", size, err, covered())
		}
		first := sourceFunc(func(ctx context.Context, c cid.Cid) ([]byte, error) { // knows the index alone
			if c != r.CID {
				return nil, errAway
			}
			return origin.Block(ctx, c)
		})
		if size > BlockSize {
			if err := s.Fetch(t.Context(), Request{Ref: r, Pin: "lease-2", Sources: []Source{first}}); !errors.Is(err, errAway) || covered() != 1 || s.Holds("lease-2", r) {
				t.Fatalf("%v, %d blocks are pinned for who gave the index", err, covered())
			}
			if s = open(t, dir, roomy); covered() != 1 {
				t.Fatalf("%d blocks are pinned after a restart for who gave the index", covered())
			}
		}
		for range 2 {
			if err := s.Fetch(t.Context(), Request{Ref: r, Pin: "lease-2", Sources: []Source{origin}}); err != nil || !s.Holds("lease-2", r) {
				t.Fatalf("%d bytes: %v", size, err)
			}
			s = open(t, dir, roomy)
		}
		if covered() != len(sums)+1 && size > BlockSize {
			t.Fatalf("%d of %d blocks are pinned", covered(), len(sums)+1)
		}
		if err := s.Unpin("lease-1"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.GC(); err != nil {
			t.Fatal(err)
		}
		wantBlob(t, s, r, secret)
	}
}

// A source that is away costs a few tries, not one for each block.
func TestFetchPrefersSourcesThatAnswer(t *testing.T) {
	origin := open(t, t.TempDir(), roomy)
	r := mustPut(t, origin, "", noise(15, 4*fetchesInFlight*BlockSize))
	gone := &counting{Source: away}
	s := open(t, t.TempDir(), roomy)
	if err := s.Fetch(t.Context(), Request{Ref: r, Sources: []Source{gone, origin}}); err != nil {
		t.Fatal(err)
	}
	if n := gone.n.Load(); n > fetchesInFlight {
		t.Errorf("it was asked %d times", n)
	}
}

// What one source lacks another has; a miss is no reason to drop a source.
func TestFetchFromPartialSources(t *testing.T) {
	origin := open(t, t.TempDir(), roomy)
	blob := noise(12, 6*BlockSize)
	r := mustPut(t, origin, "", blob)
	sums, err := origin.members(r)
	if err != nil {
		t.Fatal(err)
	}
	part := func(has func(i int) bool) Source {
		return sourceFunc(func(ctx context.Context, c cid.Cid) ([]byte, error) {
			d, _ := digestOf(c)
			if i := slices.Index(sums, d); i >= 0 && !has(i) {
				return nil, ErrMissing
			}
			return origin.Block(ctx, c)
		})
	}
	s := open(t, t.TempDir(), roomy)
	err = s.Fetch(t.Context(), Request{Ref: r, Sources: []Source{
		part(func(i int) bool { return i < 3 }), part(func(i int) bool { return i >= 3 }),
	}})
	if err != nil {
		t.Fatal(err)
	}
	wantBlob(t, s, r, blob)
}

func TestFetchFails(t *testing.T) {
	origin := open(t, t.TempDir(), roomy)
	put := func(b []byte) Ref { return mustPut(t, origin, "", b) }
	liesAboutSize := put(encodeIndex(BlockSize+2, []digest{put(noise(13, BlockSize)).Sum(), put([]byte("x")).Sum()}))
	liesAboutSize.Size = BlockSize + 2
	whole := put(noise(14, BlockSize+1))
	giant := make([]byte, BlockSize+1)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		q    Request
		want string
	}{
		"no source":     {q: Request{Ref: whole}, want: ErrMissing.Error()},
		"nobody has it": {q: Request{Ref: whole, Sources: []Source{away, away}}, want: errAway.Error()},
		"only liars":    {q: Request{Ref: whole, Sources: []Source{liar}}, want: "100 bytes that are not"},
		"bad pin":       {q: Request{Ref: whole, Pin: "A", Sources: []Source{origin}}, want: "pin name"},
		"bad index":     {q: Request{Ref: liesAboutSize, Sources: []Source{origin}}, want: "the blob's reference or index says 2"},
		"not an index":  {q: Request{Ref: Ref{whole.CID, BlockSize + 5}, Sources: []Source{origin}}, want: "the reference says"},
		"cancelled":     {ctx: cancelled, q: Request{Ref: whole, Sources: []Source{origin}}, want: "canceled"},
		"block too long": {q: Request{Ref: Ref{digest(sha256.Sum256(giant)).CID(), BlockSize}, Sources: []Source{sourceFunc(
			func(context.Context, cid.Cid) ([]byte, error) { return giant, nil })}}, want: "bytes that are not"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir(), roomy)
			ctx := c.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			if err := s.Fetch(ctx, c.q); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if s.Has(c.q.Ref) && name != "bad index" {
				t.Fatal("the store has what it could not fetch")
			}
			if len(s.held) != 0 {
				t.Fatal("a failed fetch holds blocks")
			}
		})
	}
}
