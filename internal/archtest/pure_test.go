package archtest

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// Code of these folders must compute the same on every machine, every time.
var (
	everywhere    = []string{"core", "chain"}
	withArith     = []string{"core", "engine"}
	floatsAllowed = map[string]string{
		"core/tensor": "defines the arithmetic",
		"core/quant":  "what quantised weights mean in float32",
		"core/graph":  "attributes and scalars of operators",
		"core/lower":  "constants of numeric profiles",
		"core/op":     "constants of expansions and gradients",
		"core/train":  "hyperparameters and the constants of optimizers",
	}
)

// A check looks at one package and tells what is wrong where.
type check func(p *packages.Package, tell func(ast.Node, string))

func TestDeterminism(t *testing.T) {
	pkgs := load(t, nil, "./core/...", "./chain/...", "./engine/...")
	if len(pkgs) < 20 {
		t.Fatalf("only %d packages", len(pkgs))
	}
	for _, p := range pkgs {
		dir := strings.TrimPrefix(p.PkgPath, module+"/")
		for _, c := range checksOf(dir) {
			c(p, func(n ast.Node, why string) {
				at := fset.Position(n.Pos())
				t.Errorf("%s/%s:%d: %s", dir, filepath.Base(at.Filename), at.Line, why)
			})
		}
	}
}

func load(t *testing.T, overlay map[string][]byte, patterns ...string) []*packages.Package {
	t.Helper()
	pkgs, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax, Dir: root, Fset: fset, Overlay: overlay}, patterns...)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pkgs {
		for _, e := range p.Errors {
			t.Fatal(e)
		}
	}
	return pkgs
}

func checksOf(dir string) (out []check) {
	if under(dir, everywhere...) {
		out = append(out, concurrency, clocks, mapOrder)
		if _, ok := floatsAllowed[dir]; !ok {
			out = append(out, floats)
		}
	}
	if under(dir, withArith...) {
		out = append(out, exactMath, fusion)
	}
	if dir != "core/canon" {
		out = append(out, domains)
	}
	return out
}

// concurrency forbids what depends on a scheduler.
func concurrency(p *packages.Package, tell func(ast.Node, string)) {
	each(p, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.GoStmt, *ast.SelectStmt, *ast.SendStmt, *ast.ChanType:
			tell(n, "goroutines and channels make the order of events a matter of chance; nodes own them")
		case *ast.SelectorExpr:
			o := p.TypesInfo.Uses[n.Sel]
			if o != nil && o.Pkg() != nil && under(o.Pkg().Path(), "sync") && o.Parent() == o.Pkg().Scope() && !explained(p, n, "sync") {
				tell(n, "locks are for goroutines, and here are none; if others may call this at once, say // sync: and who")
			}
		}
	})
}

// clocks forbids clocks, chance and surroundings.
func clocks(p *packages.Package, tell func(ast.Node, string)) {
	banned := map[string][]string{
		"time":         {"Now", "Since", "Until", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer", "Sleep", "Local", "LoadLocation"},
		"os":           nil,
		"net":          nil,
		"runtime":      nil,
		"math/rand":    nil,
		"math/rand/v2": nil,
		"crypto/rand":  nil,
	}
	each(p, func(n ast.Node) {
		id, ok := n.(*ast.Ident)
		if !ok {
			return
		}
		o := p.TypesInfo.Uses[id]
		if o == nil || o.Pkg() == nil || o.Parent() != o.Pkg().Scope() {
			return
		}
		if names, ok := banned[o.Pkg().Path()]; ok && (names == nil || slices.Contains(names, o.Name())) {
			tell(n, fmt.Sprintf("%s.%s differs between machines; take time, seeds and settings from the block or the caller", o.Pkg().Name(), o.Name()))
		}
	})
}

// mapOrder allows ranging over a map only to collect what is then sorted, or
// with a reason: // order: why it does not matter.
func mapOrder(p *packages.Package, tell func(ast.Node, string)) {
	isMap := func(e ast.Expr) bool {
		t := p.TypesInfo.TypeOf(e)
		if t == nil {
			return false
		}
		_, ok := t.Underlying().(*types.Map)
		return ok
	}
	const why = "maps have no order; sort the keys (slices.Sorted(maps.Keys(m))), or say // order: why it does not matter"
	sorted := map[ast.Expr]bool{}
	each(p, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.RangeStmt:
			if isMap(n.X) && !explained(p, n, "order") {
				tell(n, why)
			}
		case *ast.CallExpr:
			if inPackage(p, n.Fun, "slices", "Sorted", "SortedFunc", "SortedStableFunc") {
				sorted[n.Args[0]] = true
			}
			if inPackage(p, n.Fun, "maps", "Keys", "Values", "All") && !sorted[n] && !explained(p, n, "order") {
				tell(n, why)
			}
		}
	})
}

// floats forbids float arithmetic where money and protocol are.
func floats(p *packages.Package, tell func(ast.Node, string)) {
	lines := map[int]bool{}
	for e, v := range p.TypesInfo.Types {
		b, ok := basic(v.Type)
		if !ok || b.Info()&(types.IsFloat|types.IsComplex) == 0 || v.IsType() && b.Info()&types.IsUntyped != 0 {
			continue
		}
		if line := fset.Position(e.Pos()).Line; !lines[line] && !explained(p, e, "float") {
			lines[line] = true
			tell(e, "floats round; protocol and money are integers (floats may be in "+allowedFolders()+")")
		}
	}
}

