package remote_test

import (
	"crypto/ed25519"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tally-network/tally/node/consume/remote"
	"github.com/tally-network/tally/node/consume/sharing"
	"github.com/tally-network/tally/p2p"
)

func TestFilesThatPeersShare(t *testing.T) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	h, err := p2p.New(p2p.Options{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	table, name := strings.Repeat("x,label\n1,a\n", 200_000), filepath.Join(t.TempDir(), "t.csv")
	if err := os.WriteFile(name, []byte(table), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := sharing.Share(t.Context(), h, []string{name}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	source := s.URIs()[0].String()
	c := &remote.Cache{Dir: t.TempDir(), Env: func(string) string { return "" }}
	_, err = c.Fetch(t.Context(), source)
	refuses(t, err, "leads to this machine or its network")
	c.Trusted = []string{source}
	f, err := c.Fetch(t.Context(), source)
	if err != nil || f.Source != source {
		t.Fatal(f, err)
	}
	if got, err := os.ReadFile(f.Path); err != nil || string(got) != table {
		t.Errorf("%d bytes came: %v", len(got), err)
	}
	if err := h.Close(); err != nil { // it is kept
		t.Fatal(err)
	}
	if _, err := c.Fetch(t.Context(), source); err != nil {
		t.Error(err)
	}
}
