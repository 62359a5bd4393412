package desk

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/node/home"
)

const (
	deskFile   = "desk" // in the home: where the socket is
	socketName = "s"    // in a directory of its own
	dirPrefix  = "tally-desk-"
	maxPath    = 1 << 12 // bytes in deskFile
)

// socket is where a desk listens. The home's own path may be too long for one, so it lies in a
// directory for temporary files, made for it, that nobody else may enter.
type socket struct {
	net.Listener
	file, dir string
}

// listen makes the socket of a home that this process has open, and writes down where it is.
func listen(homeDir string) (*socket, error) {
	s := &socket{file: filepath.Join(homeDir, deskFile)}
	sweep(s.file)
	var err error
	if s.dir, err = os.MkdirTemp("", dirPrefix); err != nil {
		return nil, err
	}
	path := filepath.Join(s.dir, socketName)
	if s.Listener, err = net.Listen("unix", path); err == nil {
		err = home.WriteFile(s.file, []byte(path+"\n"), 0o600)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a socket for other orders of this home (TMPDIR may name another directory): %w", err), s.remove())
	}
	return s, nil
}

// remove takes away what leads to a desk.
func (s *socket) remove() error {
	if s.Listener != nil {
		_ = s.Listener.Close() // and its file; it may be closed already
	}
	return errors.Join(absent(os.Remove(s.dir)), absent(os.Remove(s.file)))
}

func absent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// sweep removes the socket of a process that was killed. It removes nothing that is not one.
func sweep(file string) {
	path, err := bounded.ReadFile(file, maxPath)
	if err != nil {
		return
	}
	dead := strings.TrimSpace(string(path))
	if check(dead) == nil {
		_ = os.Remove(dead)
		_ = os.Remove(filepath.Dir(dead))
	}
}

// socketOf returns where the desk of a home listens.
func socketOf(homeDir string) (string, error) {
	text, err := bounded.ReadFile(filepath.Join(homeDir, deskFile), maxPath)
	if err != nil {
		return "", err
	}
	path := strings.TrimSpace(string(text))
	return path, check(path)
}

// check returns an error unless a path is a socket in a directory of this user alone: whoever
// could put another in its place would get the files of orders, and might answer for the desk.
func check(path string) error {
	dir := filepath.Dir(path)
	if !filepath.IsAbs(path) || filepath.Base(path) != socketName || !strings.HasPrefix(filepath.Base(dir), dirPrefix) {
		return fmt.Errorf("%q is no socket of a desk", path)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 || !owned(info) {
		return fmt.Errorf("%s is open to others, so what listens there is not asked", dir)
	}
	if info, err = os.Lstat(path); err == nil && info.Mode().Type() != fs.ModeSocket && runtime.GOOS != "windows" {
		err = fmt.Errorf("%s is no socket", path)
	}
	return err
}
