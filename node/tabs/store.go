package tabs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/session"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/internal/replace"
)

// ending is how files of tabs are called, after the ids of their sessions.
const ending = ".tab"

// maxFile bounds the file of a tab in bytes: receipts that wait for a voucher make it long.
const maxFile = 4 << 20

// Store is the tabs of one side.
type Store struct {
	dir string

	mu   sync.Mutex
	tabs map[canon.Hash]*Tab
}

// Open reads the tabs in a folder, which is made if there is none. One process has it open.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	all, err := Read(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, tabs: map[canon.Hash]*Tab{}}
	for _, t := range all {
		s.tabs[t.ID()] = t
	}
	return s, nil
}

// Read reads the tabs in a folder, which another process may have open; none if there is no folder.
func Read(dir string) (all []*Tab, err error) {
	files, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ending) {
			continue // what a write has left
		}
		t := &Tab{file: filepath.Join(dir, f.Name())}
		text, err := bounded.ReadFile(t.file, maxFile)
		if errors.Is(err, os.ErrNotExist) {
			continue // it is over
		} else if err == nil {
			err = canon.Unmarshal(text, &t.kept)
		}
		if err != nil {
			return nil, fmt.Errorf("%s is no tab: without it money may be lost, so look at it before you move it away: %w", t.file, err)
		}
		all = append(all, t)
	}
	return all, nil
}

// Begin makes the tab of a session whose provider has signed the terms, unless there is one. A consumer says what it is for.
func (s *Store) Begin(terms session.Terms, signature []byte, kind session.Kind) (*Tab, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := terms.ID()
	if t := s.tabs[id]; t != nil {
		return t, nil
	}
	t := &Tab{file: filepath.Join(s.dir, id.String()+ending), kept: kept{Tab: *session.NewTab(terms), Terms: signature, Kind: kind}}
	if err := t.keep(); err != nil {
		return nil, err
	}
	s.tabs[id] = t
	return t, nil
}

// Find returns the tab of a session, nil if there is none.
func (s *Store) Find(id canon.Hash) *Tab {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tabs[id]
}

// All returns all tabs, by when their sessions end.
func (s *Store) All() []*Tab {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*Tab, 0, len(s.tabs))
	for _, t := range s.tabs { // sorted below
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *Tab) int {
		x, y := a.Terms(), b.Terms()
		idA, idB := a.ID(), b.ID()
		return slices.Compare([]string{fmt.Sprintf("%020d", x.End), idA.String()}, []string{fmt.Sprintf("%020d", y.End), idB.String()})
	})
	return all
}

// Forget lets go of a tab whose session is over.
func (s *Store) Forget(id canon.Hash) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tabs[id]
	if t == nil {
		return nil
	}
	delete(s.tabs, id)
	if err := os.Remove(t.file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// durable replaces a file, so that a power cut leaves it as it is.
func durable(file string, b []byte) error {
	err := replace.With(file, func(f *os.File) error {
		if _, err := f.Write(b); err != nil {
			return err
		}
		return f.Sync()
	})
	if err != nil {
		return err
	}
	return replace.Flush(filepath.Dir(file))
}
