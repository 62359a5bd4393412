// Command gen writes the assembly of engine/cpu/asm.
//
// It is a module of its own, so that nobody who builds Tally needs avo. What it
// writes is committed; go generate in engine/cpu/asm, or make kernels, writes it
// anew. Invariant: the same source gives the same files.
package main

import (
	"log"
	"os"
	"path/filepath"

	"github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

// families are the micro-kernels of one kind each. A family becomes NAME_amd64.s, and
// NAME_amd64.go, which declares what the assembly defines.
var families = []struct {
	name  string
	write func()
}{
	{"gemm", gemmKernels},
	{"gemm_dot", dotKernels},
	{"gemm_axpy", axpyKernels},
	{"depthwise", depthwiseKernels},
	{"digest", digests},
	{"pack", packKernels},
	{"map", maps},
	{"chain", chains},
	{"fold", folds},
	{"blocks", blockKernels},
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: gen DIRECTORY")
	}
	out := os.Args[1]
	for _, f := range families {
		if err := write(filepath.Join(out, f.name+"_amd64"), f.write); err != nil {
			log.Fatalf("%s: %v", f.name, err)
		}
	}
	assembly, declarations := neon()
	for name, text := range map[string][]byte{
		"gemm_table_amd64.go": gemmTable(), "map_table_amd64.go": mapTable(), "blocks_table_amd64.go": blockTable(),
		"gemm_arm64.s": assembly, "gemm_arm64.go": declarations,
	} {
		if err := os.WriteFile(filepath.Join(out, name), text, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

// write runs a family's generator and prints what it built.
func write(path string, generate func()) error {
	context = build.NewContext()
	constants, counts, tables = map[uint32]Mem{}, map[int]Mem{}, map[string]Mem{}
	context.ConstraintExpr("amd64")
	generate()
	file, err := context.Result()
	if err != nil {
		return err
	}
	if err := pass.Compile.Execute(file); err != nil {
		return err
	}
	cfg := printer.Config{Name: "engine/cpu/gen", Pkg: "asm"}
	for ext, p := range map[string]printer.Printer{".s": printer.NewGoAsm(cfg), ".go": printer.NewStubs(cfg)} {
		text, err := p.Print(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path+ext, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// context is the file being built.
var context *build.Context
