package desk

import (
	"bytes"
	"encoding/binary"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// The path of a home may be longer than a socket's may be.
func TestSocketOfADeepHome(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("deep", 50))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	path, err := socketOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.remove(); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{s.dir, s.file} {
		if _, err := os.Lstat(gone); !os.IsNotExist(err) {
			t.Errorf("%s stays: %v", gone, err)
		}
	}
}

// A desk that was killed leaves a socket, which the next one removes.
func TestSocketOfTheDead(t *testing.T) {
	dir := t.TempDir()
	dead, err := listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	dead.Listener.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := dead.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	next, err := listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := next.remove(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := os.Lstat(dead.dir); !os.IsNotExist(err) {
		t.Errorf("%s stays: %v", dead.dir, err)
	}
}

// Nobody is asked whom somebody else could have put there, and nothing is removed that is no desk's.
func TestSocketThatOthersMade(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("directories have no modes")
	}
	tmp := t.TempDir()
	at := func(name string, mode os.FileMode) string {
		dir := filepath.Join(tmp, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, socketName), []byte("no socket"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, socketName)
	}
	linked := filepath.Join(tmp, dirPrefix+"link")
	if err := os.Symlink(filepath.Dir(at(dirPrefix+"target", 0o700)), linked); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ path, words string }{
		"a directory that others may enter": {at(dirPrefix+"open", 0o755), "open to others"},
		"a link":                            {filepath.Join(linked, socketName), "open to others"},
		"a file":                            {at(dirPrefix+"file", 0o700), "is no socket"},
		"another directory":                 {at("home", 0o700), "no socket of a desk"},
		"another name":                      {filepath.Join(tmp, dirPrefix+"open", "key"), "no socket of a desk"},
		"a relative path":                   {filepath.Join(dirPrefix+"open", socketName), "no socket of a desk"},
		"nothing":                           {"", "no socket of a desk"},
		"a path too long":                   {strings.Repeat("x", maxPath+1), "longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			if err := os.WriteFile(filepath.Join(home, deskFile), []byte(c.path), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := socketOf(home); err == nil || !strings.Contains(err.Error(), c.words) {
				t.Errorf("%v, want %q", err, c.words)
			}
			sweep(filepath.Join(home, deskFile))
			if _, err := os.Lstat(c.path); err != nil && filepath.IsAbs(c.path) && name != "another name" {
				t.Errorf("it was removed: %v", err)
			}
		})
	}
}

// FuzzOrder reads orders as they come from a socket.
func FuzzOrder(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 7})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Add(binary.BigEndian.AppendUint32(nil, maxOrder+1))
	f.Fuzz(func(t *testing.T, b []byte) {
		if o, err := readOrder(bytes.NewReader(b)); err == nil {
			if err := o.Check(); err != nil {
				t.Errorf("an order was read that is none: %v", err)
			}
		}
	})
}
