package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ipfs/go-cid"
	"golang.org/x/sync/errgroup"
)

// fetchesInFlight bounds the blocks that one Fetch asks for at the same time.
const fetchesInFlight = 8

// How long a source has for a block until another is asked for it too. Whoever is first
// wins, so a source that stalls costs this once, and not its own limit of time. A source
// that wins although another was asked is slow, not stalled: the time is doubled.
const (
	hedge        = 2 * time.Second
	longestHedge = 16 * hedge
)

// Source gives blocks by their CIDs: another machine, a gateway, a swarm. What
// it gives is believed only after it matched the CID. A Source limits its own
// time and the bytes it accepts; a block has at most BlockSize.
type Source interface {
	Block(ctx context.Context, c cid.Cid) ([]byte, error)
}

// Request asks for one blob.
type Request struct {
	Ref Ref
	// Pin is the name to pin the blob under. A block that is here under other names alone
	// is asked for all the same, so that what a name pins has come from its own sources.
	// What has arrived is kept, so that a broken transfer can go on later. Empty: nothing
	// is pinned, and every block that is here will do.
	Pin string
	// Part, if not zero, are the only bytes of the blob that are wanted. The blocks that hold
	// them are pinned, and its index.
	Part Part
	// Sources share the work; each block is asked of one after another until
	// one gives it. Who owes the fewest is asked first, so one that is slow holds
	// up its own share.
	Sources []Source
	// Spare sources are asked for what the others do not give, or not in time.
	Spare []Source
	// Progress, if not nil, is told how many of the bytes that are wanted are on the disk
	// and verified, in whole blocks. Calls do not overlap.
	Progress func(done, total int64)
	// Dropped, if not nil, is told of a source that gave wrong bytes. It is not
	// asked again in this Fetch. Calls do not overlap.
	Dropped func(src Source, err error)
	// Stalled, if not nil, is told of a source that did not give a block in time, so
	// that another was asked, too. Calls do not overlap.
	Stalled func(src Source)
}

// Fetch makes a blob whole: it verifies the blocks that are on the disk and
// gets the others from the sources. What has arrived stays when it fails, so a
// repeated Fetch resumes.
func (s *Store) Fetch(ctx context.Context, q Request) error {
	n := len(q.Sources) + len(q.Spare)
	f := &fetch{Request: q, w: s.begin(), hedge: hedge, failures: make([]int, n), owed: make([]int, n)}
	defer f.w.end()
	if err := f.run(ctx); err != nil {
		return fmt.Errorf("fetch %s: %w", q.Ref, err)
	}
	return nil
}

type fetch struct {
	Request
	w *write

	mu       sync.Mutex
	done     int64
	hedge    time.Duration
	failures []int // by source, the spare ones last; dropped for one that gave wrong bytes
	owed     []int // by source: blocks that it was asked for and has not answered
}

const dropped = -1

