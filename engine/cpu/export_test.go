package cpu

import (
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/engine/cpu/asm"
)

// Heads counts the contractions of p that are heads of fusions, and those of them that
// flow from where they are computed.
func Heads(p *graph.Program, set *asm.Set) (heads, straight int) {
	prog := newProgram(p, set, true)
	for _, m := range prog.group() {
		if m.maker == nil {
			continue
		}
		if heads++; prog.link(m, func(i int) bool { return prog.kept[i] }).c.head != none {
			straight++
		}
	}
	return heads, straight
}

// JoinsInPlace counts the joins of p for which nothing is copied.
func JoinsInPlace(p *graph.Program, set *asm.Set) (n int) {
	prog := newProgram(p, set, true)
	prog.group()
	for _, in := range prog.joined {
		if in {
			n++
		}
	}
	return n
}
