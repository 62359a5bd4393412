package client_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/light"
)

// A node whose answer does not end is read so far and no further.
func TestAnswersWithoutEnd(t *testing.T) {
	for name, x := range map[string]struct {
		ask  func(ctx context.Context, at string) error
		most int // bytes that are sent
	}{
		"whatever it is": {func(ctx context.Context, at string) error {
			return client.Probe(ctx, client.Endpoints{RPC: at})
		}, 128 << 20},
		"a commit": {func(ctx context.Context, at string) error {
			c, err := client.NewHeaders(at)
			if err == nil {
				_, err = c.Commit(ctx, nil)
			}
			return err
		}, 32 << 20},
		"a header to follow": {func(ctx context.Context, at string) error {
			c, err := client.NewHeaders(at)
			if err == nil {
				_, err = light.Block(ctx, &client.Client{Headers: c}, 1)
			}
			return err
		}, 32 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			sent := 0
			endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for spaces := bytes.Repeat([]byte(" "), 1<<20); sent < 1<<30; sent += len(spaces) {
					if _, err := w.Write(spaces); err != nil {
						return
					}
				}
			}))
			err := x.ask(t.Context(), endless.URL)
			endless.Close()
			if err == nil || !strings.Contains(err.Error(), "too large") || sent > x.most {
				t.Errorf("after %d MiB: %v", sent>>20, err)
			}
		})
	}
}
