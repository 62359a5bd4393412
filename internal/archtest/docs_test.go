package archtest

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var link = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

func TestLinks(t *testing.T) {
	found := 0
	walk(t, func(name string, text []byte) {
		if path.Ext(name) != ".md" {
			return
		}
		for _, m := range link.FindAllSubmatch(text, -1) {
			found++
			if _, err := os.Stat(filepath.Join(root, path.Dir(name), string(m[1]))); err != nil {
				t.Errorf("%s links to %s, which is not there", name, m[1])
			}
		}
	})
	if found < 10 {
		t.Fatalf("only %d links", found)
	}
}

func TestArchitectureNamesEveryPackage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, layout, _ := strings.Cut(string(text), "\n## Layout\n")
	layout, _, _ = strings.Cut(layout, "\n## ")
	for _, f := range goFiles(t) {
		if under(f.dir, "gen") || f.test {
			continue
		}
		if !regexp.MustCompile(`\b` + path.Base(f.dir) + `\b`).MatchString(layout) {
			t.Errorf("%s is not in the layout of ARCHITECTURE.md", f.dir)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^([a-z]+)/`).FindAllStringSubmatch(layout, -1) {
		if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
			t.Errorf("ARCHITECTURE.md speaks of %s/, which is not there", m[1])
		}
	}
}

// Two decisions of one number could not be told apart.
func TestDecisionsAreNumberedOnce(t *testing.T) {
	all, err := filepath.Glob(filepath.Join(root, "docs/adr/[0-9]*.md"))
	if err != nil || len(all) < 10 {
		t.Fatal(len(all), err)
	}
	seen := map[string]string{}
	for _, name := range all {
		number := filepath.Base(name)[:4]
		if other := seen[number]; other != "" {
			t.Errorf("%s and %s have one number", other, name)
		}
		seen[number] = name
	}
}

// A page that says which test shows something names one that there is.
func TestDocsNameTestsThatExist(t *testing.T) {
	tests := map[string]bool{}
	walk(t, func(name string, text []byte) {
		if strings.HasSuffix(name, "_test.go") {
			for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllSubmatch(text, -1) {
				tests[string(m[1])] = true
			}
		}
	})
	found := 0
	walk(t, func(name string, text []byte) {
		if path.Ext(name) != ".md" {
			return
		}
		for _, m := range regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w+)`").FindAllSubmatch(text, -1) {
			if found++; !tests[string(m[1])] {
				t.Errorf("%s names %s, and no test is called so", name, m[1])
			}
		}
	})
	if found < 10 {
		t.Fatalf("only %d tests are named", found)
	}
}

// untold are packages whose comment need not say what to call first, or what always holds.
var untold = map[string]string{
	"cmd/tally": "a command", "engine/cpu/gen": "a command", "internal/democheck": "a command",
	"engine": "an interface: executors say what to call", "engine/cpu/tuning": "a table of constants",
	"internal/archtest": "tests alone", "internal/e2e": "tests alone",
}

var docLink = regexp.MustCompile(`\[\*?[A-Z]\w*(\.[A-Z]\w*)?\]`)

// Whoever meets a package looks first for where to begin, and for what may be relied upon.
func TestPackageCommentsSayWhereToBegin(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.ast.Doc == nil || f.generated || f.test || under(f.dir, "gen", "internal/testkit") || untold[f.dir] != "" {
			continue
		}
		text := f.ast.Doc.Text()
		if !docLink.MatchString(text) && !strings.Contains(text, f.ast.Name.Name+".") {
			t.Errorf("%s: the package comment does not say what to call first, by a link such as [New]", f.dir)
		}
		if !strings.Contains(text, "nvariant") {
			t.Errorf("%s: the package comment does not say what always holds: its invariants", f.dir)
		}
	}
	for dir := range untold {
		if _, err := os.Stat(filepath.Join(root, dir)); err != nil {
			t.Errorf("%s is excepted, and is not there", dir)
		}
	}
}