// exactMath forbids functions of package math whose results differ between
// machines or versions of Go.
func exactMath(p *packages.Package, tell func(ast.Node, string)) {
	exact := []string{
		"Abs", "Ceil", "Copysign", "FMA", "Float32bits", "Float32frombits", "Float64bits", "Float64frombits", "Floor", "Frexp",
		"Inf", "IsInf", "IsNaN", "Ldexp", "Max", "Min", "Mod", "NaN", "RoundToEven", "Signbit", "Sqrt", "Trunc",
	}
	each(p, func(n ast.Node) {
		id, ok := n.(*ast.Ident)
		if !ok {
			return
		}
		o, ok := p.TypesInfo.Uses[id].(*types.Func)
		if ok && o.Pkg() != nil && o.Pkg().Path() == "math" && !slices.Contains(exact, o.Name()) {
			tell(n, "math."+o.Name()+" is not the same in every bit everywhere; core/tensor has polynomials of its own")
		}
	})
}

// fusion demands that every float product is rounded by a conversion, because
// compilers may fuse it with a later sum, which rounds once instead of twice.
func fusion(p *packages.Package, tell func(ast.Node, string)) {
	rounded := map[ast.Expr]bool{}
	isFloat := func(e ast.Expr) bool {
		v := p.TypesInfo.Types[e]
		b, ok := basic(v.Type)
		return ok && b.Info()&types.IsFloat != 0 && v.Value == nil
	}
	const why = "this product may be fused with a sum on some processors; round it: float32(a * b)"
	each(p, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.CallExpr:
			if p.TypesInfo.Types[n.Fun].IsType() && len(n.Args) == 1 {
				rounded[ast.Unparen(n.Args[0])] = true
			}
		case *ast.BinaryExpr:
			if n.Op == token.MUL && isFloat(n) && !rounded[n] && !explained(p, n, "float") {
				tell(n, why)
			}
		case *ast.AssignStmt:
			if n.Tok == token.MUL_ASSIGN && isFloat(n.Lhs[0]) && !explained(p, n, "float") {
				tell(n, why)
			}
		}
	})
}

// domains keeps all domains of hashes in one list.
func domains(p *packages.Package, tell func(ast.Node, string)) {
	each(p, func(n ast.Node) {
		e, ok := n.(*ast.BasicLit)
		if ok && strings.HasSuffix(types.TypeString(p.TypesInfo.TypeOf(e), nil), "core/canon.Domain") {
			tell(n, "a domain that is not in core/canon/domain.go may be that of another kind of value")
		}
	})
}

func TestDomainsAreUnique(t *testing.T) {
	seen := map[string]string{}
	scope := load(t, nil, "./core/canon")[0].Types.Scope()
	for _, name := range scope.Names() {
		c, ok := scope.Lookup(name).(*types.Const)
		if !ok || !strings.HasSuffix(c.Type().String(), ".Domain") {
			continue
		}
		v := constant.StringVal(c.Val())
		if other, ok := seen[v]; ok || v == "" {
			t.Errorf("domain %s is %q, as %s is: values of two kinds could have one hash", name, v, other)
		}
		seen[v] = name
	}
	if len(seen) < 10 {
		t.Fatalf("only %d domains", len(seen))
	}
}

func each(p *packages.Package, do func(ast.Node)) {
	for _, f := range p.Syntax {
		ast.Inspect(f, func(n ast.Node) bool {
			if n != nil {
				do(n)
			}
			return true
		})
	}
}

// inPackage reports whether an expression names one of a package's functions.
func inPackage(p *packages.Package, e ast.Expr, pkg string, names ...string) bool {
	if x, ok := e.(*ast.IndexExpr); ok {
		e = x.X
	}
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	o := p.TypesInfo.Uses[s.Sel]
	return o != nil && o.Pkg() != nil && o.Pkg().Path() == pkg && slices.Contains(names, o.Name())
}

// explained reports whether a comment "// topic: reason" is on the node's line, on
// the one above, or in the comment of the function that the node is in.
func explained(p *packages.Package, n ast.Node, topic string) bool {
	line := func(pos token.Pos) int { return fset.Position(pos).Line }
	has := func(g *ast.CommentGroup, from, to int) bool {
		return g != nil && slices.ContainsFunc(g.List, func(c *ast.Comment) bool {
			reason, ok := strings.CutPrefix(c.Text, "// "+topic+":")
			return ok && strings.TrimSpace(reason) != "" && from <= line(c.Pos()) && line(c.Pos()) <= to
		})
	}
	for _, f := range p.Syntax {
		if n.Pos() < f.FileStart || f.FileEnd < n.Pos() {
			continue
		}
		for _, g := range f.Comments {
			if has(g, line(n.Pos())-1, line(n.Pos())) {
				return true
			}
		}
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Pos() <= n.Pos() && n.Pos() < d.End() {
				return has(d.Doc, 0, line(n.Pos()))
			}
		}
	}
	return false
}

func basic(t types.Type) (*types.Basic, bool) {
	if t == nil {
		return nil, false
	}
	b, ok := t.Underlying().(*types.Basic)
	return b, ok
}

func allowedFolders() string {
	var names []string
	for f := range floatsAllowed {
		names = append(names, f)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
