package store

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A model of a store: which blobs are pinned under which name.
type model struct {
	t     *rapid.T
	s     *Store
	dir   string
	blobs [][]byte
	refs  []Ref
	pins  map[string]map[int]bool
}

func (m *model) pinned() map[int]bool {
	all := map[int]bool{}
	for _, set := range m.pins {
		maps.Copy(all, set)
	}
	return all
}

func (m *model) check() {
	for i := range m.pinned() {
		got, err := m.s.GetBytes(m.refs[i], MaxSize)
		if err != nil || !bytes.Equal(got, m.blobs[i]) {
			m.t.Fatalf("pinned blob %d: %v", i, err)
		}
	}
	if got, want := m.s.Pins(), slices.Sorted(maps.Keys(m.pins)); !slices.Equal(got, want) {
		m.t.Fatalf("pins %v, want %v", got, want)
	}
	var onDisk int64
	files, _ := os.ReadDir(filepath.Join(m.dir, blocksDir))
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			m.t.Fatal(err)
		}
		onDisk += info.Size()
	}
	if u := m.s.Usage(); u.Bytes != onDisk || u.Blocks != len(files) || u.Bytes > u.Quota {
		m.t.Fatalf("usage %+v, on disk %d bytes in %d files", u, onDisk, len(files))
	}
}

// Whatever is put, pinned, unpinned, deleted, collected and reopened, in any
// order: pinned blobs are whole, and after GC nothing else is left.
func TestPinnedBlobsStay(t *testing.T) {
	long := noise(1, BlockSize+5000)
	blobs := [][]byte{
		nil, []byte("a"), []byte("b"),
		long, // two blocks, which the others share
		long[:BlockSize],
		long[BlockSize:],
		append(slices.Clone(long[:BlockSize]), 'x'),
	}
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		m := &model{t: rt, s: open(t, dir, roomy), dir: dir, blobs: blobs, refs: make([]Ref, len(blobs)), pins: map[string]map[int]bool{}}
		for i, b := range blobs {
			m.refs[i] = mustPut(t, m.s, "", b)
		}
		if _, err := m.s.GC(); err != nil {
			rt.Fatal(err)
		}
		name := rapid.SampledFrom([]string{"lease-1", "lease-2", "weights.v0"})
		blob := rapid.IntRange(0, len(blobs)-1)
		rt.Repeat(map[string]func(*rapid.T){
			"put": func(rt *rapid.T) {
				i, pin := blob.Draw(rt, "blob"), name.Draw(rt, "name")
				if rapid.Bool().Draw(rt, "unpinned") {
					mustPut(t, m.s, "", blobs[i])
					return
				}
				if r := mustPut(t, m.s, pin, blobs[i]); r != m.refs[i] {
					rt.Fatalf("blob %d is %v, was %v", i, r, m.refs[i])
				}
				m.pin(pin, i)
			},
			"pin": func(rt *rapid.T) {
				i, pin := blob.Draw(rt, "blob"), name.Draw(rt, "name")
				whole := m.s.Has(m.refs[i])
				if err := m.s.Pin(pin, m.refs[i]); err == nil && whole {
					m.pin(pin, i)
				} else if whole || !errors.Is(err, ErrMissing) {
					rt.Fatalf("pin blob %d (whole: %v): %v", i, whole, err)
				}
			},
			"unpin": func(rt *rapid.T) {
				pin := name.Draw(rt, "name")
				if err := m.s.Unpin(pin); err != nil {
					rt.Fatal(err)
				}
				delete(m.pins, pin)
			},
			"unpin one": func(rt *rapid.T) {
				i, pin := blob.Draw(rt, "blob"), name.Draw(rt, "name")
				if err := m.s.Unpin(pin, m.refs[i]); err != nil {
					rt.Fatal(err)
				}
				if delete(m.pins[pin], i); len(m.pins[pin]) == 0 {
					delete(m.pins, pin)
				}
			},
			"delete": func(rt *rapid.T) {
				i := blob.Draw(rt, "blob")
				if err := m.s.Delete(m.refs[i]); (err != nil) != m.pinned()[i] {
					rt.Fatalf("delete blob %d: %v", i, err)
				}
			},
			"gc": func(rt *rapid.T) {
				if _, err := m.s.GC(); err != nil {
					rt.Fatal(err)
				}
				want := map[digest]bool{}
				for i := range m.pinned() {
					sums, err := m.s.members(m.refs[i])
					if err != nil {
						rt.Fatal(err)
					}
					for _, d := range append(sums, m.refs[i].Sum()) {
						want[d] = true
					}
				}
				if n := m.s.Usage().Blocks; n != len(want) {
					rt.Fatalf("%d blocks after GC, want %d", n, len(want))
				}
			},
			"reopen": func(rt *rapid.T) { m.s = open(t, dir, roomy) },
			"":       func(rt *rapid.T) { m.check() },
		})
	})
}

