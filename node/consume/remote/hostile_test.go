package remote_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tally-network/tally/internal/fetch"
)

// refuses expects an error that holds some words, and no secret.
func refuses(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v, want %q and no secret", err, want)
	}
}

// A server that goes on, but so slowly that nobody would live to see its end, keeps nobody.
func TestServersThatDrip(t *testing.T) {
	tries := 0
	for name, serve := range map[string]http.HandlerFunc{
		"a byte now and then": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000000")
			for range 1 << 20 {
				if _, err := w.Write([]byte("x")); err != nil || r.Context().Err() != nil {
					return
				}
				w.(http.Flusher).Flush()
				time.Sleep(time.Millisecond)
			}
		},
		"a byte a try": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"1"`)
			from := 0
			if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from); err == nil {
				w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-999999/1000000", from))
				w.Header().Set("Content-Length", fmt.Sprint(1000000-from))
				w.WriteHeader(http.StatusPartialContent)
			} else {
				w.Header().Set("Content-Length", "1000000")
			}
			_, _ = w.Write([]byte("x"))
		},
		"the beginning again and again": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10000000")
			if tries++; tries%2 == 1 {
				_, _ = w.Write(make([]byte, 2<<20))
			}
		},
	} {
		s := httptest.NewServer(serve)
		t.Cleanup(s.Close)
		c := newHub(t).cache(t)
		c.Addresses = c.Net.Naming(s.URL)
		c.Addresses.IdleTimeout, c.Addresses.Tries = 50*time.Millisecond, 2
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		_, err := c.Fetch(ctx, s.URL+"/a.csv?sig=secret")
		if want := map[string]string{"a byte now and then": "sends next to nothing", "a byte a try": "unexpected EOF", "the beginning again and again": "unexpected EOF"}[name]; ctx.Err() != nil {
			t.Errorf("%s: it took for ever", name)
		} else {
			refuses(t, err, want)
		}
	}
}

func TestLargeFilesAreNotTakenUnasked(t *testing.T) {
	h := newHub(t)
	table := bytes.Repeat([]byte("a,b\n1,2\n"), 1000)
	h.files["/d/table.csv"] = table
	h.files["/api/datasets/org/large"] = fmt.Appendf(nil, `{"sha":%q,"siblings":[{"rfilename":"train-0.csv","size":9000000000},{"rfilename":"train-1.csv","size":9000000000}]}`, strings.Repeat("ab", 20))
	c := h.cache(t)
	limit := "7999"
	c.Env = func(name string) string { return map[string]string{"TALLY_DATA_LIMIT": limit}[name] }
	_, err := c.Fetch(t.Context(), h.URL+"/d/table.csv")
	refuses(t, err, "has 8000 bytes, and there is room for 7999: make room, or choose a smaller one, or set the limit, as in TALLY_DATA_LIMIT")
	limit = "many"
	_, err = c.Fetch(t.Context(), h.URL+"/d/table.csv")
	refuses(t, err, "write bytes, or a number with a unit")
	for _, limit = range []string{"8kB", "8 KiB", "8000", ""} {
		brings(t, c, h.URL+"/d/table.csv", table)
	}
	sent := h.sent
	_, err = c.Fetch(t.Context(), "hf:org/large")
	refuses(t, err, "it has 18000000000 bytes, more than the limit of 17179869184: name a part of it, or set TALLY_DATA_LIMIT")
	if h.sent-sent > 1000 {
		t.Errorf("%d bytes were sent", h.sent-sent)
	}
}

// What lets a reader in stands in no error, wherever that comes from.
func TestErrorsHoldNoSecrets(t *testing.T) {
	h := newHub(t)
	to := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) }))
	t.Cleanup(s.Close)
	c := h.cache(t)
	c.Addresses = c.Net.Naming(s.URL)
	c.Addresses.Tries = 1
	closed := httptest.NewServer(nil)
	closed.Close()
	for _, at := range []struct{ source, leads, want string }{
		{h.URL + "/none.csv?X-Amz-Signature=secret", "", "404"},
		{"https://me:secret@example.org/a.csv?b=secret", "", "password"},
		{"https://127.0.0.1:1/a.csv?b=secret", "", "127.0.0.1:1/a.csv?…"},
		{"https://example.org:port/a.csv?b=secret", "", "is no address"},
		{"http://example.org/a.csv?b=secret", "", "https://"},
		{s.URL + "/a.csv", h.URL + "/none.csv?X-Amz-Signature=secret", "404"},
		{s.URL + "/a.csv", "http://example.org/a?secret", "redirect"},
		{s.URL + "/a.csv", closed.URL + "/a?secret", "?…"},
		{s.URL + "/a.csv", "https://example.org/%zz?secret", "leads to what is no address"},
	} {
		to = at.leads
		_, err := c.Fetch(t.Context(), at.source)
		refuses(t, err, at.want)
	}
	for address, want := range map[string]string{
		"https://me:secret@a.b/c?d=secret#secret": "https://a.b/c?…", "https://a.b/c": "https://a.b/c", "hf:a/b": "hf:a/b", "https://a@b@c": "https://c",
	} {
		if got := fetch.RedactText(address); got != want {
			t.Errorf("%s: %s", address, got)
		}
	}
}

// Who waits for another process is told how far that is.
func TestWhoWaitsIsTold(t *testing.T) {
	gate := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "8")
		_, _ = w.Write([]byte("a,b\n"))
		w.(http.Flusher).Flush()
		<-gate
		_, _ = w.Write([]byte("1,2\n"))
	}))
	t.Cleanup(s.Close)
	c := newHub(t).cache(t)
	c.Addresses = c.Net.Naming(s.URL)
	other, once := *c, false
	other.Progress = func(name string, done, _ int64) {
		if name == "a.csv by another process" && done == 4 && !once {
			once = true
			close(gate)
		}
	}
	done := make(chan error, 1)
	began := make(chan struct{}, 1)
	c.Progress = func(string, int64, int64) {
		select {
		case began <- struct{}{}:
		default:
		}
	}
	go func() {
		_, err := c.Fetch(t.Context(), s.URL+"/a.csv#sha256="+sum([]byte("a,b\n1,2\n")))
		done <- err
	}()
	<-began
	brings(t, &other, s.URL+"/a.csv#sha256="+sum([]byte("a,b\n1,2\n")), []byte("a,b\n1,2\n"))
	if err := <-done; err != nil || !once {
		t.Errorf("%v, told: %v", err, once)
	}
	if all, _ := filepath.Glob(filepath.Join(c.Dir, "*", "*.partial")); len(all) > 0 {
		t.Errorf("%q", all)
	}
}
