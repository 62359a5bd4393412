package local

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/model/library"
)

// Adapter is a model that differs from another by a LoRA adapter: a folder as PEFT writes it. It is opened and closed as others are, while its base stays.
type Adapter struct {
	Name string
	Base string // what the model is called that it adapts, of those that were named by their paths
	Dir  string
}

// addAdapters adds the adapted models to those that were named.
func (m *Models) addAdapters() error {
	for i := range m.options.Adapters {
		a := &m.options.Adapters[i]
		at := slices.IndexFunc(m.files, func(f file) bool { return f.listing.Name == a.Base && f.adapter == nil })
		if at < 0 {
			return fmt.Errorf("adapter %s: there is no model %s", a.Name, a.Base)
		}
		if slices.ContainsFunc(m.files, func(f file) bool { return f.listing.Name == a.Name }) {
			return fmt.Errorf("two models are called %s: give the adapter another name", a.Name)
		}
		d, err := files.DescribeAdapter(a.Dir)
		if err != nil {
			return fmt.Errorf("adapter %s: %w", a.Name, err)
		}
		base := m.files[at]
		if !base.listing.Replies {
			return fmt.Errorf("adapter %s: %s gives vectors, and has no adapters", a.Name, a.Base)
		}
		f := file{listing: base.listing, path: base.path, adapter: a, digest: sync.OnceValues(func() (string, error) {
			of, err := base.digest()
			if err != nil {
				return "", err
			}
			return safely(func() (string, error) { return library.DigestOfAdapted(context.Background(), of, a.Dir) })
		})}
		f.listing.Name, f.listing.Size = a.Name, base.listing.Size+d.Bytes
		m.files = append(m.files, f)
	}
	return nil
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
	return safely(func() (*Files, error) {
		l, err := base.files.Language.Adapted(x.at.adapter.Dir)
		if err != nil {
			return nil, err
		}
		return &Files{Language: l, Tokenizer: l.Tokenizer, Description: Description{Language: l.Description}}, nil
	})
}