func (f *fetch) run(ctx context.Context) error {
	s := f.w.s
	head, err := f.Ref.digest()
	if err != nil {
		return err
	}
	from, to, err := f.Part.blocks(f.Ref)
	if err != nil {
		return err
	}
	if f.Pin != "" {
		if err := checkPin(f.Pin); err != nil {
			return err
		}
	}
	b, err := f.block(ctx, head, 0)
	if err != nil {
		return err
	}
	sums := []digest{head}
	if f.Ref.indexed() {
		if sums, err = decodeIndex(b, f.Ref.Size); err != nil {
			return err
		}
	} else if err := f.count(b, 0); err != nil {
		return err
	}
	if err := s.syncBlocks(); err != nil {
		return err
	}
	if !f.Ref.indexed() {
		return f.pin()
	}
	if err := f.arrived(head); err != nil {
		return err
	}
	if err := f.roomFor(sums, from, to); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(fetchesInFlight)
	for i := from; i < to; i++ {
		g.Go(func() error {
			d := sums[i]
			b, err := f.block(ctx, d, i)
			if err != nil {
				return fmt.Errorf("block %d of %d: %w", i, len(sums), err)
			}
			if err := f.count(b, i); err != nil {
				return err
			}
			return f.arrived(d)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if err := s.syncBlocks(); err != nil {
		return err
	}
	if to-from < len(sums) {
		return nil // what has arrived is pinned
	}
	return f.pin()
}

// arrived keeps a block of a blob that is not whole yet.
func (f *fetch) arrived(d digest) error {
	if f.Pin == "" {
		return nil
	}
	return f.w.s.pinPart(f.Pin, f.Ref, d)
}

// pin keeps the blob, which is whole.
func (f *fetch) pin() error {
	if f.Pin == "" {
		return nil
	}
	return f.w.s.Pin(f.Pin, f.Ref)
}

// roomFor fails early if those of the blocks from…to−1 that are not here cannot fit.
func (f *fetch) roomFor(sums []digest, from, to int) error {
	s := f.w.s
	s.mu.Lock()
	defer s.mu.Unlock()
	var need int64
	seen := make(map[digest]bool, len(sums))
	for i := from; i < to; i++ {
		d := sums[i]
		if _, ok := s.blocks[d]; !ok && !seen[d] {
			need += int64(blockLen(f.Ref.Size, i))
		}
		seen[d] = true
	}
	return s.checkRoom(need)
}

// block returns the block with digest d from the disk, if it may be taken from there, or
// gets it from a source and writes it. The sources take turns by i.
func (f *fetch) block(ctx context.Context, d digest, i int) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f.w.hold(d)
	if f.Pin != "" && !f.w.s.covers(f.Pin, d) {
		return f.ask(ctx, d, i, fmt.Errorf("read %s: pinned by others at most: %w", d.CID(), ErrMissing))
	}
	b, err := f.w.s.read(d)
	if err == nil || !errors.Is(err, ErrMissing) {
		return b, err
	}
	return f.ask(ctx, d, i, err)
}

// answer is what a source has given for a block.
type answer struct {
	source int
	block  []byte
	err    error
}

// ask gets block i from whoever gives it first, and writes it. A source has a while
// before the next is asked as well.
func (f *fetch) ask(ctx context.Context, d digest, i int, missing error) ([]byte, error) {
	calls, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := []error{missing}
	asked := make([]bool, len(f.failures))
	answers := make(chan answer, len(asked))
	waiting, last := 0, -1
	next := func() bool {
		k := f.next(i, asked)
		if k < 0 {
			return false
		}
		last = k
		waiting++
		go func() {
			b, err := f.source(k).Block(calls, d.CID())
			f.answered(k)
			answers <- answer{k, b, err}
		}()
		return true
	}
	next()
	late := time.NewTimer(f.patience())
	defer late.Stop()
	for waiting > 0 {
		select {
		case a := <-answers:
			waiting--
			err := f.judge(a, d)
			if err == nil {
				if a.source != last {
					f.slower(a.source)
				}
				return a.block, f.w.write(d, a.block) // even if another block has failed meanwhile
			}
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			errs = append(errs, fmt.Errorf("source %d of %d: %w", a.source+1, len(asked), err))
			if waiting == 0 || a.source == last {
				next()
				late.Reset(f.patience())
			}
		case <-late.C:
			stalled := last
			if next() {
				f.stall(stalled)
				late.Reset(f.patience())
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return nil, errors.Join(errs...)
}

// judge returns an error unless a source has given the block with digest d.
func (f *fetch) judge(a answer, d digest) error {
	switch {
	case a.err != nil:
		f.fail(a.source)
		return a.err
	case len(a.block) > BlockSize || sha256.Sum256(a.block) != d:
		err := fmt.Errorf("%d bytes that are not %s", len(a.block), d.CID())
		f.drop(a.source, err)
		return err
	}
	return nil
}

// source returns one of the sources, the spare ones last.
func (f *fetch) source(k int) Source {
	if n := len(f.Sources); k >= n {
		return f.Spare[k-n]
	}
	return f.Sources[k]
}

// patience returns how long a source has before another is asked.
func (f *fetch) patience() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hedge
}

// slower doubles that time, for a source that was thought to stall has given its block.
func (f *fetch) slower(k int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hedge = min(2*f.hedge, longestHedge)
	if f.failures[k] > 0 {
		f.failures[k]--
	}
}

// next chooses the source to ask for block i, of those that were not asked for it: who
// has failed least, of those who is no spare one, of those who owes least, of those in
// turn. It is −1 if none is left.
func (f *fetch) next(i int, asked []bool) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	best := -1
	better := func(k int) bool {
		if best < 0 || f.failures[k] != f.failures[best] {
			return best < 0 || f.failures[k] < f.failures[best]
		}
		if spare := k >= len(f.Sources); spare != (best >= len(f.Sources)) {
			return !spare
		}
		return f.owed[k] < f.owed[best]
	}
	for j := range asked {
		k := j
		if n := len(f.Sources); j < n {
			k = (i + j) % n
		}
		if !asked[k] && f.failures[k] != dropped && better(k) {
			best = k
		}
	}
	if best >= 0 {
		asked[best] = true
		f.owed[best]++
	}
	return best
}

func (f *fetch) answered(k int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.owed[k]--
}

func (f *fetch) fail(k int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failures[k] != dropped {
		f.failures[k]++
	}
}

// stall counts a source that did not answer in time as one that failed.
func (f *fetch) stall(k int) {
	f.fail(k)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Stalled != nil {
		f.Stalled(f.source(k))
	}
}

func (f *fetch) drop(k int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failures[k] == dropped {
		return
	}
	f.failures[k] = dropped
	if f.Dropped != nil {
		f.Dropped(f.source(k), err)
	}
}

// total returns the bytes of the blocks that are wanted.
func (f *fetch) total() int64 {
	from, to, _ := f.Part.blocks(f.Ref)
	return min(int64(to)*BlockSize, f.Ref.Size) - int64(from)*BlockSize
}

// count checks the length of block i and reports progress.
func (f *fetch) count(b []byte, i int) error {
	if err := checkLen(b, f.Ref.Size, i); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done += int64(len(b))
	if f.Progress != nil {
		f.Progress(f.done, f.total())
	}
	return nil
}
