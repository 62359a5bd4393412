// Package bounded opens and reads files that people name.
//
// Call [ReadFile] for a file's bytes, [Open] for the file, and [OpenWithin] for one that must
// be in folders that somebody chose, wherever links lead. [Beside] opens what another file names.
//
// Invariants: only regular files are opened, since a pipe may have no writer, and a device
// no end. [ReadFile] never holds more bytes than its caller takes. A file that claims to
// be longer is refused; no other claim of a size is believed, as a file may grow while it
// is read.
package bounded

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrOutside says that a file lies in none of the folders that were allowed.
var ErrOutside = errors.New("outside the folders that are allowed")

// Open opens a regular file for reading, and returns its size in bytes. Anything else is
// refused without waiting.
func Open(name string) (*os.File, int64, error) { return open(name, os.Stat, os.OpenFile) }

// OpenWithin is Open for a file that lies in one of folders, or below it, once all links
// are followed. A file that is hidden there, or lies in a hidden folder, counts as outside.
func OpenWithin(folders []string, name string) (*os.File, int64, error) {
	root, rel, err := within(folders, name)
	if err != nil {
		return nil, 0, err
	}
	f, size, err := open(rel, root.Stat, root.OpenFile)
	return f, size, errors.Join(err, root.Close())
}

// FolderWithin opens a folder that lies in one of folders, as OpenWithin does a file. No link leads out of what it
// returns, which the caller closes.
func FolderWithin(folders []string, name string) (*os.Root, error) {
	root, rel, err := within(folders, name)
	if err != nil {
		return nil, err
	}
	folder, err := root.OpenRoot(rel)
	return folder, errors.Join(err, root.Close())
}

// within returns the folder that holds a path, and the path from there.
func within(folders []string, name string) (*os.Root, string, error) {
	path, err := resolve(name)
	if err != nil {
		return nil, "", err
	}
	concealed := false // in the last folder that holds it
	for _, folder := range folders {
		if folder, err = resolve(folder); err != nil {
			return nil, "", err
		}
		rel, err := filepath.Rel(folder, path)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		if concealed = hidden(rel); concealed {
			continue
		}
		root, err := os.OpenRoot(folder) // refuses links that were put there meanwhile
		return root, rel, err
	}
	if concealed {
		return nil, "", fmt.Errorf("%s is hidden, and so %w", path, ErrOutside)
	}
	return nil, "", fmt.Errorf("%s is %w", path, ErrOutside)
}

// Beside returns what opens files by their paths from the folder of a file, and those alone
// that lie there or below, as OpenWithin does.
func Beside(name string) func(path string) (*os.File, int64, error) {
	return func(path string) (*os.File, int64, error) {
		return OpenWithin([]string{Sibling(name, ".")}, Sibling(name, path))
	}
}

// Sibling returns the path of a file that is named from the folder of another, with slashes.
func Sibling(name, path string) string {
	folder, _ := filepath.Split(name) // as it is written: cleaned of link/.. it is another
	return folder + filepath.FromSlash(path)
}

// resolve returns the absolute path of a file without links. Nothing is cleaned before
// links are followed: the working folder may be called by a link ($PWD), above which lies
// one folder by letters, and another on the disk.
func resolve(name string) (string, error) {
	if !filepath.IsAbs(name) {
		folder, err := os.Getwd()
		if err != nil {
			return "", err
		}
		name = folder + string(filepath.Separator) + name
	}
	return filepath.EvalSymlinks(name)
}

// hidden reports whether an element of a relative path begins with a dot.
func hidden(rel string) bool {
	for part := range strings.SplitSeq(filepath.ToSlash(rel), "/") {
		if part != "." && strings.HasPrefix(part, ".") {
			return true
		}
	}
	return false
}

// open asks before it opens, since opening a device can do something, and again after.
func open(name string, stat func(string) (fs.FileInfo, error), openFile func(string, int, fs.FileMode) (*os.File, error)) (*os.File, int64, error) {
	info, err := stat(name)
	if err != nil {
		return nil, 0, err
	}
	if err := regular(name, info); err != nil {
		return nil, 0, err
	}
	f, err := openFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe that took its place makes nobody wait
	if err != nil {
		return nil, 0, err
	}
	if info, err = f.Stat(); err == nil {
		err = regular(name, info)
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

func regular(name string, info fs.FileInfo) error {
	what := "a device, a pipe or a socket"
	switch {
	case info.Mode().IsRegular():
		return nil
	case info.IsDir():
		what = "a folder"
	}
	return fmt.Errorf("%s is %s: name a regular file", name, what)
}

// ReadFile reads a regular file of at most limit bytes. A longer one is refused before it
// is read; one that turns out to be longer, once so many bytes have been.
func ReadFile(name string, limit int64) ([]byte, error) {
	f, size, err := Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadAll(f, size, limit)
}

// ReadAll reads an open file as ReadFile does; it was so many bytes long when it was opened.
func ReadAll(f *os.File, size, limit int64) ([]byte, error) {
	long := fmt.Errorf("%s is longer than %d bytes: name another file", f.Name(), limit)
	if size > limit {
		return nil, long
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, long
	}
	return b, nil
}
