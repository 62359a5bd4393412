package library

import (
	"context"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
)

// address is a GGUF file at an address.
type address struct {
	p       *pull
	edition string
	file    offered
}

// openAddress asks how large a file is, and which edition. A server that does not tell is asked for the file.
func openAddress(ctx context.Context, p *pull) (*address, error) {
	u, err := url.Parse(p.source.base)
	if err != nil {
		return nil, err
	}
	a := &address{p: p, edition: before("sha256=", p.source.sum), file: offered{expected{bytes: -1, sha256: p.source.sum}, path.Base(u.Path)}}
	ctx, cancel := context.WithTimeout(ctx, p.net.patience)
	defer cancel()
	answer, err := p.net.ask(ctx, http.MethodHead, p.source.base, http.Header{"Accept-Encoding": {"identity"}}, http.StatusOK)
	if err != nil {
		return a, nil
	}
	a.file.bytes = answer.ContentLength
	if a.edition == "" {
		a.edition = editionOf(answer)
	}
	return a, answer.Body.Close()
}

func (a *address) release() string                         { return a.edition }
func (a *address) list(context.Context) ([]offered, error) { return []offered{a.file}, nil }
func (a *address) close() error                            { return nil }

func (a *address) take(ctx context.Context, f offered, to string) (string, error) {
	return a.p.download(ctx, wanted{expected: f.expected, url: a.p.source.base, to: to, mark: filepath.Join(a.p.partial(), "edition")}, f.name)
}
