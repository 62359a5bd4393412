package archtest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/tally-network/tally"
)

// file is one Go file of the repository.
type file struct {
	path      string // from the root, with slashes
	dir       string
	test      bool
	generated bool
	lines     int
	ast       *ast.File // package clause, imports and comments
}

var fset = token.NewFileSet()

// goFiles returns every Go file, those for other systems too.
func goFiles(t *testing.T) (out []file) {
	t.Helper()
	walk(t, func(name string, text []byte) {
		if path.Ext(name) != ".go" {
			return
		}
		f, err := parser.ParseFile(fset, name, text, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, file{
			path: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"),
			generated: ast.IsGenerated(f), lines: bytes.Count(text, []byte("\n")), ast: f,
		})
	})
	if len(out) < 100 {
		t.Fatalf("only %d Go files below %s", len(out), root)
	}
	return out
}

// walk gives every file that is part of the repository.
func walk(t *testing.T, do func(name string, text []byte)) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".git", ".cache", "bin", "node_modules", "tally-demo", "tally-devnet"}, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if d.Name() == ".git" { // of a worktree
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		short, err := filepath.Rel(root, name)
		do(filepath.ToSlash(short), text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (f file) imports() (out []string) {
	for _, i := range f.ast.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		out = append(out, p)
	}
	return out
}

// under reports whether a path is one of the folders or below one.
func under(p string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return p == f || strings.HasPrefix(p, f+"/") })
}

func TestPackageComments(t *testing.T) {
	said := map[string]int{}
	for _, f := range goFiles(t) {
		if f.test || under(f.dir, "gen") {
			continue
		}
		said[f.dir] += 0
		if f.ast.Doc == nil {
			continue
		}
		said[f.dir]++
		want := "Package " + f.ast.Name.Name + " "
		if f.ast.Name.Name == "main" {
			want = "Command " + path.Base(f.dir) + " "
		}
		if !strings.HasPrefix(f.ast.Doc.Text(), want) {
			t.Errorf("%s: the package comment does not begin with %q", f.path, want)
		}
	}
	for dir, n := range said {
		if n != 1 {
			t.Errorf("%s has %d package comments: one says what the package is, its invariants and its source, so that nobody has to guess them from the code", dir, n)
		}
	}
}

func TestPackageNames(t *testing.T) {
	for _, f := range goFiles(t) {
		if slices.Contains([]string{"util", "utils", "common", "helper", "helpers", "misc", "types", "base", "shared", "lib"}, f.ast.Name.Name) {
			t.Errorf("%s: a package named %s says nothing about what belongs in it", f.path, f.ast.Name.Name)
		}
		if name := strings.TrimSuffix(f.ast.Name.Name, "_test"); name != "main" && !f.generated && name != path.Base(f.dir) {
			t.Errorf("%s: package %s in folder %s: a name is the same everywhere", f.path, name, f.dir)
		}
	}
}

func TestFileSizes(t *testing.T) {
	for _, f := range goFiles(t) {
		limit := 500
		if f.test {
			limit = 900
		}
		if f.lines > limit && !f.generated {
			t.Errorf("%s has %d lines, limit %d: a file is about one thing, and is read in one go", f.path, f.lines, limit)
		}
	}
}

// unbounded reads a file whole, whatever its size.
var unbounded = regexp.MustCompile(`\b(os|ioutil)\.ReadFile\(|\bio\.ReadAll\((?:[^i]|i[^o])`)

func TestFilesAreReadWithinBounds(t *testing.T) {
	walk(t, func(name string, text []byte) {
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || !under(name, "cli", "cmd", "format", "model", "node", "p2p") {
			return
		}
		for i, line := range strings.Split(string(text), "\n") {
			if m := unbounded.FindString(line); m != "" {
				t.Errorf("%s:%d: %s…: a file that somebody names may have no end; bounded.ReadFile takes a limit", name, i+1, m)
			}
		}
	})
}

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	walk(t, func(name string, text []byte) {
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || !under(name, "cli", "node") {
			return
		}
		for i, line := range strings.Split(string(text), "\n") {
			if strings.Contains(line, "os.Open(") {
				t.Errorf("%s:%d: os.Open waits for ever at a pipe, and opens devices; bounded.Open refuses both", name, i+1)
			}
		}
	})
}

// A line that is right on one machine alone.
var machine = regexp.MustCompile("(^|[\\s\"'`=:(])(/(work|home|root|tmp|Users|private)/|[A-Z]:\\\\)")

// Hosts that a Go or npm client chooses by its own settings.
var registry = regexp.MustCompile(`(proxy|sum)\.golang\.org|registry\.npmjs\.org|goproxy\.[a-z]+`)

func TestMachines(t *testing.T) {
	walk(t, func(name string, text []byte) {
		if strings.HasSuffix(name, "_test.go") || under(path.Dir(name), "gen") || bytes.IndexByte(text, 0) >= 0 {
			return
		}
		for i, line := range strings.Split(string(text), "\n") {
			if m := machine.FindString(line); m != "" {
				t.Errorf("%s:%d: the path %s… exists on some machines only", name, i+1, m)
			}
			if m := registry.FindString(line); m != "" {
				t.Errorf("%s:%d: %s: where modules and packages come from is the choice of who builds", name, i+1, m)
			}
		}
	})
}
