package remote_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tally-network/tally/internal/fetch"
	"github.com/tally-network/tally/node/consume/remote"
)

// hub serves files at paths, and counts how many bytes it has sent.
type hub struct {
	*httptest.Server
	files map[string][]byte
	sent  int
	fails int // answers that break off in the middle
}

func newHub(t *testing.T) *hub {
	h := &hub{files: map[string][]byte{}}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	return h
}

// ServeHTTP implements http.Handler.
func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, ok := h.files[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("ETag", fmt.Sprintf("%q", sum(b)[:8]))
	if r.Method == http.MethodGet && h.fails > 0 {
		h.fails--
		w.Header().Set("Content-Length", fmt.Sprint(len(b)))
		_, _ = w.Write(b[:len(b)/2])
		h.sent += len(b) / 2
		return
	}
	c := &counted{ResponseWriter: w}
	http.ServeContent(c, r, "", time.Time{}, bytes.NewReader(b))
	h.sent += c.n
}

type counted struct {
	http.ResponseWriter
	n int
}

// Write implements io.Writer.
func (c *counted) Write(b []byte) (int, error) {
	c.n += len(b)
	return c.ResponseWriter.Write(b)
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// cache is one that has named the hub.
func (h *hub) cache(t *testing.T) *remote.Cache {
	n := fetch.New(func(name string) string { return map[string]string{"HF_ENDPOINT": h.URL}[name] })
	n.Pause = time.Millisecond
	return &remote.Cache{Dir: t.TempDir(), Ends: []string{".csv", ".parquet"}, Net: n, Addresses: n}
}

func brings(t *testing.T, c *remote.Cache, source string, want []byte) {
	t.Helper()
	f, err := c.Fetch(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	name := f.Path
	if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%s holds %d bytes, want %d: %v", name, len(got), len(want), err)
	}
}

func TestFilesAreFetchedOnce(t *testing.T) {
	h := newHub(t)
	first, second := bytes.Repeat([]byte("a,b\n1,2\n"), 4<<10), []byte("a,b\n3,4\n")
	h.files["/d/table.csv"] = first
	c := h.cache(t)
	told := int64(0)
	c.Progress = func(name string, done, total int64) { told = done }
	h.fails = 1
	brings(t, c, h.URL+"/d/table.csv", first)
	if h.sent != len(first) || told != int64(len(first)) {
		t.Errorf("%d bytes were sent and %d told, want %d: what came before it broke off counts", h.sent, told, len(first))
	}
	brings(t, c, h.URL+"/d/table.csv", first)
	brings(t, c, h.URL+"/d/table.csv#sha256="+sum(first), first)
	if h.sent != 2*len(first) {
		t.Errorf("%d bytes were sent, want %d", h.sent, 2*len(first))
	}
	h.files["/d/table.csv"] = second
	h.fails, c.Net.Tries = 2, 1
	if _, err := c.Fetch(t.Context(), h.URL+"/d/table.csv"); err == nil {
		t.Error("half a file is fetched")
	}
	brings(t, c, h.URL+"/d/table.csv", second) // and not what was there before
	h.Close()
	brings(t, c, h.URL+"/d/table.csv#sha256="+sum(first), first) // which needs nobody
	if _, err := c.Fetch(t.Context(), h.URL+"/d/table.csv"); err == nil || !strings.Contains(err.Error(), "name "+c.Dir) {
		t.Errorf("%v", err)
	}
}

func TestDatasetsOfAHub(t *testing.T) {
	h := newHub(t)
	table := []byte("a,b\n1,2\n")
	commit := strings.Repeat("ab", 20)
	list := func(names ...string) []byte {
		var files []string
		for _, name := range names {
			files = append(files, fmt.Sprintf(`{"rfilename":%q,"lfs":{"sha256":%q,"size":%d}}`, name, sum(table), len(table)))
		}
		return fmt.Appendf(nil, `{"sha":%q,"siblings":[%s]}`, commit, strings.Join(files, ","))
	}
	h.files["/api/datasets/org/one"] = list("README.md", "data/all.csv")
	h.files["/api/datasets/org/two"] = list("data/train.csv", "data/test.csv")
	h.files["/api/datasets/org/two/revision/old"] = list("data/train.csv", "data/test.csv")
	h.files["/api/datasets/org/many"] = list("a.csv", "b.csv")
	h.files["/api/datasets/org/bad"] = list("../a.csv")
	h.files["/api/datasets/org/false"] = list("a.csv")
	h.files["/datasets/org/one/resolve/"+commit+"/data/all.csv"] = table
	h.files["/datasets/org/two/resolve/"+commit+"/data/train.csv"] = table
	h.files["/datasets/org/two/resolve/"+commit+"/data/test.csv"] = table
	h.files["/datasets/org/false/resolve/"+commit+"/a.csv"] = []byte("a,b\n1,3\n")
	c := h.cache(t)
	for _, source := range []string{"hf:org/one", "hf:org/two", "hf:org/two:data/test.csv", "hf:org/two:data/test.csv@old"} {
		brings(t, c, source, table)
	}
	if f, err := c.Fetch(t.Context(), "hf:org/two"); err != nil || f.Source != "hf:org/two:data/train.csv@"+commit {
		t.Errorf("%+v %v", f, err)
	}
	h.files["/d/table.csv"] = table
	if f, err := c.Fetch(t.Context(), h.URL+"/d/table.csv"); err != nil || f.Source != h.URL+"/d/table.csv#sha256="+sum(table) {
		t.Errorf("%+v %v", f, err)
	}
	sent := h.sent
	brings(t, c, "hf:org/two", table)
	if more := h.sent - sent; more != len(h.files["/api/datasets/org/two"]) {
		t.Errorf("%d bytes were sent again", more)
	}
	for source, want := range map[string]string{
		"hf:org/many": "choose one", "hf:org/two:c.csv": "has no file", "hf:org/none": "404", "hf:org/bad": "404", "hf:org/false": "is not what the source promises",
		"hf:a b": "is no dataset", "hf:org/one:../x": "is no dataset", h.URL + "/x.csv": "404", h.URL + "/": "no name of a file", "http://example.org/a.csv": "https://",
		h.URL + "/x.csv#sha256=1": "64 hexadecimal digits", "https://me:word@example.org/a.csv": "password", "https://10.0.0.1/a.csv": "this machine or its network",
	} {
		if name, err := c.Fetch(t.Context(), source); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s %v, want %q", source, name, err, want)
		}
	}
	c.Addresses = nil // an order file's addresses are public ones, whatever the environment names
	if _, err := c.Fetch(t.Context(), h.URL+"/d/table.csv"); err == nil || !strings.Contains(err.Error(), "this machine or its network") {
		t.Errorf("%v", err)
	}
	if all, err := filepath.Glob(filepath.Join(c.Dir, "*", "*.csv")); err != nil || len(all) != 4 {
		t.Errorf("%q %v", all, err)
	}
}
