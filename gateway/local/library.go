package local

import (
	"context"
	"errors"

	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/gateway/reply"
	"github.com/tally-network/tally/model/library"
)

// Library is a Finder of the models in a library.
type Library struct{ *library.Library }

// List implements Finder. What is no language model is left out.
func (l Library) List() (out []reply.Listing, err error) {
	all, err := l.Library.List()
	for i := range all {
		if e := &all[i]; e.Model != nil {
			x := Listing(e.Name, e.Model, e.Pulled)
			x.Size, x.Digest = e.Bytes, e.Digest
			out = append(out, x)
		}
	}
	return out, err
}

// Path implements Finder.
func (l Library) Path(name string) (string, error) {
	e, err := l.Find(name)
	switch {
	case errors.Is(err, library.ErrNotFound):
		return "", reply.Unknown(name)
	case err != nil:
		return "", err
	case e.Problem != "":
		return "", api.Invalid("model", "%s is no language model that can reply: %s", e.Name, e.Problem)
	}
	return e.Path, nil
}

// Pull implements Finder.
func (l Library) Pull(ctx context.Context, name string, tell func(reply.Progress)) error {
	_, err := l.Library.Pull(ctx, name, library.Options{Tell: func(p library.Progress) {
		tell(reply.Progress{Status: string(p.Step) + " " + p.File, Digest: p.File, Total: max(p.Total, p.Done), Ready: p.Done})
	}})
	return err
}

var _ Finder = Library{}
