package library

import (
	"context"
	"net/http"
	"net/url"
	"path"
	"path/filepath"

	"github.com/tally-network/tally/internal/fetch"
)

// address is a GGUF file at an address.
type address struct {
	p       *pull
	version string
	file    fetch.Offered
}

// openAddress asks how large a file is, and which version. A server that does not tell is asked for the file.
func openAddress(ctx context.Context, p *pull) (*address, error) {
	u, err := url.Parse(p.source.base)
	if err != nil {
		return nil, err
	}
	a := &address{p: p, version: before("sha256=", p.source.sum), file: fetch.Offered{Expected: fetch.Expected{Bytes: -1, SHA256: p.source.sum}, Name: path.Base(u.Path)}}
	ctx, cancel := context.WithTimeout(ctx, p.net.IdleTimeout)
	defer cancel()
	answer, err := p.net.Do(ctx, http.MethodHead, p.source.base, http.Header{"Accept-Encoding": {"identity"}}, http.StatusOK)
	if err != nil {
		return a, nil
	}
	a.file.Bytes = answer.ContentLength
	if a.version == "" {
		a.version = fetch.VersionOf(answer)
	}
	return a, answer.Body.Close()
}

func (a *address) release() string                               { return a.version }
func (a *address) list(context.Context) ([]fetch.Offered, error) { return []fetch.Offered{a.file}, nil }
func (a *address) close() error                                  { return nil }

func (a *address) take(ctx context.Context, f fetch.Offered, to string) (string, error) {
	return a.p.download(ctx, fetch.Wanted{Expected: f.Expected, URL: a.p.source.base, To: to, VersionFile: filepath.Join(a.p.partial(), "version")}, f.Name)
}
