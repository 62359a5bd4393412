package hire

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/libp2p/go-libp2p/core/peer"
	"golang.org/x/sync/singleflight"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/internal/replace"
	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/node/tabs"
)

// cache has what clients need of models, by their roots.
type cache struct {
	dir string

	mu    sync.Mutex
	parts map[canon.Hash]*files.Parts
	get   singleflight.Group
}

// Model returns what a client needs of a model: configuration, tokenizer, template. Whoever serves it hands that over, and its root proves it.
func (c *Consumer) Model(ctx context.Context, root canon.Hash) (*files.Parts, error) {
	c.models.mu.Lock()
	p := c.models.parts[root]
	c.models.mu.Unlock()
	if p != nil {
		return p, nil
	}
	got := c.models.get.DoChan(root.String(), func() (any, error) { return c.getModel(root) })
	select {
	case r := <-got:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*files.Parts), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// getModel gets a model from the disk, or from whoever serves it.
func (c *Consumer) getModel(root canon.Hash) (*files.Parts, error) {
	texts, err := c.models.read(root)
	if err != nil {
		if texts, err = c.fetch(c.ctx, root); err != nil {
			return nil, err
		}
	}
	p, err := texts.Parse()
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", root, err)
	}
	c.models.mu.Lock()
	defer c.models.mu.Unlock()
	if c.models.parts == nil {
		c.models.parts = map[canon.Hash]*files.Parts{}
	}
	c.models.parts[root] = p
	return p, nil
}

const manifestName = "manifest"

// read reads a model from the disk.
func (k *cache) read(root canon.Hash) (files.Texts, error) {
	dir := filepath.Join(k.dir, root.String())
	return collect(root, func(_, _ int, name string, most int) ([]byte, error) {
		return bounded.ReadFile(filepath.Join(dir, filepath.FromSlash(name)), int64(most))
	})
}

// collect gets the texts of a model by get, and verifies them.
func collect(root canon.Hash, get func(file, bytes int, name string, most int) ([]byte, error)) (files.Texts, error) {
	text, err := get(0, -1, manifestName, files.MaxStored)
	if err != nil {
		return nil, err
	}
	var m files.Manifest
	if err := canon.Unmarshal(text, &m); err != nil {
		return nil, err
	}
	if m.Root() != root {
		return nil, errors.New("the manifest is another model's")
	}
	texts := files.Texts{}
	for i, f := range m.Files {
		text, err := get(i+1, int(f.Bytes), f.Name, int(f.Bytes))
		if err == nil {
			err = f.Verify(text)
		}
		if err != nil {
			return nil, err
		}
		texts[f.Name] = text
	}
	return texts, nil
}

// fetch gets a model from whoever serves it, and keeps it.
func (c *Consumer) fetch(ctx context.Context, root canon.Hash) (files.Texts, error) {
	all, err := c.Offers(ctx)
	if err != nil {
		return nil, err
	}
	last := ErrNobody
	for i := range all {
		if all[i].Model != root {
			continue
		}
		id, err := c.reach(&all[i])
		if err != nil {
			last = err
			continue
		}
		dir := filepath.Join(c.models.dir, root.String())
		texts, err := collect(root, func(file, bytes int, name string, _ int) ([]byte, error) {
			text, err := c.part(ctx, id, root, file, bytes)
			if err != nil {
				return nil, err
			}
			path := filepath.Join(dir, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return nil, err
			}
			return text, replace.File(path, text)
		})
		if err == nil {
			return texts, nil
		}
		last = fmt.Errorf("get model %s from %s: %w", root, all[i].Provider, err)
	}
	return nil, last
}

// part gets a file of so many bytes; −1: of as many as come at once.
func (c *Consumer) part(ctx context.Context, id peer.ID, root canon.Hash, file, bytes int) (text []byte, err error) {
	for len(text) < bytes || bytes < 0 {
		a, err := tabs.Parts.Call(ctx, c.Host, id, tabs.PartOf{Model: root, File: file, At: len(text)})
		if err != nil {
			return nil, err
		}
		if text = append(text, a.Bytes...); bytes < 0 {
			return text, nil
		}
		if len(a.Bytes) < tabs.MaxPart && len(text) != bytes || len(text) > bytes {
			return nil, fmt.Errorf("file %d has other bytes than the manifest says", file)
		}
	}
	return text, nil
}
