package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"

	"github.com/ipfs/go-cid"
	"golang.org/x/sync/errgroup"
)

// fetchesInFlight bounds the blocks that one Fetch asks for at the same time.
const fetchesInFlight = 8

// Source gives blocks by their CIDs: another machine, a gateway, a swarm. What
// it gives is believed only after it matched the CID. A Source limits its own
// time and the bytes it accepts; a block has at most BlockSize.
type Source interface {
	Block(ctx context.Context, c cid.Cid) ([]byte, error)
}

// Request asks for one blob.
type Request struct {
	Ref Ref
	// Pin is the name to pin the blob under, from its first block on, so that a
	// broken transfer can go on later. Empty: nothing is pinned.
	Pin string
	// Sources share the work; each block is asked of one after another until
	// one gives it. Who owes the fewest is asked first, so one that is slow holds
	// up its own share.
	Sources []Source
	// Progress, if not nil, is told how many of the blob's bytes are on the disk
	// and verified. Calls do not overlap.
	Progress func(done, total int64)
	// Dropped, if not nil, is told of a source that gave wrong bytes. It is not
	// asked again in this Fetch. Calls do not overlap.
	Dropped func(src Source, err error)
}

// Fetch makes a blob whole: it verifies the blocks that are on the disk and
// gets the others from the sources. What has arrived stays when it fails, so a
// repeated Fetch resumes.
func (s *Store) Fetch(ctx context.Context, q Request) error {
	f := &fetch{Request: q, w: s.begin(), failures: make([]int, len(q.Sources)), owed: make([]int, len(q.Sources))}
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
	failures []int // by source; dropped for one that gave wrong bytes
	owed     []int // by source: blocks that it was asked for and has not answered
}

const dropped = -1

func (f *fetch) run(ctx context.Context) error {
	s := f.w.s
	head, err := f.Ref.digest()
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
	if f.Pin != "" {
		if err := s.pin(f.Pin, f.Ref, false); err != nil {
			return err
		}
	}
	if !f.Ref.indexed() {
		return nil
	}
	if err := s.roomFor(f.Ref.Size, sums); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(fetchesInFlight)
	for i, d := range sums {
		g.Go(func() error {
			b, err := f.block(ctx, d, i)
			if err != nil {
				return fmt.Errorf("block %d of %d: %w", i, len(sums), err)
			}
			return f.count(b, i)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return s.syncBlocks()
}

// roomFor fails early if the blocks of a blob that are not here cannot fit.
func (s *Store) roomFor(size int64, sums []digest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var need int64
	seen := make(map[digest]bool, len(sums))
	for i, d := range sums {
		if _, ok := s.blocks[d]; !ok && !seen[d] {
			need += int64(blockLen(size, i))
		}
		seen[d] = true
	}
	return s.checkRoom(need)
}

// block returns the block with digest d from the disk, or gets it from a
// source and writes it. The sources take turns by i.
func (f *fetch) block(ctx context.Context, d digest, i int) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f.w.hold(d)
	b, err := f.w.s.read(d)
	if err == nil || !errors.Is(err, ErrMissing) {
		return b, err
	}
	errs := []error{err}
	asked := make([]bool, len(f.Sources))
	for k := f.next(i, asked); k >= 0; k = f.next(i, asked) {
		b, err := f.Sources[k].Block(ctx, d.CID())
		f.answered(k)
		if err == nil && len(b) <= BlockSize && sha256.Sum256(b) == d {
			return b, f.w.s.add(d, b) // even if another block has failed meanwhile
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil {
			err = fmt.Errorf("%d bytes that are not %s", len(b), d.CID())
			f.drop(k, err)
		} else {
			f.fail(k)
		}
		errs = append(errs, fmt.Errorf("source %d of %d: %w", k+1, len(f.Sources), err))
	}
	return nil, errors.Join(errs...)
}

// next chooses the source to ask for block i, of those that were not asked for it: who
// has failed least, of those who owes least, of those in turn. It is −1 if none is left.
func (f *fetch) next(i int, asked []bool) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	best := -1
	for j := range f.Sources {
		k := (i + j) % len(f.Sources)
		if asked[k] || f.failures[k] == dropped {
			continue
		}
		if best < 0 || f.failures[k] < f.failures[best] || f.failures[k] == f.failures[best] && f.owed[k] < f.owed[best] {
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

func (f *fetch) drop(k int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failures[k] == dropped {
		return
	}
	f.failures[k] = dropped
	if f.Dropped != nil {
		f.Dropped(f.Sources[k], err)
	}
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
		f.Progress(f.done, f.Ref.Size)
	}
	return nil
}
