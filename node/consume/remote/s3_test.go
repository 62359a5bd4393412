package remote_test

import (
	"crypto/hmac"
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

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/tally-network/tally/internal/fetch"
	"github.com/tally-network/tally/node/consume/remote"
)

// vault is a server of S3 with one bucket, of which folder private/ is for one user alone.
type vault struct {
	*httptest.Server
	env map[string]string
	got int // files that were given
}

func newVault(t *testing.T, files map[string]string) *vault {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("data"); err != nil {
		t.Fatal(err)
	}
	for key, text := range files {
		if _, err := backend.PutObject("data", key, nil, strings.NewReader(text), int64(len(text)), nil); err != nil {
			t.Fatal(err)
		}
	}
	v := &vault{}
	inner := gofakes3.New(backend).Server()
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		signed := r.Header.Get("Authorization") != ""
		if signed && !isSigned(r, "key", "secret") || !signed && strings.Contains(r.URL.Path+r.URL.RawQuery, "private") {
			http.Error(w, "<Error><Code>SignatureDoesNotMatch</Code></Error>", http.StatusForbidden)
			return
		}
		if r.Method == http.MethodGet && !strings.HasSuffix(r.URL.Path, "/") {
			v.got++
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(v.Close)
	v.env = map[string]string{"AWS_ENDPOINT_URL": v.URL, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "eu-central-1"}
	return v
}

// isSigned checks a request's signature, as AWS's documents say: Authenticating Requests (AWS Signature Version 4).
func isSigned(r *http.Request, id, secret string) bool {
	mac := func(key []byte, text string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	day := time.Now().UTC().Format("20060102")
	scope := day + "/eu-central-1/s3/aws4_request"
	var names, signature string
	if _, err := fmt.Sscanf(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential="+id+"/"+scope+", SignedHeaders=%s Signature=%s", &names, &signature); err != nil {
		return false
	}
	names = strings.TrimSuffix(names, ",")
	var headers strings.Builder
	for name := range strings.SplitSeq(names, ";") {
		value := r.Header.Get(name)
		if name == "host" {
			value = r.Host
		}
		fmt.Fprintf(&headers, "%s:%s\n", name, value)
	}
	path := strings.ReplaceAll(r.URL.EscapedPath(), "+", "%2B")
	canonical := strings.Join([]string{r.Method, path, r.URL.RawQuery, headers.String(), names, r.Header.Get("X-Amz-Content-Sha256")}, "\n")
	text := strings.Join([]string{"AWS4-HMAC-SHA256", r.Header.Get("X-Amz-Date"), scope, sum([]byte(canonical))}, "\n")
	key := mac(mac(mac(mac([]byte("AWS4"+secret), day), "eu-central-1"), "s3"), "aws4_request")
	return hex.EncodeToString(mac(key, text)) == signature && strings.Contains(names, "x-amz-content-sha256")
}

func (v *vault) cache(t *testing.T, trusted ...string) *remote.Cache {
	n := fetch.New(func(string) string { return "" })
	n.Pause, n.Tries = time.Millisecond, 1
	return &remote.Cache{Dir: t.TempDir(), Trusted: trusted, Net: n, Env: func(name string) string { return v.env[name] }}
}

func TestFilesOfS3(t *testing.T) {
	const table = "a,b\n1,2\n"
	files := map[string]string{"table.csv": table, "private/a b+é#1.csv": table, "odd/test.csv": table, "mixed/a.csv": table, "mixed/b.csv": table}
	for i := range 3 {
		files[fmt.Sprintf("shards/train-%05d-of-00003.csv", i)] = fmt.Sprintf("a,b\n%d,2\n", i)
	}
	v := newVault(t, files)
	c := v.cache(t, "s3://data")
	for _, source := range []string{"s3://data/table.csv", "s3://data/private/a b+é#1.csv", "s3://data/table.csv#sha256=" + sum([]byte(table))} {
		brings(t, c, source, []byte(table))
	}
	f, err := c.Fetch(t.Context(), "s3://data/table.csv")
	if err != nil || f.Source != "s3://data/table.csv#sha256="+sum([]byte(table)) || v.got != 3 {
		t.Errorf("%+v, %d files given, %v", f, v.got, err)
	}
	for _, source := range []string{"s3://data/shards/", "s3://data/shards/train-*.csv"} {
		f, err := c.Fetch(t.Context(), source)
		names, _ := filepath.Glob(f.Path)
		if err != nil || len(names) != 3 || f.Source != source {
			t.Fatalf("%s: %+v %q %v", source, f, names, err)
		}
		for i, name := range names {
			if got, err := os.ReadFile(name); err != nil || string(got) != fmt.Sprintf("a,b\n%d,2\n", i) {
				t.Errorf("%s holds %q: %v", name, got, err)
			}
		}
	}
	for source, want := range map[string]string{
		"s3://data/none.csv": "404", "s3://none/a.csv": "404", "s3://data/none/": `has no file "none"`, "s3://data/mixed/": "may be meant", "s3://Data/a.csv": "no bucket", "s3://": "no bucket",
		"s3://data/x/..": "no name of a file", "s3://data/table.csv#sha256=1": "64 hexadecimal digits", "s3://data/table.csv#sha256=" + sum(nil): "is not what the source promises",
	} {
		_, err := c.Fetch(t.Context(), source)
		refuses(t, err, want)
	}
}

// An order file that somebody else may have written reads nothing by the user's credentials.
func TestCredentialsAreForWhatIsTrusted(t *testing.T) {
	v := newVault(t, map[string]string{"table.csv": "a\n1\n", "private/table.csv": "a\n1\n"})
	for _, trusted := range []string{"", "s3://dat", "s3://data/privat", "s3://data/table.csv"} {
		c := v.cache(t, trusted)
		if trusted == "" {
			c.Trusted = nil
		}
		brings(t, c, "s3://data/table.csv", []byte("a\n1\n"))
		_, err := c.Fetch(t.Context(), "s3://data/private/table.csv")
		refuses(t, err, "add --allow s3://data/private/table.csv")
	}
	for _, trusted := range []string{"s3://data", "s3://data/", "s3://data/private", "s3://data/private/table.csv"} {
		brings(t, v.cache(t, trusted), "s3://data/private/table.csv", []byte("a\n1\n"))
	}
	v.env["AWS_SECRET_ACCESS_KEY"] = "wrong"
	_, err := v.cache(t, "s3://data").Fetch(t.Context(), "s3://data/table.csv")
	refuses(t, err, "403")
	v.env["AWS_SECRET_ACCESS_KEY"] = ""
	_, err = v.cache(t, "s3://data").Fetch(t.Context(), "s3://data/table.csv")
	refuses(t, err, "set both, or none")
	v.env["AWS_REGION"] = "evil.example/"
	_, err = v.cache(t).Fetch(t.Context(), "s3://data/table.csv")
	refuses(t, err, "no region")

	h := newHub(t)
	asked := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Header.Get("Authorization")
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	c := v.cache(t)
	c.Net = fetch.New(func(name string) string { return map[string]string{"HF_ENDPOINT": s.URL, "HF_TOKEN": "secret"}[name] })
	_, err = c.Fetch(t.Context(), "hf:org/none")
	if refuses(t, err, "add --allow hf:org/none"); asked != "" {
		t.Errorf("a token was sent: %q", asked)
	}
	c.Trusted = []string{"hf:org/none"}
	_, err = c.Fetch(t.Context(), "hf:org/none")
	if refuses(t, err, "404"); asked != "Bearer secret" {
		t.Errorf("no token was sent: %q", asked)
	}
}

// TALLY_S3 names a source on a server that is not of this process, and the usual environment who may read it: testdata/s3.py is one.
func TestRealS3(t *testing.T) {
	source := os.Getenv("TALLY_S3")
	if source == "" {
		t.Skip("TALLY_S3 names no source")
	}
	c := &remote.Cache{Dir: t.TempDir(), Trusted: []string{source}}
	f, err := c.Fetch(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(f.Path)
	t.Log(f.Source, names, err)
	c = &remote.Cache{Dir: t.TempDir()}
	if _, err := c.Fetch(t.Context(), source); err == nil {
		t.Error("it is public: the signature was not needed")
	}
}
