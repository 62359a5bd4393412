package cpu

import (
	"testing"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// Constants that contractions would pack are packed once, within a bound.
func TestKeep(t *testing.T) {
	for name, p := range map[string]*tensor.Primitive{ // order: each case stands alone
		"product": matmul(700, 300, 500), "convolution": convolution{1, 16, 14, 40, 3, 1, 1, 1}.primitive(), "groups": convolution{1, 64, 14, 64, 1, 1, 0, 4}.primitive(),
	} {
		prog, _ := single(p, normal(p.Args[0].Type, p.Args[0].Shape), normal(p.Args[1].Type, p.Args[1].Shape))
		for _, set := range asm.Sets() {
			dot := newDot(p, set).(*dot)
			if left := dot.Prepack(prog.Consts, 100); left != 100 || dot.a.kept != nil || dot.b.kept != nil {
				t.Errorf("%s, %s: %d of 100 bytes are left", set.Name, name, left)
			}
			left := dot.Prepack(prog.Consts, maxKept)
			if dot.a.kept == nil && dot.b.kept == nil {
				t.Errorf("%s, %s: nothing is kept", set.Name, name)
			}
			for _, m := range []*kept{dot.a.kept, dot.b.kept} {
				if m != nil {
					left += m.batches * m.rows * p.Terms() * mem.Word
				}
			}
			if left != maxKept {
				t.Errorf("%s, %s: what is kept and what is left is %d bytes", set.Name, name, left)
			}
		}
	}
}
