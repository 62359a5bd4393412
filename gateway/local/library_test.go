package local

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/gateway/reply"
	"github.com/tally-network/tally/model/library"
)

// What is in the library is listed and found; what is damaged, or no language model, hides nothing else.
func TestLibrary(t *testing.T) {
	index := httptest.NewServer(http.NotFoundHandler())
	defer index.Close()
	t.Setenv("PIP_INDEX_URL", index.URL)
	dir := t.TempDir()
	l, err := library.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	tiny := folder(t, "tiny", nil)
	good, err := l.Pull(t.Context(), tiny, library.Options{Name: "good"})
	if err != nil {
		t.Fatal(err)
	}
	if digest, err := library.DigestOf(t.Context(), tiny); err != nil || digest != good.Digest {
		t.Errorf("the digest of the folder is %s, %v, and in the library %s", digest, err, good.Digest)
	}
	odd := folder(t, "odd", map[string]string{"config.json": `{"model_type": "bert"}`})
	if _, err := l.Pull(t.Context(), odd, library.Options{Name: "odd"}); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "damaged"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "damaged", "model.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := models(t, Options{Find: NewLibrary(l)})
	all, err := m.List(t.Context())
	if err != nil || len(all) != 1 || all[0].Name != "good" || all[0].Digest != good.Digest || all[0].Details.Template != template {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := m.Open(t.Context(), "good", nil); err != nil {
		t.Error(err)
	}
	status := func(err error) int {
		var f *api.Fault
		if !errors.As(err, &f) {
			return 0
		}
		return f.Status
	}
	for name, want := range map[string]int{"nowhere": http.StatusNotFound, "meta-llama/Llama-3": http.StatusNotFound, "../good": http.StatusNotFound, "odd": http.StatusBadRequest} {
		if _, err := m.Open(t.Context(), name, nil); status(err) != want {
			t.Errorf("%s: %v, want %d", name, err, want)
		}
	}
	for name, want := range map[string]int{"good": 0, tiny: http.StatusBadRequest, "/etc": http.StatusBadRequest, "http://127.0.0.1:1/x.gguf": http.StatusBadRequest, "pypi:nothing": http.StatusBadGateway} {
		if err := m.Pull(t.Context(), name, func(reply.Progress) {}); status(err) != want {
			t.Errorf("pulling %s: %v, want %d", name, err, want)
		}
	}
}
