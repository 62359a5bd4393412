package gemm

import (
	"slices"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// Resize implements kernel.Resizer. Batch, rows and terms may have other extents, and what is
// packed in a run other strides. Columns and what was packed once stay: a weight has the
// terms that it has. Convolutions are not resized, for their padded inputs have a size.
func (k *contraction) Resize(p *tensor.Primitive) kernel.Kernel {
	if k.p != k.whole || k.padded || k.a.input != nil || k.b.input != nil || p.Fn != k.p.Fn || p.Type != k.p.Type || len(p.Shape) != len(k.p.Shape) || len(p.Fold) != len(k.p.Fold) || p.Terms() == 0 {
		return nil
	}
	for arg := range p.Args {
		if p.Args[arg].Type != k.p.Args[arg].Type || !slices.EqualFunc(p.Args[arg].Dims, k.p.Args[arg].Dims, sameDim) {
			return nil
		}
	}
	var batch, rows, cols []int
	for axis := range p.Shape {
		switch a, b := affine.DependsOn(k.p, k.a.arg, axis), affine.DependsOn(k.p, k.b.arg, axis); {
		case !a && affine.DependsOn(p, k.a.arg, axis) || !b && affine.DependsOn(p, k.b.arg, axis): // an axis of one element belonged nowhere
			return nil
		case a && b:
			batch = append(batch, axis)
		case b:
			cols = append(cols, axis)
		default:
			rows = append(rows, axis)
		}
	}
	out := *k
	out.p, out.whole = p, p
	out.setGrids(k.a.arg, k.b.arg, batch, rows, cols, affine.Axes(len(p.Shape), len(p.Shape)+len(p.Fold)), neither)
	if out.padded || out.direct != k.direct || out.cols.N != k.cols.N || !out.a.resembles(&k.a, &out.rows, &k.rows, out.terms.N == k.terms.N) || !out.b.resembles(&k.b, &out.cols, &k.cols, out.terms.N == k.terms.N) {
		return nil
	}
	if alike := out.terms.OneAxis() == k.terms.OneAxis() && out.cols.OneAxis() == k.cols.OneAxis() && out.rows.OneAxis() == k.rows.OneAxis(); !alike {
		return nil
	}
	out.a.listOffsets(&out.terms)
	out.b.listOffsets(&out.terms)
	out.mBlocks = mem.CeilDiv(out.rows.N, out.mc)
	out.lines.strides = tensor.Shape(out.cols.Extents).Strides()
	// Kernels of few rows take so many, and one row alone is in place in dot form.
	if k.b.axpyForm && out.rows.N > len(k.set.AxpyGEMM) || k.b.dotForm && k.a.inPlace && out.rows.N > 1 {
		return nil
	}
	return &out
}

func sameDim(a, b tensor.Dim) bool {
	return a.Offset == b.Offset && a.Via == b.Via && slices.Equal(a.Terms, b.Terms)
}

// resembles reports whether an operand can be read as another one is, and takes over how that
// is, packed panels included, which hold all terms of all rows.
func (s *operandLayout) resembles(x *operandLayout, own, planned *affine.Grid, sameTerms bool) bool {
	unit := func(strides []int) bool { return affine.Last(strides) == 1 }
	if s.base != x.base || unit(s.own) != unit(x.own) && own.N > 1 && planned.N > 1 || unit(s.terms) != unit(x.terms) || s.isMatrix != x.isMatrix {
		return false
	}
	if x.prepacked != nil && (x.prepacked.batches() > 1 || !sameTerms || own.N != planned.N || !slices.Equal(s.own, x.own) || !slices.Equal(s.terms, x.terms)) {
		return false
	}
	s.inPlace, s.lineRows, s.rowMajor, s.dotForm, s.axpyForm, s.prepacked = x.inPlace, x.lineRows, x.rowMajor, x.dotForm, x.axpyForm, x.prepacked
	return true
}

var _ kernel.Resizer = (*contraction)(nil)
