package recurrent

import (
	"context"
	"fmt"
	"sync"
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/engine/cpu/tuning"
	"github.com/tally-network/tally/engine/cpu/weights"
)

// Product is a matrix product of few rows, which are read in place, and of weights that
// are packed once: what a step of a recurrence spends most of its time in. Nothing is
// looked up, packed or cut within a run, for a step has no time for it.
//
// Its block is some panels of columns. Weights of one or two rows are not in panels but
// transposed, row by row of terms, which is how AxpyKernel streams them.
type Product struct {
	p                 *tensor.Primitive
	set               *asm.KernelSet
	state, weights    int // operands
	rows, cols, terms int
	base, pitch, step int // of the state: first element, from row to row, from term to term
	from              int // of the weights: first element,
	own, along        int // from column to column, from term to term
	axpy              bool
	nr                int   // columns of a panel
	blockCols         int   // columns of a block
	stateTerms        []int // bytes to each term
	packedTerms       []int // of a panel; of the last one, if that has fewer columns
	lastTerms         []int
	stepPanels
}

// stepPanels is the weights of a product in packed form.
type stepPanels struct {
	words []float32
	held  *weights.Packed // that words are of; nil if they are the kernel's own
	once  sync.Once       // packs those
}

// axpyRows is the rows that AxpyKernel takes.
const axpyRows = 2

// NewProduct returns the product that p is of two matrices, with the weights as operand
// number weights; nil if it is none of few rows and whole vectors of columns.
func NewProduct(p *tensor.Primitive, weights int, set *asm.KernelSet) *Product {
	k := &Product{p: p, set: set, state: 1 - weights, weights: weights}
	if p.Fn != tensor.Dot || p.Band != nil || p.Type != tensor.Float32 || p.Args[0].Type != tensor.Float32 || p.Args[1].Type != tensor.Float32 || p.Terms() == 0 || p.Terms() > tensor.KBlock || !k.findAxes() {
		return nil
	}
	k.nr = set.NRVectors() * set.Lanes
	if k.rows > tuning.StepRows || k.cols == 0 || k.cols%set.Lanes != 0 {
		return nil
	}
	k.axpy = k.rows <= min(axpyRows, len(set.AxpyGEMM)) && k.terms%asm.AxpyTerms == 0
	panel := k.rows * k.nr * k.terms
	k.blockCols = min(mem.CeilDiv(tuning.StepBlockWork, panel)*k.nr, k.cols)
	offsets := func(step int) []int {
		out := make([]int, k.terms)
		for t := range out {
			out[t] = t * step * mem.Word
		}
		return out
	}
	k.stateTerms, k.packedTerms, k.lastTerms = offsets(k.step), offsets(k.nr), offsets(k.cols%k.nr)
	return k
}

// findAxes finds rows, columns and terms, and reports whether each is one axis.
func (k *Product) findAxes() bool {
	p, r := k.p, len(k.p.Shape)
	shape := append(p.Shape.Clone(), p.Fold...)
	all := []affine.Strides{append(affine.Strides(p.Shape.Strides()), make(affine.Strides, len(p.Fold))...)}
	var bases [2]int
	for arg := range p.Args {
		base, strides, inside := affine.Linear(p, arg)
		if !inside {
			return false
		}
		bases[arg], all = base, append(all, strides)
	}
	var rows, cols []int
	for axis := range p.Shape {
		state, weights := affine.DependsOn(p, k.state, axis), affine.DependsOn(p, k.weights, axis)
		switch {
		case p.Shape[axis] == 1:
		case state == weights:
			return false
		case state:
			rows = append(rows, axis)
		default:
			cols = append(cols, axis)
		}
	}
	only := func(axes []int, extent *int, form int, steps ...*int) bool {
		keep, extents := affine.Merge(shape, axes, all)
		*extent = extents[0]
		for i, s := range steps {
			*s = all[[]int{form, 0}[i]].Pick(keep)[0]
		}
		return len(keep) == 1
	}
	out, row := 0, 0
	state, weights := 1+k.state, 1+k.weights
	ok := only(rows, &k.rows, state, &k.pitch, &row) && only(cols, &k.cols, weights, &k.own, &out) &&
		only(affine.Axes(r, len(shape)), &k.terms, state, &k.step) && only(affine.Axes(r, len(shape)), &k.terms, weights, &k.along)
	k.base, k.from = bases[k.state], bases[k.weights]
	return ok && (out == 1 || k.cols == 1) && (row == k.cols || k.rows == 1)
}

// stepWeights is the weights of a product as it reads them.
type stepWeights struct{ k *Product }

// layoutVersion changes when the same layout gives other bytes.
const layoutVersion = 1

// Weights implements kernel.Prepacker.
func (k *Product) Weights(isConstant func(operand int) bool) []kernel.Weight {
	if !isConstant(k.weights) {
		return nil
	}
	return []kernel.Weight{stepWeights{k}}
}

// Operand implements kernel.Weight.
func (w stepWeights) Operand() int { return w.k.weights }

// Layout implements kernel.Weight.
func (w stepWeights) Layout() string {
	k := w.k
	form := fmt.Sprintf("panels of %d", k.nr)
	if k.axpy {
		form = "rows of terms"
	}
	return fmt.Sprintf("step %d: %v from %d, %d columns by %d, %d terms by %d, in %s", layoutVersion, k.p.Args[k.weights].Shape, k.from, k.cols, k.own, k.terms, k.along, form)
}

// Bytes implements kernel.Weight.
func (w stepWeights) Bytes() int { return w.k.terms * w.k.cols * mem.Word }

