package cpu

import (
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
)

// overlay copies elements at, at+1, … of the view to dst and leaves alone what
// lies outside the operand. T is an integer of the elements' size.
func overlay[T integer](v *view, args []*tensor.Tensor, dst []T, at int) {
	if len(dst) == 0 {
		return
	}
	src := bits[T](args[v.arg])
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
			strided(dst[:n], src, p.at, in.stride)
		case inner > 0 && len(v.bounds) == 1 && v.bounds[0].index != nil && in.extent == 1:
			n = gather(v, args, dst, src, &p)
		default:
			lo, hi, shift := v.inside(args, &p, n)
			strided(dst[lo:hi], src, p.at+shift+lo*in.stride, in.stride)
		}
		if dst = dst[n:]; len(dst) == 0 {
			return
		}
		v.nextRow(&p)
	}
}

// copyPlanes copies elements from p on, as many rows at a time as lie at one
// distance from each other.
func copyPlanes[T integer](v *view, dst, src []T, p *position) {
	l := len(v.loops) - 1
	in, out := v.loops[l], v.loops[l-1]
	for {
		n, rows := in.extent, out.extent-p.coord[l-1]
		if p.coord[l] != 0 || len(dst) < n {
			n, rows = min(n-p.coord[l], len(dst)), 1
			strided(dst[:n], src, p.at, in.stride)
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
func gather[T integer](v *view, args []*tensor.Tensor, dst, src []T, p *position) int {
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
func copyPlane[T integer](dst, src []T, at, rows, cols, rowStep, colStep int) {
	switch {
	case colStep == 1:
		for r := range rows {
			copy(dst[r*cols:][:cols], src[at+r*rowStep:][:cols])
		}
	case colStep == 0:
		for r := range rows {
			fill(dst[r*cols:][:cols], src[at+r*rowStep])
		}
	case rows > cols || max(rowStep, -rowStep) < max(colStep, -colStep):
		// In blocks, so that lines of dst stay in the cache.
		const block = 32
		for from := 0; from < rows; from += block {
			n := min(block, rows-from)
			for c := range cols {
				step(dst[from*cols+c:], cols, src, at+from*rowStep+c*colStep, rowStep, n)
			}
		}
	default:
		for r := range rows {
			step(dst[r*cols:], 1, src, at+r*rowStep, colStep, cols)
		}
	}
}

// step copies n elements that lie so many steps apart, in dst and, from one on,
// in src.
func step[T any](dst []T, dstStep int, src []T, at, srcStep, n int) {
	last := n - 1
	_, _, _ = dst[last*dstStep], src[at], src[at+last*srcStep] // nothing else is checked
	size := int(unsafe.Sizeof(dst[0]))
	to, from := first(dst), unsafe.Pointer(&src[at])
	for i, j := 0, 0; n > 0; n-- {
		*(*T)(unsafe.Add(to, i)) = *(*T)(unsafe.Add(from, j))
		i, j = i+dstStep*size, j+srcStep*size
	}
}

// strided copies src[at], src[at+stride], … to dst.
func strided[T any](dst, src []T, at, stride int) {
	if len(dst) == 0 {
		return
	}
	switch stride {
	case 1:
		copy(dst, src[at:at+len(dst)])
	case 0:
		fill(dst, src[at])
	default:
		step(dst, 1, src, at, stride, len(dst))
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
		return slice[T](start(args[v.arg]), args[v.arg].Len())[from : from+n]
	}
	buf = buf[:n]
	if len(v.bounds) != 0 {
		fill(buf, absent)
	}
	switch to := first(buf); unsafe.Sizeof(absent) {
	case 1:
		overlay(v, args, slice[uint8](to, n), at)
	case 2:
		overlay(v, args, slice[uint16](to, n), at)
	case 4:
		overlay(v, args, slice[uint32](to, n), at)
	default:
		overlay(v, args, slice[uint64](to, n), at)
	}
	return buf
}
