package client_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tally-network/tally/node/client"
)

// A node whose answer does not end is read so far and no further.
func TestAnswersWithoutEnd(t *testing.T) {
	sent := 0
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for spaces := bytes.Repeat([]byte(" "), 1<<20); sent < 1<<30; sent += len(spaces) {
			if _, err := w.Write(spaces); err != nil {
				return
			}
		}
	}))
	err := client.Probe(t.Context(), client.Endpoints{RPC: endless.URL})
	endless.Close()
	if err == nil || !strings.Contains(err.Error(), "too large") || sent > 128<<20 {
		t.Errorf("after %d MiB: %v", sent>>20, err)
	}
}
