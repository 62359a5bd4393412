package cpu

import "github.com/tally-network/tally/core/tensor"

// image is a copy of the part of an operand that a piece of a convolution reads,
// with zeros for what lies outside the operand. Columns of the piece are one row
// in it: each line of the output, then some positions that stand for no output, up
// to the next line. So tiles read it in place, whatever the term. Rows are packed
// from it.
type image struct {
	dims       []imageDim
	size       int
	base       int   // position of the first column's first term
	own, terms []int // strides
}

// imageDim is one axis of an image. It begins at coordinate start + Σ batch +
// line · (line at which the piece begins) of the operand.
type imageDim struct {
	start, line    int
	batch          []int // steps
	extent, stride int   // of the operand
	n, pitch       int   // extent and stride in the image
}

// maxImage bounds the elements of an image, which should stay in the
// second-level cache.
const maxImage = 1 << 18

// newImage returns the image of operand arg for pieces of so many lines along the
// first axis of its rows or columns. It is nil if it is too large.
func newImage(k *dot, arg int, grid *grid, batch, own, terms []int, lines int) *image {
	m := &image{size: 1, own: make([]int, len(own)), terms: make([]int, len(terms))}
	m.dims = make([]imageDim, len(k.p.Args[arg].Shape))
	for d := len(m.dims) - 1; d >= 0; d-- {
		b, _ := newBound(k.p, arg, d)
		x := imageDim{start: b.offset, batch: steps(b.steps).pick(batch), extent: b.extent, stride: b.stride, n: 1, pitch: m.size}
		spread := func(axes, extents, strides []int) {
			for i, step := range steps(b.steps).pick(axes) {
				strides[i] += step * x.pitch
				far := step * (extents[i] - 1)
				x.start += min(far, 0)
				m.base -= min(far, 0) * x.pitch
				x.n += max(far, -far)
			}
		}
		spread(terms, k.terms.extents, m.terms)
		spread(own[:1], []int{lines}, m.own)
		spread(own[1:], grid.extents[1:], m.own[1:])
		x.line = steps(b.steps).pick(own)[0]
		m.dims[d] = x
		if m.size *= x.n; m.size > tensor.MaxDim {
			return nil
		}
	}
	return m
}

// oneRow reports whether columns of the given extents can be one row.
func (m *image) oneRow(extents []int) bool {
	next := 1 // the least step that passes over a whole inner axis
	for i := len(m.own) - 1; i >= 0; i-- {
		if m.own[i] < next || i == len(m.own)-1 && m.own[i] != 1 {
			return false
		}
		next = m.own[i] * extents[i]
	}
	return true
}

// span returns the columns from the first to the last of a line.
func (m *image) span(extents []int) int {
	n := 1
	for i, stride := range m.own[1:] {
		n += (extents[i+1] - 1) * stride
	}
	return n
}

// draw fills dst with the part of src that belongs to a line of a batch. It
// reports whether anything lies outside.
func (m *image) draw(dst []float32, src *operand, batch *grid, at, line int) (absent bool) {
	var from [tensor.MaxRank]int
	for d := range m.dims {
		x := &m.dims[d]
		from[d] = batch.at(x.start, x.batch, at) + line*x.line
	}
	return m.drawAxis(dst, src, from[:len(m.dims)], 0, 0)
}

func (m *image) drawAxis(dst []float32, src *operand, from []int, d, at int) (absent bool) {
	if len(m.dims) == 0 {
		src.read(dst[:1], 0)
		return false
	}
	x := &m.dims[d]
	lo, hi := within(from[d], 1, x.extent, x.n)
	if lo >= hi {
		clear(dst[:x.n*x.pitch])
		return true
	}
	clear(dst[:lo*x.pitch])
	clear(dst[hi*x.pitch : x.n*x.pitch])
	absent = lo > 0 || hi < x.n
	if at += (from[d] + lo) * x.stride; d == len(m.dims)-1 {
		src.read(dst[lo:hi], at)
		return absent
	}
	for i := lo; i < hi; i++ {
		inner := m.drawAxis(dst[i*x.pitch:], src, from, d+1, at)
		absent = absent || inner
		at += x.stride
	}
	return absent
}
