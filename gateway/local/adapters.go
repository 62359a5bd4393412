package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/model/library"
)

// Adapter is a model that differs from another by a LoRA adapter: a folder as PEFT writes it. It is opened and closed as others are, while its base stays.
// One that has changed is opened anew for who asks next; who is replied to keeps what there was.
type Adapter struct {
	Name string
	Base string // what the model is called that it adapts, of those that were named by their paths
	Dir  string
}

// AdapterFolder is a folder of adapters, each in a folder that is called as the adapter. It is looked into whenever somebody asks for models.
type AdapterFolder struct {
	Base string // as in Adapter
	Dir  string
}

// maxFound is how many adapters of a folder are served: each look reads the times of their files.
const maxFound = 1024

// addAdapters adds the adapted models to those that were named.
func (m *Models) addAdapters() error {
	for i := range m.options.Adapters {
		a := &m.options.Adapters[i]
		if slices.ContainsFunc(m.files, func(f file) bool { return f.listing.Name == a.Name }) {
			return fmt.Errorf("two models are called %s: give the adapter another name", a.Name)
		}
		f, err := m.adapted(a)
		if err != nil {
			return fmt.Errorf("adapter %s: %w", a.Name, err)
		}
		m.files = append(m.files, f)
	}
	for _, folder := range m.options.AdapterFolders {
		if _, err := m.baseOf(folder.Base); err != nil {
			return fmt.Errorf("adapters in %s: %w", folder.Dir, err)
		}
		if _, err := os.ReadDir(folder.Dir); err != nil {
			return fmt.Errorf("adapters: %w", err)
		}
	}
	return nil
}

// baseOf returns the model that was named, and is to be adapted.
func (m *Models) baseOf(name string) (file, error) {
	at := slices.IndexFunc(m.files, func(f file) bool { return f.listing.Name == name && f.adapter == nil })
	switch {
	case at < 0:
		return file{}, fmt.Errorf("there is no model %s", name)
	case !m.files[at].listing.Replies:
		return file{}, fmt.Errorf("%s gives vectors, and has no adapters", name)
	}
	return m.files[at], nil
}

// adapted returns an adapted model.
func (m *Models) adapted(a *Adapter) (file, error) {
	base, err := m.baseOf(a.Base)
	if err != nil {
		return file{}, err
	}
	d, err := files.DescribeAdapter(a.Dir)
	if err != nil {
		return file{}, err
	}
	f := file{listing: base.listing, path: base.path, adapter: a, digest: digestOfAdapter(a.Dir, base.digest)}
	f.listing.Name, f.listing.Size = a.Name, base.listing.Size+d.Bytes
	return f, nil
}

// stamp tells files that have changed, as far as sizes and times do.
type stamp struct {
	text   string
	newest time.Time
}

// stampOf returns the stamp of an adapter's files.
func stampOf(dir string) (s stamp, err error) {
	for _, name := range files.AdapterFiles {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			return s, err
		}
		s.text += fmt.Sprintf("%d bytes of %d; ", info.Size(), info.ModTime().UnixNano())
		if info.ModTime().After(s.newest) {
			s.newest = info.ModTime()
		}
	}
	return s, nil
}

// digestOfAdapter returns what hashes an adapter's files, again whenever they have changed.
func digestOfAdapter(dir string, base func() (string, error)) func() (string, error) {
	var mu sync.Mutex
	var of stamp
	var sum string
	return func() (string, error) {
		id, err := base()
		if err != nil {
			return "", err
		}
		mu.Lock()
		defer mu.Unlock()
		now, err := stampOf(dir)
		if err != nil || sum != "" && now == of {
			return sum, err
		}
		got, err := safely(func() (string, error) { return library.DigestOfAdapted(context.Background(), id, dir) })
		if err == nil {
			of, sum = now, got
		}
		return got, err
	}
}

// InFolder is an adapter in a folder of adapters.
type InFolder struct {
	Name, Dir string
	of        stamp
	err       error
}

// State is another one whenever the adapter's files have changed.
func (a *InFolder) State() string { return a.of.text }

