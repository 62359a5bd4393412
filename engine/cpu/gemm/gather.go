package gemm

import (
	mathbits "math/bits"
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// Packing of what is no matrix (im2col): rows or terms are contiguous in runs alone, or
// padding in part. Lines of a panel are gathered by segments of one register each.

// packRuns packs rows for one tile along the longer runs: the values of all rows for one
// term, or all terms of one row, which are then transposed.
func (p *packer) packRuns(dst []float32, row, n, width int) {
	if p.layout.ownRun.Length() >= p.layout.termRun.Length() {
		own, terms := p.rowAxis(row, n), p.termAxis()
		p.gatherSegments(dst, width, &terms, &own)
		return
	}
	p.newRowBuffer(n)
	p.packRowMajor(p.rowBuffer, row, n)
	p.transpose(dst, p.rowBuffer, p.rowStarts, 0, p.kWords, width)
}

// packRowMajor packs rows with the terms of each contiguous.
func (p *packer) packRowMajor(dst []float32, row, n int) {
	own, terms := p.rowAxis(row, n), p.termAxis()
	p.gatherSegments(dst, p.kWords, &own, &terms)
}

// packAxis is the rows or the terms that are being packed.
type packAxis struct {
	grid   *affine.Grid
	run    affine.Run
	first  int                  // in the grid
	at     []int                // offsets in the operand
	bounds [maxBounds]axisCheck // those of the operand
}

// axisCheck is a coordinate that may lie outside the operand: its steps along the
// grid, and what each element adds to it.
type axisCheck struct{ steps, at []int }

const maxBounds = tensor.MaxRank

// rowAxis is n rows of the block from one on.
func (p *packer) rowAxis(row, n int) packAxis {
	s := packAxis{grid: p.grid, run: p.layout.ownRun, first: p.firstRow + row, at: p.rowOffsets[row:][:n]}
	for i := range p.coords {
		s.bounds[i] = axisCheck{p.layout.bounds[i].own, p.coords[i].own[row:]}
	}
	return s
}

// termAxis is the terms that are sought.
func (p *packer) termAxis() packAxis {
	s := packAxis{grid: p.termGrid, run: p.layout.termRun, first: p.firstTerm, at: p.termOffsets}
	for i := range p.coords {
		s.bounds[i] = axisCheck{p.layout.bounds[i].terms, p.coords[i].terms}
	}
	return s
}

// period returns after how many elements the first n checked coordinates repeat.
func (s *packAxis) period(n int) int {
	outer := len(s.grid.Extents)
	for _, w := range s.bounds[:n] {
		for axis, step := range w.steps {
			if step != 0 {
				outer = min(outer, axis)
			}
		}
	}
	return tensor.Shape(s.grid.Extents[outer:]).Elements()
}

// gatherSegments writes a line of dst, pitch elements from the one before, for each of
// lines, with an element for each of across. Lines at one place of the period differ in
// their offset alone, and share segments.
func (p *packer) gatherSegments(dst []float32, pitch int, lines, across *packAxis) {
	p.splitRuns(across)
	n, period := len(lines.at), lines.period(len(p.coords))
	for done := 0; done < n; { // the end of a period, whole periods, the start of one
		phase := (lines.first + done) % period
		size, times := min(period-phase, n-done), 1
		if phase == 0 {
			times = max((n-done)/period, 1)
		}
		p.segments = p.segments[:0]
		for i := range size {
			p.addSegments(lines, done, i, across, i*pitch)
		}
		if copies := p.segmentKernel(across.run.Step); copies != nil {
			copies(times, &dst[done*pitch], period*pitch*mem.Word, unsafe.SliceData(p.src.floats),
				&lines.at[done], period*mem.IntSize, &p.segments[0], len(p.segments))
		} else {
			for i := range times {
				p.readSegments(dst[(done+i*period)*pitch:], lines.at[done+i*period], across.run.Step)
			}
		}
		done += times * size
	}
}

// runPart is a part of a line whose elements lie at the step of the run.
type runPart struct{ from, n int }

// segmentKernel returns the micro-kernel for segments of elements step apart, nil if there
// is none.
func (p *packer) segmentKernel(step int) asm.GatherKernel {
	switch {
	case p.src.widen == nil && step == 1:
		return p.set.Gather
	case p.src.widen == nil && step == 2:
		return p.set.GatherStride2
	case p.src.widen == nil && step == -1:
		return p.set.GatherReversed
	}
	return nil
}

// splitRuns cuts a line into its runs.
func (p *packer) splitRuns(across *packAxis) {
	p.runs = p.runs[:0]
	at := across.first % across.run.N
	for i, n := 0, len(across.at); i < n; at = 0 {
		r := runPart{i, min(across.run.N-at, n-i)}
		p.runs = append(p.runs, r)
		i += r.n
	}
}

// addSegments appends the segments of the line i lines after from, whose offset they are
// counted from; they are written from element to on.
func (p *packer) addSegments(lines *packAxis, from, i int, across *packAxis, to int) {
	type edge struct{ at, step, extent int } // of a checked coordinate
	var edges [maxBounds]edge
	n := len(p.coords)
	for b := range n {
		edges[b] = edge{lines.bounds[b].at[from+i], affine.Last(across.bounds[b].steps), p.layout.bounds[b].extent}
	}
	base, step, lanes, segments := lines.at[from+i]-lines.at[from], across.run.Step, p.set.Lanes, p.segments
	for _, r := range p.runs {
		lo, hi := 0, r.n
		for b, e := range edges[:n] {
			switch c := e.at + across.bounds[b].at[r.from]; e.step {
			case 0:
				if c < 0 || c >= e.extent {
					hi = 0
				}
			case 1:
				lo, hi = max(lo, -c), min(hi, e.extent-c)
			default:
				l, h := affine.Clip(c, e.step, e.extent, r.n)
				lo, hi = max(lo, l), min(hi, h)
			}
		}
		p.hasPadding = p.hasPadding || lo > 0 || hi < r.n
		at, put := across.at[r.from]+base, to+r.from
		for j := 0; j < r.n; j += lanes {
			mask := 0
			if l, h := max(lo-j, 0), min(hi-j, lanes); l < h {
				mask = 1<<h - 1<<l
			}
			segments = append(segments, asm.MaskedSegment{at + j*step, put + j, mask})
		}
	}
	p.segments = segments
}

// readSegments writes the segments of a line at an offset, where no micro-kernel does:
// elements are widened, or some steps apart.
func (p *packer) readSegments(dst []float32, at, step int) {
	for _, s := range p.segments {
		clear(dst[s[1]:][:p.set.Lanes])
		mask := uint(s[2])
		if mask == 0 {
			continue
		}
		lane, n := mathbits.TrailingZeros(mask), mathbits.OnesCount(mask)
		to, from := dst[s[1]+lane:][:n], at+s[0]+lane*step
		switch {
		case step == 1:
			p.src.read(to, from)
		case p.src.widen == nil:
			mem.ReadStrided(to, p.src.floats, from, step)
		default:
			for i := range to {
				p.src.read(to[i:i+1], from+i*step)
			}
		}
	}
}
