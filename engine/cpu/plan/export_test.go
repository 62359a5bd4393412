package plan

import (
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/fuse"
)

// Epilogues counts the contractions of p that have epilogues, and those of them that are
// read where they are computed.
func Epilogues(p *graph.Program, set *asm.KernelSet) (heads, straight int) {
	prog := newProgram(p, set, true)
	for _, m := range prog.fuseNodes() {
		if m.producer == nil {
			continue
		}
		if heads++; fuse.Build(set, prog, &m.Group, func(i int) bool { return prog.isOutput[i] }).Fusion.ReadsSource() {
			straight++
		}
	}
	return heads, straight
}

// ElidedConcats counts the joins of p for which nothing is copied.
func ElidedConcats(p *graph.Program, set *asm.KernelSet) (n int) {
	prog := newProgram(p, set, true)
	prog.fuseNodes()
	for _, in := range prog.elided {
		if in {
			n++
		}
	}
	return n
}
