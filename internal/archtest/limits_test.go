package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// What people can hold in their heads. More is an exception, with a reason, and hardly more
// than it is today.
var limits = map[string]struct {
	most int
	why  string
}{
	"files of a package":       {20, "more are two packages"},
	"lines of a package":       {3000, "more are two packages"},
	"lines of a file":          {400, "it holds more than one family"}, // where families says so
	"fields of a struct":       {20, "some of them belong together, in a struct of their own"},
	"methods of a type":        {30, "some of them are about a part of it, which is a type of its own"},
	"lines of a function":      {70, "it does more than one thing: give the parts names"},
	"parameters of a function": {6, "some of them belong together, in a struct"},
}

// exception is what may exceed a limit: so far, for a reason.
type exception struct {
	most int
	why  string
}

// families are packages with one file for each of many of a kind. Such a file is a room: it
// is held to a limit, and their number is not.
var families = map[string]bool{"core/op": true} // families of operators

const (
	verbs    = "one file for each verb"
	language = "a whole language: what Python's values, texts and filters do"
	lease    = "a lease is one state machine, and every event reads most of its state"
	fromAsm  = "a routine in assembly, or its signature"
	chart    = "a table as people read it, a field for each column"
	scenes   = "what a scenario can do, in the words of scenarios"
)

var exceptions = map[string]map[string]exception{
	"files of a package": {
		"bench": {32, "one file for each group of rows"}, "cli": {41, verbs}, "core/job": {39, lease},
	},
	"lines of a package": {
		"bench": {5400, "one file for each group of rows"}, "cli": {7800, verbs}, "core/job": {8330, lease}, "chain/x/work": {3270, lease},
		"engine/cpu/gen": {3100, "one file for each family of micro-kernels"}, "format/chat/jinja": {5000, language},
		"format/onnx": {3608, "ONNX's whole schema, read and written"}, "internal/testkit/adversary": {3725, "one file for each kind of message"},
		"sim": {3490, "one file for each game that is played"},
	},
	"fields of a struct": {
		"chain/app.App":     {26, "one keeper for each module"},
		"core/dispute.Game": {31, "the whole course of a game, as it is stored"},
		"core/job.Lease":    {29, lease}, "core/job.Problem": {21, "an order as it is signed"},
		"cli.validated": {26, chart}, "engine/cpu/asm.KernelSet": {25, "one for each micro-kernel"},
		"node/devnet.Config": {29, "what a user may choose"},
	},
	"methods of a type": {
		"core/job.Lease":          {242, lease},
		"chain/x/provider.Keeper": {42, "as modules of Cosmos are"}, "chain/x/work.Keeper": {39, "as modules of Cosmos are"},
		"cli.env": {39, verbs}, "format/chat/jinja/syntax.parser": {56, language}, "format/chat/jinja.run": {67, language}, "engine/cpu/gen.isa": {52, "one for each instruction"}, "engine/cpu/gemm.packer": {32, "one for each layout of an operand"}, "format/onnx.reader": {45, "one for each message of the schema"},
		"internal/testkit/adversary.composer": {33, "one for each kind of message"}, "internal/testkit/adversary.play": {54, "one for each invariant"},
		"internal/testkit/nettest.Network": {38, scenes}, "internal/testkit/worktest.Play": {32, scenes},
		"sim.bout": {34, scenes}, "sim.scene": {37, scenes}, "store.Store": {43, "blobs, pins and space under one lock"},
	},
	"lines of a function": {
		"engine/cpu/gen.tile": {75, fromAsm},
	},
	"parameters of a function": {
		"bench.classifier.conv": {7, "as ONNX's Conv has them"}, "bench.imagine": {9, "a place in a dispute"},
		"engine/cpu/affine.copyPlane": {7, "two planes in memory"}, "engine/cpu/asm.genericGEMM": {11, fromAsm}, "engine/cpu/asm.genericInt8QuadGEMM": {11, fromAsm},
		"engine/cpu/asm.genericAccumulate": {7, fromAsm}, "engine/cpu/asm.genericGather": {8, fromAsm}, "engine/cpu/asm.genericEltwiseChain": {10, fromAsm},
		"engine/cpu/fuse.Fusion.runRows": {8, "a range of rows in memory"}, "engine/cpu/gemm.block.place": {7, "a block of a product"}, "engine/cpu/gemm.packer.place": {7, "a panel of an operand"}, "engine/cpu/gemm.contraction.setGrids": {7, "the four groups of a contraction's axes"},
		"engine/cpu/gemm.newPaddedInput": {8, "an operand and its axes"},
		"engine/cpu/kernel.Produce":      {7, "a range of a tensor, and what it is made of"}, "node/watch.challenger.wrong": {7, "all that an accusation names"},
	},
}

