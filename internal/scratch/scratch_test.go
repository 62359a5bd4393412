package scratch_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/tally-network/tally/internal/scratch"
)

func TestMemoryIsWhatWasWritten(t *testing.T) {
	folder := t.TempDir()
	m, err := scratch.New(folder, 1<<40) // of which nearly nothing is written
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int64{0, 1 << 30, 1<<40 - 5} {
		if n, err := m.WriteAt([]byte("words"), at); n != 5 || err != nil {
			t.Fatal(n, err)
		}
		if got := m.Bytes()[at:][:5]; !bytes.Equal(got, []byte("words")) {
			t.Errorf("at %d there is %q", at, got)
		}
	}
	if m.Bytes()[1<<39] != 0 {
		t.Error("what nobody wrote is no zero")
	}
	if left, err := filepath.Glob(filepath.Join(folder, "*")); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
}

func TestMemoryEnds(t *testing.T) {
	m, err := scratch.New(t.TempDir(), 8)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int64{-1, 6, 1 << 62} {
		if _, err := m.WriteAt([]byte("wor"), at); err == nil {
			t.Errorf("written at %d", at)
		}
	}
	for _, size := range []int64{0, -1} {
		if _, err := scratch.New(t.TempDir(), size); err == nil {
			t.Errorf("memory of %d bytes", size)
		}
	}
	if _, err := scratch.New(filepath.Join(t.TempDir(), "none"), 8); !os.IsNotExist(err) {
		if err == nil {
			t.Error("a folder that is not there holds memory")
		}
	}
}

func TestRoomIsWrittenAsMemoryIs(t *testing.T) {
	folder := t.TempDir()
	give := scratch.Allocator(folder)
	for _, size := range []int{0, 1, 1 << 20, 17 << 20} {
		room, owner, err := give(size)
		if err != nil || len(room) != size {
			t.Fatal(size, len(room), err)
		}
		for i, b := range room {
			if b != 0 {
				t.Fatalf("byte %d of %d is %d", i, size, b)
			}
			room[i] = byte(i)
		}
		for i, b := range room {
			if b != byte(i) {
				t.Fatalf("byte %d of %d became %d", i, size, b)
			}
		}
		runtime.KeepAlive(owner)
	}
	if left, err := filepath.Glob(filepath.Join(folder, "*")); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
	if _, _, err := give(1 << 60); err == nil {
		t.Error("there is room for more than the disk has")
	}
	if _, _, err := scratch.Allocator(filepath.Join(folder, "none"))(1 << 30); err == nil {
		t.Error("a folder that is not there gives room")
	}
}
