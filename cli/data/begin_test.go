package data_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/cli/data"
	"github.com/tally-network/tally/node/consume/dataset"
)

// hub serves a dataset in two shards, which it promises nothing of but their sizes.
func hub(t *testing.T) (commit string) {
	commit = strings.Repeat("cd", 20)
	files := map[string]string{}
	var listed []string
	for i := range 2 {
		name := fmt.Sprintf("data/train-%05d-of-00002.csv", i)
		var b strings.Builder
		b.WriteString("x,y,label\n")
		for j := range 20 {
			fmt.Fprintf(&b, "%d.5,%d,%s\n", 20*i+j, j%7, []string{"a", "b"}[j%2])
		}
		files["/datasets/org/points/resolve/"+commit+"/"+name] = b.String()
		listed = append(listed, fmt.Sprintf(`{"rfilename":%q,"size":%d}`, name, b.Len()))
	}
	list := fmt.Sprintf(`{"sha":%q,"siblings":[%s]}`, commit, strings.Join(listed, ","))
	files["/api/datasets/org/points"], files["/api/datasets/org/points/revision/"+commit] = list, list
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text, ok := files[r.URL.Path]; ok {
			fmt.Fprint(w, text)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	t.Setenv("HF_ENDPOINT", s.URL)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	return commit
}

// An order is begun for a dataset in shards, and names its very commit; a folder of files stays where it is.
func TestOrdersForShards(t *testing.T) {
	commit := hub(t)
	text, _, err := run("hf:org/points")
	if err != nil || !strings.Contains(text, "40 records") {
		t.Fatal(text, err)
	}
	dir := t.TempDir()
	b, err := data.Begin(t.Context(), filepath.Join(dir, "order"), data.Sketch{Options: dataset.Options{Source: "hf:org/points", Target: "label"}}, nil)
	if err != nil || b.Outside {
		t.Fatal(b, err)
	}
	order, err := os.ReadFile(b.File)
	if err != nil || !strings.Contains(string(order), "hf:org/points@"+commit) {
		t.Errorf("%s %v", order, err)
	}
	local := filepath.Join(dir, "local")
	if err := os.MkdirAll(local, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if err := os.WriteFile(filepath.Join(local, fmt.Sprintf("p%d.csv", i)), []byte("x,label\n"+strings.Repeat("1,a\n2,b\n", 20)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i, source := range []string{local, filepath.Join(local, "p*.csv")} {
		b, err := data.Begin(t.Context(), filepath.Join(dir, fmt.Sprint(i)), data.Sketch{Options: dataset.Options{Source: source, Target: "label"}}, nil)
		if err != nil || !b.Outside {
			t.Fatal(b, err)
		}
		if order, err := os.ReadFile(b.File); err != nil || !strings.Contains(string(order), source) {
			t.Errorf("%s %v", order, err)
		}
	}
}

// A column that numbers the records is left out, which is said, unless somebody keeps it; others are left out by name.
func TestOrdersLeaveIDsOut(t *testing.T) {
	dir := t.TempDir()
	rows := []string{"id,name,x,y,label"}
	for i := range 24 {
		rows = append(rows, fmt.Sprintf("%d,n%d,%d.5,%d,%s", 24-i, i, i%5, i%7, []string{"a", "b"}[i%2]))
	}
	source := filepath.Join(dir, "t.csv")
	if err := os.WriteFile(source, []byte(strings.Join(rows, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]struct{ ignore, keep []string }{
		`ignore: ["id", "name"]`:      {},
		`ignore: ["y", "id", "name"]`: {ignore: []string{"y"}},
		`ignore: ["name"]`:            {keep: []string{"id"}},
	} {
		b, err := data.Begin(t.Context(), filepath.Join(dir, fmt.Sprint(len(want))), data.Sketch{Options: dataset.Options{Source: source, Target: "label", Ignore: c.ignore, Kinds: map[string]string{"name": "category"}}, Keep: c.keep}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if order, err := os.ReadFile(b.File); err != nil || !strings.Contains(string(order), want) || !strings.Contains(string(order), `# "name" tells each record apart`) || strings.Contains(string(order), `# "id" tells each record apart`) == (c.keep != nil) {
			t.Errorf("%s %v, want %s", order, err, want)
		}
	}
	if _, err := data.Begin(t.Context(), filepath.Join(dir, "kept"), data.Sketch{Options: dataset.Options{Source: source, Target: "label", Kinds: map[string]string{"name": "text"}}, Keep: []string{"name"}}, nil); err == nil || !strings.Contains(err.Error(), "text of many values") {
		t.Errorf("a text is kept that no model reads: %v", err)
	}
	index := filepath.Join(dir, "index.csv")
	if err := os.WriteFile(index, []byte("__index_level_0__,x,label\n"+strings.Repeat("7,1,a\n3,2,b\n", 20)), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := data.Begin(t.Context(), filepath.Join(dir, "pandas"), data.Sketch{Options: dataset.Options{Source: index, Target: "label"}}, nil); err != nil || !slices.Equal(b.Data.Ignore, []string{"__index_level_0__"}) {
		t.Errorf("the index of a table is learnt from: %v", err)
	}
	if _, err := data.Begin(t.Context(), filepath.Join(dir, "none"), data.Sketch{Options: dataset.Options{Source: source, Target: "label", Ignore: []string{"weight"}}}, nil); err == nil || !strings.Contains(err.Error(), "weight") {
		t.Errorf("a column that there is not is ignored: %v", err)
	}
	if err := os.WriteFile(source, []byte("x,y\n"+func() (out string) {
		for i := range 20 {
			out += fmt.Sprintf("%d,%d.5\n", i, 2*i)
		}
		return out
	}()), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := data.Begin(t.Context(), filepath.Join(dir, "alone"), data.Sketch{Options: dataset.Options{Source: source, Target: "y"}}, nil)
	if err != nil || len(b.Data.Ignore) > 0 {
		t.Errorf("the only feature is left out: %v", err)
	}
}
