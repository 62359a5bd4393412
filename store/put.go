package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// writesInFlight bounds the blocks that one Put flushes at the same time.
const writesInFlight = 4

// buffers holds *[]byte of BlockSize.
var buffers = sync.Pool{New: func() any { b := make([]byte, BlockSize); return &b }}

// Put stores what r gives, to its end, and pins it under the name pin. With an
// empty name nothing protects the blob from GC once Put has returned.
func (s *Store) Put(pin string, r io.Reader) (Ref, error) {
	return s.put(pin, func() ([]byte, func(), error) {
		buf := buffers.Get().(*[]byte)
		n, err := io.ReadFull(r, *buf)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = nil // the last block
		}
		return (*buf)[:n], func() { buffers.Put(buf) }, err
	})
}

// PutBytes stores b as Put does.
func (s *Store) PutBytes(pin string, b []byte) (Ref, error) {
	return s.put(pin, func() ([]byte, func(), error) {
		if len(b) == 0 {
			return nil, func() {}, io.EOF
		}
		n := min(len(b), BlockSize)
		block := b[:n]
		b = b[n:]
		return block, func() {}, nil
	})
}

// Joined reads the parts of a blob one after the other, for Put.
func Joined(parts [][]byte) io.Reader {
	readers := make([]io.Reader, len(parts))
	for i, b := range parts {
		readers[i] = bytes.NewReader(b)
	}
	return io.MultiReader(readers...)
}

// blockReader gives the blocks of a blob until io.EOF; done hands each back.
type blockReader func() (block []byte, done func(), err error)

func (s *Store) put(pin string, next blockReader) (Ref, error) {
	if pin != "" {
		if err := checkPin(pin); err != nil {
			return Ref{}, err
		}
	}
	w := s.begin()
	defer w.end()
	size, sums, err := w.members(next)
	if err != nil {
		return Ref{}, fmt.Errorf("put blob: %w", err)
	}
	var head []byte
	if len(sums) > 1 {
		head = encodeIndex(size, sums)
	}
	if len(sums) != 1 {
		sums = []digest{sha256.Sum256(head)}
		if err := w.write(sums[0], head); err != nil {
			return Ref{}, fmt.Errorf("put blob: %w", err)
		}
	}
	if err := s.syncBlocks(); err != nil {
		return Ref{}, fmt.Errorf("put blob: %w", err)
	}
	ref := Ref{sums[0].CID(), size}
	if pin == "" {
		return ref, nil
	}
	return ref, s.Pin(pin, ref)
}

// members writes the blocks that next gives, and returns their total length
// and their digests in order.
func (w *write) members(next blockReader) (size int64, sums []digest, err error) {
	g, ctx := errgroup.WithContext(context.Background())
	g.SetLimit(writesInFlight)
	defer func() { err = errors.Join(err, g.Wait()) }()
	for ctx.Err() == nil {
		block, done, err := next()
		if err == nil && len(sums) == MaxBlocks {
			err = errLong
		}
		if err != nil {
			done()
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return size, sums, err
		}
		d := sum(block)
		size += int64(len(block))
		sums = append(sums, d)
		g.Go(func() error {
			defer done()
			return w.write(d, block)
		})
	}
	return size, sums, nil
}

// sumChunk is what is hashed between two chances for others to run, in bytes: some 20 µs.
// The threads of a computation wait for one another all the time. They must not wait for a block
// to be hashed, which takes half a millisecond.
const sumChunk = 32 << 10

// sum returns the digest of a block, beside a computation on all processors.
func sum(b []byte) (d digest) {
	h := sha256.New()
	for chunk := range slices.Chunk(b, sumChunk) {
		h.Write(chunk) // of a hash never fails
		runtime.Gosched()
	}
	h.Sum(d[:0])
	return d
}

// write is one running Put or Fetch. Blocks it has touched stay until its end.
type write struct {
	s    *Store
	mu   sync.Mutex
	held []digest
}

func (s *Store) begin() *write { return &write{s: s} }

func (w *write) end() {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	for _, d := range w.held {
		if w.s.held[d]--; w.s.held[d] == 0 {
			delete(w.s.held, d)
		}
	}
}

// hold protects a block, present or not.
func (w *write) hold(d digest) {
	w.mu.Lock()
	w.held = append(w.held, d)
	w.mu.Unlock()
	w.s.mu.Lock()
	w.s.held[d]++
	w.s.mu.Unlock()
}

// write stores block b, whose digest is d, unless it is there and sound.
func (w *write) write(d digest, b []byte) error {
	w.hold(d)
	if _, err := w.s.read(d); err == nil {
		return nil
	} else if !errors.Is(err, ErrMissing) {
		return err
	}
	return w.s.add(d, b)
}

// add writes a block that is not on the disk.
func (s *Store) add(d digest, b []byte) error {
	n := int64(len(b))
	if err := s.reserve(n); err != nil {
		return err
	}
	tmp, err := s.writeTemp(b)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		if err = os.Rename(tmp, s.path(d)); err != nil {
			err = errors.Join(err, os.Remove(tmp))
		}
	}
	if err != nil {
		s.used -= n
		return fmt.Errorf("write block: %w", err)
	}
	s.forget(d) // if another write was faster, its bytes were counted too
	s.blocks[d] = n
	return nil
}

// reserve counts n bytes more as used, if the quota allows.
func (s *Store) reserve(n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkRoom(n); err != nil {
		return err
	}
	s.used += n
	return nil
}

// checkRoom fails if n bytes more would pass the quota. The caller holds mu.
func (s *Store) checkRoom(n int64) error {
	if n > 0 && s.used > s.quota-n {
		return fmt.Errorf("%w: %d of %d bytes are used, %d more are needed; "+
			"unpin what has served its time, or raise the quota", ErrQuota, s.used, s.quota, n)
	}
	return nil
}
