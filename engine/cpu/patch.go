package cpu

import (
	mathbits "math/bits"
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// Packing of what is no matrix: rows or terms follow each other in runs alone, or
// lie outside the operand in part.

// packRuns packs rows for one tile along the longer of the runs: the values of
// all rows for one term, or all terms of one row, which are then transposed.
func (p *panels) packRuns(dst []float32, row, n, width int) {
	if p.side.ownRun.Length() >= p.side.termRun.Length() {
		own, terms := p.ownCourse(row, n), p.termCourse()
		p.patch(dst, width, &terms, &own)
		return
	}
	p.newLines(n)
	p.packRows(p.lines, row, n)
	p.turn(dst, p.lines, p.places, 0, p.deep, width)
}

// packRows packs the terms of each row side by side.
func (p *panels) packRows(dst []float32, row, n int) {
	own, terms := p.ownCourse(row, n), p.termCourse()
	p.patch(dst, p.deep, &own, &terms)
}

// course is the rows or the terms that are being packed.
type course struct {
	grid   *affine.Grid
	run    affine.Run
	first  int              // in the grid
	at     []int            // positions
	bounds [maxBounds]watch // those of the side
}

// watch is a coordinate that may lie outside the operand: its steps along the
// grid, and what each element adds to it.
type watch struct{ steps, at []int }

const maxBounds = tensor.MaxRank

func (p *panels) ownCourse(row, n int) course {
	s := course{grid: p.rows, run: p.side.ownRun, first: p.first + row, at: p.own[row:][:n]}
	for i := range p.coords {
		s.bounds[i] = watch{p.side.bounds[i].own, p.coords[i].own[row:]}
	}
	return s
}

func (p *panels) termCourse() course {
	s := course{grid: p.steps, run: p.side.termRun, first: p.start, at: p.terms}
	for i := range p.coords {
		s.bounds[i] = watch{p.side.bounds[i].terms, p.coords[i].terms}
	}
	return s
}

// period returns after how many elements the first n coordinates that are
// watched are the same again.
func (s *course) period(n int) int {
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

// patch writes a line for each of the lines, from which dst has so many
// elements, with an element for each of across. Lines of one phase of the period
// differ in their position alone, and share segments.
func (p *panels) patch(dst []float32, pitch int, lines, across *course) {
	const positionSize = 8
	p.cut(across)
	n, period := len(lines.at), lines.period(len(p.coords))
	for done := 0; done < n; { // the rest of a period, whole periods, the start of one
		phase := (lines.first + done) % period
		size, times := min(period-phase, n-done), 1
		if phase == 0 {
			times = max((n-done)/period, 1)
		}
		p.segments = p.segments[:0]
		for i := range size {
			p.addLine(lines, done, i, across, i*pitch)
		}
		if copies := p.patcher(across.run.Step); copies != nil {
			copies(times, &dst[done*pitch], period*pitch*mem.Word, unsafe.SliceData(p.src.floats),
				&lines.at[done], period*positionSize, &p.segments[0], len(p.segments))
		} else {
			for i := range times {
				p.readSegments(dst[(done+i*period)*pitch:], lines.at[done+i*period], across.run.Step)
			}
		}
		done += times * size
	}
}

// run is a part of a line whose elements lie side by side, or a single element.
type run struct{ from, n int }

// patcher returns the kernel for segments of elements that lie so many steps
// apart, if there is one.
func (p *panels) patcher(step int) asm.Patch {
	switch {
	case p.src.widen == nil && step == 1:
		return p.set.Patch
	case p.src.widen == nil && step == 2:
		return p.set.Sift
	case p.src.widen == nil && step == -1:
		return p.set.Back
	}
	return nil
}

// cut finds the runs of a line.
func (p *panels) cut(across *course) {
	p.runs = p.runs[:0]
	at := across.first % across.run.N
	for i, n := 0, len(across.at); i < n; at = 0 {
		r := run{i, min(across.run.N-at, n-i)}
		p.runs = append(p.runs, r)
		i += r.n
	}
}

// addLine appends the segments of the line that is i lines after another, from
// which its positions are counted, to be written from a place on.
func (p *panels) addLine(lines *course, from, i int, across *course, to int) {
	type edge struct{ at, step, extent int } // a coordinate that is watched
	var edges [maxBounds]edge
	n := len(p.coords)
	for b := range n {
		edges[b] = edge{lines.bounds[b].at[from+i], affine.Last(across.bounds[b].steps), p.side.bounds[b].extent}
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
		p.absent = p.absent || lo > 0 || hi < r.n
		at, put := across.at[r.from]+base, to+r.from
		for j := 0; j < r.n; j += lanes {
			mask := 0
			if l, h := max(lo-j, 0), min(hi-j, lanes); l < h {
				mask = 1<<h - 1<<l
			}
			segments = append(segments, asm.Segment{at + j*step, put + j, mask})
		}
	}
	p.segments = segments
}

// readSegments writes the segments of a line, with positions from at on, of
// elements that are widened or lie some steps apart.
func (p *panels) readSegments(dst []float32, at, step int) {
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
