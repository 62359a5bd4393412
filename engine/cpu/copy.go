package cpu

import (
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// overlay copies elements at, at+1, … of the view to dst and leaves alone what
// lies outside the operand. T is an integer of the elements' size.
func overlay[T mem.Integer](v *view, args []*tensor.Tensor, dst []T, at int) {
	if len(dst) == 0 {
		return
	}
	src := mem.Bits[T](args[v.arg])
	inner := len(v.loops) - 1
	in := v.loops[inner]
	p := v.seek(at)
	if len(v.bounds) == 0 && inner > 0 {
		copyPlanes(v, dst, src, &p)
		return
	}
	for {
		n := min(in.extent-p.coord[inner], len(dst))
		switch {
		case len(v.bounds) == 0:
			mem.ReadStrided(dst[:n], src, p.at, in.stride)
		case inner > 0 && len(v.bounds) == 1 && v.bounds[0].index != nil && in.extent == 1:
			n = gather(v, args, dst, src, &p)
		default:
			lo, hi, shift := v.inside(args, &p, n)
			mem.ReadStrided(dst[lo:hi], src, p.at+shift+lo*in.stride, in.stride)
		}
		if dst = dst[n:]; len(dst) == 0 {
			return
		}
		v.nextRow(&p)
	}
}

// copyPlanes copies elements from p on, as many rows at a time as lie at one
// distance from each other.
func copyPlanes[T mem.Integer](v *view, dst, src []T, p *position) {
	l := len(v.loops) - 1
	in, out := v.loops[l], v.loops[l-1]
	for {
		n, rows := in.extent, out.extent-p.coord[l-1]
		if p.coord[l] != 0 || len(dst) < n {
			n, rows = min(n-p.coord[l], len(dst)), 1
			mem.ReadStrided(dst[:n], src, p.at, in.stride)
		} else {
			if len(dst) < rows*n {
				rows = len(dst) / n
			}
			copyPlane(dst, src, p.at, rows, n, out.stride, in.stride)
			p.coord[l-1] += rows - 1 // and on to the next row, below
			p.at += (rows - 1) * out.stride
		}
		if dst = dst[rows*n:]; len(dst) == 0 {
			return
		}
		v.nextRow(p)
	}
}

// gather copies the elements that an index selects one by one, up to the end of
// the last loop but one, of which p then is at the last. It returns their number.
func gather[T mem.Integer](v *view, args []*tensor.Tensor, dst, src []T, p *position) int {
	l := len(v.loops) - 2
	b := &v.bounds[0]
	x := b.index
	n := min(v.loops[l].extent-p.coord[l], len(dst))
	c, i, at := b.offset, x.base, p.at
	for k := range l + 1 {
		c += b.steps[k] * p.coord[k]
		i += x.steps[k] * p.coord[k]
	}
	index := args[x.arg]
	for j := range n {
		if by := whole(index, i); by >= -tensor.MaxDim && by <= tensor.MaxDim {
			to := c + by
			if to < 0 {
				to, by = to+b.extent, by+b.extent
			}
			if to >= 0 && to < b.extent {
				dst[j] = src[at+by*b.stride]
			}
		}
		c, i, at = c+b.steps[l], i+x.steps[l], at+v.loops[l].stride
	}
	p.coord[l] += n - 1
	p.at += (n - 1) * v.loops[l].stride
	return n
}

// copyPlane copies rows × cols elements that lie so far apart, from one on, along
// the longer side where they lie side by side along neither.
func copyPlane[T mem.Integer](dst, src []T, at, rows, cols, rowStep, colStep int) {
	switch {
	case colStep == 1:
		for r := range rows {
			copy(dst[r*cols:][:cols], src[at+r*rowStep:][:cols])
		}
	case colStep == 0:
		for r := range rows {
			mem.Fill(dst[r*cols:][:cols], src[at+r*rowStep])
		}
	case rows > cols || max(rowStep, -rowStep) < max(colStep, -colStep):
		// In blocks, so that lines of dst stay in the cache.
		const block = 32
		for from := 0; from < rows; from += block {
			n := min(block, rows-from)
			for c := range cols {
				mem.CopyStrided(dst[from*cols+c:], cols, src, at+from*rowStep+c*colStep, rowStep, n)
			}
		}
	default:
		for r := range rows {
			mem.CopyStrided(dst[r*cols:], 1, src, at+r*rowStep, colStep, cols)
		}
	}
}

// load returns n elements of the view: a part of the operand itself if they
// lie there side by side, else a copy in buf, with absent elements as given.
func load[T any](v *view, args []*tensor.Tensor, buf []T, at, n int, absent T) []T {
	if n == 0 {
		return nil
	}
	inner := v.loops[len(v.loops)-1]
	if len(v.bounds) == 0 && inner.stride == 1 && at%inner.extent+n <= inner.extent {
		from := v.seek(at).at
		return mem.Slice[T](mem.Data(args[v.arg]), args[v.arg].Len())[from : from+n]
	}
	buf = buf[:n]
	if len(v.bounds) != 0 {
		mem.Fill(buf, absent)
	}
	switch to := mem.First(buf); unsafe.Sizeof(absent) {
	case 1:
		overlay(v, args, mem.Slice[uint8](to, n), at)
	case 2:
		overlay(v, args, mem.Slice[uint16](to, n), at)
	case 4:
		overlay(v, args, mem.Slice[uint32](to, n), at)
	default:
		overlay(v, args, mem.Slice[uint64](to, n), at)
	}
	return buf
}
