package source_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/format/source"
)

func TestSelect(t *testing.T) {
	var shards []string
	for i := range 12 {
		shards = append(shards, fmt.Sprintf("data/train-%05d-of-00012.parquet", i))
	}
	for _, c := range []struct {
		files, pattern string // what is there, apart from the shards
		want           string // files, or what the error says
	}{
		{"README.md one.csv", "", "one.csv"},
		{"data/test-00000-of-00001.parquet SHARDS .gitattributes", "", "SHARDS"},
		{"SHARDS", "data", "SHARDS"}, {"SHARDS", "data/", "SHARDS"}, {"SHARDS", "data/*", "SHARDS"},
		{"SHARDS", "data/train-0000[01]-*.parquet", "data/train-00000-of-00012.parquet data/train-00001-of-00012.parquet"},
		{"SHARDS", "data/train-00003-of-00012.parquet", "data/train-00003-of-00012.parquet"},
		{"train-00000-of-00001-7b34565378f3bb03.parquet test-00000-of-00001-8b34565378f3bb03.parquet", "", "train-00000-of-00001-7b34565378f3bb03.parquet"},
		{"train-00000-of-00002-7b34565378f3bb03.parquet train-00001-of-00002-ab34565378f3bb0a.parquet", "", "train-00000-of-00002-7b34565378f3bb03.parquet train-00001-of-00002-ab34565378f3bb0a.parquet"},
		{"p2.csv p10.csv p1.csv", "", "p1.csv p2.csv p10.csv"},
		{"train/a.csv test/a.csv", "", "train/a.csv"},
		{"main/train.csv main/test.csv other/train.csv", "main", "main/train.csv"},
		{"training_set.jsonl dev.jsonl", "", "training_set.jsonl"},
		{"_cache/train.csv .x/train.csv b.csv", "", "b.csv"},
		{"a.csv constrained.csv", "*.csv", "a.csv constrained.csv"},
		{"a.csv b.csv", "", `2 files that may be meant: choose a file, a folder or a pattern such as data/train-*.parquet, of ["a.csv" "b.csv"]`},
		{"main/train.csv other/train.csv", "", "may be meant"},
		{"train.csv train.jsonl", "", "may be meant"},
		{"train.csv train.jsonl", "train*", "may be meant"},
		{"validation.csv test.csv", "", "may be meant"},
		{"a.csv test.csv", "", "may be meant"},
		{"train-00000-of-00003.csv train-00002-of-00003.csv", "", "2 files, of 00003"},
		{"a.csv", "b.csv", `no file "b.csv", but ["a.csv"]`}, {"a.csv", "b", "no file"}, {"a.csv", "b*", "no file"}, {"a.csv", "[", "a [ is closed"},
		{"README.md", "", "none of its files ends in"}, {"", "", "none of its files"}, {"SHARDS", "x", `no file "x"`},
	} {
		all := strings.ReplaceAll(c.files, "SHARDS", strings.Join(shards, " "))
		want := strings.ReplaceAll(c.want, "SHARDS", strings.Join(shards, " "))
		names := strings.Fields(all)
		slices.Reverse(names)
		got, err := source.Select(names, c.pattern)
		if strings.Join(got, " ") == want && err == nil {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q of %q: %q, %v; want %q", c.pattern, c.files, got, err, want)
		}
	}
	var many []string
	for i := range source.MaxShards + 1 {
		many = append(many, fmt.Sprint(i, ".csv"))
	}
	if _, err := source.Select(many, ""); err == nil || !strings.Contains(err.Error(), "name a part of them") {
		t.Error(err)
	}
}

// Files of a folder give the table that one file of all records gives.
func TestFolderOfFiles(t *testing.T) {
	dir := write(t, map[string]string{
		"whole.csv":         "n,x,w,t\n1,2,a,p\n2,3,b,q\n,0.5,a,r\n4,1,b,s\n5,,a,\n6,2,b,u\n",
		"parts/train-1.csv": "n,x,w,t\n1,2,a,p\n2,3,b,q\n", "parts/train-2.csv": "w,t,n,x\na,r,,0.5\nb,s,4,1\n", "parts/train-10.csv": "n,x,w,t\n5,,a,\n6,2,b,u\n",
		"parts/test.csv": "n\n1\n", "parts/notes.txt": "x", "odd/a1.csv": "n\n1\n", "odd/a2.csv": "m\n1\n", "kinds/a1.csv": "n\n1\n", "kinds/a2.csv": "n\nx\n", "more/a1.csv": "n\n1\n", "more/a2.csv": "n,m\n1,2\n",
		"two/a.csv": "n\n1\n", "two/b.csv": "n\n1\n", "none/x.txt": "x",
	})
	whole, err := source.Open(filepath.Join(dir, "whole.csv"), source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"parts", "parts/train-*.csv", "parts/train-[0-9]*.csv"} {
		got, err := source.Open(filepath.Join(dir, name), source.Options{})
		if err != nil || got.Records != whole.Records {
			t.Fatalf("%s: %v, %v", name, got, err)
		}
		for i, c := range got.Columns {
			w := whole.Columns[i]
			if c.Kind != w.Kind || c.Name != w.Name || strings.Join(c.Categories, " ") != strings.Join(w.Categories, " ") {
				t.Errorf("%s: column %d is %s, %v of %q; want %s, %v of %q", name, i, c.Name, c.Kind, c.Categories, w.Name, w.Kind, w.Categories)
			}
			for r := range got.Records {
				if c.Value(r) != w.Value(r) || c.Lacks(r) != w.Lacks(r) {
					t.Errorf("%s: column %s, record %d: %q, want %q", name, c.Name, r, c.Value(r), w.Value(r))
				}
			}
		}
	}
	for name, kind := range map[string]string{"i": "integer", "b": "boolean", "c": "category", "j": "json", "r": "real"} {
		value := map[string]string{"i": "7", "b": "true", "c": `"x"`, "j": `[{"a":1}]`, "r": "1.5"}[name]
		dir := write(t, map[string]string{"a1.jsonl": `{"k":null,"z":1}` + "\n", "a2.jsonl": strings.Repeat(`{"k":`+value+`,"z":2}`+"\n", 2)})
		got, err := source.Open(dir, source.Options{})
		if err != nil || got.Columns[0].Kind.String() != kind || !got.Columns[0].Lacks(0) || got.Columns[0].Lacks(1) || got.Columns[0].Value(2) != strings.Trim(value, `"`) {
			t.Errorf("%s: %v, %v", kind, got, err)
		}
	}
	for name, want := range map[string]string{
		"odd": `part 2 of 2: no column is called "n"`, "kinds": "it is integer, and", "more": "has 2 columns, the first 1", "two": "may be meant", "none": "there are no images", "parts/x*.csv": "has no file",
	} {
		if _, err := source.Open(filepath.Join(dir, name), source.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
