package quantized

import (
	"fmt"

	"github.com/tally-network/tally/core/quant"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/engine/cpu/tuning"
	"github.com/tally-network/tally/engine/cpu/weights"
)

// product is a contraction of float32 by a matrix of blocks. Its output is cut into blocks of some rows and some columns.
type product struct {
	set              *asm.KernelSet
	kernels          asm.BlockKernels // without any: unpacked by the definition
	format           *format
	arg              int             // of the matrix
	stored           *tensor.Tensor  // its type and shape
	packed           *weights.Packed // nil: each run packs what it needs
	rows, cols       affine.Grid     // of the output
	terms            int             // of an element
	operand          linear          // the other operand
	out              linear          // the output; its terms are columns
	tile             int             // columns that are unpacked together
	nc               int             // columns of a block
	mBlocks, nBlocks int             // blocks of tuning.BlockRows rows, and of nc columns
	xOffsets         []int           // bytes to terms of a row, and
	wOffsets         []int           // of columns that are unpacked
}

// linear is a tensor as a linear form.
type linear struct {
	base        int
	rows, terms []int // strides
}

// New returns the kernel of a contraction p of which an operand is float32 made of rows of blocks: Run is given the blocks in its
// place, of the type and shape of stored. It returns nil if it does not serve p, which is checked.
func New(p *tensor.Primitive, arg int, of quant.Type, stored *tensor.Tensor, set *asm.KernelSet) kernel.Kernel {
	floats := p.Type == tensor.Float32 && p.Args[0].Type == tensor.Float32 && p.Args[1].Type == tensor.Float32
	f := formatOf(of)
	if f == nil || !floats || p.Fn != tensor.Dot || p.Band != nil || p.Terms() == 0 || p.Shape.Elements() == 0 {
		return nil
	}
	k := &product{set: set, kernels: set.Blocks[of], format: f, arg: arg, stored: kernel.Hollow(stored), terms: p.Terms()}
	if !k.place(p) {
		return nil
	}
	k.choose()
	return k
}

// place finds the rows, columns and terms of p. It reports whether the operand is all of a matrix, by rows of terms, and the
// other one is read without padding.
func (k *product) place(p *tensor.Primitive) bool {
	var rows, cols []int
	for axis := range p.Shape {
		a, b := affine.DependsOn(p, 1-k.arg, axis), affine.DependsOn(p, k.arg, axis)
		switch {
		case a && b:
			return false
		case b:
			cols = append(cols, axis)
		default:
			rows = append(rows, axis)
		}
	}
	xBase, x, inside := affine.Linear(p, 1-k.arg)
	wBase, w, whole := affine.Linear(p, k.arg)
	if !inside || !whole || wBase != 0 {
		return false
	}
	shape, out := append(p.Shape.Clone(), p.Fold...), append(p.Shape.Strides(), make([]int, len(p.Fold))...)
	grid := func(g *affine.Grid, axes []int) []int {
		axes, g.Extents = affine.Merge(shape, axes, []affine.Strides{x, w, out})
		g.N = tensor.Shape(g.Extents).Elements()
		return axes
	}
	var terms affine.Grid
	rows, cols = grid(&k.rows, rows), grid(&k.cols, cols)
	t := grid(&terms, affine.Axes(len(p.Shape), len(shape)))
	w, x, out = affine.Strides(w), affine.Strides(x), affine.Strides(out)
	k.operand = linear{xBase, affine.Strides(x).Pick(rows), affine.Strides(x).Pick(t)}
	k.out = linear{0, affine.Strides(out).Pick(rows), affine.Strides(out).Pick(cols)}
	one := func(g *affine.Grid, axes []int, step int) bool {
		return g.N == 1 || g.OneAxis() && affine.Strides(w).Pick(axes)[0] == step
	}
	return terms.N == k.terms && terms.OneAxis() && one(&k.cols, cols, k.terms) && one(&terms, t, 1) && k.cols.N*k.terms == p.Args[k.arg].Shape.Elements()
}

// choose chooses sizes of blocks.
func (k *product) choose() {
	k.tile = max(k.set.NRVectors()*k.set.Lanes/columns, 1) * columns
	k.mBlocks = mem.CeilDiv(k.rows.N, tuning.BlockRows)
	k.nc = mem.RoundUp(max(mem.CeilDiv(k.cols.N, tuning.FineBlocks), 1), k.tile)
	if k.direct() {
		k.nc = mem.RoundUp(k.nc, tuning.DirectColumns)
	}
	k.nBlocks = mem.CeilDiv(k.cols.N, k.nc)
	unit := max(tuning.BlockKC, k.format.elements)
	k.xOffsets, k.wOffsets = make([]int, unit), make([]int, unit)
	for t := range unit {
		k.xOffsets[t], k.wOffsets[t] = t*mem.Word, t*k.tile*mem.Word
	}
}

// direct reports whether weights are multiplied as they are unpacked: while one tile takes all rows. For more they would be unpacked
// again, which takes longer than to unpack them once for tiles of more columns.
func (k *product) direct() bool {
	return len(k.kernels.Tiles) > 0 && k.rows.N <= k.kernels.Tiles[0].Rows
}

// Blocks implements kernel.Kernel.
func (k *product) Blocks() int { return k.mBlocks * k.nBlocks }

// LongRuns implements kernel.Producer.
func (k *product) LongRuns() bool { return affine.Last(k.out.terms) == 1 }

// Run implements kernel.Kernel.
func (k *product) Run(w *kernel.Worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) error {
	return kernel.Produce(k, w, out, args, lo, hi, nil)
}

// Next implements kernel.Producer: of few rows, neighbouring blocks are computed as one.
func (k *product) Next(w *kernel.Worker, out *tensor.Tensor, args []*tensor.Tensor, i, n int, do kernel.Epilogue) (done int, err error) {
	if !k.direct() {
		n = 1
	}
	b := kernel.Scratch[block](w)
	row, col := i%k.mBlocks*tuning.BlockRows, i/k.mBlocks*k.nc
	b.place(k, w, row, min(tuning.BlockRows, k.rows.N-row), col, min(n*k.nc, k.cols.N-col))
	if !b.compute(args, tensor.Of[float32](out)) {
		return 0, kernel.ErrStopped
	}
	return n, b.store(tensor.Of[float32](out), do)
}

// Resize implements kernel.Resizer: rows may be others.
func (k *product) Resize(p *tensor.Primitive) kernel.Kernel {
	x, ok := New(p, k.arg, k.format.of, k.stored, k.set).(*product)
	if !ok || x.cols.N != k.cols.N || x.terms != k.terms {
		return nil
	}
	x.packed = k.packed
	return x
}

// Describe implements kernel.Kernel.
func (k *product) Describe() kernel.Description {
	d := kernel.Description{
		Kernel: "gemm, quantized", Packing: "A in place, B unpacked from blocks of " + k.format.of.String(), Handover: kernel.FromOutput,
		Blocking: fmt.Sprintf("M %d N %d K %d, MC %d NC %d KC %d", k.rows.N, k.cols.N, k.terms, tuning.BlockRows, k.nc, len(k.xOffsets)),
	}
	if k.direct() {
		d.Kernel, d.Blocking = "gemv, quantized", fmt.Sprintf("M %d N %d K %d, NC %d", k.rows.N, k.cols.N, k.terms, k.nc)
	}
	return d
}

var (
	_ kernel.Producer = (*product)(nil)
	_ kernel.Resizer  = (*product)(nil)
)
