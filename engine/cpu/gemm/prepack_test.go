package gemm_test

import (
	"testing"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/gemm"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/internal/testkit/kerneltest"
)

// Constants that contractions would pack are packed once, within a bound.
func TestPrepack(t *testing.T) {
	for name, p := range map[string]*tensor.Primitive{ // order: each case stands alone
		"product": kerneltest.MatMul(700, 300, 500), "convolution": convolution{1, 16, 14, 40, 3, 1, 1, 1}.primitive(), "groups": convolution{1, 64, 14, 64, 1, 1, 0, 4}.primitive(),
	} {
		consts := []*tensor.Tensor{kerneltest.Normal(p.Args[0].Type, p.Args[0].Shape), kerneltest.Normal(p.Args[1].Type, p.Args[1].Shape)}
		for _, set := range asm.Sets() {
			const budget = 64 << 20
			k := gemm.New(p, set).(kernel.Prepacker)
			if left := k.Prepack(consts, 100); left != 100 || gemm.PrepackedBytes(k) != 0 {
				t.Errorf("%s, %s: %d of 100 bytes are left", set.Name, name, left)
			}
			left := k.Prepack(consts, budget)
			if gemm.PrepackedBytes(k) == 0 {
				t.Errorf("%s, %s: nothing is packed", set.Name, name)
			}
			if left += gemm.PrepackedBytes(k); left != budget {
				t.Errorf("%s, %s: what is packed and what is left is %d bytes", set.Name, name, left)
			}
		}
	}
}
