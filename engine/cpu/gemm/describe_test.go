package gemm_test

import (
	"testing"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/gemm"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/internal/testkit/kerneltest"
)

// What a contraction says of its epilogue is what it does: blocks come from the accumulators
// or from the output.
func TestHandoverIsAsDescribed(t *testing.T) {
	said := map[string]bool{}
	for name, p := range map[string]*tensor.Primitive{
		"product": kerneltest.MatMul(40, 50, 60), "by rows": convolution{1, 16, 14, 40, 3, 1, 1, 1}.primitive(),
		"by columns": convolution{1, 3, 64, 16, 3, 1, 1, 1}.primitive(), "pointwise": convolution{1, 32, 28, 48, 1, 1, 0, 1}.primitive(),
	} {
		for _, set := range asm.Sets() {
			k := gemm.New(p, set).(kernel.Producer)
			var args []*tensor.Tensor
			for _, a := range p.Args {
				args = append(args, kerneltest.Normal(a.Type, a.Shape))
			}
			blocks, fromAccumulators := 0, 0
			err := kernel.Produce(k, kernel.NewWorker(), tensor.Must(tensor.New(p.Type, p.Shape)), args, 0, k.Blocks(), func(_, _, _, _ int, from kernel.Source) error {
				blocks++
				if from.Data != nil {
					fromAccumulators++
				}
				return nil
			})
			if err != nil || blocks == 0 {
				t.Fatal(name, err)
			}
			says := k.Describe().Handover
			said[says] = true
			if want := map[bool]int{true: blocks}[says == kernel.FromAccumulators]; fromAccumulators != want {
				t.Errorf("%s, %s: %d of %d runs come from the accumulators, and it says %q", set.Name, name, fromAccumulators, blocks, says)
			}
		}
	}
	if len(said) != 3 {
		t.Errorf("only %d ways are tested", len(said))
	}
}