func (m *model) pin(name string, i int) {
	if m.pins[name] == nil {
		m.pins[name] = map[int]bool{}
	}
	m.pins[name][i] = true
}

func TestPinNames(t *testing.T) {
	s := open(t, t.TempDir(), roomy)
	for _, name := range []string{"..", ".x", "-x", "a/b", `a\b`, "A", "é", "a b", strings.Repeat("a", 129), "x\x00"} {
		if _, err := s.PutBytes(name, []byte("x")); err == nil {
			t.Errorf("Put under %q worked", name)
		}
		if err := s.Unpin(name); err == nil {
			t.Errorf("Unpin(%q) worked", name)
		}
	}
	if s.Usage().Blocks != 0 {
		t.Error("a refused Put wrote something")
	}
}

func TestPinnedByCoversEveryBlock(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, roomy)
	r := mustPut(t, s, "lease-2", noise(8, 2*BlockSize))
	first := mustPut(t, s, "lease-1", noise(8, BlockSize))
	for range 2 {
		sums, err := s.members(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			got, want []string
		}{
			{s.PinnedBy(r.CID), []string{"lease-2"}},
			{s.PinnedBy(first.CID), []string{"lease-1", "lease-2"}},
			{s.PinnedBy(sums[1].CID()), []string{"lease-2"}},
			{s.PinnedBy(digest{}.CID()), nil},
		} {
			if !slices.Equal(c.got, c.want) {
				t.Errorf("held by %v, want %v", c.got, c.want)
			}
		}
		s = open(t, dir, roomy)
	}
}

// When the disk loses the index of a pinned blob, GC cannot know what the pin
// covers, and must not guess.
func TestGCStopsAtLostIndex(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, roomy)
	blob := noise(9, BlockSize+1)
	r := mustPut(t, s, "lease-1", blob)
	if err := os.Remove(s.path(r.Sum())); err != nil {
		t.Fatal(err)
	}
	if _, err := s.GC(); err != nil {
		t.Fatal(err) // it still remembers
	}
	s = open(t, dir, roomy)
	if _, err := s.GC(); err == nil || !strings.Contains(err.Error(), "lease-1") {
		t.Fatalf("GC with a lost index: %v", err)
	}
	if n := s.Usage().Blocks; n != 2 {
		t.Fatalf("%d blocks left", n)
	}
	t.Run("unpin", func(t *testing.T) {
		s := open(t, copyDir(t, dir), roomy)
		if err := s.Unpin("lease-1"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.GC(); err != nil || s.Usage().Blocks != 0 {
			t.Fatalf("%v, %+v", err, s.Usage())
		}
	})
	t.Run("put again", func(t *testing.T) {
		mustPut(t, s, "", blob)
		if _, err := s.GC(); err != nil {
			t.Fatal(err)
		}
		wantBlob(t, s, r, blob)
	})
}

func copyDir(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// A reader that looks at any moment sees whole blocks or none.
func TestBlocksAppearWhole(t *testing.T) {
	s := open(t, t.TempDir(), roomy)
	done := make(chan error, 1)
	go func() {
		_, err := s.PutBytes("", noise(20, 40*BlockSize))
		done <- err
	}()
	for running := true; running; {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			running = false
		default:
		}
		files, err := os.ReadDir(filepath.Join(s.dir, blocksDir))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			r, err := ParseRef(f.Name() + ".0")
			if err != nil {
				t.Fatalf("a file that is no block: %v", err)
			}
			if _, err := readBlock(s.path(r.Sum()), r.Sum()); err != nil {
				t.Fatalf("%s: %v", f.Name(), err)
			}
		}
	}
}

func TestForeignFilesStay(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, roomy)
	mustPut(t, s, "lease-1", []byte("x"))
	foreign := []string{
		filepath.Join(dir, blocksDir, "README"),
		filepath.Join(dir, pinsDir, "README"),
		filepath.Join(dir, pinsDir, "lease-1", "README"),
	}
	for _, f := range foreign {
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s = open(t, dir, roomy)
	if _, err := s.GC(); err != nil {
		t.Fatal(err)
	}
	if u := s.Usage(); u.Blocks != 1 || !slices.Equal(s.Pins(), []string{"lease-1"}) {
		t.Fatalf("%+v, pins %v", u, s.Pins())
	}
	for _, f := range foreign {
		if _, err := os.Stat(f); err != nil {
			t.Error(err)
		}
	}
}
