package library

import (
	"context"

	"github.com/tally-network/tally/internal/fetch"
)

// hub is a repository of a hub, at one commit.
type hub struct {
	*fetch.Repository
	p *pull
}

func openHub(ctx context.Context, p *pull) (*hub, error) {
	r, err := p.net.Repository(ctx, fetch.Models, p.source.base, p.source.version)
	if err != nil {
		return nil, err
	}
	return &hub{r, p}, nil
}

func (h *hub) release() string                               { return h.Commit }
func (h *hub) list(context.Context) ([]fetch.Offered, error) { return h.Files, nil }
func (h *hub) close() error                                  { return nil }

func (h *hub) take(ctx context.Context, f fetch.Offered, to string) (string, error) {
	return h.p.download(ctx, fetch.Wanted{Expected: f.Expected, URL: h.URL(f.Name), To: to}, f.Name)
}