// place returns where the terms of a column begin in the packed form, and their step.
func (k *Product) place(column int) (at, step int) {
	if k.axpy {
		return column, k.cols
	}
	panel := column / k.nr * k.nr
	return panel*k.terms + column - panel, min(k.nr, k.cols-panel)
}

// Pack implements kernel.Weight.
func (w stepWeights) Pack(ctx context.Context, dst []byte, x *tensor.Tensor) error {
	k, words, src := w.k, mem.Slice[float32](unsafe.Pointer(&dst[0]), len(dst)/mem.Word), tensor.Of[float32](x)
	for c := range k.cols {
		at, step := k.place(c)
		mem.CopyStrided(words[at:], step, src, k.from+c*k.own, k.along, k.terms)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Whole implements kernel.Weight.
func (w stepWeights) Whole() bool {
	k := w.k
	dense := k.own == 1 && k.along == k.cols || k.along == 1 && k.own == k.terms
	return dense && k.from == 0 && k.cols*k.terms == k.p.Args[k.weights].Shape.Elements()
}

// Unpack implements kernel.Weight.
func (w stepWeights) Unpack(packed []byte) (*tensor.Tensor, error) {
	k := w.k
	x, err := tensor.New(tensor.Float32, k.p.Args[k.weights].Shape)
	if err != nil {
		return nil, err
	}
	words, dst := mem.Slice[float32](unsafe.Pointer(&packed[0]), len(packed)/mem.Word), tensor.Of[float32](x)
	for c := range k.cols {
		at, step := k.place(c)
		mem.CopyStrided(dst[c*k.own:], k.along, words, at, step, k.terms)
	}
	return x, nil
}

// Use implements kernel.Weight.
func (w stepWeights) Use(p *weights.Packed) {
	w.k.held = p
	w.k.words = mem.Slice[float32](unsafe.Pointer(&p.Bytes()[0]), w.k.terms*w.k.cols)
}

// packOwn packs weights for which the store has no room, in the first run.
func (k *Product) packOwn(x *tensor.Tensor) {
	if k.held != nil {
		return
	}
	k.once.Do(func() {
		own := make([]float32, k.terms*k.cols)
		_ = stepWeights{k}.Pack(context.Background(), mem.Slice[byte](mem.First(own), len(own)*mem.Word), x)
		k.words = own
	})
}

// Blocks implements kernel.Kernel.
func (k *Product) Blocks() int { return mem.CeilDiv(k.cols, k.blockCols) }

// Run implements kernel.Kernel.
func (k *Product) Run(w *kernel.Worker, out *tensor.Tensor, args []*tensor.Tensor, lo, hi int) error {
	return kernel.Produce(k, w, out, args, lo, hi, nil)
}

// LongRuns implements kernel.Producer.
func (k *Product) LongRuns() bool { return true }

// Next implements kernel.Producer.
func (k *Product) Next(_ *kernel.Worker, out *tensor.Tensor, args []*tensor.Tensor, i, n int, do kernel.Epilogue) (done int, err error) {
	k.packOwn(args[k.weights])
	c, end := i*k.blockCols, min((i+n)*k.blockCols, k.cols)
	dst, state := mem.Words(out), tensor.Of[float32](args[k.state])[k.base:]
	if k.axpy {
		k.sweep(dst, state, c, end)
	} else {
		k.tiles(dst, state, c, end)
	}
	if do == nil {
		return n, nil
	}
	return n, do(c, end-c, k.rows, k.cols, kernel.Source{})
}

// sweep computes columns c…end−1 by adding row after row of the weights.
func (k *Product) sweep(dst, state []float32, c, end int) {
	for r := range k.rows {
		clear(dst[r*k.cols:][c:end])
	}
	run := k.set.AxpyGEMM[k.rows-1]
	for t := 0; t < k.terms; t += asm.AxpyTerms {
		run((end-c)/k.set.Lanes, &state[t*k.step], k.pitch*mem.Word, k.step*mem.Word, &k.words[t*k.cols+c], k.cols*mem.Word, &dst[c], k.cols*mem.Word)
	}
}

// tiles computes columns c…end−1 by tiles, of which those of one panel share its columns
// in the first cache.
func (k *Product) tiles(dst, state []float32, c, end int) {
	mr := k.set.MR()
	parts := mem.CeilDiv(k.rows, mr)
	for ; c < end; c += k.nr {
		cols, terms := k.nr, &k.packedTerms[0]
		if c+cols > k.cols {
			cols, terms = k.cols-c, &k.lastTerms[0]
		}
		for i := range parts {
			r, next := i*k.rows/parts, (i+1)*k.rows/parts
			k.set.GEMM[next-r-1][cols/k.set.Lanes-1](1, k.terms, &state[r*k.pitch], k.pitch*mem.Word, &k.stateTerms[0],
				&k.words[c*k.terms], 0, terms, &dst[r*k.cols+c], k.cols*mem.Word, false)
		}
	}
}

// Describe implements kernel.Kernel.
func (k *Product) Describe() kernel.Description {
	form, packing := fmt.Sprintf("tiles of %d × %d", min(k.rows, k.set.MR()), k.nr), "panels"
	if k.axpy {
		form, packing = "axpy form", "rows of terms"
	}
	return kernel.Description{
		Kernel:   "product of a step",
		Handover: kernel.FromOutput,
		Blocking: fmt.Sprintf("M %d N %d K %d, NC %d, %s", k.rows, k.cols, k.terms, k.blockCols, form),
		Packing:  fmt.Sprintf("state in place, weights packed once as %s (%d KB)", packing, stepWeights{k}.Bytes()>>10),
	}
}
