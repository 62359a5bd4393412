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
	return &remote.Cache{Dir: t.TempDir(), Net: n, Addresses: n}
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
	h.fails = 0
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
		"hf:org/many": `may be meant: choose a file, a folder or a pattern such as data/train-*.parquet, of ["a.csv" "b.csv"]`, "hf:org/two:c.csv": "has no file", "hf:org/none": "404", "hf:org/bad": "none of its files", "hf:org/false": "is not what the source promises",
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

// A dataset in shards is brought as one pattern of files, in their order.
func TestDatasetsInShards(t *testing.T) {
	h := newHub(t)
	commit := strings.Repeat("ab", 20)
	files := func(names ...string) {
		var all []string
		for _, name := range names {
			table := []byte("a,b\n" + name + ",2\n")
			h.files["/datasets/org/shards/resolve/"+commit+"/"+name] = table
			all = append(all, fmt.Sprintf(`{"rfilename":%q,"lfs":{"sha256":%q,"size":%d}}`, name, sum(table), len(table)))
		}
		h.files["/api/datasets/org/shards"] = fmt.Appendf(nil, `{"sha":%q,"siblings":[%s]}`, commit, strings.Join(all, ","))
		h.files["/api/datasets/org/shards/revision/"+commit] = h.files["/api/datasets/org/shards"]
	}
	files("README.md", "data/test-00000-of-00001.csv", "data/train-00001-of-00002.csv", "data/train-00000-of-00002.csv")
	c := h.cache(t)
	for source, pinned := range map[string]string{
		"hf:org/shards": "hf:org/shards@" + commit, "hf:org/shards:data/train-*.csv": "hf:org/shards:data/train-*.csv@" + commit, "hf:org/shards:data": "hf:org/shards:data@" + commit,
	} {
		for _, from := range []string{source, pinned} {
			f, err := c.Fetch(t.Context(), from)
			if err != nil || f.Source != pinned {
				t.Fatalf("%s: %+v %v", from, f, err)
			}
			names, err := filepath.Glob(f.Path)
			if err != nil || len(names) != 2 {
				t.Fatalf("%s: %q %v", from, names, err)
			}
			for i, name := range names {
				if got, err := os.ReadFile(name); err != nil || !strings.Contains(string(got), fmt.Sprintf("train-%05d", i)) {
					t.Errorf("%s holds %q: %v", name, got, err)
				}
			}
		}
	}
	api := len(h.files["/api/datasets/org/shards"])
	if once := h.sent; once > 6*api+300 {
		t.Errorf("%d bytes were sent", once)
	}
	delete(h.files, "/datasets/org/shards/resolve/"+commit+"/data/train-00001-of-00002.csv")
	c = h.cache(t)
	if _, err := c.Fetch(t.Context(), "hf:org/shards"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("half a dataset: %v", err)
	}
	files("data/train-00001-of-00002.csv")
	if _, err := c.Fetch(t.Context(), "hf:org/shards"); err == nil || !strings.Contains(err.Error(), "the others are missing") {
		t.Errorf("half a dataset: %v", err)
	}
}
