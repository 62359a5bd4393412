package spatial

import (
	"slices"
	"unsafe"

	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// verticalPass finds the extreme of the lines that each line of windows reaches, reading
// them in place. The lines that it makes lie as those of the operand do; a horizontal pass
// over a window buffer of them does the rest.
type verticalPass struct {
	fn         int // of an elementwise chain
	padding    float32
	axis       windowAxis
	width      int  // elements of a line
	pitch      int  // from line to line of what is made
	planePitch int  // from plane to plane of what is made
	even       bool // planes of the operand have the same pitch
	bands      []band
}

// band is lines at…at+n−1 of the output that reach the same number of lines of the operand.
// The first reaches those of from; each next one reaches those one step further.
type band struct {
	at, n int
	from  []int
}

// newVerticalPass returns nil if lines of the operand are not contiguous, or windows have
// one line or one column.
func newVerticalPass(w *window, fn int, padding float32) *verticalPass {
	d := &verticalPass{fn: fn, padding: padding, axis: w.vertical, width: w.horizontal.extent, pitch: w.vertical.step * w.vertical.stride}
	if w.horizontal.stride != 1 || d.pitch < d.width || w.vertical.fold == noAxis || w.horizontal.fold == noAxis {
		return nil
	}
	d.planePitch = max((d.axis.n-1)*d.pitch+d.width, d.axis.extent*d.axis.stride)
	d.even = w.planes.OneAxis() && w.steps[0] == d.planePitch
	terms := w.p.Fold[d.axis.fold-len(w.p.Shape)]
	for o := range d.axis.n {
		from := d.reached(o, terms)
		if last := len(d.bands) - 1; last >= 0 && slices.Equal(from, d.reachedAfter(&d.bands[last])) {
			d.bands[last].n++
		} else {
			d.bands = append(d.bands, band{o, 1, from})
		}
	}
	return d
}

// reached returns the lines of the operand that line o of the output reaches. One alone
// counts twice: it is its own extreme.
func (d *verticalPass) reached(o, terms int) (from []int) {
	for k := range terms {
		if line := d.axis.offset + o*d.axis.step + k*d.axis.dilation; line >= 0 && line < d.axis.extent {
			from = append(from, line)
		}
	}
	if len(from) == 1 {
		from = append(from, from[0])
	}
	return from
}

// reachedAfter returns the lines that the next line of a band would reach.
func (d *verticalPass) reachedAfter(b *band) []int {
	out := slices.Clone(b.from)
	for i := range out {
		out[i] += b.n * d.axis.step
	}
	return out
}

// horizontalWindow returns how windows move along the lines that the pass makes.
func (d *verticalPass) horizontalWindow(w *window) *window {
	out := *w
	out.vertical = windowAxis{extent: d.axis.n, stride: d.pitch, n: d.axis.n, fold: noAxis, step: 1, dilation: 1, phases: []int{0}, length: d.axis.n}
	out.blockPlanes = min(max(tuning.MaxWindowBuffer/max(out.phaseSize()*out.phases(), d.planePitch), 1), out.planes.N)
	out.taps = nil
	out.findTaps()
	slices.Sort(out.taps)
	out.taps = slices.Compact(out.taps)
	return &out
}

// run makes the lines of a block's planes and returns them; the planes' offsets are then
// those in what it returns.
func (d *verticalPass) run(s *windowBuffer, set *asm.KernelSet, src []float32) []float32 {
	s.extremes = mem.Grow(s.extremes, len(s.planeOffsets)*d.planePitch)
	for i := range d.bands {
		b := &d.bands[i]
		planes, rows, lines, gap := len(s.planeOffsets), b.n, 1, d.pitch-d.width
		if d.even && (b.n == 1 || gap == 0) {
			planes, rows, lines, gap = 1, len(s.planeOffsets), b.n, d.planePitch-b.n*d.width
		}
		for plane, at := range s.planeOffsets[:planes] {
			dst := s.extremes[plane*d.planePitch+b.at*d.pitch:]
			if len(b.from) == 0 {
				for row := range rows {
					mem.Fill(dst[row*(lines*d.width+gap):][:lines*d.width], d.padding)
				}
				continue
			}
			s.steps = s.steps[:0]
			for _, line := range b.from[1:] {
				s.steps = append(s.steps, asm.EltwiseOp{Fn: d.fn + 1, At: unsafe.Pointer(&src[at+line*d.axis.stride])})
			}
			set.EltwiseChain(rows, lines, d.width, gap*mem.Word, 0, 0, &dst[0], &src[at+b.from[0]*d.axis.stride], (*byte)(mem.First(s.steps)), len(s.steps))
		}
	}
	clear(s.steps)
	for i := range s.planeOffsets {
		s.planeOffsets[i] = i * d.planePitch
	}
	return s.extremes
}
