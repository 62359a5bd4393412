package weights_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/engine/cpu/weights"
)

const size = 10_000

// packer counts how often each weight is packed, as so many bytes of its number.
type packer struct{ times [100]atomic.Int32 }

func key(n int) weights.Key { return weights.Key{Root: canon.Hash{byte(n)}, Layout: "rows"} }

// get returns weight n of a store, which must be what was packed, or nil.
func (p *packer) get(t *testing.T, s *weights.Store, n int) *weights.Packed {
	t.Helper()
	got, err := s.Get(t.Context(), key(n), size, func(dst []byte) error {
		p.times[n].Add(1)
		for i := range dst {
			dst[i] = byte(n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got != nil && !bytes.Equal(got.Bytes(), bytes.Repeat([]byte{byte(n)}, size)) {
		t.Fatalf("weight %d holds other bytes", n)
	}
	return got
}

func (p *packer) wantTimes(t *testing.T, n int, want int32) {
	t.Helper()
	if got := p.times[n].Load(); got != want {
		t.Errorf("weight %d was packed %d times, want %d", n, got, want)
	}
}

func open(t *testing.T, o weights.Options) *weights.Store {
	t.Helper()
	s, err := weights.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Plans that want the same weight share it, also when they are made at once; another layout
// is another weight.
func TestSharing(t *testing.T) {
	var p packer
	s := open(t, weights.Options{Bytes: 1 << 20, IdleBytes: 1 << 20})
	var all [8]*weights.Packed
	var wait sync.WaitGroup
	for i := range all {
		wait.Go(func() { all[i] = p.get(t, s, 1) })
	}
	wait.Wait()
	for _, x := range all {
		if x != all[0] {
			t.Error("two plans hold two forms")
		}
	}
	p.wantTimes(t, 1, 1)
	other := key(1)
	other.Layout = "columns"
	if x, err := s.Get(t.Context(), other, 10, func([]byte) error { return nil }); err != nil || x == all[0] || len(x.Bytes()) != 10 {
		t.Errorf("another layout: %v", err)
	}
	runtime.KeepAlive(all)
}

// Idle weights go when others need their memory, those that were used longest ago first. Held
// ones stay: then there is no room.
func TestEviction(t *testing.T) {
	var p packer
	s := open(t, weights.Options{Bytes: 3*size + 4<<10, IdleBytes: 1 << 20})
	for n := range 3 {
		p.get(t, s, n)
	}
	p.get(t, s, 0)
	held := p.get(t, s, 3) // takes the place of 1
	p.get(t, s, 0)
	p.wantTimes(t, 0, 1)
	p.get(t, s, 1)
	p.wantTimes(t, 1, 2)
	all := []*weights.Packed{held, p.get(t, s, 4), p.get(t, s, 5)}
	for range 2 {
		if p.get(t, s, 6) != nil {
			t.Error("there was room beside all that plans hold")
		}
	}
	p.wantTimes(t, 6, 0)
	if got := s.Bytes(); got > 3*size+4<<10 {
		t.Errorf("%d bytes are taken", got)
	}
	runtime.KeepAlive(all)
	if p.get(t, s, 6) == nil {
		t.Error("no room, though nobody holds anything any more")
	}
}

// No more is idle than may be, however many weights come and go.
func TestIdleWeightsAreBounded(t *testing.T) {
	var p packer
	s := open(t, weights.Options{Bytes: 1 << 30, IdleBytes: 4 * size})
	for n := range len(p.times) {
		p.get(t, s, n)
		runtime.GC()
	}
	if got := s.Bytes(); got > 10*size {
		t.Errorf("%d bytes are taken for weights that nobody holds", got)
	}
}

// Packing that is given up leaves nothing behind, and whoever waited for it packs.
func TestPackingThatIsGivenUp(t *testing.T) {
	var p packer
	s := open(t, weights.Options{Bytes: 1 << 20, IdleBytes: 1 << 20})
	begun, stop := make(chan bool), errors.New("stopped")
	var first error
	var wait sync.WaitGroup
	wait.Go(func() {
		_, first = s.Get(context.Background(), key(1), size, func([]byte) error {
			begun <- true
			<-begun
			return stop
		})
	})
	<-begun
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Get(done, key(1), size, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("who waits does not stop: %v", err)
	}
	wait.Go(func() { p.get(t, s, 1) })
	close(begun)
	wait.Wait()
	if !errors.Is(first, stop) {
		t.Error(first)
	}
	p.wantTimes(t, 1, 1)
}

// A second process maps what the first has packed, and needs no memory of its own for it.
func TestFiles(t *testing.T) {
	var p packer
	o := weights.Options{Bytes: 1 << 20, Dir: filepath.Join(t.TempDir(), "packed"), DirBytes: 1 << 20}
	p.get(t, open(t, o), 1)
	o.Bytes = 0
	s := open(t, o)
	x, y := p.get(t, s, 1), p.get(t, s, 1)
	if x == nil || x != y {
		t.Error("two plans hold two forms")
	}
	p.wantTimes(t, 1, 1)
	if p.get(t, s, 2) == nil { // packed, and then mapped
		t.Error("no room for a weight that has a file")
	}
	if s.Bytes() != 0 {
		t.Errorf("mapped files take %d bytes", s.Bytes())
	}
	x, y = nil, nil
	runtime.GC()
	p.get(t, s, 1)
	p.get(t, s, 2)
	p.wantTimes(t, 2, 1)
}

// What a crash, a full disk or anybody else has left of a file is never taken for a weight.
func TestTornFiles(t *testing.T) {
	for name, tear := range map[string]func(file []byte) []byte{
		"empty":         func([]byte) []byte { return nil },
		"header alone":  func(f []byte) []byte { return f[:4096] },
		"cut":           func(f []byte) []byte { return f[:len(f)-1] },
		"longer":        func(f []byte) []byte { return append(f, 0) },
		"zeros at last": func(f []byte) []byte { clear(f[len(f)-100:]); return f },
		"one bit":       func(f []byte) []byte { f[5000] ^= 1; return f },
		"another form":  func(f []byte) []byte { f[0] ^= 1; return f },
	} {
		var p packer
		o := weights.Options{Bytes: 1 << 20, Dir: t.TempDir(), DirBytes: 1 << 20}
		p.get(t, open(t, o), 1)
		all, err := filepath.Glob(filepath.Join(o.Dir, "*"))
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		file, err := os.ReadFile(all[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(all[0], tear(bytes.Clone(file)), 0o644); err != nil {
			t.Fatal(err)
		}
		p.get(t, open(t, o), 1)
		if p.times[1].Load() != 2 {
			t.Errorf("%s: the file was used", name)
		}
		if again, err := os.ReadFile(all[0]); err != nil || !bytes.Equal(again, file) {
			t.Errorf("%s: the file was not made again: %v", name, err)
		}
	}
}

// Files take no more than their limit; those that were used longest ago go.
func TestDirectoryIsBounded(t *testing.T) {
	var p packer
	o := weights.Options{Bytes: 1 << 20, Dir: t.TempDir(), DirBytes: 3 * (size + 4096)}
	s := open(t, o)
	for n := range 10 {
		p.get(t, s, n)
	}
	if all, err := filepath.Glob(filepath.Join(o.Dir, "*")); err != nil || len(all) != 3 {
		t.Errorf("%d files: %v", len(all), err)
	}
	// A directory in which nothing can be written is no worse than none.
	if err := os.RemoveAll(o.Dir); err != nil {
		t.Fatal(err)
	}
	if p.get(t, s, 50) == nil {
		t.Error("no weight without a directory")
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := weights.New(weights.Options{Dir: filepath.Join(file, "packed")}); err == nil {
		t.Error("a directory inside a file")
	}
}

// A directory that others use, too, keeps their files, whatever they are called.
func TestForeignFiles(t *testing.T) {
	var p packer
	o := weights.Options{Bytes: 1 << 20, Dir: t.TempDir(), DirBytes: size + 4096}
	old := time.Now().Add(-48 * time.Hour)
	packed := strings.Repeat("ab", 32) // a name as files of weights have
	for name, ours := range map[string]bool{
		"film.part": false, "big.packed": false, packed + "c.packed": false, strings.Repeat("xy", 32) + ".packed": false,
		strings.ToUpper(packed) + ".packed": false, packed + ".packed.part": false, packed + ".packed": true, packed + ".12.part": true,
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(o.Dir, name)
			if err := errors.Join(os.WriteFile(file, make([]byte, 2*size), 0o600), os.Chtimes(file, old, old)); err != nil {
				t.Fatal(err)
			}
			p.get(t, open(t, o), 1)
			p.get(t, open(t, o), 2)
			if _, err := os.Stat(file); os.IsNotExist(err) != ours {
				t.Errorf("is there: %v", err == nil)
			}
		})
	}
}

// Many plans at once, more than there is room for.
func TestManyPlansAtOnce(t *testing.T) {
	var p packer
	s := open(t, weights.Options{Bytes: 5 * size, IdleBytes: 2 * size, Dir: t.TempDir(), DirBytes: 20 * size})
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for i := range 200 {
				if p.get(t, s, i*7%20) == nil {
					panic(fmt.Sprintf("no weight %d", i*7%20))
				}
			}
		})
	}
	wait.Wait()
}
