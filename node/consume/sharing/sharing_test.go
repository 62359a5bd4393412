package sharing_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tally-network/tally/node/consume/sharing"
	"github.com/tally-network/tally/p2p"
	"github.com/tally-network/tally/store"
)

func host(t *testing.T) *p2p.Host {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	h, err := p2p.New(p2p.Options{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// written returns a file of n random bytes.
func written(t *testing.T, n int) (name string, b []byte) {
	t.Helper()
	b = make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(b) // never fails
	name = filepath.Join(t.TempDir(), "a table.csv")
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return name, b
}

func share(t *testing.T, files ...string) (*sharing.Shared, sharing.URI) {
	t.Helper()
	s, err := sharing.Share(t.Context(), host(t), files, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	n := s.URIs()[0]
	again, err := sharing.ParseURI(n.String())
	if err != nil || again.String() != n.String() || again.Filename != filepath.Base(files[0]) {
		t.Fatalf("%s is read as %s (%v)", n.String(), again.String(), err)
	}
	return s, again
}

// fetched copies what is named behind the bytes that are there already.
func fetched(t *testing.T, ctx context.Context, n sharing.URI, there []byte) ([]byte, error) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "copy"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(there); err != nil {
		t.Fatal(err)
	}
	if err := n.Copy(ctx, host(t), f, int64(len(there)), func(int64) {}); err != nil {
		return nil, err
	}
	return os.ReadFile(f.Name())
}

func TestSharedFilesArrive(t *testing.T) {
	for _, size := range []int{0, 1, 1000, store.BlockSize, store.BlockSize + 1, 6*store.BlockSize + 17} {
		name, want := written(t, size)
		_, n := share(t, name)
		if n.Ref != store.RefOf(want) {
			t.Errorf("%d bytes are called %v, a store calls them %v", size, n.Ref, store.RefOf(want))
		}
		if got, err := fetched(t, t.Context(), n, nil); err != nil || !bytes.Equal(got, want) {
			t.Errorf("of %d bytes %d came: %v", size, len(got), err)
		}
	}
}

func TestCopiesGoOn(t *testing.T) {
	name, want := written(t, 5*store.BlockSize+9)
	_, n := share(t, name)
	there := bytes.Clone(want[:3*store.BlockSize+100])
	clear(there[3*store.BlockSize:])    // the last block is not whole, and so comes again
	clear(there[2*store.BlockSize+10:]) // nor is the one before it, after a crash
	got, err := fetched(t, t.Context(), n, there)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes came: %v", len(got), err)
	}
}

func TestWhoLiesIsPassedOver(t *testing.T) {
	name, want := written(t, 2*store.BlockSize)
	_, honest := share(t, name)
	other, _ := written(t, 2*store.BlockSize)
	if err := os.WriteFile(other, bytes.Repeat([]byte{7}, 2*store.BlockSize), 0o600); err != nil {
		t.Fatal(err)
	}
	_, lies := share(t, other)
	both := honest
	both.Peers = append(lies.Peers, honest.Peers...) // who has another file is asked first
	if got, err := fetched(t, t.Context(), both, nil); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes came: %v", len(got), err)
	}
	both.Peers = lies.Peers
	if _, err := fetched(t, t.Context(), both, nil); err == nil {
		t.Error("a file came from who does not have it")
	}
}

func TestChangedFilesAreNotGiven(t *testing.T) {
	name, b := written(t, 3*store.BlockSize)
	_, n := share(t, name)
	b[2*store.BlockSize+5]++
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := fetched(t, t.Context(), n, nil); err == nil {
		t.Error("a changed file came")
	}
}

func TestOnlySharedBlocksAreGiven(t *testing.T) {
	name, _ := written(t, 100)
	s, _ := share(t, name)
	if _, err := s.Block(t.Context(), store.RefOf([]byte("a secret")).CID); !errors.Is(err, store.ErrMissing) {
		t.Error(err)
	}
}

func TestSharingEnds(t *testing.T) {
	name, _ := written(t, 3*store.BlockSize)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sharing.Share(ctx, host(t), []string{name}, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := sharing.Share(t.Context(), host(t), []string{filepath.Dir(name)}, nil); err == nil {
		t.Error("a folder is shared")
	}
	_, n := share(t, name)
	if _, err := fetched(t, ctx, n, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestNamesThatAreNone(t *testing.T) {
	name, _ := written(t, 10)
	_, n := share(t, name)
	good := n.String()
	ref, query, _ := strings.Cut(good, "?")
	for text, want := range map[string]string{
		"ipfs:x":                       "begins with tally:",
		ref:                            "filename",
		ref + "?filename=../a":         "filename",
		ref + "?filename=a.csv":        "0 peers",
		ref + "?filename=a.csv&peer=x": "peer",
		ref + "?filename=a.csv&peer=/ip4/1.1.1.1/tcp/1": "peers",
		"tally:bafy?" + query:                           "reference",
		ref + "9?" + query:                              "", // of more bytes: the index says so
		good + strings.Repeat("&x=y", 1<<11):            "at most",
	} {
		n, err := sharing.ParseURI(text)
		if want == "" {
			if _, err := fetched(t, t.Context(), n, nil); err == nil {
				t.Errorf("%s came", text)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %q", text, err, want)
		}
	}
}

func FuzzParseURI(f *testing.F) {
	f.Add("tally:bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy.5?filename=a.csv&peer=/ip4/127.0.0.1/tcp/1/p2p/12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := sharing.ParseURI(text)
		if err != nil {
			return
		}
		if again, err := sharing.ParseURI(n.String()); err != nil || again.String() != n.String() {
			t.Errorf("%q is written %q, and read again %v", text, n.String(), err)
		}
	})
}
