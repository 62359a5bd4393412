package gemm

import (
	"math"
	"slices"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// How a block comes to the output, and to its epilogue.

// columnRun is some columns that are contiguous in a block and at one step in the output.
type columnRun struct {
	at        int // first column, in the block
	n         int // columns
	out, step int // offsets in the output, of the first and from each to the next
}

// locateOutput finds the offsets of rows and columns in the output; an element lies at the
// sum of both.
func (p *block) locateOutput() {
	p.outRows = mem.Grow(p.outRows, p.rowCount)
	p.rows.Offsets(p.outRows, p.batch.Offset(p.out.at, p.out.batch, p.batchAt), p.out.rows, p.row)
	inner := len(p.cols.Extents) - 1
	run, from, n := p.cols.Extents[inner], p.line*p.lines.columns, p.lineCount*p.lines.columns
	p.columnRuns = p.columnRuns[:0]
	for i := 0; i < n; {
		s := columnRun{
			at: p.cols.Offset(-p.line*p.lines.pitch, p.lines.strides, from+i), n: min(run-(from+i)%run, n-i),
			out: p.cols.Offset(0, p.out.cols, from+i), step: p.out.cols[inner],
		}
		i += s.n
		p.columnRuns = append(p.columnRuns, s)
	}
}

// LongRuns implements kernel.Producer.
func (k *contraction) LongRuns() bool {
	return affine.Last(k.out.cols) == 1 || slices.Equal(k.out.rows, tensor.Shape(k.rows.Extents).Strides())
}

// finish stores the block, corrects it and calls do for its runs of elements; without
// copying them to the output, if it can.
func (p *block) finish(out *tensor.Tensor, words []float32, args []*tensor.Tensor, do kernel.Epilogue) error {
	doubtful, vanished := p.inDoubt()
	if p.direct && !doubtful && do == nil {
		return nil
	}
	p.locateOutput()
	there := p.direct
	if doubtful || affine.Last(p.out.cols) != 1 || do == nil {
		p.storeAll(words)
		there = true
	}
	if doubtful {
		if err := p.correctPadding(out, args, vanished); err != nil {
			return err
		}
	}
	if do == nil {
		return nil
	}
	if affine.Last(p.out.cols) != 1 {
		for _, c := range p.columnRuns {
			if err := do(p.outRows[0]+c.out, p.rowCount, c.n, c.step, kernel.Source{}); err != nil {
				return err
			}
		}
		return nil
	}
	for i, rows := 0, 0; i < p.rowCount; i += rows {
		rows = p.rowsTogether(i)
		for c := 0; c < len(p.columnRuns); {
			first, from := p.columnRuns[c], kernel.Source{RowPitch: p.ldc}
			from.Lines, from.LinePitch = p.evenRuns(c)
			if !there {
				from.Data = p.acc[i*p.ldc+first.at:]
			}
			if err := do(p.outRows[i]+first.out, first.n*from.Lines, rows, p.out.rows[0], from); err != nil {
				return err
			}
			c += from.Lines
		}
	}
	return nil
}

// evenRuns returns how many runs, from one on, are of one length, contiguous in the output,
// and at one distance in the block, and that distance.
func (p *block) evenRuns(c int) (n, apart int) {
	x := p.columnRuns[c:]
	for n = 1; n < len(x) && x[n].n == x[0].n && x[n].out == x[n-1].out+x[0].n; n++ {
		step := x[n].at - x[n-1].at
		if n == 1 {
			apart = step
		}
		if step != apart {
			break
		}
	}
	return n, apart
}

// rowsTogether returns how many rows from i on an epilogue takes together: they stay in the
// cache, and lie at one distance in the output.
func (p *block) rowsTogether(i int) int {
	if !p.rows.OneAxis() {
		return 1
	}
	return min(max(tuning.NearElements/p.colCount, 1), p.rowCount-i)
}

// storeAll stores all accumulators, if they are not in the output already. Where rows are
// contiguous in the output, and columns are not, they are transposed.
func (p *block) storeAll(out []float32) {
	if p.direct {
		return
	}
	apart := len(p.columnRuns) == 1 && p.columnRuns[0].step != 1
	for i, n := 0, 0; i < p.rowCount; i += n {
		for n = 1; apart && i+n < p.rowCount && p.outRows[i+n] == p.outRows[i]+n; {
			n++
		}
		if n >= asm.TransposeRows {
			p.storeTransposed(out, i, n)
			continue
		}
		for r := range n {
			p.storeRow(out, i+r)
		}
	}
}

// storeTransposed stores n rows from row i on, which are contiguous in the output.
func (p *block) storeTransposed(out []float32, i, n int) {
	const rows = asm.TransposeRows
	c, from := p.columnRuns[0], &p.aPacker.transposeRows
	whole := c.n / rows
	for at := 0; whole > 0 && at < n; at += rows {
		at = min(at, n-rows) // the last may be written twice
		for r := range from {
			from[r] = (i + at + r) * p.ldc
		}
		p.set.Transpose8(whole, &out[p.outRows[i+at]+c.out], c.step*mem.Word, &p.acc[c.at], from)
	}
	done := whole * rows
	for r := i; done < c.n && r < i+n; r++ {
		mem.CopyStrided(out[p.outRows[r]+c.out+done*c.step:], c.step, p.acc[r*p.ldc:], c.at+done, 1, c.n-done)
	}
}

// storeRow stores row i.
func (p *block) storeRow(out []float32, i int) {
	line, row := p.acc[i*p.ldc:], p.outRows[i]
	for _, c := range p.columnRuns {
		if c.step == 1 {
			copy(out[row+c.out:][:c.n], line[c.at:])
		} else {
			mem.CopyStrided(out[row+c.out:], c.step, line, c.at, 1, c.n)
		}
	}
}

// correctPadding evaluates by definition the elements that padding may have changed (see
// kernel.MinExponent): NaNs, and, if products may have vanished, zeros. An accumulator
// that becomes −0 on the way goes on as +0 would; only one that ends there differs.
func (p *block) correctPadding(out *tensor.Tensor, args []*tensor.Tensor, vanished bool) error {
	args, err := p.plainArgs(args)
	if err != nil {
		return err
	}
	cell := kernel.NewCell(p.whole, args)
	for i, r := range p.outRows {
		for _, c := range p.columnRuns {
			for j, x := range p.acc[i*p.ldc+c.at:][:c.n] {
				if x != x || vanished && math.Float32bits(x) == 0 {
					if err := kernel.Evaluate(cell, out, r+c.out+j*c.step); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// inDoubt reports whether padding may have changed some element, and whether some product
// may have rounded to zero.
func (p *block) inDoubt() (doubtful, vanished bool) {
	if !p.aPacker.hasPadding && !p.bPacker.hasPadding {
		return false, false
	}
	vanished = p.aPacker.minExponent+p.bPacker.minExponent < kernel.ProductsKept
	return vanished || !p.allNumbers(), vanished
}

// allNumbers reports whether no accumulator is a NaN.
func (p *block) allNumbers() bool {
	whole := p.colCount / p.set.Lanes
	for i := range p.rowCount {
		line := p.acc[i*p.ldc:][:p.colCount]
		if whole > 0 && p.set.MaxSize(whole, &line[0]) > asm.InfiniteSize {
			return false
		}
		for _, x := range line[whole*p.set.Lanes:] {
			if x != x {
				return false
			}
		}
	}
	return true
}
