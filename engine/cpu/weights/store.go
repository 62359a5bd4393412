package weights

import (
	"container/list"
	"context"
	"runtime"
	"sync"
	"weak"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// Key names the packed form of a constant.
type Key struct {
	Root   canon.Hash // of the constant
	Layout string     // how it is packed: all that the bytes depend on, besides the constant
}

// Packed is a constant in packed form. Who holds it keeps it in memory. Nobody writes to it.
type Packed struct{ bytes []byte }

// Bytes returns the packed form. It is good for as long as p is reachable.
func (p *Packed) Bytes() []byte { return p.bytes }

// Store is the packed weights of a process. It is safe for concurrent use.
type Store struct {
	limit int
	idle  int
	files *directory // nil if there is none

	mu      sync.Mutex
	entries map[Key]*entry
	used    *list.List // entries in memory, the last used first
	bytes   int        // of those
	added   int        // bytes since idle entries were last counted
}

// entry is one packed weight.
type entry struct {
	key   Key
	ready chan struct{} // closed when it is packed, or cannot be
	alive weak.Pointer[Packed]
	bytes []byte // in memory; nil if it is a mapped file, or nothing
	at    *list.Element
}

// Options say what a store may take.
type Options struct {
	Bytes     int    // of memory, for all weights that are packed in memory
	IdleBytes int    // of it, for those that no plan holds
	Dir       string // for files, which other processes may share; "" for none
	DirBytes  int    // for all files; the oldest go first
}

// New returns an empty store. It makes the directory if need be.
func New(o Options) (*Store, error) {
	s := &Store{limit: o.Bytes, idle: o.IdleBytes, entries: map[Key]*entry{}, used: list.New()}
	var err error
	if o.Dir != "" {
		s.files, err = openDirectory(o.Dir, o.DirBytes)
	}
	return s, err
}

// overhead is counted for every entry, besides its bytes.
const overhead = 1 << 10

// Get returns the packed form that key names, of so many bytes. If there is none, pack fills
// it in, and stops with an error soon after ctx is done. Without room for it Get returns nil.
func (s *Store) Get(ctx context.Context, key Key, size int, pack func(dst []byte) error) (*Packed, error) {
	for {
		s.mu.Lock()
		e := s.entries[key]
		if e == nil {
			e = &entry{key: key, ready: make(chan struct{})}
			s.entries[key] = e
			s.mu.Unlock()
			return s.fill(e, size, pack)
		}
		s.mu.Unlock()
		select {
		case <-e.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if p := s.hold(e); p != nil {
			return p, nil
		}
	}
}

// hold returns what an entry has, nil if it has nothing any more: then it is no entry of
// the store.
func (s *Store) hold(e *entry) *Packed {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := e.alive.Value()
	switch {
	case s.entries[e.key] != e:
		return nil
	case p != nil:
	case e.bytes != nil:
		p = &Packed{e.bytes}
		e.alive = weak.Make(p)
	default: // a file that nobody maps any more
		delete(s.entries, e.key)
		return nil
	}
	if e.at != nil {
		s.used.MoveToFront(e.at)
	}
	return p
}

// fill makes the packed form of a new entry: it maps its file, or packs.
func (s *Store) fill(e *entry, size int, pack func(dst []byte) error) (p *Packed, err error) {
	defer close(e.ready)
	room, inMemory := false, false
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case p == nil:
			delete(s.entries, e.key)
		case inMemory:
			e.bytes, e.at = p.bytes, s.used.PushFront(e)
			fallthrough
		default:
			e.alive = weak.Make(p)
		}
		if room && !inMemory {
			s.bytes -= size + overhead
		}
	}()
	if s.files != nil {
		if p = s.files.load(e.key, size); p != nil {
			return p, nil
		}
	}
	if room = s.reserve(size + overhead); !room && s.files == nil {
		return nil, nil
	}
	bytes := bytesOf(make([]uint64, (size+7)/8))[:size]
	mem.SharedHugePages(bytes)
	if err := pack(bytes); err != nil {
		return nil, err
	}
	if s.files != nil {
		s.files.save(e.key, bytes)
		if !room { // then what was packed is let go, and read from the file
			return s.files.load(e.key, size), nil
		}
	}
	inMemory = true
	return &Packed{bytes}, nil
}

// reserve makes room for so many bytes, by letting idle entries go. It reports whether
// there is room.
func (s *Store) reserve(size int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.added += size; s.added > s.idle {
		s.added = 0
		s.evict(0)
	}
	if s.bytes+size > s.limit {
		s.evict(size)
	}
	if s.bytes+size > s.limit && s.used.Len() > 0 {
		runtime.GC() // plans that nobody has any more hold nothing after it
		s.evict(size)
	}
	if s.bytes+size > s.limit {
		return false
	}
	s.bytes += size
	return true
}

// evict lets go of idle entries, those used longest ago first, until there is room for so
// many bytes and no more are idle than may be.
func (s *Store) evict(size int) {
	idle := 0
	for at := s.used.Front(); at != nil; at = at.Next() {
		if e := at.Value.(*entry); e.alive.Value() == nil {
			idle += len(e.bytes) + overhead
		}
	}
	for at := s.used.Back(); at != nil && (idle > s.idle || s.bytes+size > s.limit); {
		e := at.Value.(*entry)
		before := at.Prev()
		if e.alive.Value() == nil {
			s.used.Remove(at)
			delete(s.entries, e.key)
			n := len(e.bytes) + overhead
			idle, s.bytes = idle-n, s.bytes-n
		}
		at = before
	}
}

// Bytes returns the memory of all packed weights, those included that are idle and those
// that are being packed.
func (s *Store) Bytes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}
