package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/ipfs/go-cid"
)

var (
	// ErrMissing says that a block is not on this disk, or was damaged there and
	// has been removed. Fetch brings it back.
	ErrMissing = errors.New("block is missing")
	// ErrQuota says that a write would pass the disk quota.
	ErrQuota = errors.New("store is full")
)

// Store keeps the blocks of blobs in a directory.
type Store struct {
	dir   string
	quota int64

	pinning sync.Mutex   // held while pins change; taken before mu
	lost    map[Ref]bool // pinned, but the index was not on the disk at Open

	mu      sync.Mutex
	blocks  map[digest]int64 // length on disk
	used    int64            // bytes in blocks, and reserved for running writes
	held    map[digest]int   // running writes that need the block
	damaged int
	pins    map[string]map[Ref]bool // by name
	holders map[digest][]string     // names whose pins cover the block, sorted
}

// Open opens the store in dir, making it if it is new. Its blocks may take up
// to quota bytes.
func Open(dir string, quota int64) (*Store, error) {
	if quota <= 0 {
		return nil, fmt.Errorf("open store: quota is %d bytes, give a positive number", quota)
	}
	s := &Store{
		dir:     dir,
		quota:   quota,
		blocks:  map[digest]int64{},
		held:    map[digest]int{},
		pins:    map[string]map[Ref]bool{},
		holders: map[digest][]string{},
		lost:    map[Ref]bool{},
	}
	if err := s.scan(); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if err := s.loadPins(); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return s, nil
}

// Usage is what a store holds.
type Usage struct {
	Blocks  int   // on disk
	Bytes   int64 // in blocks, and reserved for running writes
	Quota   int64 // limit of Bytes
	Damaged int   // blocks found damaged and removed since Open
}

// Usage returns what the store holds now.
func (s *Store) Usage() Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Usage{len(s.blocks), s.used, s.quota, s.damaged}
}

// Scratch returns the folder for files that need not outlast the process: Open empties it.
func (s *Store) Scratch() string { return filepath.Join(s.dir, tmpDir) }

// Block returns the block that c names, verified. It makes a Store a Source.
func (s *Store) Block(ctx context.Context, c cid.Cid) ([]byte, error) {
	d, err := digestOf(c)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.read(d)
}

// Has reports whether every block of the blob is on the disk, without reading
// them. A damaged block counts until somebody reads it.
func (s *Store) Has(r Ref) bool {
	sums, err := s.members(r)
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range sums {
		if _, ok := s.blocks[d]; !ok {
			return false
		}
	}
	return true
}

// read returns a block that is on the disk, verified.
func (s *Store) read(d digest) ([]byte, error) {
	s.mu.Lock()
	_, ok := s.blocks[d]
	s.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("read %s: %w", d.CID(), ErrMissing)
	}
	b, err := readBlock(s.path(d), d)
	if errors.Is(err, errDamaged) || errors.Is(err, fs.ErrNotExist) {
		return s.reread(d)
	} else if err != nil {
		return nil, fmt.Errorf("read %s: %w", d.CID(), err)
	}
	return b, nil
}

// reread reads a block that looked damaged once more, with writers kept out,
// and removes it if it is.
func (s *Store) reread(d digest) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := readBlock(s.path(d), d)
	switch {
	case errors.Is(err, errDamaged):
		if _, ok := s.blocks[d]; ok {
			s.damaged++
		}
		if err := s.remove(d); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("read %s: damaged on disk, removed: %w", d.CID(), ErrMissing)
	case errors.Is(err, fs.ErrNotExist):
		s.forget(d)
		return nil, fmt.Errorf("read %s: %w", d.CID(), ErrMissing)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", d.CID(), err)
	}
	return b, nil
}

// members returns the digests of the blob's blocks, in order, index excluded.
func (s *Store) members(r Ref) ([]digest, error) {
	head, err := r.digest()
	if err != nil {
		return nil, err
	}
	if !r.indexed() {
		return []digest{head}, nil
	}
	b, err := s.read(head)
	if err != nil {
		return nil, err
	}
	return decodeIndex(b, r.Size)
}

// Delete removes the blocks of a blob, except those that a pin covers or a
// running write needs. A pinned blob is refused; an unpinned one that shares
// blocks with it loses them.
func (s *Store) Delete(r Ref) error {
	head, err := r.digest()
	if err != nil {
		return err
	}
	sums, err := s.members(r)
	if err != nil && !errors.Is(err, ErrMissing) {
		return err
	}
	s.pinning.Lock()
	defer s.pinning.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, refs := range s.pins {
		if refs[r] {
			return fmt.Errorf("delete %s: pinned by %s; unpin it first", r, name)
		}
	}
	for _, d := range append(sums, head) {
		if err := s.discard(d); err != nil {
			return err
		}
	}
	return nil
}

// GC removes every block that no pin covers and no running write needs, and
// returns the bytes freed. It removes nothing while a pinned blob has lost its
// index, which alone says what the pin covers.
func (s *Store) GC() (freed int64, err error) {
	s.pinning.Lock()
	defer s.pinning.Unlock()
	if err := s.findLost(); err != nil {
		return 0, fmt.Errorf("collect garbage: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.used
	for d := range s.blocks {
		if err := s.discard(d); err != nil {
			return before - s.used, fmt.Errorf("collect garbage: %w", err)
		}
	}
	return before - s.used, nil
}

// discard removes a block unless it is needed. The caller holds mu.
func (s *Store) discard(d digest) error {
	if s.held[d] > 0 || len(s.holders[d]) > 0 {
		return nil
	}
	return s.remove(d)
}

// remove removes a block from disk and tables. The caller holds mu.
func (s *Store) remove(d digest) error {
	if err := os.Remove(s.path(d)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove block: %w", err)
	}
	s.forget(d)
	return nil
}

// forget drops a block that is not on disk from the tables. The caller holds mu.
func (s *Store) forget(d digest) {
	s.used -= s.blocks[d]
	delete(s.blocks, d)
}

func (s *Store) syncBlocks() error { return syncDir(filepath.Join(s.dir, blocksDir)) }
