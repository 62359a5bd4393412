package store

import (
	"bytes"
	"io"
	"testing"
)

// Who wants some bytes of a blob gets the blocks that hold them, and the index. They are kept as the whole
// would be: through garbage collections and restarts, until the name is unpinned.
func TestFetchBringsAPart(t *testing.T) {
	origin := open(t, t.TempDir(), roomy)
	blob := noise(3, 9*BlockSize+5)
	r := mustPut(t, origin, "", blob)
	dir := t.TempDir()
	s := open(t, dir, roomy)
	for _, c := range []struct {
		Part
		blocks int64 // that are asked for
	}{
		{Part{3*BlockSize - 1, 2}, 2 + 1}, // and the index
		{Part{3 * BlockSize, 1}, 0},
		{Part{9*BlockSize + 4, 1}, 1},
		{Part{2 * BlockSize, 3 * BlockSize}, 1},
	} {
		source := &counting{Source: origin}
		var done, total int64
		progress := func(d, t int64) { done, total = d, t }
		if err := s.Fetch(t.Context(), Request{Ref: r, Pin: "lease-1", Part: c.Part, Sources: []Source{source}, Progress: progress}); err != nil {
			t.Fatal(err)
		}
		if n := source.n.Load(); n != c.blocks || done != total {
			t.Errorf("%v: %d blocks were asked for, want %d; progress %d of %d", c.Part, n, c.blocks, done, total)
		}
		if _, err := s.GC(); err != nil {
			t.Fatal(err)
		}
		s = open(t, dir, roomy)
		wantPart(t, s, r, c.Part, blob)
		if s.Has(r) || s.Holds("lease-1", r) || !s.Holds("lease-1", r, c.Part) || s.Holds("lease-2", r, c.Part) {
			t.Errorf("%v: what is held is not what was fetched", c.Part)
		}
	}
	if _, err := s.Get(r, Part{6 * BlockSize, 1}); err == nil {
		t.Error("a part is read that is not here")
	}
	if err := s.Fetch(t.Context(), Request{Ref: r, Pin: "lease-1", Sources: []Source{origin}}); err != nil {
		t.Fatal(err)
	}
	wantBlob(t, s, r, blob)
	if err := s.Unpin("lease-1"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.GC(); err != nil || s.Usage().Blocks != 0 {
		t.Errorf("%d blocks are kept, %v", s.Usage().Blocks, err)
	}
}

func TestPartsAreWithinTheirBlob(t *testing.T) {
	s := open(t, t.TempDir(), roomy)
	r := mustPut(t, s, "", noise(3, 2*BlockSize))
	for _, p := range []Part{{-1, 2}, {0, -1}, {5, 0}, {0, 2*BlockSize + 1}, {2 * BlockSize, 1}, {1, 1<<63 - 1}} {
		if _, err := s.Get(r, p); err == nil {
			t.Errorf("%v is read", p)
		}
		if err := s.Fetch(t.Context(), Request{Ref: r, Part: p}); err == nil {
			t.Errorf("%v is fetched", p)
		}
		if s.Holds("any", r, p) {
			t.Errorf("%v is held", p)
		}
	}
}

func wantPart(t *testing.T, s *Store, r Ref, p Part, blob []byte) {
	t.Helper()
	in, err := s.Get(r, p)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(in); err != nil || !bytes.Equal(got, blob[p.At:p.At+p.N]) {
		t.Fatalf("%v: %d other bytes, %v", p, len(got), err)
	}
}