// Settled reports whether nobody writes the adapter's files any more, as far as their times tell.
func (a *InFolder) Settled() bool { return a.err == nil && time.Since(a.of.newest) > settles }

// AdaptersIn returns the adapters in a folder, by name: each a folder that has the files of one.
func AdaptersIn(dir string) (all []InFolder, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		a := InFolder{Name: e.Name(), Dir: filepath.Join(dir, e.Name())}
		if a.of, a.err = stampOf(a.Dir); errors.Is(a.err, fs.ErrNotExist) { // no adapter, or none yet
			continue
		}
		if len(all) == maxFound {
			break
		}
		all = append(all, a)
	}
	return all, err
}

// found are the adapters in folders, as they were when they were looked at last.
type found struct {
	mu    sync.Mutex
	known map[string]*foundAdapter // by their folders
}

// foundAdapter is an adapter in a folder, or why it is none.
type foundAdapter struct {
	Adapter
	of   stamp
	file file
	err  error
}

// all are the models that were named, and the adapters that are in folders now.
func (m *Models) all() []file {
	all := slices.Clone(m.files)
	m.look(func(x *foundAdapter) {
		if x.err == nil && !slices.ContainsFunc(all, func(f file) bool { return f.listing.Name == x.Name }) {
			all = append(all, x.file)
		}
	})
	return all
}

// look looks into all folders.
func (m *Models) look(each func(x *foundAdapter)) {
	m.found.mu.Lock()
	defer m.found.mu.Unlock()
	there := map[string]*foundAdapter{} // what is gone is forgotten
	defer func() { m.found.known = there }()
	for _, folder := range m.options.AdapterFolders {
		in, _ := AdaptersIn(folder.Dir) // a folder that is away for a while hides nothing else
		for _, a := range in {
			x := m.found.known[a.Dir]
			if x == nil {
				x = &foundAdapter{Adapter: Adapter{a.Name, folder.Base, a.Dir}}
			}
			there[a.Dir] = x
			if a.err != nil {
				x.err = a.err
			} else if x.of != a.of {
				x.of = a.of
				x.file, x.err = m.adapted(&x.Adapter)
			}
			each(x)
		}
	}
}

// broken says why an adapter in a folder cannot be served; nil: there is none of the name, or it can.
func (m *Models) broken(name string) (err error) {
	m.look(func(x *foundAdapter) {
		if x.Name == name && x.err != nil {
			err = api.Invalid("model", "adapter %s: %v", name, x.err)
		}
	})
	return err
}

// settles is how long files have to stay as they are before an adapter is opened anew: who writes them is not done before.
const settles = 2 * time.Second

// stale reports whether an adapter has changed since it was opened.
func (m *Models) stale(x *opened) bool {
	if x.model == nil || x.at.adapter == nil {
		return false
	}
	now, err := stampOf(x.at.adapter.Dir)
	return err == nil && now != x.of && time.Since(now.newest) > settles
}

// replace takes an adapted model out of what is open. Those that it replies to hold the base in its place.
func (m *Models) replace(x *opened) {
	delete(m.open, x.at)
	if x.timer != nil {
		x.timer.Stop()
	}
	x.replaced = true
	x.base.users += x.users
	m.left(x.base)
}

// filesOf reads the files of a model; of an adapted one, those that its base does not have.
func (m *Models) filesOf(x *opened) (*Files, error) {
	if x.at.adapter == nil {
		return safely(func() (*Files, error) { return m.read(x.at.path) })
	}
	base, err := m.use(place{path: x.at.path})
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	x.base = base
	m.mu.Unlock()
	if <-base.ready; base.err != nil {
		return nil, base.err
	}
	if x.of, err = stampOf(x.at.adapter.Dir); err != nil {
		return nil, err
	}
	return safely(func() (*Files, error) {
		l, err := base.files.Language.Adapted(x.at.adapter.Dir)
		if err != nil {
			return nil, err
		}
		return &Files{Language: l, Tokenizer: l.Tokenizer, Description: Description{Language: l.Description}}, nil
	})
}
