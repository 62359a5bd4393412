package cpu

import (
	"math"
	"slices"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// How a piece of a contraction comes to the output.

// stretch is some columns of a piece that lie at one distance from each other in
// the output, too.
type stretch struct{ at, n, out, step int }

// outputs finds where the rows and the columns lie in the output; an element
// lies at the sum.
func (p *piece) outputs() {
	p.rowsOut = mem.Grow(p.rowsOut, p.tall)
	p.rows.Offsets(p.rowsOut, p.batch.Offset(p.out.at, p.out.batch, p.batchAt), p.out.rows, p.row)
	inner := len(p.cols.Extents) - 1
	run, from, n := p.cols.Extents[inner], p.line*p.lines.columns, p.lineCount*p.lines.columns
	p.stretches = p.stretches[:0]
	for i := 0; i < n; {
		s := stretch{
			p.cols.Offset(-p.line*p.lines.pitch, p.lines.strides, from+i), min(run-(from+i)%run, n-i),
			p.cols.Offset(0, p.out.cols, from+i), p.out.cols[inner],
		}
		i += s.n
		p.stretches = append(p.stretches, s)
	}
}

// LongRuns implements maker.
func (k *dot) LongRuns() bool {
	return affine.Last(k.out.cols) == 1 || slices.Equal(k.out.rows, tensor.Shape(k.rows.Extents).Strides())
}

// finish brings the piece to the output, corrects it and calls do for the runs of
// elements of which it is made: where the chains are, if it can.
func (p *piece) finish(out *tensor.Tensor, words []float32, args []*tensor.Tensor, do kernel.Epilogue) error {
	doubtful, vanishing := p.doubtful()
	if p.direct && !doubtful && do == nil {
		return nil
	}
	p.outputs()
	there := p.direct
	if doubtful || affine.Last(p.out.cols) != 1 || do == nil {
		p.storeAll(words)
		there = true
	}
	if doubtful {
		if err := p.correct(out, args, vanishing); err != nil {
			return err
		}
	}
	if do == nil {
		return nil
	}
	if affine.Last(p.out.cols) != 1 {
		for _, c := range p.stretches {
			if err := do(p.rowsOut[0]+c.out, p.tall, c.n, c.step, kernel.Source{}); err != nil {
				return err
			}
		}
		return nil
	}
	for i, rows := 0, 0; i < p.tall; i += rows {
		rows = p.neighbours(i)
		for c := 0; c < len(p.stretches); {
			first, from := p.stretches[c], kernel.Source{RowPitch: p.pitch}
			from.Lines, from.LinePitch = p.evenly(c)
			if !there {
				from.Data = p.chains[i*p.pitch+first.at:]
			}
			if err := do(p.rowsOut[i]+first.out, first.n*from.Lines, rows, p.out.rows[0], from); err != nil {
				return err
			}
			c += from.Lines
		}
	}
	return nil
}

// evenly returns how many stretches, from one on, are alike, lie side by side in the
// output, and are so far apart in the piece.
func (p *piece) evenly(c int) (n, apart int) {
	x := p.stretches[c:]
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

// neighbours returns how many rows from i on go through a fusion together: they
// stay in the cache, and lie at one distance from each other.
func (p *piece) neighbours(i int) int {
	const near = 4 * kernel.Chunk
	if !p.rows.OneAxis() {
		return 1
	}
	return min(max(near/p.broad, 1), p.tall-i)
}

// storeAll writes all chains to the output, if they are not kept there. Rows that lie
// side by side in it, while columns do not, are turned.
func (p *piece) storeAll(out []float32) {
	if p.direct {
		return
	}
	apart := len(p.stretches) == 1 && p.stretches[0].step != 1
	for i, n := 0, 0; i < p.tall; i += n {
		for n = 1; apart && i+n < p.tall && p.rowsOut[i+n] == p.rowsOut[i]+n; {
			n++
		}
		if n >= asm.TurnRows {
			p.turn(out, i, n)
			continue
		}
		for r := range n {
			p.store(out, i+r)
		}
	}
}

// turn writes the chains of n rows from row i on, which lie side by side in the
// output: so many at a time that kernels turn.
func (p *piece) turn(out []float32, i, n int) {
	const rows = asm.TurnRows
	c, from := p.stretches[0], &p.left.eight
	whole := c.n / rows
	for at := 0; whole > 0 && at < n; at += rows {
		at = min(at, n-rows) // the last may be written twice
		for r := range from {
			from[r] = (i + at + r) * p.pitch
		}
		p.set.Turn(whole, &out[p.rowsOut[i+at]+c.out], c.step*mem.Word, &p.chains[c.at], from)
	}
	done := whole * rows
	for r := i; done < c.n && r < i+n; r++ {
		mem.CopyStrided(out[p.rowsOut[r]+c.out+done*c.step:], c.step, p.chains[r*p.pitch:], c.at+done, 1, c.n-done)
	}
}

// store writes the chains of row i to the output.
func (p *piece) store(out []float32, i int) {
	line, row := p.chains[i*p.pitch:], p.rowsOut[i]
	for _, c := range p.stretches {
		if c.step == 1 {
			copy(out[row+c.out:][:c.n], line[c.at:])
		} else {
			mem.CopyStrided(out[row+c.out:], c.step, line, c.at, 1, c.n)
		}
	}
}

// correct evaluates by definition the elements that absent terms may have
// changed. An absent term is packed as 0. Times a number, that adds nothing to a
// chain, unless the chain is −0; and a chain becomes −0 only where a product
// rounds to zero, and then goes on as if it were +0 until it is one at the end.
// Times an infinity or no number, it makes the chain no number.
func (p *piece) correct(out *tensor.Tensor, args []*tensor.Tensor, vanishing bool) error {
	cell := kernel.NewCell(p.all, args)
	for i, r := range p.rowsOut {
		for _, c := range p.stretches {
			for j, x := range p.chains[i*p.pitch+c.at:][:c.n] {
				if x != x || vanishing && math.Float32bits(x) == 0 {
					if err := kernel.Evaluate(cell, out, r+c.out+j*c.step); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// doubtful reports whether absent terms may have changed some element, and
// whether some product may have become zero.
func (p *piece) doubtful() (doubtful, vanishing bool) {
	if !p.left.absent && !p.top.absent {
		return false, false
	}
	vanishing = p.left.least+p.top.least < kernel.ProductsKept
	return vanishing || !p.numbers(), vanishing
}

// numbers reports whether all chains are numbers.
func (p *piece) numbers() bool {
	whole := p.broad / p.set.Lanes
	for i := range p.tall {
		line := p.chains[i*p.pitch:][:p.broad]
		if whole > 0 && p.set.Greatest(whole, &line[0]) > asm.InfiniteSize {
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
