package gemm

import (
	"fmt"
	"strings"

	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/kernel"
)

// Describe implements kernel.Kernel.
func (k *contraction) Describe() kernel.Description {
	name := "gemm"
	switch {
	case k.b.axpyForm:
		name = "gemv, axpy form"
	case k.b.dotForm:
		name = "gemv, dot form"
	case k.a.input != nil || k.b.input != nil:
		name = "igemm"
	}
	if k.int8 != nil {
		name += ", int8"
	}
	accumulators := "in C"
	if !k.direct {
		accumulators = "in a buffer"
	}
	return kernel.Description{
		Kernel: name,
		Blocking: fmt.Sprintf("%d × (M %d N %d K %d), MC %d NC %d KC %d, MR %d NR %d, accumulators %s",
			k.batch.N, k.rows.N, k.cols.N, k.terms.N, k.mc, k.nc*k.lines.pitch, min(k.kc, k.terms.N), k.mr, k.nr, accumulators),
		Packing:  "A " + k.a.describe() + ", B " + k.b.describe(),
		Handover: k.handover(),
	}
}

// handover says where an epilogue finds a block. Rows that are contiguous in the output,
// as those of a convolution by rows, are transposed on their way there.
func (k *contraction) handover() string {
	switch {
	case k.direct:
		return kernel.FromOutput
	case affine.Last(k.out.cols) != 1:
		return kernel.AfterStoring
	}
	return kernel.FromAccumulators
}

// describe says how tiles read an operand.
func (s *operandLayout) describe() string {
	switch {
	case s.prepacked != nil:
		return fmt.Sprintf("packed once (%d KB)", s.prepacked.Bytes()>>10)
	case s.input != nil && s.inPlace:
		return "in place, from a padded input"
	case s.input != nil:
		return "packed from a padded input"
	case s.inPlace:
		return "in place"
	case s.rowMajor:
		return "packed by rows"
	}
	return "packed"
}

// Describe implements kernel.Kernel: it says what the phases have in common.
func (k *polyphase) Describe() kernel.Description {
	d := kernel.Description{Kernel: "polyphase", Blocking: fmt.Sprintf("%d phases", len(k.phases))}
	seen := map[string]bool{}
	var each []string
	for _, x := range k.phases {
		if x.dot == nil {
			continue
		}
		of := x.dot.Describe()
		d.Packing = of.Packing
		if text := of.Kernel + " " + of.Blocking; !seen[text] {
			seen[text] = true
			each = append(each, text)
		}
	}
	d.Blocking += ": " + strings.Join(each, "; ")
	return d
}

// Describe implements kernel.Kernel.
func (k *plainContraction[T]) Describe() kernel.Description {
	var zero T
	return kernel.Description{Kernel: fmt.Sprintf("plain gemm, %T", zero), Blocking: fmt.Sprintf("%d elements of %d terms, one at a time", k.n, k.terms), Packing: "A and B by rows"}
}