func TestLimits(t *testing.T) {
	found := map[string]map[string]int{}
	count := func(what, name string, n int, at func(old, n int) int) {
		if found[what] == nil {
			found[what] = map[string]int{}
		}
		found[what][name] = at(found[what][name], n)
	}
	sum, most := func(old, n int) int { return old + n }, func(old, n int) int { return max(old, n) }
	walk(t, func(name string, text []byte) {
		dir := path.Dir(name)
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || under(dir, "gen") {
			return
		}
		f, err := parser.ParseFile(fset, name, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if ast.IsGenerated(f) {
			return
		}
		if lines := strings.Count(string(text), "\n"); families[dir] {
			count("lines of a file", name, lines, most)
		} else {
			count("files of a package", dir, 1, sum)
			count("lines of a package", dir, lines, sum)
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				full := dir + "." + d.Name.Name
				if d.Recv != nil {
					full = dir + "." + receiver(d.Recv.List[0].Type) + "." + d.Name.Name
				}
				count("lines of a function", full, fset.Position(d.End()).Line-fset.Position(d.Pos()).Line+1, most)
				count("parameters of a function", full, d.Type.Params.NumFields(), most)
				if d.Recv != nil {
					count("methods of a type", dir+"."+receiver(d.Recv.List[0].Type), 1, sum)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if s, ok := s.(*ast.TypeSpec); ok {
						if x, ok := s.Type.(*ast.StructType); ok {
							count("fields of a struct", dir+"."+s.Name.Name, x.Fields.NumFields(), most)
						}
					}
				}
			}
		}
	})
	for _, what := range slices.Sorted(maps.Keys(limits)) {
		limit := limits[what]
		if len(found[what]) < 10 {
			t.Errorf("%s: only %d were found", what, len(found[what]))
		}
		for _, fault := range exceeding(found[what], limit.most, exceptions[what]) {
			t.Errorf("%s: %s: %s", what, fault, limit.why)
		}
	}
}

// exceeding says what is above a limit, or excepted without need.
func exceeding(found map[string]int, limit int, excepted map[string]exception) (faults []string) {
	for _, name := range slices.Sorted(maps.Keys(found)) {
		n, most := found[name], limit
		if e, ok := excepted[name]; ok {
			if e.why == "" {
				faults = append(faults, name+" is excepted without a reason")
			}
			switch most = e.most; {
			case n <= limit:
				faults = append(faults, fmt.Sprintf("%s has %d, limit %d, and needs no exception any more", name, n, limit))
			case n < e.most*97/100: // lines may move a little
				faults = append(faults, fmt.Sprintf("%s has %d: lower its exception from %d", name, n, e.most))
			}
		}
		if n > most {
			faults = append(faults, fmt.Sprintf("%s has %d, limit %d", name, n, most))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(excepted)) {
		if _, ok := found[name]; !ok {
			faults = append(faults, name+" is excepted, and is not there")
		}
	}
	return faults
}

// receiver names the type of a method.
func receiver(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.IndexListExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}

func TestLimitsBite(t *testing.T) {
	found := map[string]int{"a": 20, "b": 21, "c": 25, "d": 26, "e": 3, "g": 40}
	got := exceeding(found, 20, map[string]exception{"c": {25, "x"}, "d": {25, ""}, "e": {25, "x"}, "f": {25, "x"}, "g": {50, "x"}})
	want := []string{"b has 21, limit 20", "d is excepted without a reason", "d has 26, limit 25", "e has 3, limit 20, and needs no exception any more", "g has 40: lower its exception from 50", "f is excepted, and is not there"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
