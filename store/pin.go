package store

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/ipfs/go-cid"

	"github.com/tally-network/tally/internal/bounded"
)

var pinName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,127}$`)

func checkPin(name string) error {
	if !pinName.MatchString(name) {
		return fmt.Errorf("pin name %.140q: use 1 to 128 of a-z, 0-9, '.', '_' and '-', a letter or digit first", name)
	}
	return nil
}

// Pin keeps a blob from GC and Delete until Unpin(name). The whole blob must be
// on the disk. A name may pin many blobs, and many names one blob.
func (s *Store) Pin(name string, r Ref) error {
	if err := checkPin(name); err != nil {
		return err
	}
	s.pinning.Lock()
	defer s.pinning.Unlock()
	sums, err := s.members(r)
	if err == nil && !s.Has(r) {
		err = ErrMissing
	}
	if err == nil {
		err = s.writePin(name, r)
	}
	if err != nil {
		return fmt.Errorf("pin %s as %s: %w", r, name, err)
	}
	s.cover(name, r, append(sums, r.Sum()))
	return nil
}

func (s *Store) writePin(name string, r Ref) error {
	file, err := s.pinFile(name, r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Remove(file + partSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir := filepath.Dir(file)
	return errors.Join(syncDir(dir), syncDir(filepath.Dir(dir)))
}

// pinFile returns the file that says that a name pins a blob, in a directory that is there.
func (s *Store) pinFile(name string, r Ref) (string, error) {
	dir := filepath.Join(s.dir, pinsDir, name)
	return filepath.Join(dir, r.String()), os.MkdirAll(dir, 0o700)
}

// partSuffix is behind the file of a pin whose blob is not whole yet. It holds the digests
// of the blocks that have arrived; one that a crash cuts off is asked for again.
const partSuffix = ".part"

// pinPart protects one block of a blob of which the others are still to come, the index
// first. What is here of them by other pins is none of this one's.
func (s *Store) pinPart(name string, r Ref, d digest) error {
	s.pinning.Lock()
	defer s.pinning.Unlock()
	if s.covers(name, d) {
		return nil
	}
	file, err := s.pinFile(name, r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file+partSuffix, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Write(d[:]); errors.Join(err, f.Close()) != nil {
		return fmt.Errorf("pin a part of %s as %s: %w", r, name, err)
	}
	s.cover(name, r, []digest{d})
	return nil
}

// parts returns the blocks that had arrived of a blob that was not whole, if its index is
// among them.
func (s *Store) parts(name string, r Ref) []digest {
	b, err := bounded.ReadFile(filepath.Join(s.dir, pinsDir, name, r.String()+partSuffix), 2*MaxBlocks*int64(len(digest{})))
	if _, gone := s.members(r); err != nil || gone != nil {
		return nil
	}
	var out []digest
	for ; len(b) >= len(digest{}); b = b[len(digest{}):] {
		out = append(out, digest(b))
	}
	return out
}

// covers reports whether a pin of the name covers a block.
func (s *Store) covers(name string, d digest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := slices.BinarySearch(s.holders[d], name)
	return ok
}

// Holds reports whether a blob, or a part of it, is on the disk and every block of it is covered by pins of
// the name: put there under it, or fetched from its sources.
func (s *Store) Holds(name string, r Ref, part ...Part) bool {
	var p Part
	if len(part) > 0 {
		p = part[0]
	}
	sums, err := s.members(r)
	from, to, wrong := p.blocks(r)
	if err != nil || wrong != nil || !s.covers(name, r.Sum()) {
		return false
	}
	for _, d := range sums[from:to] {
		s.mu.Lock()
		_, here := s.blocks[d]
		s.mu.Unlock()
		if !here || !s.covers(name, d) {
			return false
		}
	}
	return true
}

// cover records that name pins r, and with it the blocks sums.
func (s *Store) cover(name string, r Ref, sums []digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pins[name] == nil {
		s.pins[name] = map[Ref]bool{}
	}
	s.pins[name][r] = true
	for _, d := range sums {
		if i, ok := slices.BinarySearch(s.holders[d], name); !ok {
			s.holders[d] = slices.Insert(s.holders[d], i, name)
		}
	}
}

// Unpin drops the pins of the name: of the given blobs, of all if none is given.
// It is no error if there is none.
func (s *Store) Unpin(name string, refs ...Ref) error {
	if err := checkPin(name); err != nil {
		return err
	}
	s.pinning.Lock()
	defer s.pinning.Unlock()
	if err := s.unpin(name, refs); err != nil {
		return fmt.Errorf("unpin %s: %w", name, err)
	}
	return nil
}

func (s *Store) unpin(name string, refs []Ref) error {
	s.mu.Lock()
	rest := maps.Clone(s.pins[name])
	s.mu.Unlock()
	for _, r := range refs {
		delete(rest, r)
	}
	if len(refs) == 0 {
		rest = nil
	}
	covered := map[digest]bool{}
	for r := range rest {
		sums, err := s.members(r)
		if err != nil {
			return fmt.Errorf("what else it pins is not known: %w", err)
		}
		for _, d := range append(sums, r.Sum()) {
			covered[d] = true
		}
	}
	if err := s.removePins(name, refs, len(rest) == 0); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pins[name] = rest; len(rest) == 0 {
		delete(s.pins, name)
	}
	for d, names := range s.holders {
		i, ok := slices.BinarySearch(names, name)
		if !ok || covered[d] {
			continue
		}
		if s.holders[d] = slices.Delete(names, i, i+1); len(s.holders[d]) == 0 {
			delete(s.holders, d)
		}
	}
	return nil
}

func (s *Store) removePins(name string, refs []Ref, all bool) error {
	dir := filepath.Join(s.dir, pinsDir, name)
	if all {
		return errors.Join(os.RemoveAll(dir), syncDir(filepath.Dir(dir)))
	}
	for _, r := range refs {
		for _, file := range []string{r.String(), r.String() + partSuffix} {
			if err := os.Remove(filepath.Join(dir, file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return syncDir(dir)
}

// Pinned returns the bytes of the blobs that a name pins, but of r: whole ones, and
// those of which only a part is here yet.
func (s *Store) Pinned(name string, r Ref) (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.pins[name] { // order: a sum
		if p != r {
			n += p.Size
		}
	}
	return n
}

// Pins returns the names that pin something, sorted.
func (s *Store) Pins() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.pins))
}

// PinnedBy returns the names whose pins cover the block c, sorted: where pins
// are named by lease, the leases that a block belongs to.
func (s *Store) PinnedBy(c cid.Cid) []string {
	d, err := digestOf(c)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.holders[d])
}

// loadPins reads the pins of an old store. Files that are not pins are left
// alone.
func (s *Store) loadPins() error {
	root := filepath.Join(s.dir, pinsDir)
	names, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	for _, n := range names {
		if !n.IsDir() || checkPin(n.Name()) != nil {
			continue
		}
		refs, err := os.ReadDir(filepath.Join(root, n.Name()))
		if err != nil {
			return err
		}
		for _, e := range refs {
			file, part := strings.CutSuffix(e.Name(), partSuffix)
			r, err := ParseRef(file)
			if err != nil {
				continue
			}
			if part {
				if sums := s.parts(n.Name(), r); len(sums) > 0 {
					s.cover(n.Name(), r, sums)
				}
				continue
			}
			sums, err := s.members(r)
			if err != nil {
				s.lost[r] = true
			}
			s.cover(n.Name(), r, append(sums, r.Sum()))
		}
	}
	return nil
}

// findLost looks again for the indexes that were not on the disk when their
// pins were read. The caller holds pinning.
func (s *Store) findLost() error {
	for r := range s.lost {
		var names []string
		for name, refs := range s.pins {
			if refs[r] {
				names = append(names, name)
			}
		}
		sums, err := s.members(r)
		if err != nil && len(names) > 0 {
			return fmt.Errorf("the index of %s, pinned by %s, is gone; fetch the blob again or unpin it: %w",
				r, slices.Min(names), err)
		}
		for _, name := range names {
			s.cover(name, r, sums)
		}
		delete(s.lost, r)
	}
	return nil
}
