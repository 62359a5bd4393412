package adversary

import (
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What play.sh does with this package before it runs it on an old commit: today's words
// are turned into that commit's, and the patch is applied.
func TestBeforeStillApplies(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git")
	}
	read := func(name string) string {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	var words []string
	for line := range strings.Lines(read("testdata/before/words.sed")) {
		if part := strings.Split(strings.TrimSpace(line), "/"); len(part) == 4 && part[0] == "s" {
			words = append(words, part[1], part[2])
		}
	}
	names, err := filepath.Glob("*.go")
	if err != nil || len(names) == 0 || len(words) == 0 {
		t.Fatalf("%d files, %d words, %v", len(names), len(words), err)
	}
	dir := t.TempDir()
	here := filepath.Join(dir, "internal", "testkit", "adversary")
	if err := os.MkdirAll(here, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := format.Source([]byte(strings.NewReplacer(words...).Replace(read(name))))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(here, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	patch, err := filepath.Abs("testdata/before/adapt.patch")
	if err != nil {
		t.Fatal(err)
	}
	apply := exec.Command(git, "apply", "--check", patch)
	apply.Dir = dir
	if out, err := apply.CombinedOutput(); err != nil {
		t.Errorf("testdata/before/adapt.patch does not apply any more: adapt it and run make adversary-before\n%s", out)
	}
}
