package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strings"
	"testing"
)

// facts are the numbers that constants of engine/cpu give a name, outside its table of
// tuning constants: changing one changes what the code does, or breaks it.
var facts = map[string]string{
	"engine/cpu/fuse.NoHead":             "no node",
	"engine/cpu/fuse.keptOperand":        "what a chain has kept",
	"engine/cpu/fuse.noOperand":          "no operand",
	"engine/cpu/gemm.each":               "bytes in a word",
	"engine/cpu/gemm.layoutVersion":      "of a format",
	"engine/cpu/quantized.layoutVersion": "of a format",
	"engine/cpu/quantized.head":          "of a format",
	"engine/cpu/gemm.neither":            "no operand",
	"engine/cpu/gemm.quad":               "bytes in a word",
	"engine/cpu/kernel.NoExponent":       "IEEE 754",
	"engine/cpu/kernel.ProductsKept":     "IEEE 754",
	"engine/cpu/plan.maxPattern":         "primitives that an operator comes to",
	"engine/cpu/mem.CacheLine":           "of the processor",
	"engine/cpu/mem.IntSize":             "bytes of a type",
	"engine/cpu/mem.MaxLanes":            "of the widest register",
	"engine/cpu/mem.Word":                "bytes of a type",
	"engine/cpu/mem.hugePage":            "of the system",
	"engine/cpu/mem.short":               "where copying begins to double",
	"engine/cpu/mem.unknownPhysical":     "a guess where the system does not tell",
	"engine/cpu/plan.None":               "no node",
	"engine/cpu/plan.shiftBytes":         "what tensor.Part asks",
	"engine/cpu/recurrent.axpyRows":      "what a micro-kernel takes",
	"engine/cpu/recurrent.layoutVersion": "of a format",
	"engine/cpu/spatial.inBuffer":        "no row",
	"engine/cpu/spatial.noAxis":          "no axis",
	"engine/cpu/spatial.overread":        "what a micro-kernel reads",
	"engine/cpu/weights.headerBytes":     "a page",
	"engine/cpu/weights.overhead":        "bytes of an entry",
}

// tuningForm is how a tuning constant is told: its unit, what it trades, the measurement.
var tuningForm = regexp.MustCompile(`^\w+: .+\. Trades .+\. Measured: .+`)

// Who looks for what makes the engine fast looks in one place, and finds there why.
func TestTuningConstantsStandInOneTable(t *testing.T) {
	const table = "engine/cpu/tuning"
	told := map[string]bool{}
	walk(t, func(name string, text []byte) {
		dir := path.Dir(name)
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || !under(dir, "engine") || under(dir, "engine/cpu/asm", "engine/cpu/gen") {
			return
		}
		f, err := parser.ParseFile(fset, name, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			d, ok := n.(*ast.GenDecl)
			if !ok || d.Tok != token.CONST {
				return true
			}
			for _, s := range d.Specs {
				s := s.(*ast.ValueSpec)
				if dir == table {
					if !tuningForm.MatchString(strings.Join(strings.Fields(s.Doc.Text()), " ")) {
						t.Errorf("%s: %s is told without unit, trade or measurement, as %q", name, s.Names[0].Name, tuningForm)
					}
					continue
				}
				if full := dir + "." + s.Names[0].Name; hasNumber(s) && facts[full] == "" {
					t.Errorf("%s: a constant that trades one cost for another belongs to %s; one that does not, to facts", full, table)
				} else {
					told[full] = true
				}
			}
			return true
		})
	})
	for name := range facts {
		if !told[name] {
			t.Errorf("%s is no constant any more", name)
		}
	}
}

// hasNumber reports whether a constant is made of a number, rather than of other constants.
func hasNumber(s *ast.ValueSpec) (found bool) {
	for _, v := range s.Values {
		ast.Inspect(v, func(n ast.Node) bool {
			x, ok := n.(*ast.BasicLit)
			found = found || ok && (x.Kind == token.INT || x.Kind == token.FLOAT)
			return true
		})
	}
	return found
}
