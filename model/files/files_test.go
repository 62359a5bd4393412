package files

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/internal/testkit/lmtest"
)

func TestOpen(t *testing.T) {
	f, err := Open(lmtest.Folder(t, "tiny", nil))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(f.Ends, []int32{1, 46}) || f.Template == nil || f.Weights.Vocabulary != 48 || f.Tokenizer.Size() != 48 || f.Description.Family != "llama" {
		t.Errorf("ends %v, template %v, %d and %d tokens, %s", f.Ends, f.Template, f.Weights.Vocabulary, f.Tokenizer.Size(), f.Description.Family)
	}
	bare, err := Open(lmtest.Folder(t, "bare", map[string]string{"tokenizer_config.json": "", "generation_config.json": ""}))
	if err != nil {
		t.Fatal(err)
	}
	if bare.Template != nil {
		t.Error("a model without a template has one")
	}
}

func TestOpenRefuses(t *testing.T) {
	for says, c := range map[string]struct{ file, text string }{
		"there is no tokenizer.json": {"tokenizer.json", ""},
		"read tokenizer":             {"tokenizer.json", "{}"},
		"want an id, or several":     {"generation_config.json", `{"eos_token_id": "none"}`},
		"tokenizer_config.json":      {"tokenizer_config.json", "[]"},
		"eos_token_id: ":             {"generation_config.json", "{"},
		"no such file":               {"model.safetensors", ""},
		`"mamba" is not supported`:   {"config.json", `{"model_type": "mamba"}`},
		"template":                   {"chat_template.jinja", "{% for %}"},
	} {
		if _, err := Open(lmtest.Folder(t, "tiny", map[string]string{c.file: c.text})); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s as %q: %v, want %q", c.file, c.text, err, says)
		}
	}
}

// An index is read where there is no file of all weights. One that was left beside such a file says nothing of it.
func TestIndexBesideAWholeFile(t *testing.T) {
	broken := map[string]string{"model.safetensors.index.json": "{"}
	if _, err := Open(lmtest.Folder(t, "tiny", broken)); err != nil {
		t.Error(err)
	}
	broken["model.safetensors"] = ""
	if _, err := Open(lmtest.Folder(t, "tiny", broken)); err == nil || !strings.Contains(err.Error(), "model.safetensors.index.json:") {
		t.Errorf("%v", err)
	}
}

// A manifest has all of a model but its weights, and these by their root.
func TestManifest(t *testing.T) {
	open := func(instead map[string]string) (*Files, *Manifest) {
		f, err := Open(lmtest.Folder(t, "tiny", instead))
		if err != nil {
			t.Fatal(err)
		}
		m, err := f.Manifest(2)
		if err != nil {
			t.Fatal(err)
		}
		return f, m
	}
	f, m := open(nil)
	if _, again := open(nil); again.Root() != m.Root() {
		t.Error("two copies have two roots")
	}
	if _, other := open(map[string]string{"chat_template.jinja": "{{ messages }}"}); other.Root() == m.Root() || other.Weights != m.Weights || other.Steps != m.Steps {
		t.Error("another template has the same root, or other weights or steps")
	}
	var back Manifest
	if err := canon.Unmarshal(canon.Marshal(m), &back); err != nil || back.Root() != m.Root() {
		t.Fatalf("it reads again as %+v, %v", back, err)
	}
	texts := Texts{}
	for _, x := range back.Files {
		if err := x.Verify(f.Texts[x.Name]); err != nil {
			t.Error(err)
		}
		if x.Verify(append(slices.Clone(f.Texts[x.Name]), ' ')) == nil {
			t.Errorf("%s may end with a space", x.Name)
		}
		texts[x.Name] = f.Texts[x.Name]
	}
	p, err := texts.Parse()
	if err != nil || !slices.Equal(p.Ends, f.Ends) || p.Config.Vocabulary != f.Weights.Vocabulary {
		t.Errorf("of the texts alone: %+v, %v", p, err)
	}
}

// An adapted model is another model, with the texts of its base, and is the same whoever makes it.
func TestAdapted(t *testing.T) {
	f, err := Open(lmtest.Folder(t, "tiny", nil))
	if err != nil {
		t.Fatal(err)
	}
	manifest := func(f *Files) *Manifest {
		m, err := f.Manifest(2)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	base := manifest(f)
	seen := map[canon.Hash]bool{base.Root(): true}
	for _, name := range []string{"llama-some", "llama-other", "llama-all"} {
		x, err := f.Adapted(lmtest.Adapter(t, name))
		if err != nil {
			t.Fatal(err)
		}
		m := manifest(x)
		if seen[m.Root()] || m.Weights == base.Weights || m.Steps == base.Steps || !slices.Equal(m.Files, base.Files) {
			t.Errorf("%s: %+v, and the base %+v", name, m, base)
		}
		seen[m.Root()] = true
		other, err := Open(lmtest.Folder(t, "other", nil))
		if err != nil {
			t.Fatal(err)
		}
		if again, err := other.Adapted(lmtest.Adapter(t, name)); err != nil || manifest(again).Root() != m.Root() {
			t.Errorf("%s: another root elsewhere, %v", name, err)
		}
		d := x.Description
		if d.Adapter == nil || d.Adapter.Base != "llama" || d.Parameters != f.Description.Parameters+d.Adapter.Parameters || f.Description.Adapter != nil {
			t.Errorf("%+v", d)
		}
	}
	if manifest(f).Root() != base.Root() {
		t.Error("the base has another root afterwards")
	}
	if _, err := f.Adapted(t.TempDir()); err == nil {
		t.Error("an empty folder is an adapter")
	}
}

func TestManifestsThatCannotBe(t *testing.T) {
	for says, m := range map[string]Manifest{
		"nothing is read from": {Files: []File{{Name: "../../x"}}}, "not sorted": {Files: []File{{Name: configName}, {Name: configName}}},
		"of at most": {Files: []File{{Name: configName, Bytes: maxText + 1}}},
		"0 layers":   {Chunks: 1},
	} {
		if says != "0 layers" {
			m.Layers, m.Chunks = 1, 1
		}
		var back Manifest
		if err := canon.Unmarshal(canon.Marshal(&m), &back); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", m, err, says)
		}
	}
}

// With TALLY_GGUF, a real file's header is a model without weights.
func TestHeaderAlone(t *testing.T) {
	path := os.Getenv("TALLY_GGUF")
	if path == "" {
		t.Skip("TALLY_GGUF names no file")
	}
	texts, err := ReadTexts(filepath.Clean(path))
	if err != nil {
		t.Fatal(err)
	}
	p, err := texts.Parse()
	if err != nil || p.Template == nil || len(p.Ends) == 0 {
		t.Errorf("%+v, %v", p, err)
	}
	t.Logf("%d bytes of header, %d tokens, ends %v", len(texts[headerName]), p.Tokenizer.Size(), p.Ends)
}
