package bounded

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tally-network/tally/internal/testkit/memory"
)

func TestReadFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "ten")
	if err := os.WriteFile(name, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := ReadFile(name, 10); err != nil || string(b) != "0123456789" {
		t.Errorf("%q, %v", b, err)
	}
	if b, err := ReadFile(name, 9); b != nil || err == nil || !strings.Contains(err.Error(), "longer than 9 bytes") {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := ReadFile(name+"1", 10); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestOpenWithinRefusesWhatLiesOutside(t *testing.T) {
	top := t.TempDir()
	folder, other := filepath.Join(top, "folder"), filepath.Join(top, "other")
	for _, name := range []string{"other/a", "folder/.hidden/a", "folder/.a", "folder/deep/a", "folder/a"} {
		name = filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"file": "../other/a", "out": "../other", "inside": "deep/a", "shown": ".hidden/a"} {
		if err := os.Symlink(to, filepath.Join(folder, link)); err != nil {
			t.Skip(err)
		}
	}
	for _, c := range []struct {
		name    string // from the folder
		allowed []string
		outside bool
	}{
		{"a", []string{folder}, false},
		{"deep/a", []string{folder}, false},
		{"inside", []string{folder}, false},
		{"../folder/a", []string{folder}, false},
		{"../other/a", []string{folder}, true},
		{"deep/../../other/a", []string{folder}, true},
		{"file", []string{folder}, true},
		{"out/a", []string{folder}, true},
		{".hidden/a", []string{folder}, true},
		{".a", []string{folder}, true},
		{"shown", []string{folder}, true},
		{"a", nil, true},
		{"../other/a", []string{folder, other}, false},
		{"file", []string{folder, other}, false},
		{".hidden/a", []string{filepath.Join(folder, ".hidden")}, false},
		{"a", []string{filepath.Join(folder, "out")}, true},
		{"file", []string{filepath.Join(folder, "out")}, false},
	} {
		f, size, err := OpenWithin(c.allowed, folder+"/"+c.name)
		switch {
		case c.outside && (f != nil || !errors.Is(err, ErrOutside)), !c.outside && (err != nil || size != 4):
			t.Errorf("%s in %v: %d bytes, %v", c.name, c.allowed, size, err)
		}
		if f != nil {
			_ = f.Close()
		}
	}
	if _, _, err := OpenWithin([]string{folder}, filepath.Join(folder, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// A shell that entered a folder by a link calls it by the link's name, and what lies above
// it by letters is another folder than what lies above it on the disk.
func TestOpenWithinFromAFolderBehindALink(t *testing.T) {
	top := t.TempDir()
	for name, body := range map[string]string{"mine/a": "private", "order/a": "public", "order/deep/b": "public"} {
		name = filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(top, "mine", "link")
	if err := os.Symlink("../order/deep", link); err != nil {
		t.Skip(err)
	}
	order := filepath.Join(top, "order")
	for _, c := range []struct{ stand, folder, name string }{
		{link, "..", "../a"},
		{link, "..", order + "/a"},
		{link, order, "../a"},
		{link, ".", "b"},
		{link, ".", order + "/deep/b"},
		{link, "", "../deep/b"},
		{top + "/mine", "link/..", "link/../a"},
		{top + "/mine", "link/..", order + "/a"},
		{top, link + "/..", "mine/link/../a"},
	} {
		t.Chdir(c.stand) // sets PWD, as a shell does
		f, _, err := OpenWithin([]string{c.folder}, c.name)
		if err != nil {
			t.Errorf("%s in %q, from %s: %v", c.name, c.folder, c.stand, err)
			continue
		}
		if b, err := io.ReadAll(f); err != nil || string(b) != "public" {
			t.Errorf("%s in %q, from %s: %q, %v", c.name, c.folder, c.stand, b, err)
		}
		_ = f.Close()
	}
	t.Chdir(link)
	for _, name := range []string{"../../mine/a", top + "/mine/a", link + "/../../mine/a"} {
		if f, _, err := OpenWithin([]string{".."}, name); f != nil || !errors.Is(err, ErrOutside) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A device has no size and no end: 14 GB of one were read before.
func TestEndlessFileIsRefused(t *testing.T) {
	const endless, limit = "/dev/zero", 1 << 20
	if _, err := os.Stat(endless); err != nil {
		t.Skip(err)
	}
	var err error
	took := memory.Allocated(func() { _, err = ReadFile(endless, limit) })
	if err == nil || took > 8*limit {
		t.Errorf("%v, %d bytes", err, took)
	}
}
