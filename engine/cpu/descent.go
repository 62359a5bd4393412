package cpu

import (
	"slices"
	"unsafe"

	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// descent finds the extreme of the lines that a line of windows reaches, where they
// lie in the operand. What it makes lies as lines of the operand do, and windows go
// across it along single lines.
type descent struct {
	fn     int // of a step
	border float32
	high   windowAxis
	width  int  // of a line
	apart  int  // from line to line of the output
	pitch  int  // from plane to plane of what is made
	even   bool // planes of the operand lie as far apart
	bands  []band
}

// band is n lines of the output, from one on, of which each reaches lines of the
// operand one step behind those of the line before. The first reaches those given.
type band struct {
	at, n int
	from  []int
}

// newDescent returns nil if lines of the operand have gaps, or windows one line.
func newDescent(w *window, fn int, border float32) *descent {
	d := &descent{fn: fn, border: border, high: w.high, width: w.wide.extent, apart: w.high.step * w.high.stride}
	if w.wide.stride != 1 || d.apart < d.width || w.high.fold == none || w.wide.fold == none {
		return nil
	}
	d.pitch = max((d.high.n-1)*d.apart+d.width, d.high.extent*d.high.stride)
	d.even = w.planes.OneAxis() && w.steps[0] == d.pitch
	terms := w.p.Fold[d.high.fold-len(w.p.Shape)]
	for o := range d.high.n {
		from := d.reached(o, terms)
		if last := len(d.bands) - 1; last >= 0 && slices.Equal(from, d.reachedAfter(&d.bands[last])) {
			d.bands[last].n++
		} else {
			d.bands = append(d.bands, band{o, 1, from})
		}
	}
	return d
}

// reached returns the lines of the operand that line o of the output reaches, twice
// if it is one: that is its extreme, too.
func (d *descent) reached(o, terms int) (from []int) {
	for k := range terms {
		if line := d.high.offset + o*d.high.step + k*d.high.apart; line >= 0 && line < d.high.extent {
			from = append(from, line)
		}
	}
	if len(from) == 1 {
		from = append(from, from[0])
	}
	return from
}

// reachedAfter returns the lines that the line behind a band would reach.
func (d *descent) reachedAfter(b *band) []int {
	out := slices.Clone(b.from)
	for i := range out {
		out[i] += b.n * d.high.step
	}
	return out
}

// across returns how windows move along what a descent makes.
func (d *descent) across(w *window) *window {
	out := *w
	out.high = windowAxis{extent: d.high.n, stride: d.apart, n: d.high.n, fold: none, step: 1, apart: 1, phases: []int{0}, length: d.high.n}
	out.each = min(max(maxSheet/max(out.size()*out.phases(), d.pitch), 1), out.planes.N)
	out.taps = nil
	out.findTaps()
	slices.Sort(out.taps)
	out.taps = slices.Compact(out.taps)
	return &out
}

// run makes the lines of the planes that have been placed in a worker's sheet, and
// places them anew in what it returns.
func (d *descent) run(s *sheet, set *asm.Set, src []float32) []float32 {
	s.down = mem.Grow(s.down, len(s.planes)*d.pitch)
	for i := range d.bands {
		b := &d.bands[i]
		planes, rows, lines, gap := len(s.planes), b.n, 1, d.apart-d.width
		if d.even && (b.n == 1 || gap == 0) {
			planes, rows, lines, gap = 1, len(s.planes), b.n, d.pitch-b.n*d.width
		}
		for plane, at := range s.planes[:planes] {
			dst := s.down[plane*d.pitch+b.at*d.apart:]
			if len(b.from) == 0 {
				for row := range rows {
					mem.Fill(dst[row*(lines*d.width+gap):][:lines*d.width], d.border)
				}
				continue
			}
			s.steps = s.steps[:0]
			for _, line := range b.from[1:] {
				s.steps = append(s.steps, asm.Step{Fn: d.fn + 1, At: unsafe.Pointer(&src[at+line*d.high.stride])})
			}
			set.Flow(rows, lines, d.width, gap*mem.Word, 0, 0, &dst[0], &src[at+b.from[0]*d.high.stride], (*byte)(mem.First(s.steps)), len(s.steps))
		}
	}
	clear(s.steps)
	for i := range s.planes {
		s.planes[i] = i * d.pitch
	}
	return s.down
}
