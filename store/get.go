package store

import (
	"bytes"
	"fmt"
	"io"
)

// Part are N bytes of a blob, from byte At on; the zero Part is all of it.
type Part struct{ At, N int64 }

// blocks returns the blocks of r that hold p, from…to−1.
func (p Part) blocks(r Ref) (from, to int, err error) {
	if p == (Part{}) {
		return 0, blocks(r.Size), nil
	}
	if p.At < 0 || p.N < 1 || p.At > r.Size-p.N {
		return 0, 0, fmt.Errorf("bytes %d to %d of a blob of %d", p.At, p.At+p.N-1, r.Size)
	}
	return int(p.At / BlockSize), blocks(p.At + p.N), nil
}

// Get returns a reader over a blob, or over a part of it, which verifies each block before giving a
// byte of it. No blocks but those of the part need be here. A blob that nobody pins may vanish while it is read; then, and
// when a block turns out damaged, Read fails with ErrMissing.
func (s *Store) Get(r Ref, part ...Part) (io.Reader, error) {
	in, err := s.reader(r)
	if err != nil || len(part) == 0 || part[0] == (Part{}) {
		return in, err
	}
	p := part[0]
	from, to, err := p.blocks(r)
	if err != nil {
		return nil, fmt.Errorf("get blob: %w", err)
	}
	in.sums, in.next = in.sums[:to], from
	if err := in.load(); err != nil {
		return nil, err
	}
	in.rest = in.rest[p.At-int64(from)*BlockSize:]
	return io.LimitReader(in, p.N), nil
}

// GetBytes returns a blob of at most limit bytes.
func (s *Store) GetBytes(r Ref, limit int64) ([]byte, error) {
	if r.Size > limit {
		return nil, fmt.Errorf("get blob: it has %d bytes, the limit here is %d", r.Size, limit)
	}
	if !s.Has(r) {
		return nil, fmt.Errorf("get blob %s: %w", r, ErrMissing)
	}
	in, err := s.reader(r)
	if err != nil {
		return nil, err
	}
	out := bytes.NewBuffer(make([]byte, 0, r.Size))
	if _, err := in.WriteTo(out); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

type reader struct {
	s    *Store
	size int64
	sums []digest
	next int    // block to load
	rest []byte // of the block before it
}

func (s *Store) reader(r Ref) (*reader, error) {
	sums, err := s.members(r)
	if err != nil {
		return nil, fmt.Errorf("get blob: %w", err)
	}
	return &reader{s: s, size: r.Size, sums: sums}, nil
}

// load reads the next block.
func (r *reader) load() error {
	if r.next == len(r.sums) {
		return io.EOF
	}
	b, err := r.s.read(r.sums[r.next])
	if err != nil {
		return fmt.Errorf("get blob: block %d of %d: %w", r.next, len(r.sums), err)
	}
	if err := checkLen(b, r.size, r.next); err != nil {
		return fmt.Errorf("get blob: %w", err)
	}
	r.rest = b
	r.next++
	return nil
}

// checkLen compares a sound block with the length that the blob gives it.
func checkLen(b []byte, size int64, i int) error {
	if want := blockLen(size, i); len(b) != want {
		return fmt.Errorf("block %d has %d bytes, the blob's reference or index says %d", i, len(b), want)
	}
	return nil
}

func (r *reader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if err := r.load(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// WriteTo implements io.WriterTo: whole blocks, without a copy.
func (r *reader) WriteTo(w io.Writer) (total int64, err error) {
	for {
		n, err := w.Write(r.rest)
		r.rest = r.rest[n:]
		total += int64(n)
		if err != nil {
			return total, err
		}
		if err := r.load(); err == io.EOF {
			return total, nil
		} else if err != nil {
			return total, err
		}
	}
}
